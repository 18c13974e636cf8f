"""Candidates for the k nearest points, found from rounded scores: all k nearest, and few others.

Each function returns the candidates (n×w), ascending and padded with −1, and a mask of queries (n,)
that it leaves undecided, because they have too many candidates to list, or too few.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from array_api_compat import device

from tagkin.arrays import Array, bincount, kth_largest, namespace
from tagkin.neighbors._scorer import Scorer

__all__ = ["FEW_POINTS", "SampledCutoff", "candidates_among_all", "candidates_by_group_maxima"]

_GROUP = 32  # scores that share one maximum
_TILE_COLUMNS = 1024  # with 512 queries, scores that stay in the cache
FEW_POINTS = 16_384  # with no more, all scores of a query are kept
_SAMPLED = 24  # with more, one point in so many sets the score that candidates must reach


def candidates_among_all(scorer: Scorer, queries: Array, k: int) -> tuple[Array, Array]:
    """From all scores at once: the k best, and those that rounding may have put behind them."""
    xp = namespace(queries)
    scores = scorer.scores(queries, slice(None))
    n, slack = scores.shape[0], scorer.rounding(queries)
    kept = scores >= low_cutoff(scores, k) - slack
    undecided = xp.zeros(n, dtype=xp.bool, device=device(queries))
    if int(xp.count_nonzero(kept)) > n * _max_candidates(k) // 2:
        counts = xp.sum(xp.astype(kept, xp.int64), axis=1)
        again = xp.nonzero(counts > _max_candidates(k))[0]
        kept[again] = scores[again] >= kth_largest(scores[again], k) - slack[again]
        undecided = xp.sum(xp.astype(kept, xp.int64), axis=1) > _max_candidates(k)
        kept &= ~undecided[:, None]
    rows, columns = _coordinates(kept)
    return _padded(rows, columns, bincount(rows, n)), undecided


def candidates_by_group_maxima(scorer: Scorer, queries: Array, k: int) -> tuple[Array, Array]:
    """As `candidates_among_all`, with one pass over the scores: the fastest way on a GPU.

    Scores are dealt out to groups; only groups whose maximum is high enough are looked into.
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
    found = rows[entries] * n_points + depth * n_groups + group[entries]
    found = xp.sort(xp.concat([found, tail_rows * n_points + n_groups * _GROUP + tail]))
    rows = found // n_points
    undecided = undecided | (bincount(rows, n) > _max_candidates(k))
    found = found[~undecided[rows]]
    rows = found // n_points
    return _padded(rows, found - rows * n_points, bincount(rows, n)), undecided


def low_cutoff(scores: Array, k: int) -> Array:
    """A lower bound of the k-th largest score of each row, and a close one, shape (n, 1).

    Columns are dealt out to groups. At least k scores reach the k-th largest of the groups' maxima.
    Adjacent columns, which are often alike, go to different groups.
    """
    n_groups = scores.shape[1] // _GROUP
    if n_groups < 4 * k:
        return kth_largest(scores, k)
    n = scores.shape[0]
    grouped = scores[:, : n_groups * _GROUP].reshape(n, _GROUP, n_groups)
    return kth_largest(namespace(scores).max(grouped, axis=1), k)


def _max_candidates(k: int) -> int:
    """The most candidates that are listed for a query: with more, too many points are alike."""
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
        self.columns = self.sampled + 2 * _TILE_COLUMNS + 4 * self.width
        self.useful = n_points > FEW_POINTS and 4 * self.rank < self.sampled

    def candidates(self, scorer: Scorer, queries: Array, k: int) -> tuple[Array, Array]:
        """Candidates from tiles of scores; undecided are also queries with fewer than k."""
        xp = namespace(queries)
        slack = scorer.rounding(queries)
        sample = scorer.scores(queries, slice(None, None, self.stride))
        cutoff = low_cutoff(sample, self.rank) - slack
        if not scorer.euclidean and bool(xp.all(cutoff > 0)):
            # queries scaled to a cutoff of 1: comparing with one number is much faster
            queries, slack, cutoff = queries / cutoff, slack / cutoff, 1.0
        lists = _CandidateLists(queries, self.width)
        for start, scores in _tiles(scorer, queries):
            lists.add(start, scores, scores >= cutoff)
        return lists.within(slack, k)


class _CandidateLists:
    """Points whose scores reach a cutoff, side by side per query, with room for `width` of each."""

    def __init__(self, queries: Array, width: int):
        xp, where, shape = namespace(queries), device(queries), (queries.shape[0], width)
        self._points = xp.full(shape, -1, dtype=xp.int64, device=where)
        self._scores = xp.full(shape, -math.inf, dtype=queries.dtype, device=where)
        self._counts = xp.zeros(shape[0], dtype=xp.int64, device=where)

    def add(self, start: int, scores: Array, kept: Array) -> None:
        """Add the points, counted from `start`, of a tile of scores (n×c) where `kept` (n×c)."""
        xp = namespace(scores)
        n, width = self._points.shape
        flat = xp.nonzero(kept.reshape(-1))[0]
        rows = flat // scores.shape[1]
        added = bincount(rows, n)
        columns = xp.arange(flat.shape[0], device=device(scores))
        columns += (self._counts - xp.cumulative_sum(added) + added)[rows]
        self._counts += added
        if int(xp.max(self._counts)) > width:
            fits = xp.nonzero(columns < width)[0]
            flat, rows, columns = flat[fits], rows[fits], columns[fits]
        columns += rows * width
        self._scores.reshape(-1)[columns] = scores.reshape(-1)[flat]
        flat -= rows * scores.shape[1] - start
        self._points.reshape(-1)[columns] = flat

    def within(self, slack: Array, k: int) -> tuple[Array, Array]:
        """Candidates at most `slack` (n×1) below the k-th best score, and undecided queries."""
        xp = namespace(self._counts)
        # too few, by bad luck with the sample; or too many points that are alike
        undecided = (self._counts < k) | (self._counts > self._points.shape[1])
        counts = xp.where(undecided, xp.zeros_like(self._counts), self._counts)
        scores = self._scores[:, : max(k, int(xp.max(counts)))]
        kept = scores >= kth_largest(scores, k) - slack
        undecided |= xp.sum(xp.astype(kept, xp.int64), axis=1) > _max_candidates(k)
        kept &= ~undecided[:, None]
        rows, columns = _coordinates(kept)
        return _padded(rows, self._points[rows, columns], bincount(rows, kept.shape[0])), undecided


def _tiles(scorer: Scorer, queries: Array) -> Iterator[tuple[int, Array]]:
    """(first column, scores) of consecutive tiles of the points, in one buffer."""
    xp = namespace(queries)
    n, n_points = queries.shape[0], scorer.points.shape[0]
    buffer = xp.empty(n * _TILE_COLUMNS, dtype=queries.dtype, device=device(queries))
    for start in range(0, n_points, _TILE_COLUMNS):
        stop = min(start + _TILE_COLUMNS, n_points)
        out = buffer[: n * (stop - start)].reshape(n, stop - start)
        yield start, scorer.scores(queries, slice(start, stop), out)


def _coordinates(kept: Array) -> tuple[Array, Array]:
    """Row and column numbers of what is true, row by row."""
    flat = namespace(kept).nonzero(kept.reshape(-1))[0]  # flat: several times faster
    rows = flat // kept.shape[1]
    return rows, flat - rows * kept.shape[1]


def _padded(rows: Array, values: Array, counts: Array) -> Array:
    """Values that come row by row as one list per row, padded with −1 (n×w)."""
    xp = namespace(values)
    n, where = counts.shape[0], device(values)
    width = int(xp.max(counts)) if n else 0
    padded = xp.full((n, width), -1, dtype=values.dtype, device=where)
    starts = xp.cumulative_sum(counts) - counts
    padded[rows, xp.arange(rows.shape[0], device=where) - starts[rows]] = values
    return padded
