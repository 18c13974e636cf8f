"""Systems of equations solved in float32 and refined in float64."""

from __future__ import annotations

import math

import numpy as np

from tagkin.arrays.namespaces import Array
from tagkin.arrays.operations import cholesky, each_tile, solve_triangular
from tagkin.arrays.routines import lower_times
from tagkin.arrays.threads import blas_threads_for

__all__ = ["solve_refined"]

_TOLERANCE = 1e-14  # of the error that is left, relative
_SLOWEST, _STEPS = 0.1, 8
_ROUNDING = 1e-9  # corrections that are as small, and shrink no more, are rounding of float64


def solve_refined(A: np.ndarray, B: np.ndarray) -> np.ndarray | None:
    """A⁻¹ B as exact as a float64 factor gives it, at little more than the price of a float32 one.

    X₀ = (L Lᵀ)⁻¹ B with a float32 Cholesky factor L of A, and Xₖ₊₁ = Xₖ + (L Lᵀ)⁻¹ (B − A Xₖ)
    with differences in float64. An error shrinks by about the condition of A times the rounding
    of float32 at each step, and steps end where the next one would change nothing.

    Parameters
    ----------
    A : float64 array of shape (n, n)
        Symmetric; only its lower triangle is read.
    B : float64 array of shape (n, q)

    Returns
    -------
    X : array of shape (n, q), or None
        None where A is not positive definite in float32, or too ill-conditioned for that.
    """
    unit = float(A.diagonal().max(initial=0.0))  # no entry is larger, or it is not definite
    if not 0 < unit < math.inf:
        return None
    L = cholesky(_in_single(A, 1 / unit), overwrite=True, lower_only=True)
    if L is None:
        return None
    X = _solved(L, B, unit)
    before = _norm(X)
    for _ in range(_STEPS):
        correction = _solved(L, B - _lower_times(A, X), unit)
        error = _norm(correction)
        if not error <= _SLOWEST * before:  # also where it is NaN
            return X if before <= _ROUNDING * _norm(X) else None
        X += correction
        if error * error <= _TOLERANCE * before * _norm(X):  # the error that is left
            return X
        before = error
    return None


def _in_single(A: np.ndarray, factor: float) -> np.ndarray:
    """The lower triangle of A times a factor, in float32."""
    single = np.empty(A.shape, dtype=np.float32)

    def fill(rows: slice) -> None:
        part = single[rows, : rows.stop]
        np.multiply(A[rows, : rows.stop], factor, out=part, casting="same_kind")

    each_tile(fill, len(A))
    return single


def _solved(L: Array, B: np.ndarray, unit: float) -> np.ndarray:
    """(unit L Lᵀ)⁻¹ B, with numbers in units of the largest of B."""
    largest = float(np.max(np.abs(B), initial=0.0))
    largest = largest if largest > 0 else 1.0
    half = solve_triangular(L, (B / largest).astype(np.float32))
    solved = np.asarray(solve_triangular(L, half, transposed=True), dtype=np.float64)
    solved *= largest / unit
    return solved


def _lower_times(A: np.ndarray, X: np.ndarray) -> np.ndarray:
    """A X of a symmetric A, of which the lower triangle is read."""
    with blas_threads_for(len(A) * X.size):
        return lower_times(A, X)


def _norm(X: np.ndarray) -> float:
    return math.sqrt(float(np.einsum("ij,ij->", X, X)))  # not by BLAS, and its threads
