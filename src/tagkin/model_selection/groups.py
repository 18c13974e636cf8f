"""Groups of images to hold out together: pictures that are nearly the same, or linked otherwise.

Copies of a picture in different folds make held-out metrics too good, because the method has
learned the labels of the other copies. Different images that look alike are not copies: a method
has to recognise them, and an audit compares them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tagkin.arrays import Array, check_features, check_integer, row_blocks, to_numpy
from tagkin.arrays.linalg import eigh
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors
from tagkin.neighbors.lists import directions

__all__ = ["COPIES", "Copies", "Links", "find_groups", "join_links", "link_alike", "link_copies"]


@dataclass(frozen=True)
class Copies:
    """Numbers that say which pictures are nearly the same."""

    cosine: float = 0.97
    """Least cosine of two copies of a picture. With features of EfficientNet-Lite0, 2 of 20,000
    different photographs of COCO are this near to another. With .8, it would be 36 of 100."""
    share: float = 0.05
    """Copies are also this near beside the median distance of two images (.66 on COCO), because all
    images have high cosines if features are few and not centred."""
    sample: int = 512
    """Images that tell the main directions."""
    dimensions: int = 64
    """Main directions for the search of candidates."""
    candidates: int = 6
    """Nearest images that are compared exactly."""


COPIES = Copies()


class Links(NamedTuple):
    """Pairs of images that belong together, as arrays of shape (m,)."""

    first: np.ndarray
    second: np.ndarray
    gaps: np.ndarray
    """Relative distances, from 0 (surely together) to 1 (just near enough)."""

    @classmethod
    def none(cls) -> Links:
        """Return an empty set of links."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def find_groups(X: Array, *, n_folds: int = 3) -> np.ndarray:
    """Find groups of images that are nearly the same, to hold out together.

    Two images are nearly the same if the cosine of their features is at least .97, and their
    distance (1 − cosine) at most a twentieth of the median distance of two images. Copies of a
    photograph are, and shots of a fast burst. Other photographs of a burst look less alike; pass
    `groups` of your own if you know them.

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
    return join_links(n, [link_copies(X)], max_size=max(1, n // n_folds))


def link_copies(X: Array) -> Links:
    """Link each image to those of its nearest images that are nearly the same picture."""
    features = check_features(X)
    n = features.shape[0]
    if n < 2:
        return Links.none()
    sample = _unit(features, np.random.default_rng(0).permutation(n)[: COPIES.sample])
    typical = float(np.median(1 - (sample @ sample.T)[np.triu_indices(len(sample), 1)]))
    least = max(COPIES.cosine, 1 - COPIES.share * typical)
    projected = _project(features, sample)
    index = ExactNeighbors("euclidean").fit(projected)
    neighbors = index.kneighbors(projected, min(COPIES.candidates, n - 1), exclude=np.arange(n))
    second = to_numpy(neighbors.indices).ravel()
    first = np.repeat(np.arange(n), len(second) // n)
    # the other directions only add to a distance, so this is a lower bound of 1 − cosine
    bounds = to_numpy(neighbors.distances).ravel() ** 2 / 2
    near = bounds <= 1.01 * (1 - least) + 1e-6
    return link_alike(features, first[near], second[near], least)


def link_alike(X: Array, first: np.ndarray, second: np.ndarray, min_cosine: float) -> Links:
    """Link the pairs, out of these (m,), whose features (N×d) have this cosine or more."""
    cosines = np.empty(len(first))
    for pairs in row_blocks(len(first), 48 * X.shape[1]):
        products = _unit(X, first[pairs]) * _unit(X, second[pairs])
        cosines[pairs] = products.sum(axis=1)
    alike = cosines >= min_cosine
    gaps = np.maximum(1 - cosines[alike], 0) / max(1 - min_cosine, 1e-9)
    return Links(first[alike], second[alike], gaps)


def _unit(features: Array, rows: np.ndarray | slice) -> np.ndarray:
    """Scale rows to unit length, in float32; a zero row stays zero."""
    return np.asarray(to_numpy(directions(features[rows], "X")), dtype=np.float32)


def _project(features: Array, sample: np.ndarray) -> np.ndarray:
    """Project images of unit length on the main directions of a sample, (N, 64 at most).

    With A Aᵀ = U Λ Uᵀ of the centred sample A, the directions are Aᵀ U Λ^(−½). That is ten times
    faster than a singular value decomposition.
    """
    n, d = features.shape
    if d <= COPIES.dimensions:
        return _unit(features, slice(None))
    sample = sample.astype(np.float64)
    sample -= sample.mean(axis=0)
    values, vectors = eigh(sample @ sample.T)
    values, vectors = values[-COPIES.dimensions :], vectors[:, -COPIES.dimensions :]
    scales = np.where(values > 1e-9, 1 / np.sqrt(np.maximum(values, 1e-9)), 0)
    directions = (sample.T @ (vectors * scales)).astype(np.float32)
    projected = np.empty((n, directions.shape[1]), dtype=np.float32)
    for rows in row_blocks(n, 16 * d):
        projected[rows] = _unit(features, rows) @ directions
    return projected


def join_links(n_images: int, links: Iterable[Links], max_size: int) -> np.ndarray:
    """Group images that are linked directly or through others; no group exceeds `max_size`.

    The strongest links come first, and a link that would make too large a group is ignored. So a
    chain through a whole collection breaks at its weakest links.

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
    parts = [Links.none(), *links]
    first, second, gaps = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    ends = np.concatenate([first, second])
    if len(ends) and not 0 <= ends.min() <= ends.max() < n_images:
        raise InvalidInput(f"Links must be between images 0 to {n_images - 1}.")
    parents, sizes = list(range(n_images)), [1] * n_images

    def root(i: int) -> int:
        while parents[i] != i:
            parents[i] = i = parents[parents[i]]
        return i

    for k in np.argsort(gaps, kind="stable"):
        a, b = root(int(first[k])), root(int(second[k]))
        if a != b and sizes[a] + sizes[b] <= max_size:
            parents[b] = a
            sizes[a] += sizes[b]
    roots = [root(i) for i in range(n_images)]
    _, first_image, inverse = np.unique(roots, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first_image))[inverse]
