"""Candidates for the k nearest points from rounded scores: all k nearest, and few others.

Each function returns the candidates (n×w), ascending and padded with −1, and a mask of queries (n,)
that it leaves undecided, because they have too many candidates to list, or too few.
"""

from __future__ import annotations

import math

import numpy as np
from array_api_compat import device, is_torch_array

from tagkin.arrays import Array, namespace
from tagkin.neighbors.scorer import Scorer

__all__ = ["FEW_POINTS", "SampledCutoff", "candidates_among_all", "candidates_by_group_maxima"]

_GROUP = 32  # scores that share one maximum
_TILE_COLUMNS = 512  # with 512 queries, scores that stay in the cache
FEW_POINTS = 16_384  # with no more, all scores of a query are kept
_SAMPLED = 24  # with more, a sample of 1 in 24 points sets the score that candidates must reach


def candidates_among_all(scorer: Scorer, queries: Array, k: int) -> tuple[Array, Array]:
    """Find candidates from all scores at once: the k best, and others within rounding."""
    xp = namespace(queries)
    scores = scorer.scores(queries, slice(None))
    n, slack = scores.shape[0], scorer.rounding(queries)
    is_candidate = scores >= low_cutoff(scores, k) - slack
    undecided = xp.zeros(n, dtype=xp.bool, device=device(queries))
    if int(xp.count_nonzero(is_candidate)) > n * _max_candidates(k) // 2:
        counts = xp.sum(xp.astype(is_candidate, xp.int64), axis=1)
        again = xp.nonzero(counts > _max_candidates(k))[0]
        is_candidate[again] = scores[again] >= kth_largest(scores[again], k) - slack[again]
        undecided = xp.sum(xp.astype(is_candidate, xp.int64), axis=1) > _max_candidates(k)
        is_candidate &= ~undecided[:, None]
    rows, columns = _coordinates(is_candidate)
    return _pad_lists(rows, columns, _count(rows, n)), undecided


def candidates_by_group_maxima(scorer: Scorer, queries: Array, k: int) -> tuple[Array, Array]:
    """Find candidates with a single pass over the scores, which is fastest on a GPU.

    Scores are split into groups; only groups with a high maximum are searched.
    """
    xp = namespace(queries)
    n, n_points = queries.shape[0], scorer.points.shape[0]
    n_groups = n_points // _GROUP
    if n_groups < 4 * k:
        return candidates_among_all(scorer, queries, k)
    scores = scorer.scores(queries, slice(None))
    grouped = scores[:, : n_groups * _GROUP].reshape(n, _GROUP, n_groups)
    maxima = xp.max(grouped, axis=1)
    cutoff = kth_largest(maxima, k) - scorer.rounding(queries)
    high = maxima >= cutoff
    undecided = xp.sum(xp.astype(high, xp.int64), axis=1) > _max_candidates(k)
    high &= ~undecided[:, None]
    rows, group = _coordinates(high)
    entries, depth = _coordinates(grouped[rows, :, group] >= cutoff[rows])
    tail_rows, tail = _coordinates((scores[:, n_groups * _GROUP :] >= cutoff) & ~undecided[:, None])
    keys = rows[entries] * n_points + depth * n_groups + group[entries]
    keys = xp.sort(xp.concat([keys, tail_rows * n_points + n_groups * _GROUP + tail]))
    rows = keys // n_points
    undecided = undecided | (_count(rows, n) > _max_candidates(k))
    keys = keys[~undecided[rows]]
    rows = keys // n_points
    return _pad_lists(rows, keys - rows * n_points, _count(rows, n)), undecided


def low_cutoff(scores: Array, k: int) -> Array:
    """Return a close lower bound of the k-th largest score of each row, shape (n, 1).

    Columns are split into groups. At least k scores reach the k-th largest of the groups' maxima.
    Adjacent columns, which are often alike, go to different groups.
    """
    n_groups = scores.shape[1] // _GROUP
    if n_groups < 4 * k:
        return kth_largest(scores, k)
    n = scores.shape[0]
    grouped = scores[:, : n_groups * _GROUP].reshape(n, _GROUP, n_groups)
    return kth_largest(namespace(scores).max(grouped, axis=1), k)


def kth_largest(rows: Array, k: int) -> Array:
    """Return the k-th largest entry of each row, shape (n, 1)."""
    if is_torch_array(rows):
        return namespace(rows).topk(rows, k, dim=1).values[:, -1:]
    column = rows.shape[1] - k
    return np.partition(rows, column, axis=1)[:, column : column + 1]


def _max_candidates(k: int) -> int:
    """Return the most candidates to list for a query; with more, too many points are alike."""
    return 4 * k + 64


class SampledCutoff:
    """A score that candidates must reach, set by a sample of the points.

    It is the `rank`-th best score in the sample. So about rank × N / sampled points reach it, and
    with near certainty at least k do.
    """

    def __init__(self, n_points: int, k: int):
        self.stride = min(_SAMPLED, max(1, n_points // 4096))
        self.sampled = -(-n_points // self.stride)
        expected = k / self.stride
        self.rank = math.ceil(expected + 4 * math.sqrt(expected) + 4)
        self.width = min(4 * self.rank * self.stride, n_points)
        self.columns = self.sampled + 2 * _TILE_COLUMNS + 8 * self.width
        self.useful = n_points > FEW_POINTS and 4 * self.rank < self.sampled

    def candidates(self, scorer: Scorer, queries: Array, k: int) -> tuple[Array, Array]:
        """Find candidates in tiles of scores; queries with fewer than k are undecided, too."""
        xp = namespace(queries)
        slack = scorer.rounding(queries)
        sample = scorer.scores(queries, slice(None, None, self.stride))
        cutoff = low_cutoff(sample, self.rank) - slack
        if not scorer.euclidean and bool(xp.all(cutoff > 0)):
            # scale queries to a cutoff of 1, because comparing with one number is much faster
            queries, slack, cutoff = queries / cutoff, slack / cutoff, 1.0
        rows, points, scores, counts = self._list_points(scorer, queries, cutoff)
        # too few, by bad luck with the sample; or too many points that are alike
        undecided = (counts < k) | (counts > self.width)
        if bool(xp.any(undecided)):
            listed = ~undecided[rows]
            rows, points, scores = rows[listed], points[listed], scores[listed]
            counts = xp.where(undecided, xp.zeros_like(counts), counts)
        lists = _pad_lists(rows, scores, counts, -math.inf, min_width=k)
        near = scores >= (kth_largest(lists, k) - slack)[rows, 0]
        rows, points = rows[near], points[near]
        counts = _count(rows, queries.shape[0])
        crowded = counts > _max_candidates(k)
        if bool(xp.any(crowded)):
            listed = ~crowded[rows]
            rows, points = rows[listed], points[listed]
            counts = xp.where(crowded, xp.zeros_like(counts), counts)
        return _pad_lists(rows, points, counts), undecided | crowded

    def _list_points(
        self, scorer: Scorer, queries: Array, cutoff: Array | float
    ) -> tuple[Array, Array, Array, Array]:
        """Return rows, points and scores (E,) that reach the cutoff, and their number per row (n,).

        They are sorted by row, then by point. A row with more than `width` is not listed in full.
        """
        xp, place = namespace(queries), device(queries)
        n, n_points = queries.shape[0], scorer.points.shape[0]
        tile = xp.empty(n * _TILE_COLUMNS, dtype=queries.dtype, device=place)
        counts = xp.zeros(n, dtype=xp.int64, device=place)
        parts, small = [], xp.int16 if n < 2**15 else xp.int64
        for start in range(0, n_points, _TILE_COLUMNS):
            columns = min(_TILE_COLUMNS, n_points - start)
            out = tile[: n * columns].reshape(n, columns)
            scores = scorer.scores(queries, slice(start, start + columns), out)
            flat = xp.nonzero((scores >= cutoff).reshape(-1))[0]
            rows = flat // columns
            counts += _count(rows, n)
            if int(xp.max(counts)) > self.width:
                listed = counts[rows] <= self.width
                flat, rows = flat[listed], rows[listed]
            points = flat - rows * columns + start
            parts.append((xp.astype(rows, small), points, scores.reshape(-1)[flat]))
        rows, points, scores = (xp.concat(list(part)) for part in zip(*parts, strict=True))
        order = xp.argsort(rows, stable=True)  # int16 is sorted in a single pass
        return xp.astype(rows[order], xp.int64), points[order], scores[order], counts


def _coordinates(mask: Array) -> tuple[Array, Array]:
    """Return row and column numbers of true entries, row by row."""
    flat = namespace(mask).nonzero(mask.reshape(-1))[0]  # flat: several times faster
    rows = flat // mask.shape[1]
    return rows, flat - rows * mask.shape[1]


def _count(values: Array, n: int) -> Array:
    """Return how often each of 0 … n−1 is among the values, shape (n,)."""
    return namespace(values).bincount(values, minlength=n)


def _pad_lists(
    rows: Array, values: Array, counts: Array, padding: float = -1, min_width: int = 0
) -> Array:
    """Return values, sorted by row, as a list per row, padded (n×w)."""
    xp = namespace(values)
    n, place = counts.shape[0], device(values)
    width = max(min_width, int(xp.max(counts)) if n else 0)
    padded = xp.full((n, width), padding, dtype=values.dtype, device=place)
    starts = xp.cumulative_sum(counts) - counts
    padded[rows, xp.arange(rows.shape[0], device=place) - starts[rows]] = values
    return padded
