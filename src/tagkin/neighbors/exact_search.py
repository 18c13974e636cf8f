"""Exact search: products find candidates, and the distances of their pairs rank them.

The rounding of a product depends on blocks, threads and the processor. So all points within that
rounding of the k-th best score are candidates, and the distance of each is a sum over its own pair
of vectors, in one fixed order. So equal points have equal distances, and FAISS and products of
NumPy and torch return the same neighbours, up to the rounding of a distance.
"""

from __future__ import annotations

import contextlib
import functools
import math
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import device, is_torch_array

from tagkin.arrays import (
    Array,
    block_rows,
    matmul_precision,
    namespace,
    on_accelerator,
    row_blocks,
    smaller_blocks_when_full,
)
from tagkin.arrays.linalg import matmul
from tagkin.arrays.threads import find_libraries_again, run_in_threads
from tagkin.errors import MissingExtra, pip_install
from tagkin.neighbors.neighbor_index import Neighbors

__all__ = [
    "import_faiss",
    "pair_distances",
    "rank_by_faiss",
    "search",
    "search_by_products",
    "sums_of_squares",
]


@dataclass(frozen=True)
class _Sizes:
    """Sizes that tune the search; no result depends on them."""

    faiss_scores: int = 2**25  # from here on, FAISS saves the 0.05 s that its import takes
    faiss_rows: int = 4096  # queries of one call, as many as FAISS itself takes at a time
    more: int = 16  # FAISS's candidates beyond k; the last of them shows that none is missing
    group: int = 32  # scores that share one maximum
    crowd: int = 4  # times k: with more candidates, many points are alike
    pairs: int = 2**11  # pairs whose vectors fit in the cache
    terms: int = 2**12  # terms of a sum; NumPy's buffer holds twice as many
    little: int = 2**22  # multiplications that take less time than starting threads


_SIZES = _Sizes()


def search(queries: Array, points: Array, k: int, metric: str) -> Neighbors:
    """Return the k nearest points (N×m) of each query (n×m), both in searchable form."""
    faiss = import_faiss() if _faiss_pays(queries, points, k) else None
    if faiss is None:
        return search_by_products(queries, points, k, metric)
    return _search_by_faiss(faiss, queries, points, k, metric)


# --- FAISS -------------------------------------------------------------------------------


def import_faiss(*, required: bool = False) -> Any:
    """Return FAISS, or None if it is not installed and not required.

    Beside torch and scikit-learn, its OpenMP library is safe on Linux only (see docs/scale.md).
    """
    if platform.system() != "Linux" and not required:
        return None
    try:
        import faiss
    except ImportError as error:
        if required:
            raise MissingExtra(f"FAISS is not installed: {pip_install('faiss')}") from error
        return None
    _prepare(faiss)
    return faiss


@functools.cache
def _prepare(faiss: Any) -> None:
    find_libraries_again()  # FAISS loads its own BLAS
    # FAISS 1.15 takes ten times as long for fewer than 1,600 queries of 81 dimensions, because it
    # uses products for more queries only
    faiss.cvar.distance_compute_blas_threshold = 0


def _faiss_pays(queries: Array, points: Array, k: int) -> bool:
    """Whether FAISS can search these arrays, and saves more time than its import takes."""
    if not isinstance(points, np.ndarray) or points.dtype != np.float32:
        return False
    few = 8 * (k + _SIZES.more) < len(points)
    return few and len(queries) * len(points) >= _SIZES.faiss_scores


def _search_by_faiss(faiss: Any, queries: Array, points: Array, k: int, metric: str) -> Neighbors:
    queries, points = (np.ascontiguousarray(rows, dtype=np.float32) for rows in (queries, points))
    kind = faiss.METRIC_INNER_PRODUCT if metric == "cosine" else faiss.METRIC_L2
    width = k + _SIZES.more
    # a squared distance is ‖q‖² − 2 score, and rounds twice as much as the score
    slack = (1 if metric == "cosine" else 2) * _rounding(queries, points, metric)[:, 0]
    undecided = np.zeros(len(queries), dtype=bool)

    def find(rows: slice) -> np.ndarray:
        scores, candidates = faiss.knn(queries[rows], points, width, metric=kind)
        # otherwise a point that is not listed may be as near as the k-th
        undecided[rows] = np.abs(scores[:, -1] - scores[:, k - 1]) <= slack[rows]
        return candidates

    neighbors = rank_by_faiss(queries, points, find, k, metric)
    rows = np.flatnonzero(undecided)
    if len(rows):
        again = search_by_products(queries[rows], points, k, metric)
        neighbors.indices[rows], neighbors.distances[rows] = again
    return neighbors


def rank_by_faiss(
    queries: np.ndarray,
    points: np.ndarray,
    find: Callable[[slice], np.ndarray],
    k: int,
    metric: str,
) -> Neighbors:
    """Return the k nearest of the candidates that `find` returns for slices of the queries.

    Queries and points are contiguous float32 arrays. Each call of `find` has one FAISS thread, and
    is made on one of several threads: those of FAISS wait for each other in busy loops, which is
    slow on a busy machine.
    """
    faiss, neighbors = import_faiss(required=True), _empty_lists(queries, k)
    zero_query, zero_point = (np.all(rows == 0, axis=1) for rows in (queries, points))

    def search_block(rows: slice) -> None:
        before = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            # ascending, with −1 last, because it is the largest unsigned number
            candidates = np.sort(find(rows).view(np.uint64), axis=1).view(np.int64)
            squares = np.empty(candidates.shape, np.float32)
            pointers = map(faiss.swig_ptr, (squares, queries[rows], points, candidates))
            faiss.fvec_L2sqr_by_idx(*pointers, points.shape[1], *candidates.shape)
        finally:
            faiss.omp_set_num_threads(before)
        zero = zero_query[rows, None] | zero_point[candidates]
        far = _as_distances(squares, zero & (candidates >= 0), metric)
        neighbors.indices[rows], neighbors.distances[rows] = _nearest_first(candidates, far, k)

    run_in_threads(search_block, len(queries), 4096 + 64 * k, _SIZES.faiss_rows)
    return neighbors


# --- products of NumPy and torch ---------------------------------------------------------


def search_by_products(queries: Array, points: Array, k: int, metric: str) -> Neighbors:
    """Return the k nearest points (N×m) of each query (n×m), without FAISS."""
    with contextlib.ExitStack() as stack:
        if on_accelerator(points):  # otherwise the bound on rounding is wrong
            stack.enter_context(matmul_precision("float32"))
        return _search_by_products(queries, points, k, metric)


@smaller_blocks_when_full
def _search_by_products(queries: Array, points: Array, k: int, metric: str) -> Neighbors:
    xp = namespace(queries, points)
    queries = xp.astype(queries, points.dtype, copy=False)
    n, n_points = queries.shape[0], points.shape[0]
    neighbors = _empty_lists(queries, k)
    half_squares = None if metric == "cosine" else _squares(points) / 2
    slack = _rounding(queries, points, metric)

    def search_block(rows: slice) -> None:
        scores = matmul(queries[rows], points.T)  # rank as the distances do
        if half_squares is not None:
            scores -= half_squares
        near = scores >= _low_cutoff(scores, k) - slack[rows]
        for part, candidates in _candidate_lists(near, _SIZES.crowd * (k + _SIZES.more)):
            ranked = _rank_candidates(queries[rows][part], points, candidates, k, metric)
            neighbors.indices[rows][part], neighbors.distances[rows][part] = ranked

    bytes_per_row = 2 * points.dtype.itemsize * n_points + 64 * k
    if is_torch_array(points) or n * n_points * points.shape[1] < _SIZES.little:
        for rows in row_blocks(n, bytes_per_row, points):
            search_block(rows)
    else:
        run_in_threads(search_block, n, bytes_per_row, n)
    return neighbors


def _rounding(queries: Array, points: Array, metric: str) -> Array:
    """Return how far a point's score may be below that of a farther point, shape (n, 1).

    Points are ranked by their computed distances. Both scores and both distances round, by at
    most (m + 4) u of ‖q‖‖p‖ and of ‖q − p‖²/2, for any order of their m terms; u is half of ε.
    """
    xp = namespace(queries)
    length = xp.linalg.vector_norm(queries, axis=1, keepdims=True)
    longest = 1.0 if metric == "cosine" else math.sqrt(float(xp.max(_squares(points))))
    reach = length + longest
    size = longest * (length if metric == "cosine" else reach) + reach * reach / 2
    return float(xp.finfo(points.dtype).eps) * (points.shape[1] + 8) * size


def _low_cutoff(scores: Array, k: int) -> Array:
    """Return a close lower bound of the k-th largest score of each row, shape (n, 1).

    Columns are split into groups. At least k scores reach the k-th largest of the groups' maxima.
    Adjacent columns, which are often alike, go to different groups.
    """
    n, n_groups = scores.shape[0], scores.shape[1] // _SIZES.group
    if n_groups >= 4 * k:
        grouped = scores[:, : n_groups * _SIZES.group].reshape(n, _SIZES.group, n_groups)
        scores = namespace(scores).max(grouped, axis=1)
    if is_torch_array(scores):
        return namespace(scores).topk(scores, k, dim=1).values[:, -1:]
    column = scores.shape[1] - k
    return np.partition(scores, column, axis=1)[:, column : column + 1]


def _candidate_lists(near: Array, most: int) -> Iterator[tuple[slice, Array]]:
    """Yield rows of a mask (n×N) with their true columns (r×w), ascending and padded with −1.

    If a row has more than `most`, because many points are alike, each row has its own list.
    """
    xp, place, (n, n_points) = namespace(near), device(near), near.shape
    if int(xp.count_nonzero(near)) <= most * n:
        flat = xp.nonzero(xp.reshape(near, (-1,)))[0]  # flat: several times faster
        rows, columns = flat // n_points, flat % n_points
        counts = xp.bincount(rows, minlength=n)
        width = int(xp.max(counts))
        if width <= most:
            lists = xp.full((n, width), -1, dtype=xp.int64, device=place)
            starts = xp.cumulative_sum(counts) - counts
            lists[rows, xp.arange(rows.shape[0], device=place) - starts[rows]] = columns
            yield slice(0, n), lists
            return
    for row in range(n):
        yield slice(row, row + 1), xp.nonzero(near[row])[0][None, :]


# --- distances of pairs ------------------------------------------------------------------


def _rank_candidates(
    queries: Array, points: Array, candidates: Array, k: int, metric: str
) -> Neighbors:
    """Return the k nearest of each query's candidates (n×w), which ascend; −1 is none."""
    xp, (n, width) = namespace(queries), candidates.shape
    neighbors = _empty_lists(queries, k)
    step = block_rows(width * (2 * queries.dtype.itemsize * queries.shape[1] + 32), queries)
    if not on_accelerator(queries):
        step = max(1, min(step, _SIZES.pairs // width))
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        listed, absent = candidates[rows], candidates[rows] < 0
        known = xp.where(absent, xp.zeros_like(listed), listed)
        far = pair_distances(queries[rows], points, known, metric)
        far = xp.where(absent, xp.full_like(far, math.inf), far)
        neighbors.indices[rows], neighbors.distances[rows] = _nearest_first(listed, far, k)
    return neighbors


def _nearest_first(candidates: Array, far: Array, k: int) -> Neighbors:
    """Return the k nearest of candidates (n×w), which ascend, so the lower index comes first."""
    xp = namespace(far)
    order = xp.argsort(far, axis=1, stable=True)[:, :k]
    return Neighbors(*(xp.take_along_axis(part, order, axis=1) for part in (candidates, far)))


def pair_distances(queries: Array, points: Array, candidates: Array, metric: str) -> Array:
    """Return the distance of each query (n×m) to each of its own candidates (n×w), by pairs."""
    xp = namespace(queries)
    vectors = xp.take(points, xp.reshape(candidates, (-1,)), axis=0)
    vectors = xp.reshape(vectors, (*candidates.shape, -1))
    zero = vectors[:, :, 0] == 0
    if bool(xp.any(zero)):  # seldom: the first entry tells most vectors from zero
        zero = xp.all(vectors == 0, axis=2)
    zero = zero | xp.all(queries == 0, axis=1)[:, None]
    vectors -= queries[:, None, :]
    return _as_distances(sums_of_squares(vectors), zero, metric)


def _as_distances(squares: Array, zero: Array, metric: str) -> Array:
    """Return distances of pairs from their ‖q − p‖²; `zero` marks pairs with a zero vector."""
    xp = namespace(squares)
    if metric == "euclidean":
        return xp.sqrt(squares)
    # for unit vectors 1 − q·p = ‖q − p‖²/2, which is accurate for near points, too
    return xp.where(zero, xp.ones_like(squares), squares / 2)


def sums_of_squares(values: Array) -> Array:
    """Return sums of squares over the last axis of an array (n×w×m), which may be overwritten.

    Every sum has the same order of terms. NumPy changes the order if there are more terms than its
    buffer holds, so it gets fewer. A torch tensor keeps the order within a call.
    """
    if not isinstance(values, np.ndarray):
        values *= values
        return namespace(values).sum(values, axis=-1)
    starts = range(0, values.shape[-1], _SIZES.terms)
    parts = (values[..., i : i + _SIZES.terms] for i in starts)
    return sum(np.einsum("nwm,nwm->nw", part, part) for part in parts)


def _squares(points: Array) -> Array:
    norms = namespace(points).linalg.vector_norm(points, axis=1)
    return norms * norms


def _empty_lists(queries: Array, k: int) -> Neighbors:
    xp, place, shape = namespace(queries), device(queries), (queries.shape[0], k)
    indices = xp.empty(shape, dtype=xp.int64, device=place)
    return Neighbors(indices, xp.empty(shape, dtype=queries.dtype, device=place))
