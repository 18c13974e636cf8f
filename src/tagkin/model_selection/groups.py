"""Groups of images that belong together, such as bursts.

Images of a group in different folds make held-out metrics too good, because the method has learned
the labels of their near-duplicates. Links between images come from near-duplicate features
(`NearImages`) or other sources, such as capture times; `linked_groups` joins them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tagkin.arrays import Array, check_features, check_integer, row_blocks, to_numpy
from tagkin.arrays.linalg import eigh
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors
from tagkin.neighbors.neighbor_index import unit_rows

__all__ = ["Links", "NearImages", "find_groups", "linked_groups"]

# The distance of near-duplicates, as a share of the distance to the nearest quarter of all images.
# With features of EfficientNet-Lite0, 99 of 100 frames that were cut from one photograph (70 to
# 95 % of its side, turned by up to 4°, half a stop darker or brighter; cosines of .81 to .95) are
# this near to another frame; with a share of .18, 80 of 100. Of 1,200 different photographs of
# COCO, 1 in 100 has such a neighbour, of 20,000 6 in 100.
CLOSENESS = 0.3
# Different photographs of one subject, such as skiers, are linked to chains. Without a limit, 5,000
# photographs of COCO had groups of up to 654, and suggestions asked for at a precision of .8 were
# 6 % fewer than without groups. With this limit they are 2 % fewer.
MAX_BURST = 25  # images that such links may join
_SURE = 0.4  # gap up to which links may join more, such as copies of one image
_QUARTER = 0.25
_SAMPLE = 512  # images for the estimate of the distance to a quarter
_DIMENSIONS = 64  # leading directions for the search of candidates
_CANDIDATES = 6  # nearest images that are compared exactly


class Links(NamedTuple):
    """Pairs of images that seem to belong together, as arrays of shape (m,)."""

    first: np.ndarray
    second: np.ndarray
    gaps: np.ndarray
    """Relative distances, from 0 (surely together) to 1 (just near enough)."""

    @classmethod
    def none(cls) -> Links:
        """Return an empty set of links."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def find_groups(X: Array, *, n_folds: int = 3) -> np.ndarray:
    """Find groups of near-duplicate images, for `grid_search` and similar functions.

    Parameters
    ----------
    X : array of shape (N, d)
        Visual features, compared by cosine.
    n_folds : int, default 3
        A group has at most N / n_folds images.

    Returns
    -------
    groups : int array of shape (N,)
        Numbers from 0 in the order of the images. Most groups have a single image.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.model_selection import find_groups
    >>> X = np.random.default_rng(0).random((12, 16))
    >>> X[5] = X[2] + 0.01
    >>> find_groups(X)
    array([ 0,  1,  2,  3,  4,  2,  5,  6,  7,  8,  9, 10])
    """
    check_integer("n_folds", n_folds, 2)
    n = check_features(X).shape[0]
    return linked_groups(n, [NearImages(X).duplicates()], max_size=max(1, n // n_folds))


class NearImages:
    """Finds images whose features (N×d) hardly differ, by cosine.

    Two images are near-duplicates if 1 − cosine is at most 0.3 times the distance within which a
    quarter of all images lie, for both of them. Many images of one subject are linked to chains,
    which are cut into parts of at most 25 images, unless their distances are well below this.
    """

    def __init__(self, X: Array):
        self._features = check_features(X)

    @cached_property
    def _quarter(self) -> np.ndarray:
        return _quarter_distances(self._features, _sample(self._features.shape[0]))

    def duplicates(self) -> Links:
        """Return all pairs of near-duplicates, of the nearest images of each image."""
        n = self._features.shape[0]
        if n < 2:
            return Links.none()
        projected = _project(self._features, _sample(n))
        index = ExactNeighbors("euclidean").fit(projected)
        neighbors = index.kneighbors(projected, min(_CANDIDATES, n - 1), exclude=np.arange(n))
        second = to_numpy(neighbors.indices).ravel()
        first = np.repeat(np.arange(n), len(second) // n)
        # the other directions only add to a distance, so this is a lower bound of 1 − cosine
        bounds = to_numpy(neighbors.distances).ravel() ** 2 / 2
        links = self._link(first, second, CLOSENESS, bounds * (1 - 1e-3) - 1e-6)
        bursts = linked_groups(n, [links], max_size=MAX_BURST)
        kept = (links.gaps <= _SURE) | (bursts[links.first] == bursts[links.second])
        return Links(*(part[kept] for part in links))

    def pairs(self, first: np.ndarray, second: np.ndarray, closeness: float) -> Links:
        """Return the pairs, out of these (m,), that are near-duplicates.

        `closeness` may be larger for pairs that are related otherwise, such as by capture time.
        """
        return self._link(first, second, closeness, np.zeros(len(first)))

    def _link(
        self, first: np.ndarray, second: np.ndarray, closeness: float, bounds: np.ndarray
    ) -> Links:
        """Link pairs that are near enough; lower `bounds` of the distances save work."""
        near = np.minimum(self._quarter[first], self._quarter[second]) * closeness
        possible = bounds <= near
        first, second, near = first[possible], second[possible], near[possible]
        distances = _pair_distances(self._features, first, second)
        linked = (distances <= near) & (near > 0)
        return Links(first[linked], second[linked], distances[linked] / near[linked])


def _sample(n: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(n)[:_SAMPLE]


def _unit(features: Array, rows: np.ndarray | slice) -> np.ndarray:
    """Scale rows to unit length, in float32; a zero row stays zero."""
    return np.asarray(to_numpy(unit_rows(features[rows], "X")), dtype=np.float32)


def _quarter_distances(features: Array, sample: np.ndarray) -> np.ndarray:
    """Return the 1 − cosine within which a quarter of the sample lies, for each image (N,)."""
    n = features.shape[0]
    others = _unit(features, sample)
    rank = int(_QUARTER * (len(others) - 1))
    distances = np.empty(n, dtype=np.float32)
    for rows in row_blocks(n, 8 * (features.shape[1] + len(others))):
        far = 1 - _unit(features, rows) @ others.T
        distances[rows] = np.partition(far, rank, axis=1)[:, rank]
    return distances


def _project(features: Array, sample: np.ndarray) -> np.ndarray:
    """Project images of unit length on the sample's main directions, (N, 64 at most)."""
    n, d = features.shape
    if d <= _DIMENSIONS:
        return _unit(features, slice(None))
    vectors = _unit(features, sample)
    directions = _principal_directions(vectors - vectors.mean(axis=0), _DIMENSIONS)
    projected = np.empty((n, directions.shape[1]), dtype=np.float32)
    for rows in row_blocks(n, 16 * d):
        projected[rows] = _unit(features, rows) @ directions
    return projected


def _principal_directions(A: np.ndarray, n_directions: int) -> np.ndarray:
    """Return orthonormal directions (d × n_directions at most) in which rows of A (n×d) vary most.

    With A Aᵀ = U Λ Uᵀ they are Aᵀ U Λ^(−½), which is ten times faster than a singular value
    decomposition if there are fewer rows than columns. Equal rows give one direction of zeros.
    """
    A = A.astype(np.float64)
    values, vectors = eigh(A @ A.T)
    largest = np.flatnonzero(values > 1e-9 * max(values[-1], 0))[::-1][:n_directions]
    if not len(largest) or not values[-1] > 0:
        return np.zeros((A.shape[1], 1), dtype=np.float32)
    return (A.T @ (vectors[:, largest] / np.sqrt(values[largest]))).astype(np.float32)


def _pair_distances(features: Array, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return 1 − cosine of pairs of images; a zero vector is at distance 1 from everything."""
    distances = np.empty(len(first))
    for pairs in row_blocks(len(first), 48 * features.shape[1]):
        products = _unit(features, first[pairs]) * _unit(features, second[pairs])
        distances[pairs] = 1 - products.sum(axis=1)
    return np.maximum(distances, 0)


# --- joining -----------------------------------------------------------------------------


def linked_groups(n_images: int, links: Iterable[Links], max_size: int) -> np.ndarray:
    """Group images that are linked directly or through others; no group exceeds `max_size`.

    The strongest links come first, and a link that would make too large a group is ignored. So a
    chain through a whole collection breaks at its weakest links, and a wrong link costs little.

    Parameters
    ----------
    n_images : int
    links : iterable of Links
    max_size : int
        At least 1.

    Returns
    -------
    groups : int array of shape (n_images,)
        Numbers from 0 in the order of the images.
    """
    check_integer("max_size", max_size)
    parts = list(links) or [Links.none()]
    first, second, gaps = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if (
        len(first)
        and not 0 <= min(first.min(), second.min()) <= max(first.max(), second.max()) < n_images
    ):
        raise InvalidInput(f"Links must be between images 0 to {n_images - 1}.")
    pairs = coo_array((np.ones(len(first), dtype=bool), (first, second)), (n_images, n_images))
    groups = connected_components(pairs, directed=False)[1]
    too_large = np.bincount(groups, minlength=1) > max_size
    if too_large.any():
        inside = np.flatnonzero(too_large[groups[first]])
        inside = inside[np.argsort(gaps[inside], kind="stable")]
        members = np.flatnonzero(too_large[groups])
        parents = _join_links(n_images, first[inside], second[inside], max_size)
        groups[members] = n_images + parents[members]
    _, first_image, inverse = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first_image))[inverse]


def _join_links(n: int, first: np.ndarray, second: np.ndarray, max_size: int) -> np.ndarray:
    """Join links in order, and return a representative of each image's group (n,)."""
    parents, sizes = list(range(n)), [1] * n

    def root(i: int) -> int:
        while parents[i] != i:
            parents[i] = i = parents[parents[i]]
        return i

    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        a, b = root(i), root(j)
        if a != b and sizes[a] + sizes[b] <= max_size:
            parents[b] = a
            sizes[a] += sizes[b]
    return np.array([root(i) for i in range(n)], dtype=np.int64)
