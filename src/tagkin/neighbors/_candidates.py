"""Points that may be among the k nearest, from scores that round: all that are, and few more.

Each way to find them returns candidates (n×w), ascending and filled up with −1, and which queries
(n,) it leaves aside, having too many to list or too few.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from array_api_compat import device

from tagkin.arrays import Array, bincount, kth_largest, namespace
from tagkin.neighbors._scorer import Scorer

__all__ = ["Bar", "Passing", "candidates_among_all", "candidates_by_piles", "low_bar"]

_PILE = 32
_TILE_COLUMNS = 1024  # with 512 queries, scores that stay in the cache
_FEW_POINTS = 16_384  # up to here all scores of a query are looked at
_SAMPLED = 24  # of more points, one in so many sets the bar that candidates must pass


def candidates_among_all(scorer: Scorer, queries: Array, k: int) -> tuple[Array, Array]:
    """From every score: the k best, and what rounding may have put behind them."""
    xp = namespace(queries)
    scores = scorer.scores(queries, slice(None))
    n, slack = scores.shape[0], scorer.rounding(queries)
    kept = scores >= low_bar(scores, k) - slack
    crowded = xp.zeros(n, dtype=xp.bool, device=device(queries))
    if int(xp.count_nonzero(kept)) > n * _most(k) // 2:
        counts = xp.sum(xp.astype(kept, xp.int64), axis=1)
        again = xp.nonzero(counts > _most(k))[0]
        kept[again] = scores[again] >= kth_largest(scores[again], k) - slack[again]
        crowded = xp.sum(xp.astype(kept, xp.int64), axis=1) > _most(k)
        kept &= ~crowded[:, None]
    rows, columns = _places(kept)
    return _padded(rows, columns, bincount(rows, n)), crowded


def candidates_by_piles(scorer: Scorer, queries: Array, k: int) -> tuple[Array, Array]:
    """As `candidates_among_all`, with one pass over the scores: for devices.

    Only piles whose largest score passes are looked into.
    """
    xp = namespace(queries)
    n, n_points = queries.shape[0], scorer.points.shape[0]
    piles = n_points // _PILE
    if piles < 4 * k:
        return candidates_among_all(scorer, queries, k)
    scores = scorer.scores(queries, slice(None))
    dealt = scores[:, : piles * _PILE].reshape(n, _PILE, piles)
    tops = xp.max(dealt, axis=1)
    bar = kth_largest(tops, k) - scorer.rounding(queries)
    passing = tops >= bar
    crowded = xp.sum(xp.astype(passing, xp.int64), axis=1) > _most(k)
    passing &= ~crowded[:, None]
    rows, pile = _places(passing)
    entries, depth = _places(dealt[rows, :, pile] >= bar[rows])
    tail_rows, tail = _places((scores[:, piles * _PILE :] >= bar) & ~crowded[:, None])
    found = rows[entries] * n_points + depth * piles + pile[entries]
    found = xp.sort(xp.concat([found, tail_rows * n_points + piles * _PILE + tail]))
    rows = found // n_points
    crowded = crowded | (bincount(rows, n) > _most(k))
    found = found[~crowded[rows]]
    rows = found // n_points
    return _padded(rows, found - rows * n_points, bincount(rows, n)), crowded


def low_bar(scores: Array, k: int) -> Array:
    """At most the k-th largest score of each row, and not far below, shape (n, 1).

    Columns are dealt out to piles; the k-th largest of the piles' maxima is reached by k scores at
    least. Neighbouring columns, often alike, go to different piles.
    """
    piles = scores.shape[1] // _PILE
    if piles < 4 * k:
        return kth_largest(scores, k)
    n = scores.shape[0]
    dealt = scores[:, : piles * _PILE].reshape(n, _PILE, piles)
    return kth_largest(namespace(scores).max(dealt, axis=1), k)


def _most(k: int) -> int:
    """Of a query with more candidates than this, too many points are alike to list them."""
    return 4 * k + 64


class Bar:
    """A score that candidates must pass, set by a sample of the points.

    It is the `rank`-th best in the sample, so that about rank × N / sampled points pass, and
    k or more with near certainty.
    """

    def __init__(self, n_points: int, k: int):
        self.stride = min(_SAMPLED, max(1, n_points // 4096))
        self.sampled = -(-n_points // self.stride)
        expected = k / self.stride
        self.rank = math.ceil(expected + 4 * math.sqrt(expected) + 4)
        self.width = min(4 * self.rank * self.stride, n_points)
        self.columns = self.sampled + 2 * _TILE_COLUMNS + 4 * self.width
        self.useful = n_points > _FEW_POINTS and 4 * self.rank < self.sampled

    def candidates(self, scorer: Scorer, queries: Array, k: int) -> tuple[Array, Array]:
        """Also left aside are queries where fewer than k pass."""
        xp = namespace(queries)
        slack = scorer.rounding(queries)
        sample = scorer.scores(queries, slice(None, None, self.stride))
        bar = low_bar(sample, self.rank) - slack
        if not scorer.euclidean and bool(xp.all(bar > 0)):
            # queries scaled to a bar of 1 for all: comparing with one number is much faster
            queries, slack, bar = queries / bar, slack / bar, 1.0
        passing = Passing(queries.shape[0], self.width, sample)
        for start, scores in _tiles(scorer, queries):
            passing.add(start, scores, scores >= bar)
        return passing.over(kth_largest(passing.scores(k), k) - slack, k)


class Passing:
    """Points whose scores pass a bar, listed side by side for each of n queries.

    There is room for `width` points of each; `like` is an array of the kind that scores are.
    """

    def __init__(self, n: int, width: int, like: Array):
        xp, where = namespace(like), device(like)
        floating = xp.isdtype(like.dtype, "real floating")
        lowest = -math.inf if floating else xp.iinfo(like.dtype).min
        self.points = xp.full((n, width), -1, dtype=xp.int64, device=where)
        self._scores = xp.full((n, width), lowest, dtype=like.dtype, device=where)
        self._counts = xp.zeros(n, dtype=xp.int64, device=where)

    def add(self, start: int, scores: Array, passes: Array) -> None:
        """List those of the points from `start` on that pass (n×c), with their scores (n×c)."""
        xp = namespace(scores)
        n, width = self.points.shape
        flat = xp.nonzero(passes.reshape(-1))[0]
        rows = flat // scores.shape[1]
        added = bincount(rows, n)
        places = xp.arange(flat.shape[0], device=device(scores))
        places += (self._counts - xp.cumulative_sum(added) + added)[rows]
        self._counts += added
        if int(xp.max(self._counts)) > width:
            fits = xp.nonzero(places < width)[0]
            flat, rows, places = flat[fits], rows[fits], places[fits]
        places += rows * width
        self._scores.reshape(-1)[places] = scores.reshape(-1)[flat]
        flat -= rows * scores.shape[1] - start
        self.points.reshape(-1)[places] = flat

    def scores(self, k: int) -> Array:
        """Scores (n×w) of the points, in their order, up to the longest list that is of use."""
        xp = namespace(self._counts)
        counts = xp.where(self._aside(k), xp.zeros_like(self._counts), self._counts)
        return self._scores[:, : max(k, int(xp.max(counts)))]

    def over(self, cut: Array, k: int) -> tuple[Array, Array]:
        """Candidates whose scores reach `cut` (n×1), and which queries are left aside."""
        xp = namespace(self._counts)
        kept = self.scores(k) >= cut
        aside = self._aside(k) | (xp.sum(xp.astype(kept, xp.int64), axis=1) > _most(k))
        kept &= ~aside[:, None]
        rows, places = _places(kept)
        return _padded(rows, self.points[rows, places], bincount(rows, kept.shape[0])), aside

    def _aside(self, k: int) -> Array:
        # too few, by bad luck with the sample; or a crowd of points that are alike
        return (self._counts < k) | (self._counts > self.points.shape[1])


def _tiles(scorer: Scorer, queries: Array) -> Iterator[tuple[int, Array]]:
    """(first column, scores) of consecutive tiles of the points, in one buffer."""
    xp = namespace(queries)
    n, n_points = queries.shape[0], scorer.points.shape[0]
    buffer = xp.empty(n * _TILE_COLUMNS, dtype=queries.dtype, device=device(queries))
    for start in range(0, n_points, _TILE_COLUMNS):
        stop = min(start + _TILE_COLUMNS, n_points)
        out = buffer[: n * (stop - start)].reshape(n, stop - start)
        yield start, scorer.scores(queries, slice(start, stop), out)


def _places(kept: Array) -> tuple[Array, Array]:
    """Rows and columns of what is true, row by row."""
    flat = namespace(kept).nonzero(kept.reshape(-1))[0]  # flat: several times faster
    rows = flat // kept.shape[1]
    return rows, flat - rows * kept.shape[1]


def _padded(rows: Array, values: Array, counts: Array) -> Array:
    """Values of each row, which come row by row, side by side and filled up with −1 (n×w)."""
    xp = namespace(values)
    n, where = counts.shape[0], device(values)
    width = int(xp.max(counts)) if n else 0
    padded = xp.full((n, width), -1, dtype=values.dtype, device=where)
    starts = xp.cumulative_sum(counts) - counts
    padded[rows, xp.arange(rows.shape[0], device=where) - starts[rows]] = values
    return padded
