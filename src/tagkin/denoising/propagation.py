"""Tag propagation from images that look alike (equation 7)."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, check_label_matrix, namespace, to_numpy
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, Neighbors

__all__ = [
    "as_tags",
    "blend_tags",
    "propagate",
    "propagation_weights",
    "spread",
    "squared_neighbors",
]


def as_tags(Y: Array | None, n_rows: int) -> scipy.sparse.csr_array:
    """Return a copy of Y (N×D, dense or sparse) as a CSR array of nonzero float32 weights."""
    checked = check_label_matrix(Y, n_rows)
    if not scipy.sparse.issparse(checked):
        checked = to_numpy(checked)
    tags = scipy.sparse.csr_array(checked, copy=True)
    tags.sum_duplicates()  # before the cast: True twice is True
    with np.errstate(over="ignore"):  # named below
        tags = tags.astype(np.float32)
    tags.eliminate_zeros()
    if tags.nnz and not (tags.data.min() > 0 and np.isfinite(tags.data.max())):
        place = int(np.flatnonzero(~((tags.data > 0) & np.isfinite(tags.data)))[0])
        row = int(np.searchsorted(tags.indptr, place, side="right")) - 1
        raise InvalidInput(
            f"Found the weight {tags.data[place]} of tag {tags.indices[place]} on image {row}; "
            "weights must be positive and at most 3e38. Use 1 for present and 0 for absent tags."
        )
    return tags


def squared_neighbors(
    index: ExactNeighbors,
    queries: Array,
    k: int,
    exclude: np.ndarray | None = None,
) -> Neighbors:
    """Return at most k neighbours of each query (n×d), with *squared* distances, on the host.

    Under the cosine, zero features are at an infinite distance. For `exclude`
    see `ExactNeighbors.kneighbors`.
    """
    k = min(k, index.n_points_ - (exclude is not None))
    if k < 1:
        return Neighbors(np.empty((queries.shape[0], 0), np.int64), np.empty((queries.shape[0], 0)))
    neighbors = index.kneighbors(queries, k, exclude=exclude)
    indices, distances = (
        to_numpy(neighbors.indices),
        to_numpy(neighbors.distances).astype(np.float64),
    )
    if index.metric == "euclidean":
        return Neighbors(indices, distances**2)
    squared = 2 * distances  # of unit vectors ‖a − b‖² = 2 (1 − cosine)
    if (distances == 1).any():  # at a right angle, or one of the two is zero
        xp = namespace(queries)
        zero_query = to_numpy(xp.all(queries == 0, axis=1))
        zero_point = to_numpy(xp.all(index.points_ == 0, axis=1))
        squared[zero_query[:, None] | zero_point[indices]] = np.inf
    return Neighbors(indices, squared)


def propagation_weights(squared_distances: np.ndarray, scale: float) -> np.ndarray:
    """Return weights exp(−d²/σ) of an image's neighbours, shape (n, k), that add up to 1.

    The least distance of each row is subtracted first, which does not change the weights and
    avoids underflow. An infinite distance marks a missing neighbour.
    """
    least = squared_distances.min(axis=1, keepdims=True, initial=np.inf)
    beyond = squared_distances - np.where(np.isfinite(least), least, 0)
    with np.errstate(invalid="ignore", over="ignore"):
        # all images the same: the nearest ones weigh alike, the others nothing
        weights = np.exp(-beyond / scale) if scale > 0 else (beyond == 0).astype(float)
    total = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total > 0, total, 1)


def spread(
    indices: np.ndarray, weights: np.ndarray, tags: scipy.sparse.csr_array
) -> scipy.sparse.csr_array:
    """Return the weighted mean of neighbours' tag vectors: Σₖ wₖ t(k), CSR of shape (n, D).

    Parameters
    ----------
    indices, weights : arrays of shape (n, k)
        Rows of `tags`, and their weights; index −1 marks a missing neighbour.
    tags : CSR array of shape (N, D)
    """
    n, k = indices.shape
    weights = np.where(indices >= 0, weights, 0).astype(np.float32)
    weighted = scipy.sparse.csr_array(
        (weights.ravel(), np.maximum(indices, 0).ravel(), k * np.arange(n + 1)),
        shape=(n, tags.shape[0]),
    )
    return scipy.sparse.csr_array(weighted @ tags)


def propagate(
    indices: np.ndarray,
    squared_distances: np.ndarray,
    scale: float,
    tags: scipy.sparse.csr_array,
    own: scipy.sparse.csr_array | None = None,
) -> scipy.sparse.csr_array:
    """Equation 7: Σₖ wₖ t(k) / Σₖ wₖ with w = exp(−‖φ − φₖ‖²/σ), CSR of shape (n, D).

    Parameters
    ----------
    indices, squared_distances : arrays of shape (n, k)
        Rows of `tags`; −1, or an infinite distance, marks a missing neighbour.
    scale : float
        σ.
    tags : CSR array of shape (N, D)
    own : CSR array of shape (n, D), optional
        Tags of the images themselves, which then are one more neighbour, at distance 0.
    """
    if own is None:
        return spread(indices, propagation_weights(squared_distances, scale), tags)
    weights = propagation_weights(np.pad(squared_distances, ((0, 0), (1, 0))), scale)
    others = spread(indices, weights[:, 1:], tags)
    return others + scipy.sparse.diags_array(weights[:, 0].astype(np.float32)) @ own


def blend_tags(
    raw: scipy.sparse.csr_array, propagated: scipy.sparse.csr_array, blend: float
) -> scipy.sparse.csr_array:
    """Return (1 − β) raw + β propagated, CSR of shape (n, D); exact for β = 0 and β = 1.

    In between, an image without tags gets the propagated tags in full.
    """
    if blend in (0, 1):
        return propagated if blend == 1 else raw
    share = np.where(np.diff(raw.indptr) > 0, blend, 1).astype(np.float32)
    mixed = scipy.sparse.diags_array(1 - share) @ raw
    return scipy.sparse.csr_array(mixed + scipy.sparse.diags_array(share) @ propagated)
