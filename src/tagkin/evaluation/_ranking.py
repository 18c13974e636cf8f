"""Ranks within the rows of a matrix of scores, exact under ties, without loops over rows."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.special import digamma

from tagkin.arrays.labels import count_below

__all__ = ["best_in_rows", "expected_precision"]


def expected_precision(scores: np.ndarray, positives: csr_array) -> np.ndarray:
    """Return each row's expected average precision over random orders of equal scores.

    Consider a group of m equal scores, p of them positive, below A entries with Q positives. It
    adds Σᵢ (p/m) (Q + 1 + (i−1) c) / (A+i) over its ranks i = 1…m, where c = (p−1)/(m−1). Rank i
    holds a positive with probability p/m, and then (i−1) c of the others are expected above it.
    With H = Σᵢ 1/(A+i) the sum is (p/m) (c m + (Q + 1 − c (A+1)) H).

    Parameters
    ----------
    scores : array of shape (r, m)
    positives : bool csr_array of shape (r, m)

    Returns
    -------
    precision : float64 array of shape (r,), NaN for rows without a positive
    """
    ascending = np.sort(scores, axis=1)
    n_positives = np.diff(positives.indptr)
    row = np.repeat(np.arange(len(scores)), n_positives)
    value = scores[row, positives.indices]
    order = np.lexsort((value, row))[::-1]  # rows from the last, scores from the highest
    row, value = row[order], value[order]
    new_group = np.r_[True, (row[1:] != row[:-1]) | (value[1:] != value[:-1])][: len(row)]
    first = np.flatnonzero(new_group)
    group_row, group_value = row[first], value[first]

    up_to = count_below(ascending, group_row, group_value, or_equal=True)
    m = up_to - count_below(ascending, group_row, group_value)
    above = scores.shape[1] - up_to
    p = np.diff(np.r_[first, len(row)])
    row_start = np.r_[0, np.cumsum(n_positives[::-1])[:-1]][::-1]
    positives_above = first - row_start[group_row]

    # the difference errs by 1e-15 or so, and c (A+1) times that: 1e-9 for 10⁶ images
    harmonic = np.where(m == 1, 1 / (above + 1), digamma(above + m + 1) - digamma(above + 1))
    c = (p - 1) / np.maximum(m - 1, 1)
    gain = p / m * (c * m + (positives_above + 1 - c * (above + 1)) * harmonic)
    total = np.bincount(group_row, gain, len(scores))
    return np.where(n_positives > 0, total / np.maximum(n_positives, 1), np.nan)


def best_in_rows(scores: np.ndarray, n: int) -> np.ndarray:
    """Return the columns of the n ≤ m highest scores of each row, best first, then by column.

    A partition only finds the n-th highest score. Which of several equal scores it puts first is
    undefined, so they are counted from the left.
    """
    m = scores.shape[1]
    cut = np.partition(scores, m - n, axis=1)[:, m - n, None]
    chosen = scores > cut
    level = scores == cut
    missing = n - np.count_nonzero(chosen, axis=1)
    # most rows need no counting: the scores at the cut are as many as are missing
    tied = np.flatnonzero(np.count_nonzero(level, axis=1) > missing)
    level[tied] &= np.cumsum(level[tied], axis=1, dtype=np.int32) <= missing[tied, None]
    columns = np.nonzero(chosen | level)[1].reshape(len(scores), n)
    best = np.take_along_axis(scores, columns, axis=1)
    # sorted backwards and turned round, because unsigned integers cannot be negated
    order = n - 1 - np.argsort(best[:, ::-1], axis=1, kind="stable")[:, ::-1]
    return np.take_along_axis(columns, order, axis=1)
