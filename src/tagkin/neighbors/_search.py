"""The exact search in blocks: matrix products find candidates, pairs decide.

The rounding of a matrix product depends on how the work was cut. So all points within that
rounding of the k-th best score are candidates, and the distance of each is computed again as a
sum over its own pair of vectors. The result does not depend on the blocks, and equal points
have equal distances.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from array_api_compat import device, is_torch_array

from tagkin.arrays import (
    Array,
    bincount,
    kth_largest,
    matmul,
    matmul_precision,
    namespace,
    on_accelerator,
    row_blocks,
    run_in_threads,
    smaller_blocks_when_full,
)
from tagkin.neighbors.base import Neighbors

_TILE_ROWS, _TILE_COLUMNS = 512, 1024  # scores that stay in the cache
_PILE = 32
_FEW_POINTS = 16_384  # up to here all scores of a query are looked at
_FEW_SCORES = 2**21  # or up to here those of all queries, as when one photograph comes
_SAMPLED = 24  # of more points, one in so many sets the bar that candidates must pass


class Scorer:
    """Scores that rank as the distances do: q·p for unit vectors, else q·p − ‖p‖²/2."""

    def __init__(self, points: Array, metric: str):
        xp = namespace(points)
        self.points, self.metric = points, metric
        self.euclidean = metric == "euclidean"
        norms = xp.linalg.vector_norm(points, axis=1)
        self.half_squares = norms * norms / 2
        self.longest = float(xp.max(norms))
        self.is_zero = norms == 0

    def scores(self, queries: Array, some: Any, out: Array | None = None) -> Array:
        """Scores (n × number of points) for the points that a slice selects."""
        transposed = self.points[some].T
        if out is None:
            out = queries @ transposed
        else:
            matmul(queries, transposed, out)
        if self.euclidean:
            out -= self.half_squares[some]
        return out

    def rounding(self, queries: Array) -> Array:
        """A bound on the rounding of the difference of two scores of each query, shape (n, 1)."""
        xp = namespace(queries)
        length = xp.linalg.vector_norm(queries, axis=1, keepdims=True)
        size = self.longest * (length + (self.longest if self.euclidean else 0))
        return float(xp.finfo(queries.dtype).eps) * (queries.shape[1] + 8) * size

    def distances(self, queries: Array, candidates: Array) -> Array:
        """Distance of each query (n×m) to each of its own candidates (n×w), pair by pair."""
        xp = namespace(queries)
        if is_torch_array(queries):
            difference = self.points[candidates] - queries[:, None, :]
            squares = xp.sum(difference * difference, axis=2)
        else:
            difference = np.take(self.points, candidates, axis=0)
            difference -= queries[:, None, :]
            squares = np.einsum("nwm,nwm->nw", difference, difference)
        if self.euclidean:
            return xp.sqrt(squares)
        # for unit vectors 1 − q·p = ‖q − p‖²/2, which keeps its digits where they are near
        zero = self.is_zero[candidates] | xp.all(queries == 0, axis=1)[:, None]
        return xp.where(zero, xp.ones_like(squares), squares / 2)


def search(queries: Array, scorer: Scorer, k: int) -> Neighbors:
    """The k nearest of the scorer's points for each query; queries are unit or centred as they."""
    if not on_accelerator(scorer.points):
        return _search(queries, scorer, k)
    with matmul_precision("float32"):  # with less, the bound on rounding would not hold
        return _search(queries, scorer, k)


@smaller_blocks_when_full
def _search(queries: Array, scorer: Scorer, k: int) -> Neighbors:
    points = scorer.points
    xp = namespace(queries, points)
    queries = xp.astype(queries, points.dtype, copy=False)
    n, n_points = queries.shape[0], points.shape[0]
    indices = xp.empty((n, k), dtype=xp.int64, device=device(points))
    distances = xp.empty((n, k), dtype=points.dtype, device=device(points))
    bar = _Bar(n_points, k)
    on_device = on_accelerator(points)
    find = _candidates_among_all
    if on_device:
        find = _candidates_by_piles
    elif bar.useful and n * n_points > _FEW_SCORES:
        find = bar.candidates
    columns = bar.columns if find == bar.candidates else 2 * n_points

    def search_block(rows: slice) -> None:
        block = queries[rows]
        candidates, crowded = find(scorer, block, k)
        indices[rows], distances[rows] = ranked(scorer, block, candidates, k)
        for row in xp.nonzero(crowded)[0]:
            place = rows.start + int(row)
            indices[place], distances[place] = _search_one(scorer, queries[place], k)

    bytes_per_row = points.dtype.itemsize * (columns + 16 * k)
    if is_torch_array(points):
        for rows in row_blocks(n, bytes_per_row, points):
            search_block(rows)
    else:
        run_in_threads(search_block, n, bytes_per_row, _TILE_ROWS if bar.useful else n)
    return Neighbors(indices, distances)


def _candidates_among_all(scorer: Scorer, queries: Array, k: int) -> tuple[Array, Array]:
    """From every score: the k best, and what rounding may have put behind them.

    Returns candidates (n×w), ascending and filled up with −1, and which queries (n,) have too
    many to list.
    """
    xp = namespace(queries)
    scores = scorer.scores(queries, slice(None))
    n, slack = scores.shape[0], scorer.rounding(queries)
    kept = scores >= _low_bar(scores, k) - slack
    crowded = xp.zeros(n, dtype=xp.bool, device=device(queries))
    if int(xp.count_nonzero(kept)) > n * _most(k) // 2:
        counts = xp.sum(xp.astype(kept, xp.int64), axis=1)
        again = xp.nonzero(counts > _most(k))[0]
        kept[again] = scores[again] >= kth_largest(scores[again], k) - slack[again]
        crowded = xp.sum(xp.astype(kept, xp.int64), axis=1) > _most(k)
        kept &= ~crowded[:, None]
    rows, columns = _places(kept)
    return _padded(rows, columns, bincount(rows, n)), crowded


def _candidates_by_piles(scorer: Scorer, queries: Array, k: int) -> tuple[Array, Array]:
    """As `_candidates_among_all`, with one pass over the scores: for devices.

    Only piles whose largest score passes are looked into.
    """
    xp = namespace(queries)
    n, n_points = queries.shape[0], scorer.points.shape[0]
    piles = n_points // _PILE
    if piles < 4 * k:
        return _candidates_among_all(scorer, queries, k)
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


def _low_bar(scores: Array, k: int) -> Array:
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


class _Bar:
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
        """As `_candidates_among_all`; also left aside are queries where fewer than k pass."""
        xp, where = namespace(queries), device(queries)
        n, slack = queries.shape[0], scorer.rounding(queries)
        sample = scorer.scores(queries, slice(None, None, self.stride))
        bar = _low_bar(sample, self.rank) - slack
        if not scorer.euclidean and bool(xp.all(bar > 0)):
            # queries scaled to a bar of 1 for all: comparing with one number is much faster
            queries, slack, bar = queries / bar, slack / bar, 1.0
        passed = xp.full((n, self.width), -1, dtype=xp.int64, device=where)
        values = xp.full((n, self.width), -math.inf, dtype=queries.dtype, device=where)
        counts = xp.zeros(n, dtype=xp.int64, device=where)
        for start, scores in _tiles(scorer, queries):
            flat = xp.nonzero((scores >= bar).reshape(-1))[0]
            rows = flat // scores.shape[1]
            added = bincount(rows, n)
            places = xp.arange(flat.shape[0], device=where)
            places += (counts - xp.cumulative_sum(added) + added)[rows]
            counts += added
            if int(xp.max(counts)) > self.width:
                fits = xp.nonzero(places < self.width)[0]
                flat, rows, places = flat[fits], rows[fits], places[fits]
            places += rows * self.width
            values.reshape(-1)[places] = scores.reshape(-1)[flat]
            flat -= rows * scores.shape[1] - start
            passed.reshape(-1)[places] = flat
        # too few, by bad luck with the sample; or a crowd of points that are alike
        aside = (counts < k) | (counts > self.width)
        values = values[:, : max(k, int(xp.max(xp.where(aside, 0, counts))))]
        kept = values >= kth_largest(values, k) - slack
        crowded = aside | (xp.sum(xp.astype(kept, xp.int64), axis=1) > _most(k))
        kept &= ~crowded[:, None]
        rows, places = _places(kept)
        return _padded(rows, passed[rows, places], bincount(rows, n)), crowded


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


def ranked(scorer: Scorer, queries: Array, candidates: Array, k: int) -> tuple[Array, Array]:
    """The k nearest of each query's candidates; rows without candidates are left to others."""
    xp = namespace(queries)
    n, width = candidates.shape
    indices = xp.zeros((n, k), dtype=xp.int64, device=device(queries))
    distances = xp.zeros((n, k), dtype=queries.dtype, device=device(queries))
    if width < k:
        return indices, distances
    itemsize = queries.dtype.itemsize
    wanted = width * (2 * itemsize * queries.shape[1] + 32)
    for rows in row_blocks(n, wanted, queries):
        some = candidates[rows]
        absent = some < 0
        far = scorer.distances(queries[rows], xp.where(absent, xp.zeros_like(some), some))
        far = xp.where(absent, xp.full_like(far, math.inf), far)
        # candidates ascend, so that a stable sort puts the lower index first
        order = xp.argsort(far, axis=1, stable=True)[:, :k]
        indices[rows] = xp.take_along_axis(some, order, axis=1)
        distances[rows] = xp.take_along_axis(far, order, axis=1)
    return indices, distances


def _search_one(scorer: Scorer, query: Array, k: int) -> tuple[Array, Array]:
    """One query against all points: for those with crowds of candidates."""
    xp = namespace(query)
    query = query[None, :]
    scores = scorer.scores(query, slice(None))
    near = xp.nonzero((scores >= kth_largest(scores, k) - scorer.rounding(query))[0])[0]
    parts = [
        scorer.distances(query, near[None, rows])[0]
        for rows in row_blocks(near.shape[0], 16 * query.shape[1], query)
    ]
    far = xp.concat(parts)
    order = xp.argsort(far, stable=True)[:k]
    return near[order], far[order]
