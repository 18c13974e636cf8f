"""What the array API does not have, for NumPy and torch alike.

Products and factorisations on the host take as many threads as they keep busy; see `threads`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any, overload

import numpy as np
import scipy  # its parts when they are asked for
from array_api_compat import is_torch_array

from tagkin.arrays.device import on_accelerator
from tagkin.arrays.factoring import factor_in_threads
from tagkin.arrays.namespaces import Array, namespace, to_numpy
from tagkin.arrays.routines import add_lower_gram, lower_gram_of_rows, solve_lower
from tagkin.arrays.threads import blas_threads, blas_threads_for, each_in_threads, n_threads_for

__all__ = [
    "add_gram",
    "bincount",
    "cholesky",
    "clip",
    "copy_lower",
    "count_below",
    "diagonal_of",
    "each_tile",
    "eigh",
    "expit",
    "kth_largest",
    "logit",
    "lower_products",
    "matmul",
    "mirror_lower",
    "pivoted_cholesky",
    "pivoted_factor",
    "segment_sums",
    "solve_triangular",
    "weighted_rows",
]

_TILE = 256
_MEETINGS = 16  # columns that a factorisation does between two meetings of its threads, about
_OF_A_VECTOR = 16  # times as long for each multiplication
_MANY_ENTRIES = 2**21  # of a matrix, from which on several threads pay
_SMALL = 512  # up to this size a processor finds eigenvectors sooner than an accelerator


def matmul(A: Array, B: Array, out: Array | None = None) -> Array:
    """A B, written into `out` where that is given."""
    if is_torch_array(A):
        import torch

        return torch.matmul(A, B, out=out)
    n, m = (math.prod(part) for part in (A.shape[:-1], B.shape[1:]))
    # a product with a vector waits for memory, so that it takes longer for as much
    with blas_threads_for(n * A.shape[-1] * m * (_OF_A_VECTOR if min(n, m) == 1 else 1)):
        return np.matmul(A, B, out=None if out is None else np.asarray(out))


def add_gram(total: np.ndarray, K: np.ndarray) -> None:
    """Add KᵀK of K (n×r) to the lower triangle of the total (r×r), both of one dtype, in place."""
    with blas_threads_for(K.shape[0] * K.shape[1] ** 2 // 2):
        add_lower_gram(total, K)


def lower_products(A: Array) -> Array:
    """A Aᵀ (n×n) of A (n×d), of which only the lower triangle counts."""
    if not isinstance(A, np.ndarray):
        return matmul(A, A.T)
    with blas_threads_for(A.shape[0] ** 2 * A.shape[1] // 2):
        return lower_gram_of_rows(A)


def bincount(values: Array, n: int) -> Array:
    """How often each of 0 … n−1 occurs among `values`, shape (n,)."""
    if is_torch_array(values):
        import torch

        return torch.bincount(values, minlength=n)
    return np.bincount(values, minlength=n)


def segment_sums(values: Array, bounds: Array) -> Array:
    """Sums of consecutive values (E,) of torch, each from one of the bounds (S+1,) to the next.

    In a fixed order, other than sums by index on a device.
    """
    import torch

    return torch.segment_reduce(values, "sum", offsets=bounds, unsafe=True)


def clip(values: Array, low: float | None, high: float | None) -> Array:
    """`values` within [low, high]; None is no bound.

    On the host by NumPy itself: for a few hundred values, as blocks of small collections have,
    the array API's own takes three to five times as long.
    """
    if type(values) is np.ndarray:
        return np.clip(values, low, high)
    return namespace(values).clip(values, low, high)


@overload
def expit(values: np.ndarray) -> np.ndarray: ...


@overload
def expit(values: Array) -> Array: ...


def expit(values: Array) -> Array:
    """The logistic function 1 / (1 + exp(−x))."""
    if is_torch_array(values):
        import torch

        return torch.sigmoid(values)
    out = np.array(values, dtype=np.result_type(values, np.float32))
    np.negative(out, out=out)
    with np.errstate(over="ignore"):  # 1 / (1 + ∞) is 0
        np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


def logit(shares: np.ndarray) -> np.ndarray:
    """log(p / (1 − p)), the inverse of `expit`."""
    return np.log(shares) - np.log1p(-shares)


def weighted_rows(table: Array, indices: Array, weights: Array) -> Array:
    """Σₖ weights[i, k] table[indices[i, k]] (n×D) for a torch table (N×D) of the weights' dtype.

    No array of n × k × D entries is made.
    """
    import torch

    return torch.nn.functional.embedding_bag(indices, table, per_sample_weights=weights, mode="sum")


def kth_largest(rows: Array, k: int) -> Array:
    """The k-th largest entry of each row, shape (n, 1)."""
    if is_torch_array(rows):
        import torch

        return torch.topk(rows, k, dim=1).values[:, -1:]
    place = rows.shape[1] - k
    return np.partition(rows, place, axis=1)[:, place : place + 1]


def cholesky(A: Array, *, overwrite: bool = False, lower_only: bool = False) -> Array | None:
    """Lower Cholesky factor of a symmetric matrix, or None where it is not positive definite.

    With `overwrite` the matrix is lost, and its memory may become the factor's. With `lower_only`
    nothing above the diagonal is read, and what lies there in the factor has no meaning.
    """
    if is_torch_array(A):
        import torch

        L, info = torch.linalg.cholesky_ex(A)
        return L if int(info) == 0 else None
    L = _own(A, overwrite=overwrite)
    n_threads = n_threads_for(len(L) ** 3 // 6)
    with blas_threads(1):
        if not factor_in_threads(L, n_threads):
            return None
    if not lower_only:
        each_tile(partial(_clear_above, L), len(L))
    return L


def _own(A: Array, *, overwrite: bool = False) -> np.ndarray:
    """A in floating point and C's order; a copy, unless it may be overwritten."""
    dtype = A.dtype if A.dtype in (np.float32, np.float64) else np.float64
    return np.require(A, dtype, ["C", "W"]) if overwrite else np.array(A, dtype=dtype, order="C")


def _clear_above(L: np.ndarray, rows: slice) -> None:
    """Set some rows of L above the diagonal to zero, for `each_tile`."""
    L[rows, rows.stop :] = 0
    L[rows, rows] = np.tril(L[rows, rows])


def pivoted_cholesky(A: np.ndarray, tolerance: float) -> tuple[np.ndarray, int]:
    """Order of the rows of a symmetric matrix in its pivoted Cholesky factor, and its rank.

    What is left of the other rows, after the first of so many, is below the tolerance.
    """
    with _threads_to_factor(A):
        _, pivots, rank, _ = scipy.linalg.lapack.dpstrf(A.T, lower=1, tol=tolerance)
    return pivots - 1, int(rank)


def pivoted_factor(A: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """R (n×p) with A ≈ R Rᵀ for a symmetric positive semi-definite A, and the p pivots.

    The rows of R at the pivots, in their order, are a lower triangle.
    """
    with _threads_to_factor(A):
        factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(A.T, lower=1, tol=tolerance)
    R = np.empty((len(A), rank))
    R[pivots - 1] = np.tril(factor)[:, :rank]
    return R, pivots[:rank] - 1


def solve_triangular(L: Array, B: Array, *, transposed: bool = False) -> Array:
    """L⁻¹ B, or L⁻ᵀ B, for a lower triangular L."""
    if is_torch_array(L):
        import torch

        if transposed:
            return torch.linalg.solve_triangular(L.T, B, upper=True)
        return torch.linalg.solve_triangular(L, B, upper=False)
    dtype = np.result_type(L, B, np.float32)
    X = np.array(B, dtype=dtype, order="C")
    with blas_threads_for(L.shape[0] * math.prod(B.shape) // 2):
        solve_lower(np.asarray(L, dtype=dtype), X if X.ndim > 1 else X[:, None], transposed)
    return X


def eigh(A: Array) -> tuple[Array, Array]:
    """Eigenvalues (ascending) and eigenvectors of a symmetric matrix."""
    if on_accelerator(A) and A.shape[0] <= _SMALL:
        xp = namespace(A)
        values, vectors = (xp.asarray(part, device=A.device) for part in eigh(to_numpy(A)))
        return values, vectors
    if is_torch_array(A):
        return namespace(A).linalg.eigh(A)
    with _threads_to_factor(A):
        return np.linalg.eigh(A)  # SciPy's keeps Python's lock


def _threads_to_factor(A: Array) -> contextlib.AbstractContextManager[None]:
    """A factorisation is a row of products of the matrix with a few columns, one by one.

    Between them threads wait for each other: on a busy machine, two took ten times as long for
    4,096 rows as one, which takes half a second.
    """
    return blas_threads_for(math.prod(A.shape) * min(_MEETINGS, A.shape[0]))


def mirror_lower(A: Array) -> Array:
    """Copy the lower triangle of a square matrix onto the upper one, in place."""
    xp = namespace(A)

    def mirror(rows: slice) -> None:
        A[: rows.start, rows] = A[rows, : rows.start].T
        corner = xp.tril(A[rows, rows])
        A[rows, rows] = corner + xp.tril(corner, k=-1).T

    if isinstance(A, np.ndarray):
        each_tile(mirror, A.shape[0])
    elif A.shape[0]:
        # tiles stay in a processor's cache; a device would rather have one piece of work
        tile = A.shape[0] if on_accelerator(A) else _TILE
        for start in range(0, A.shape[0], tile):
            mirror(slice(start, start + tile))
    return A


def copy_lower(source: np.ndarray, target: np.ndarray, rows: slice) -> None:
    """Copy some rows of the lower triangle of a square matrix, for `each_tile`."""
    target[rows, : rows.stop] = source[rows, : rows.stop]


def each_tile(work: Callable[[slice], None], n: int) -> None:
    """Do `work` for slices of rows of an n×n NumPy matrix, in threads where they are many."""
    tiles = [slice(start, min(start + _TILE, n)) for start in range(0, n, _TILE)]
    if n * n >= _MANY_ENTRIES:
        each_in_threads(work, tiles[::-1])  # the longest rows of a triangle first
    else:
        for tile in tiles:
            work(tile)


def diagonal_of(A: Array) -> Any:
    """The diagonal of a square matrix in its own memory: what is written to it is in A."""
    if is_torch_array(A):
        import torch

        return torch.diagonal(A)
    return np.einsum("ii->i", A)


def count_below(
    ascending: np.ndarray, rows: np.ndarray, values: np.ndarray, *, or_equal: bool = False
) -> np.ndarray:
    """How many entries of a sorted row lie below a value: binary search, all values at once.

    Parameters
    ----------
    ascending : array of shape (r, m)
        Rows in ascending order.
    rows : int array of shape (k,)
        The row in which each value is looked up.
    values : array of shape (k,)
    or_equal : bool
        Count entries equal to the value as well.

    Returns
    -------
    count : int array of shape (k,)
    """
    m = ascending.shape[1]
    low, high = np.zeros(len(values), dtype=np.intp), np.full(len(values), m)
    for _ in range(m.bit_length()):
        middle = (low + high) // 2
        # a search that has ended keeps its place: its middle is high, and may be m
        entry = ascending[rows, np.minimum(middle, m - 1)]
        right = ((entry <= values) if or_equal else (entry < values)) & (low < high)
        low = np.where(right, middle + 1, low)
        high = np.where(right, high, middle)
    return low
