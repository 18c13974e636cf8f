"""Exact search in blocks: matrix products find candidates, and pairwise distances rank them.

The rounding of a matrix product depends on the blocks, on the processor and on the addresses of
arrays. So all points within that rounding of the k-th best score are candidates, and the distance
of each is computed again as a sum over its own pair of vectors, in one fixed order. The result does
not depend on the blocks, and equal points have equal distances.
"""

from __future__ import annotations

import math

import numpy as np
from array_api_compat import device, is_torch_array

from tagkin.arrays import (
    Array,
    matmul_precision,
    namespace,
    on_accelerator,
    row_blocks,
    smaller_blocks_when_full,
)
from tagkin.arrays.threads import run_in_threads
from tagkin.neighbors.neighbor_index import Neighbors
from tagkin.neighbors.scorer import Scorer, pair_blocks

__all__ = [
    "FEW_POINTS",
    "SampledCutoff",
    "candidates_among_all",
    "candidates_by_group_maxima",
    "rank_candidates",
    "search",
]

_TILE_ROWS = 512
_FEW_SCORES = 2**21  # up to this number all are kept, as for a single photograph
_LITTLE = 2**22  # multiplications that take less time than starting threads
_GROUP = 32  # scores that share one maximum
_TILE_COLUMNS = 512  # with 512 queries, scores that stay in the cache
FEW_POINTS = 16_384  # with no more, all scores of a query are kept
_SAMPLED = 24  # with more, a sample of 1 in 24 points sets the score that candidates must reach


def search(queries: Array, scorer: Scorer, k: int) -> Neighbors:
    """Return the k nearest of the scorer's points for queries (n×m) in the form of the points."""
    if not on_accelerator(scorer.points):
        return _search(queries, scorer, k)
    with matmul_precision("float32"):  # otherwise the bound on rounding is wrong
        return _search(queries, scorer, k)


@smaller_blocks_when_full
def _search(queries: Array, scorer: Scorer, k: int) -> Neighbors:
    points = scorer.points
    xp = namespace(queries, points)
    queries = xp.astype(queries, points.dtype, copy=False)
    n, n_points = queries.shape[0], points.shape[0]
    indices = xp.empty((n, k), dtype=xp.int64, device=device(points))
    distances = xp.empty((n, k), dtype=points.dtype, device=device(points))
    cutoff = SampledCutoff(n_points, k)
    find, columns = candidates_among_all, 2 * n_points
    if on_accelerator(points):
        find = candidates_by_group_maxima
    elif cutoff.useful and n * n_points > _FEW_SCORES:
        find, columns = cutoff.candidates, cutoff.columns

    def search_block(rows: slice) -> None:
        block = queries[rows]
        candidates, undecided = find(scorer, block, k)
        indices[rows], distances[rows] = rank_candidates(scorer, block, candidates, k)
        for row in xp.nonzero(undecided)[0]:
            i = rows.start + int(row)
            indices[i], distances[i] = _search_one(scorer, queries[i], k)

    bytes_per_row = points.dtype.itemsize * (columns + 16 * k)
    if is_torch_array(points) or n * n_points * points.shape[1] < _LITTLE:
        for rows in row_blocks(n, bytes_per_row, points):
            search_block(rows)
    else:
        run_in_threads(search_block, n, bytes_per_row, _TILE_ROWS if cutoff.useful else n)
    return Neighbors(indices, distances)


def rank_candidates(
    scorer: Scorer, queries: Array, candidates: Array, k: int
) -> tuple[Array, Array]:
    """Return the k nearest of each query's candidates (n×w), which ascend and are padded with −1.

    Rows without candidates are zero.
    """
    xp = namespace(queries)
    n, width = candidates.shape
    indices = xp.zeros((n, k), dtype=xp.int64, device=device(queries))
    distances = xp.zeros((n, k), dtype=queries.dtype, device=device(queries))
    if width < k:
        return indices, distances
    counts = xp.sum(xp.astype(candidates >= 0, xp.int64), axis=1)
    by_count = xp.argsort(counts)  # lists of similar length go together
    for block in pair_blocks(queries, width):
        rows = by_count[block]
        listed = candidates[rows, : max(k, int(counts[rows[-1]]))]
        absent = listed < 0
        far = scorer.distances(queries[rows], xp.where(absent, xp.zeros_like(listed), listed))
        far = xp.where(absent, xp.full_like(far, math.inf), far)
        # candidates ascend, so a stable sort puts the lower index first
        order = xp.argsort(far, axis=1, stable=True)[:, :k]
        indices[rows] = xp.take_along_axis(listed, order, axis=1)
        distances[rows] = xp.take_along_axis(far, order, axis=1)
    return indices, distances


def _search_one(scorer: Scorer, query: Array, k: int) -> tuple[Array, Array]:
    """Compare an undecided query with all points."""
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


# --- candidates --------------------------------------------------------------------------
#
# Each function returns the candidates (n×w) from rounded scores: all k nearest, and few others.
# They ascend and are padded with −1. It also returns a mask of queries (n,) that it leaves
# undecided, because they have too many candidates to list, or too few.


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
