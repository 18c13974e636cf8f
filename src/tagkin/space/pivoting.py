"""Pivots of a kernel matrix: which of its rows stand best for all of them.

Greedily (partial Gram–Schmidt, as in the paper) or at random (randomly pivoted Cholesky).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tagkin.arrays import Array, as_block, matmul, namespace, solve_triangular, to_numpy
from tagkin.errors import InvalidInput
from tagkin.kernels import Kernel

__all__ = ["PartialGramSchmidt", "pgso", "rp_cholesky"]

_PANEL = 64


# --- partial Gram–Schmidt ----------------------------------------------------------------


@dataclass(frozen=True)
class PartialGramSchmidt:
    """What `pgso` found: K ≈ R Rᵀ.

    Attributes
    ----------
    pivots : int array of shape (m,)
        The chosen rows, in the order in which they were chosen.
    factor : array of shape (N, m)
        R. Its rows at `pivots` form a lower triangular matrix L with L Lᵀ = K[pivots, pivots].
    residual_trace : float
        trace(K − R Rᵀ).
    """

    pivots: np.ndarray
    factor: Array
    residual_trace: float


def pgso(
    column: Callable[[int], Array],
    diagonal: Array,
    *,
    max_rank: int | None = None,
    eta: float = 0.0,
) -> PartialGramSchmidt:
    """Partial Gram–Schmidt orthogonalisation, the same as pivoted incomplete Cholesky.

    Each step takes the row with the largest residual diagonal (the first on ties), from
    kernel columns alone: K itself is never formed. It stops at `max_rank`, when the trace
    of the residual is at most `eta`, or when nothing but rounding is left.

    Parameters
    ----------
    column : function
        ``column(j)`` returns column j of K, shape (N,).
    diagonal : array of shape (N,)
        The diagonal of K.
    max_rank : int, default all
    eta : float
        Absolute bound on the residual trace.
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
    # Rᵀ, so that each step reads and writes whole rows
    factor = xp.empty((max_rank, n), dtype=residual.dtype, device=residual.device)
    pivots: list[int] = []
    while len(pivots) < max_rank and float(xp.sum(residual)) > eta:
        pivot = int(xp.argmax(residual))
        largest = float(residual[pivot])
        if largest <= rounding:
            break
        rank = len(pivots)
        row = xp.astype(column(pivot), residual.dtype, copy=True)
        row -= matmul(factor[:rank, pivot], factor[:rank])
        row /= largest**0.5
        # earlier pivots are spanned exactly; what rounding left there would break L's triangle
        row[pivots] = 0.0
        row[pivot] = largest**0.5
        factor[rank] = row
        residual -= row * row
        residual[pivot] = 0.0
        pivots.append(pivot)
    return PartialGramSchmidt(
        pivots=np.asarray(pivots, dtype=np.intp),
        factor=factor[: len(pivots)].T,
        residual_trace=max(0.0, float(xp.sum(residual))),
    )


# --- randomly pivoted Cholesky -----------------------------------------------------------


def rp_cholesky(
    kernel: Kernel, X: Array, max_rank: int, random_state: np.random.RandomState
) -> np.ndarray:
    """Pivots of randomly pivoted Cholesky, drawn in blocks by rejection sampling.

    Each pivot is drawn with probability proportional to the residual diagonal given all
    pivots before it (Chen, Epperly, Tropp, Webber 2023). A block of proposals is drawn from
    the present residual and thinned so that what is accepted has exactly that distribution
    (Epperly, Tropp, Webber 2024); the work is then matrix products.

    Parameters
    ----------
    X : array of shape (N, d)
    max_rank : int
        Fewer pivots come back where the kernel matrix has a smaller numerical rank.

    Returns
    -------
    pivots : int array of shape (m,)
    """
    xp = namespace(X)
    n = X.shape[0]
    diagonal = to_numpy(kernel.diagonal(X))
    residual = diagonal.copy()
    factor = None
    # below this a residual is made of rounding
    floor = 64 * float(xp.finfo(as_block(X[:1]).dtype).eps) * diagonal
    residual[residual <= floor] = 0.0
    pivots: list[int] = []
    n_proposals = int(np.clip(max_rank // 4, 8, 512))
    while len(pivots) < max_rank and residual.sum() > 0:
        proposals = random_state.choice(n, size=n_proposals, p=residual / residual.sum())
        block = to_numpy(kernel(X[proposals])).astype(np.float64)
        if factor is not None:
            known = factor[: len(pivots), proposals]
            block -= to_numpy(matmul(known.T, known))
        accepted, L = _thin(block, max_rank - len(pivots), random_state)
        if len(accepted) == 0:
            # proposals with no residual left: their kernel values are rounding alone
            residual[proposals] = 0.0
            continue
        chosen = proposals[accepted]
        columns = kernel(X, X[chosen])
        if factor is None:
            factor = xp.empty((max_rank, n), dtype=columns.dtype, device=columns.device)
        known = factor[: len(pivots)]
        columns -= matmul(known.T, known[:, chosen])
        # L is small and well conditioned; its inverse turns the rest into a product
        inverse = solve_triangular(L, np.eye(len(L)))
        inverse = xp.asarray(inverse, dtype=columns.dtype, device=columns.device)
        new = matmul(inverse, columns.T)
        factor[len(pivots) : len(pivots) + len(chosen)] = new
        residual -= to_numpy(xp.sum(new * new, axis=0))
        pivots.extend(chosen.tolist())
        residual[residual <= floor] = 0.0
        residual[pivots] = 0.0
    return np.asarray(pivots, dtype=np.intp)


def _thin(
    block: np.ndarray, most: int, random_state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Which of the proposals to accept, at `most` so many, given their residual block (b×b).

    Returns their indices and the Cholesky factor of their part of the block. Proposals are
    decided one by one within a panel; what the panels before it explain is a matrix product.
    """
    proposed = np.diagonal(block)
    # of a residual reduced by so much, float32 blocks keep too few digits
    bars = np.maximum(random_state.uniform(size=len(block)), 1e-4) * proposed
    factor = np.empty_like(block)  # rows: the Cholesky columns of those accepted so far
    accepted: list[int] = []
    for start in range(0, len(block), _PANEL):
        stop = min(start + _PANEL, len(block))
        known, before = factor[: len(accepted), start:], len(accepted)
        rows = block[start:stop, start:] - matmul(known[:, : stop - start].T, known)
        fresh, corner = _thin_one_by_one(rows[:, : stop - start], bars[start:stop], most - before)
        accepted += [start + i for i in fresh]
        L = corner[:, fresh].T
        factor[before : len(accepted), start:stop] = corner
        rest = rows[fresh, stop - start :]
        factor[before : len(accepted), stop:] = solve_triangular(L, rest)
    return np.asarray(accepted, dtype=np.intp), np.tril(factor[: len(accepted), accepted].T)


def _thin_one_by_one(
    block: np.ndarray, bars: np.ndarray, most: int
) -> tuple[list[int], np.ndarray]:
    """Those whose residual, less what those accepted before explain, is above their bar.

    Also their Cholesky columns, as rows: shape (number accepted, b).
    """
    left = np.diagonal(block).copy()
    factor = np.empty_like(block)
    accepted: list[int] = []
    for i, bar in enumerate(bars.tolist()):
        if len(accepted) < most and left[i] > bar:
            known = factor[: len(accepted)]
            column = block[i] - known[:, i] @ known
            column /= math.sqrt(left[i])
            factor[len(accepted)] = column
            left -= column * column
            accepted.append(i)
    return accepted, factor[: len(accepted)]
