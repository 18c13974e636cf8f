"""Products and factorisations of NumPy and torch matrices.

On the host, each uses as many threads as it keeps busy; see `tagkin.arrays.threads`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from types import ModuleType

import numpy as np
from array_api_compat import is_torch_array

from tagkin.arrays.checks import check_finite
from tagkin.arrays.namespaces import Array, namespace, on_accelerator
from tagkin.arrays.threads import blas_threads, blas_threads_for, find_libraries_again

__all__ = [
    "cholesky",
    "eigh",
    "matmul",
    "pivoted_cholesky",
    "solve_triangular",
    "unit_rows",
]


@functools.cache
def _scipy_linalg() -> ModuleType:
    """Return `scipy.linalg`, imported at first use; it brings its own BLAS."""
    import scipy.linalg

    find_libraries_again()
    return scipy.linalg


def matmul(A: Array, B: Array, out: Array | None = None) -> Array:
    """Return A B, written to `out` if given."""
    if is_torch_array(A):
        import torch

        return torch.matmul(A, B, out=out)
    n, m = (math.prod(part) for part in (A.shape[:-1], B.shape[1:]))
    with blas_threads_for(n * A.shape[-1] * m):
        return np.matmul(A, B, out=None if out is None else np.asarray(out))


def cholesky(A: Array) -> Array | None:
    """Return the lower Cholesky factor of a symmetric matrix, or None if it is not definite.

    Only the lower triangle is read.
    """
    if is_torch_array(A):
        import torch

        L, info = torch.linalg.cholesky_ex(A)
        return L if int(info) == 0 else None
    lapack = _scipy_linalg().lapack
    factorize = lapack.spotrf if A.dtype == np.float32 else lapack.dpotrf
    with blas_threads_for(A.shape[0] ** 3 // 6):
        # Aᵀ = UᵀU, in place of A = LLᵀ, is in LAPACK's order of memory already. This takes half to
        # a third of the time of np.linalg.cholesky for 1,500 rows.
        factor, info = factorize(np.ascontiguousarray(A).T, lower=0)
    return factor.T if info == 0 else None


def pivoted_cholesky(A: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Return R (n×p) with A ≈ R Rᵀ for a positive semi-definite A, and the p pivots.

    The rows of R at the pivots, in their order, are a lower triangle. The residual diagonal of
    every other row is at most the tolerance.
    """
    with blas_threads(1):  # see `eigh`
        factor, pivots, rank, _ = _scipy_linalg().lapack.dpstrf(A.T, lower=1, tol=tolerance)
    R = np.empty((len(A), rank))
    R[pivots - 1] = np.tril(factor)[:, :rank]
    return R, pivots[:rank] - 1


def solve_triangular(L: Array, B: Array, *, transposed: bool = False) -> Array:
    """Return L⁻¹ B, or L⁻ᵀ B, for a lower triangular L."""
    if is_torch_array(L):
        import torch

        return torch.linalg.solve_triangular(L.T if transposed else L, B, upper=transposed)
    with blas_threads_for(L.shape[0] * math.prod(B.shape) // 2):
        return _scipy_linalg().solve_triangular(
            L, B, trans=int(transposed), lower=True, check_finite=False
        )


def eigh(A: Array) -> tuple[Array, Array]:
    """Return eigenvalues (ascending) and eigenvectors of a symmetric matrix."""
    if is_torch_array(A):
        return namespace(A).linalg.eigh(A)
    # threads wait for each other after each few columns: on a busy machine, two of them took ten
    # times as long as one for 4,096 rows
    with blas_threads(1):
        return np.linalg.eigh(A)


def unit_rows(X: Array, name: str = "X", rows: Sequence[int] | None = None) -> tuple[Array, Array]:
    """Return rows divided by their norms, and the norms; a zero row stays zero.

    `rows` are row numbers for the message about a row that is not finite.
    """
    xp = namespace(X)
    safe = math.sqrt(float(xp.finfo(X.dtype).smallest_normal))
    # BLAS would use several threads for long rows, which have too little work for them
    with np.errstate(over="ignore", invalid="ignore"), blas_threads_for(X.shape[1]):
        # one pass on a device
        squares = xp.linalg.vector_norm(X, axis=1) ** 2 if on_accelerator(X) else xp.vecdot(X, X)
    if bool(xp.all((squares > safe) & (squares < 1 / safe))):
        norms = xp.sqrt(squares)
        return X / norms[:, None], norms
    check_finite(X, name, rows=rows)
    largest = xp.max(xp.abs(X), axis=1)
    scale = xp.where(largest > 0, largest, xp.ones_like(largest))
    X = X / scale[:, None]
    norms = xp.sqrt(xp.vecdot(X, X))
    X /= xp.where(norms > 0, norms, xp.ones_like(norms))[:, None]
    return X, norms * scale
