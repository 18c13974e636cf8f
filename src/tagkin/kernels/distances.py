"""Mean distances over all pairs of rows, which scale kernels and weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from tagkin.arrays import Array, as_block, namespace, row_blocks

__all__ = ["mean_distance", "mean_pair_distance", "mean_squared_distance", "sample_pairs"]

_N_PAIRS = 100_000


def mean_squared_distance(X: Array) -> float:
    """Return the mean of ‖xᵢ − xⱼ‖² over all pairs of rows of X (N×d): 2 mean ‖x − mean x‖²."""
    xp = namespace(X)
    n, d = X.shape
    mean, squares = 0.0, 0.0
    for rows in row_blocks(n, 16 * d):
        mean = mean + xp.sum(as_block(X[rows], double=True), axis=0) / n
    # subtract the mean first, because squares would hide the spread of nearly equal rows
    for rows in row_blocks(n, 16 * d):
        centred = as_block(X[rows], double=True) - mean
        squares += float(xp.sum(centred * centred))
    return 2 * squares / n


def mean_distance(X: Array, random_state: Any = 0) -> float:
    """Return the mean of ‖xᵢ − xⱼ‖ over all pairs of rows of X (N×d), or over a sample of many."""
    return mean_pair_distance(X, *sample_pairs(X.shape[0], _N_PAIRS, random_state))


def mean_pair_distance(X: Array, first: np.ndarray, second: np.ndarray) -> float:
    """Return the mean of ‖xᵢ − xⱼ‖ over pairs of rows i in `first` and j in `second`."""
    xp = namespace(X)
    total = 0.0
    for pairs in row_blocks(len(first), 32 * X.shape[1]):
        a, b = (as_block(X[rows[pairs]], double=True) for rows in (first, second))
        total += float(xp.sum(xp.linalg.vector_norm(a - b, axis=1)))
    return total / len(first)


def sample_pairs(
    n: int, n_pairs: int = _N_PAIRS, random_state: Any = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of n rows as two index arrays: all n², or a random sample of `n_pairs`.

    Pairs of a row with itself are included, as in the paper's mean over all pairs.
    """
    if n * n <= n_pairs:
        first, second = np.divmod(np.arange(n * n), n)
    else:
        from sklearn.utils import check_random_state

        first, second = check_random_state(random_state).randint(n, size=(2, n_pairs))
    return first, second
