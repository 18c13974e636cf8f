"""Exact search in blocks: matrix products find candidates, and pairwise distances rank them.

The rounding of a matrix product depends on the blocks, on the processor and on the addresses of
arrays. So all points within that rounding of the k-th best score are candidates, and the distance
of each is computed again as a sum over its own pair of vectors, in one fixed order. The result does
not depend on the blocks, and equal points have equal distances.
"""

from __future__ import annotations

import math

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
from tagkin.neighbors._candidates import (
    SampledCutoff,
    candidates_among_all,
    candidates_by_group_maxima,
    kth_largest,
)
from tagkin.neighbors.base import Neighbors
from tagkin.neighbors.scorer import Scorer, pair_blocks

__all__ = ["rank_candidates", "search"]

_TILE_ROWS = 512
_FEW_SCORES = 2**21  # up to this number all are kept, as for a single photograph
_LITTLE = 2**22  # multiplications that take less time than starting threads


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
