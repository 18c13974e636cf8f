"""The overlap of neighbours' label sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from tagkin.arrays import Array, check_integer, row_blocks, to_numpy
from tagkin.arrays.labels import label_positions
from tagkin.errors import InvalidInput

__all__ = ["neighborhood_jaccard"]


def neighborhood_jaccard(
    Y_query: Array, Y_known: Array, indices: Array, *, sizes: Sequence[int] | None = None
) -> float | np.ndarray:
    """Return the mean Jaccard overlap between the label sets of images and of their neighbours.

    J = 1/n Σᵢ 1/K Σₖ |Yᵢ ∩ Yₖ| / |Yᵢ ∪ Yₖ|, over images i and their K neighbours k. The overlap of
    two images without labels is 0.

    Parameters
    ----------
    Y_query : array or sparse matrix of shape (n, D)
        Labels of the images, 0 or 1.
    Y_known : array or sparse matrix of shape (N, D)
        Labels of the neighbours' collection.
    indices : int array of shape (n, K)
        Rows of `Y_known` with each image's neighbours, nearest first.
    sizes : sequence of int, optional
        Sizes of neighbourhoods, at most K.

    Returns
    -------
    overlap : float, or float64 array of shape (len(sizes),)
        For all K neighbours, or for the nearest neighbours of every size.

    Examples
    --------
    >>> from tagkin.evaluation import neighborhood_jaccard
    >>> neighborhood_jaccard([[1, 1, 0]], [[1, 1, 0], [0, 1, 1]], [[0, 1]], sizes=[1, 2])
    array([1.        , 0.66666667])
    """
    query, known = label_positions(Y_query, "Y_query"), label_positions(Y_known, "Y_known")
    if query.shape[1] != known.shape[1]:
        raise InvalidInput(
            f"Y_query and Y_known must have the same labels; found {query.shape[1]} and "
            f"{known.shape[1]} columns."
        )
    neighbors = _check_indices(to_numpy(indices), query.shape[0], known.shape[0])
    n, k = neighbors.shape
    sizes_ = _check_sizes([k] if sizes is None else sizes, k)

    per_image = (query.nnz // n + known.nnz // max(1, known.shape[0]) + 2) * 32 * k
    total = np.zeros(k)
    for rows in row_blocks(n, per_image):
        total += _overlaps(query[rows], known, neighbors[rows]).sum(axis=0)
    curve = np.cumsum(total / n) / np.arange(1, k + 1)
    return float(curve[-1]) if sizes is None else curve[sizes_ - 1]


def _overlaps(query: csr_array, known: csr_array, neighbors: np.ndarray) -> np.ndarray:
    """Return the Jaccard index of every image and each of its neighbours, (n, K)."""
    n, k = neighbors.shape
    theirs = known[neighbors.ravel()]
    shared = theirs.multiply(query[np.repeat(np.arange(n), k)]).sum(axis=1, dtype=np.intp)
    shared = np.asarray(shared).reshape(n, k)
    own_size = np.diff(query.indptr)[:, None]
    union = own_size + np.diff(theirs.indptr).reshape(n, k) - shared
    return shared / np.maximum(union, 1)


def _check_indices(indices: np.ndarray, n: int, n_known: int) -> np.ndarray:
    if indices.ndim != 2 or indices.shape[0] != n or indices.size == 0:
        raise InvalidInput(
            "indices must have one row for each image of Y_query and one column per neighbour; "
            f"found shape {indices.shape} for {n} images."
        )
    if indices.dtype.kind not in "iu":
        raise InvalidInput(f"indices must be whole numbers; found dtype {indices.dtype}.")
    outside = np.argwhere((indices < 0) | (indices >= n_known))
    if len(outside):
        row, column = outside[0]
        raise InvalidInput(
            f"indices has {indices[row, column]} at row {row}, column {column}, but Y_known has "
            f"rows 0 to {n_known - 1}. Search neighbours in that collection, and no more than it "
            "has."
        )
    return indices


def _check_sizes(sizes: Sequence[int], k: int) -> np.ndarray:
    checked = np.array([check_integer("a neighbourhood's size", size) for size in sizes], dtype=int)
    if checked.size and checked.max() > k:
        raise InvalidInput(
            f"sizes contains {checked.max()}, but indices has {k} neighbours per image. Search "
            "for more neighbours."
        )
    return checked
