"""Groups of images that belong together, such as bursts: what links them, and who is linked.

Images of one group in different folds make held-out figures too good, for the labels of one are
known from the others. Links between images come from near-duplicate features (`near_duplicates`)
or from elsewhere, such as the time at which photographs were taken; `linked_groups` joins them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tagkin.arrays import Array, check_features, check_integer, row_blocks, to_numpy
from tagkin.arrays.linalg import eigh
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors
from tagkin.neighbors.base import unit_rows

__all__ = [
    "Links",
    "NearImages",
    "find_groups",
    "linked_groups",
    "near_duplicates",
    "near_pairs",
]

# How near near-duplicates are, as a share of the distance within which a quarter of all images
# lie. With features of EfficientNet-Lite0, a photograph saved again, brightened, mirrored or
# cropped by 5 % is nearer than that to itself in 99 of 100 cases; of 1,200 photographs of COCO no
# two are, of 20,000 one in twenty has another as near.
CLOSENESS = 0.18
_QUARTER = 0.25
_SAMPLE = 512  # images that the distance of a quarter is estimated from
_DIMENSIONS = 64  # leading directions, in which candidates are searched
_CANDIDATES = 6  # nearest images that are looked at
_SHORTEST = 1e-15  # of a row whose squares are still numbers in float32


class Links(NamedTuple):
    """Pairs of images that seem to belong together: arrays of shape (m,)."""

    first: np.ndarray
    second: np.ndarray
    gaps: np.ndarray
    """How far apart they are, from 0 (surely together) to 1 (just near enough)."""

    @classmethod
    def none(cls) -> Links:
        """No links."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def find_groups(X: Array, *, n_folds: int = 3) -> np.ndarray:
    """Groups of near-duplicate images, as `grid_search` and the others take them.

    Parameters
    ----------
    X : array of shape (N, d)
        Visual features, compared by cosine.
    n_folds : int, default 3
        No group is larger than one of so many folds.

    Returns
    -------
    groups : int array of shape (N,)
        Numbers from 0 in the order of the images. Most images are a group of one.

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
    return linked_groups(n, [near_duplicates(X)], max_size=max(1, n // n_folds))


def near_duplicates(X: Array, closeness: float = CLOSENESS) -> Links:
    """Pairs of images whose features (N×d) hardly differ, by cosine.

    Two images are near-duplicates where 1 − cosine is at most `closeness` times the distance
    within which a quarter of all images lie, seen from either of them.
    """
    return NearImages(X).duplicates(closeness)


def near_pairs(X: Array, first: np.ndarray, second: np.ndarray, closeness: float) -> Links:
    """Those of the pairs (m,) of images whose features (N×d) hardly differ, as `near_duplicates`.

    For images that something else brings together: there `closeness` may be larger.
    """
    return NearImages(X).pairs(first, second, closeness)


class NearImages:
    """Images (N×d) that hardly differ, of all of them or among given pairs: `near_duplicates` and
    `near_pairs` of the same images.
    """

    def __init__(self, X: Array):
        self._features = check_features(X)

    @cached_property
    def _quarter(self) -> np.ndarray:
        features = self._features
        return _distances_of_a_quarter(features, _sample(features.shape[0]))

    def duplicates(self, closeness: float = CLOSENESS) -> Links:
        """As `near_duplicates`."""
        n = self._features.shape[0]
        if n < 2:
            return Links.none()
        searched = _leading_directions(self._features, _sample(n))
        index = ExactNeighbors("euclidean").fit(searched)
        found = index.kneighbors(searched, min(_CANDIDATES, n - 1), exclude=np.arange(n))
        second = to_numpy(found.indices).ravel()
        first = np.repeat(np.arange(n), len(second) // n)
        # directions that are left out only add to a distance: 1 − cosine is at least this
        at_least = to_numpy(found.distances).ravel() ** 2 / 2
        return self._near(first, second, closeness, at_least * (1 - 1e-3) - 1e-6)

    def pairs(self, first: np.ndarray, second: np.ndarray, closeness: float) -> Links:
        """As `near_pairs`."""
        return self._near(first, second, closeness, np.zeros(len(first)))

    def _near(
        self, first: np.ndarray, second: np.ndarray, closeness: float, at_least: np.ndarray
    ) -> Links:
        """Pairs near enough; of those further apart than that `at_least` no more is asked."""
        near = np.minimum(self._quarter[first], self._quarter[second]) * closeness
        possible = at_least <= near
        first, second, near = first[possible], second[possible], near[possible]
        distances = _pair_distances(self._features, first, second)
        linked = (distances <= near) & (near > 0)
        return Links(first[linked], second[linked], distances[linked] / near[linked])


def _sample(n: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(n)[:_SAMPLE]


def _unit(features: Array, rows: np.ndarray | slice) -> np.ndarray:
    """Some of the images at unit length, in float32; a zero row stays zero."""
    some = features[rows]
    if isinstance(some, np.ndarray) and some.dtype == np.float32:
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.sqrt(np.einsum("nd,nd->n", some, some))
        if lengths.min(initial=1) > _SHORTEST and lengths.max(initial=1) < np.inf:
            return some / lengths[:, None]
    return np.asarray(to_numpy(unit_rows(some, "X")), dtype=np.float32)


def _distances_of_a_quarter(features: Array, sample: np.ndarray) -> np.ndarray:
    """1 − cosine within which a quarter of a sample of the images lie, for each image, (N,)."""
    n = features.shape[0]
    others = _unit(features, sample)
    rank = int(_QUARTER * (len(others) - 1))
    distances = np.empty(n, dtype=np.float32)
    for rows in row_blocks(n, 8 * (features.shape[1] + len(others))):
        far = 1 - _unit(features, rows) @ others.T
        distances[rows] = np.partition(far, rank, axis=1)[:, rank]
    return distances


def _leading_directions(features: Array, sample: np.ndarray) -> np.ndarray:
    """Images of unit length in the directions in which most of them differ, (N, 64 at most)."""
    n, d = features.shape
    if d <= _DIMENSIONS:
        return _unit(features, slice(None))
    some = _unit(features, sample)
    directions = _principal_directions(some - some.mean(axis=0), _DIMENSIONS)
    projected = np.empty((n, directions.shape[1]), dtype=np.float32)
    for rows in row_blocks(n, 16 * d):
        projected[rows] = _unit(features, rows) @ directions
    return projected


def _principal_directions(A: np.ndarray, n_directions: int) -> np.ndarray:
    """Orthonormal directions (d × n_directions at most) in which the rows of A (n×d) vary most.

    With A Aᵀ = U Λ Uᵀ they are Aᵀ U Λ^(−½): for fewer rows than columns in a tenth of the time
    that their singular values take. Where the rows do not differ, it is one direction of zeros.
    """
    A = A.astype(np.float64)
    values, vectors = eigh(A @ A.T)
    kept = np.flatnonzero(values > 1e-9 * max(values[-1], 0))[::-1][:n_directions]
    if not len(kept) or not values[-1] > 0:
        return np.zeros((A.shape[1], 1), dtype=np.float32)
    return (A.T @ (vectors[:, kept] / np.sqrt(values[kept]))).astype(np.float32)


def _pair_distances(features: Array, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """1 − cosine of pairs of images; a zero vector is at distance 1 from everything."""
    distances = np.empty(len(first))
    for pairs in row_blocks(len(first), 48 * features.shape[1]):
        one, other = _unit(features, first[pairs]), _unit(features, second[pairs])
        distances[pairs] = 1 - (one * other).sum(axis=1)
    return np.maximum(distances, 0)


# --- joining -----------------------------------------------------------------------------


def linked_groups(n_images: int, links: Iterable[Links], max_size: int) -> np.ndarray:
    """Groups of images that are linked, directly or through others, none above `max_size`.

    Links are taken from the surest on; one that would make too large a group is left out. So a
    chain through a whole collection breaks where it is weakest, and a wrong link costs little.

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
    first, second, gaps = (np.concatenate(some) for some in zip(*parts, strict=True))
    if (
        len(first)
        and not 0 <= min(first.min(), second.min()) <= max(first.max(), second.max()) < n_images
    ):
        raise InvalidInput(f"Links must be between images 0 to {n_images - 1}.")
    groups = _connected(n_images, first, second)
    too_large = np.bincount(groups, minlength=1) > max_size
    if too_large.any():
        again = np.flatnonzero(too_large[groups[first]])
        again = again[np.argsort(gaps[again], kind="stable")]
        among = np.flatnonzero(too_large[groups])
        parents = _joined(n_images, first[again], second[again], max_size)
        groups[among] = n_images + parents[among]
    return _in_order(groups)


def _connected(n: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The least image of those that each is linked with, directly or through others, (n,).

    Of each link between two groups, the later group is joined to the earlier one, all at once and
    until none is left. (SciPy's takes a quarter of a second to import, which a short command has
    not.)
    """
    least = np.arange(n)
    while True:
        one, other = least[first], least[second]
        apart = one != other
        if not apart.any():
            return least
        later, earlier = np.maximum(one, other)[apart], np.minimum(one, other)[apart]
        np.minimum.at(least, later, earlier)
        while (least != (above := least[least])).any():
            least = above


def _joined(n: int, first: np.ndarray, second: np.ndarray, max_size: int) -> np.ndarray:
    """A representative of each image's group (n,), by joining link after link."""
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


def _in_order(groups: np.ndarray) -> np.ndarray:
    """The same groups, numbered in the order in which they first occur."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
