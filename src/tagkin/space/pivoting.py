"""Pivots of a kernel matrix: rows that represent all rows best.

They are chosen greedily (partial Gram–Schmidt, as in the paper) or at random (randomly pivoted
Cholesky).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tagkin.arrays import Array, as_block, namespace, to_numpy
from tagkin.arrays.linalg import matmul, solve_triangular
from tagkin.arrays.threads import run_in_threads
from tagkin.errors import InvalidInput
from tagkin.kernels import Kernel

__all__ = ["PartialGramSchmidt", "pgso", "rp_cholesky"]


# --- partial Gram–Schmidt ----------------------------------------------------------------


class PartialGramSchmidt(NamedTuple):
    """The result of `pgso`: K ≈ R Rᵀ."""

    pivots: np.ndarray
    """The chosen rows, in order, shape (m,)."""
    factor: Array
    """R, shape (N, m). Its rows at `pivots` are a triangle L with L Lᵀ = K[pivots, pivots]."""


def pgso(
    column: Callable[[int], Array],
    diagonal: Array,
    *,
    max_rank: int | None = None,
) -> PartialGramSchmidt:
    """Run partial Gram–Schmidt orthogonalisation, which is pivoted incomplete Cholesky.

    Each step takes the row with the largest residual diagonal (the first on ties). It needs the
    kernel columns of the pivots, but not K itself. It stops at `max_rank`, or when only rounding
    is left.

    Parameters
    ----------
    column : function
        ``column(j)`` returns column j of K, shape (N,).
    diagonal : array of shape (N,)
        The diagonal of K.
    max_rank : int, default all
    """
    xp = namespace(diagonal)
    if not xp.isdtype(diagonal.dtype, "real floating"):
        diagonal = xp.astype(diagonal, xp.float64)
    if not bool(xp.all(xp.isfinite(diagonal))):
        raise InvalidInput("The diagonal of the kernel contains NaN or infinity.")
    residual = xp.astype(diagonal, diagonal.dtype, copy=True)
    n = residual.shape[0]
    max_rank = n if max_rank is None else max(0, min(max_rank, n))
    rounding = n * float(xp.finfo(residual.dtype).eps) * max(0.0, float(xp.max(residual)))
    # Rᵀ, because each step reads and writes whole rows of it
    factor = xp.empty((max_rank, n), dtype=residual.dtype, device=residual.device)
    pivots: list[int] = []
    while len(pivots) < max_rank:
        pivot = int(xp.argmax(residual))
        largest = float(residual[pivot])
        if largest <= rounding:
            break
        rank = len(pivots)
        row = xp.astype(column(pivot), residual.dtype, copy=True)
        row -= matmul(factor[:rank, pivot], factor[:rank])
        row /= largest**0.5
        # earlier pivots are explained exactly; rounding there would break L's triangle
        row[pivots] = 0.0
        row[pivot] = largest**0.5
        factor[rank] = row
        residual -= row * row
        residual[pivot] = 0.0
        pivots.append(pivot)
    return PartialGramSchmidt(np.asarray(pivots, dtype=np.intp), factor[: len(pivots)].T)


# --- randomly pivoted Cholesky -----------------------------------------------------------


def rp_cholesky(
    kernel: Kernel,
    X: Array,
    max_rank: int,
    random_state: np.random.RandomState,
    *,
    n_pivots: int | None = None,
) -> np.ndarray:
    """Draw pivots by randomly pivoted Cholesky, in blocks, with rejection sampling.

    Each pivot is drawn with probability proportional to the residual diagonal given all
    pivots before it (Chen, Epperly, Tropp, Webber 2023). A block of proposals is drawn from
    the present residual, and thinned to exactly this distribution (Epperly, Tropp, Webber 2024).
    The work is then matrix products.

    Parameters
    ----------
    X : array of shape (N, d)
    max_rank : int
        Most pivots; fewer if the kernel matrix has a smaller numerical rank.
    n_pivots : int, default max_rank
        After this many pivots, the others are drawn at once from the residual (adaptive sampling:
        Deshpande, Rademacher, Vempala, Wang 2006), with (n_pivots / max_rank)² of the work. With a
        quarter, the residual of a network's features is the same within noise.

    Returns
    -------
    pivots : int array of shape (m,)
    """
    factor = _Residual(kernel, X, max_rank if n_pivots is None else n_pivots)
    pivots = factor.draw_pivots(random_state)
    n_rest = min(max_rank - len(pivots), int(np.count_nonzero(factor.diagonal)))
    if len(pivots) < factor.max_rank or n_rest == 0:
        return pivots
    rest = random_state.choice(X.shape[0], size=n_rest, replace=False, p=factor.probabilities())
    return np.concatenate([pivots, rest])


class _Residual:
    """The residual diagonal of k(X, X) (N×N), and the factor of the pivots.

    The factor (max_rank×N) is on the device of X; the diagonal and the pivots are on the host.
    """

    def __init__(self, kernel: Kernel, X: Array, max_rank: int):
        xp = namespace(X)
        self.kernel, self.X, self.max_rank = kernel, X, max_rank
        self.diagonal = to_numpy(kernel.diagonal(X)).copy()
        # a residual below this is rounding
        self._floor = 64 * float(xp.finfo(as_block(X[:1]).dtype).eps) * self.diagonal
        self.diagonal[self.diagonal <= self._floor] = 0.0
        self._pivots: list[int] = []
        shape = max_rank, X.shape[0]
        self._factor = xp.empty(shape, dtype=X.dtype, device=X.device)

    def probabilities(self) -> np.ndarray:
        """Return the probability of each row to be the next pivot, shape (N,)."""
        return self.diagonal / self.diagonal.sum()

    def draw_pivots(self, random_state: np.random.RandomState) -> np.ndarray:
        """Draw at most `max_rank` pivots."""
        n_proposals = int(np.clip(self.max_rank // 4, 8, 512))
        while len(self._pivots) < self.max_rank and self.diagonal.any():
            proposals = random_state.choice(
                len(self.diagonal), size=n_proposals, p=self.probabilities()
            )
            block = self._residual_block(proposals)
            accepted, L = _accept_proposals(block, self.max_rank - len(self._pivots), random_state)
            if len(accepted):
                self._explain(proposals[accepted], L)
            else:  # the residual of all proposals is rounding
                self.diagonal[proposals] = 0.0
        return np.asarray(self._pivots, dtype=np.intp)

    def _residual_block(self, proposals: np.ndarray) -> np.ndarray:
        """Return the residual of k(X, X) among proposed rows, (b×b), on the host in float64."""
        rows = self._index(proposals)
        kernel = self.kernel(self.X[rows])
        xp = namespace(kernel)
        block = xp.astype(kernel, xp.float64)
        if self._pivots:
            known = self._factor[: len(self._pivots)][:, rows]
            block -= matmul(known.T, known)
        return to_numpy(block)

    def _index(self, rows: np.ndarray) -> Array:
        """Return row numbers on the device of X."""
        return namespace(self.X).asarray(rows, device=self.X.device)

    def _explain(self, chosen: np.ndarray, L: np.ndarray) -> None:
        """Add pivots; L is the Cholesky factor of their residual block."""
        rows, n = self._index(chosen), self.X.shape[0]
        xp = namespace(self.X)
        known = self._factor[: len(self._pivots)]
        fresh = self._factor[len(known) : len(known) + len(chosen)]
        points, known_there = self.X[rows], known[:, rows]
        # L is small and well conditioned; with its inverse the rest is a product
        L = xp.asarray(L, device=self.X.device)
        inverse = solve_triangular(L, xp.eye(len(chosen), dtype=L.dtype, device=L.device))
        inverse = xp.astype(inverse, self.X.dtype, copy=False)

        def explain(some: slice) -> None:
            columns = self.kernel(self.X[some], points)
            columns -= matmul(known[:, some].T, known_there)
            fresh[:, some] = matmul(inverse, columns.T)
            self.diagonal[some] -= to_numpy(xp.sum(fresh[:, some] ** 2, axis=0))

        if isinstance(self.X, np.ndarray):
            run_in_threads(explain, n, 8 * (3 * len(chosen) + self.X.shape[1]))
        else:
            explain(slice(0, n))
        self._pivots.extend(chosen.tolist())
        self.diagonal[self.diagonal <= self._floor] = 0.0
        self.diagonal[self._pivots] = 0.0


def _accept_proposals(
    block: np.ndarray, most: int, random_state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Accept at most `most` proposals, given their residual block (b×b).

    Return their indices and the Cholesky factor of their part of the block.
    """
    diagonal = np.diagonal(block)
    # float32 blocks have too few digits for smaller residuals
    bars = np.maximum(random_state.uniform(size=len(block)), 1e-4) * diagonal
    factor = np.empty_like(block)  # rows: the Cholesky columns of accepted proposals
    accepted: list[int] = []
    for i, (start, bar) in enumerate(zip(diagonal.tolist(), bars.tolist(), strict=True)):
        known = factor[: len(accepted)]
        left = start - known[:, i] @ known[:, i]
        if len(accepted) < most and left > bar:
            column = factor[len(accepted)]
            np.matmul(known[:, i], known, out=column)
            np.subtract(block[i], column, out=column)
            column /= math.sqrt(left)
            accepted.append(i)
    return np.asarray(accepted, dtype=np.intp), np.tril(factor[: len(accepted), accepted].T)
