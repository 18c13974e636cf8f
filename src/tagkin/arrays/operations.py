"""Operations that the array API lacks, for NumPy and torch alike.

Products and factorisations on the host use as many threads as they keep busy; see `threads`.
"""

from __future__ import annotations

import functools
import math
from typing import Any, overload

import numpy as np
from array_api_compat import is_torch_array

from tagkin.arrays.device import on_accelerator
from tagkin.arrays.namespaces import Array, namespace, to_numpy
from tagkin.arrays.threads import blas_threads_for, find_libraries_again

__all__ = [
    "bincount",
    "cholesky",
    "clip",
    "count_below",
    "diagonal_of",
    "eigh",
    "expit",
    "kth_largest",
    "logit",
    "matmul",
    "pivoted_cholesky",
    "segment_sums",
    "self_products",
    "solve_triangular",
    "weighted_rows",
]

_MEETINGS = 16  # columns that a factorisation does between two meetings of its threads, about
_OF_A_VECTOR = 16  # times as long for each multiplication
_SMALL = 512  # up to this size a processor finds eigenvectors sooner than an accelerator


@functools.cache
def _scipy_linalg() -> Any:
    """`scipy.linalg`, imported at first use; it brings a BLAS of its own."""
    import scipy.linalg

    find_libraries_again()
    return scipy.linalg


def matmul(A: Array, B: Array, out: Array | None = None) -> Array:
    """A B, written into `out` where that is given."""
    if is_torch_array(A):
        import torch

        return torch.matmul(A, B, out=out)
    n, m = (math.prod(part) for part in (A.shape[:-1], B.shape[1:]))
    # a product with a vector waits for memory, so that it takes longer for as much
    with blas_threads_for(n * A.shape[-1] * m * (_OF_A_VECTOR if min(n, m) == 1 else 1)):
        return np.matmul(A, B, out=None if out is None else np.asarray(out))


def self_products(A: Array) -> Array:
    """A Aᵀ (n×n) of A (n×d), exactly symmetric."""
    if isinstance(A, np.ndarray):  # NumPy computes one triangle, if rows are contiguous
        A = np.ascontiguousarray(A)
        return matmul(A, A.T)
    products, xp = matmul(A, A.T), namespace(A)
    return xp.tril(products) + xp.tril(products, k=-1).T


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


def cholesky(A: Array) -> Array | None:
    """Lower Cholesky factor of a symmetric matrix, or None if it is not positive definite.

    Only the lower triangle is read.
    """
    if is_torch_array(A):
        import torch

        L, info = torch.linalg.cholesky_ex(A)
        return L if int(info) == 0 else None
    with blas_threads_for(A.shape[0] ** 3 // 6):
        try:
            return np.linalg.cholesky(A)
        except np.linalg.LinAlgError:
            return None


def pivoted_cholesky(A: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """R (n×p) with A ≈ R Rᵀ for a symmetric positive semi-definite A, and the p pivots.

    The rows of R at the pivots, in their order, are a lower triangle. The residual diagonal of
    every other row is at most the tolerance.
    """
    with blas_threads_for(_products_between_meetings(A)):
        factor, pivots, rank, _ = _scipy_linalg().lapack.dpstrf(A.T, lower=1, tol=tolerance)
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
    with blas_threads_for(L.shape[0] * math.prod(B.shape) // 2):
        return _scipy_linalg().solve_triangular(
            L, B, trans=int(transposed), lower=True, check_finite=False
        )


def eigh(A: Array) -> tuple[Array, Array]:
    """Eigenvalues (ascending) and eigenvectors of a symmetric matrix."""
    if on_accelerator(A) and A.shape[0] <= _SMALL:
        xp = namespace(A)
        values, vectors = (xp.asarray(part, device=A.device) for part in eigh(to_numpy(A)))
        return values, vectors
    if is_torch_array(A):
        return namespace(A).linalg.eigh(A)
    with blas_threads_for(_products_between_meetings(A)):
        return np.linalg.eigh(A)


def _products_between_meetings(A: Array) -> int:
    """Multiplications of a factorisation of A between two meetings of its threads.

    It multiplies the matrix with a few columns at a time. Between those products threads wait for
    each other: on a busy machine, two took ten times as long for 4,096 rows as one.
    """
    return math.prod(A.shape) * min(_MEETINGS, A.shape[0])


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
