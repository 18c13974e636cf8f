"""Cholesky factors on several threads, which wait for each other a few times in all.

A threaded LAPACK lets its threads meet at every few columns, and wait in a busy loop; on a busy
machine that takes many times as long as one thread. Here a matrix is halved again and again,

    A = [A₁₁ ·; A₂₁ A₂₂],   A₁₁ = L₁ L₁ᵀ,   L₂₁ = A₂₁ L₁⁻ᵀ,   A₂₂ − L₂₁ L₂₁ᵀ = L₂ L₂ᵀ,

and threads have rows of L₂₁, and then of A₂₂ − L₂₁ L₂₁ᵀ, each by itself. What is left for one
thread are the smallest squares on the diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tagkin.arrays.routines import (
    factor_lower,
    solve_rows,
    subtract_lower_gram_of_rows,
    subtract_products,
)
from tagkin.arrays.threads import side_by_side

__all__ = ["factor_in_threads"]

_SMALLEST = 512  # rows; squares of up to so many are for one thread
_TILE = 256


def factor_in_threads(A: np.ndarray, n_threads: int) -> bool:
    """Replace the lower triangle of A (n×n) by its Cholesky factor; False where it has none.

    What lies above the diagonal stays.
    """
    n = len(A)
    if n_threads == 1 or n <= _SMALLEST:
        return factor_lower(A)
    half = _TILE * max(1, n // (2 * _TILE))
    corner, left, rest = A[:half, :half], A[half:, :half], A[half:, half:]

    def solve(rows: slice) -> None:
        solve_rows(corner, left[rows])

    def update(rows: slice) -> None:
        subtract_products(rest[rows, : rows.start], left[rows], left[: rows.start])
        subtract_lower_gram_of_rows(rest[rows, rows], left[rows])

    if not factor_in_threads(corner, n_threads):
        return False
    _each_tile(solve, n - half, n_threads)
    _each_tile(update, n - half, n_threads)
    return factor_in_threads(rest, n_threads)


def _each_tile(work: Callable[[slice], None], n: int, n_threads: int) -> None:
    """Do `work` for slices of n rows, those that are longest in a triangle first."""
    tiles = [slice(start, min(start + _TILE, n)) for start in range(0, n, _TILE)]
    side_by_side([partial(work, rows) for rows in reversed(tiles)], n_threads)
