"""Exact nearest neighbours by cosine or Euclidean distance."""

from __future__ import annotations

import contextlib
import math
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from array_api_compat import device, is_torch_array

from tagkin.arrays import (
    Array,
    check_features,
    matmul_precision,
    namespace,
    on_accelerator,
    row_blocks,
    smaller_blocks_when_full,
)
from tagkin.arrays.linalg import matmul
from tagkin.arrays.threads import find_libraries_again, run_in_threads
from tagkin.errors import MissingExtra, pip_install
from tagkin.neighbors.neighbor_index import (
    NeighborIndex,
    Neighbors,
    centred_rows,
    check_metric,
    check_n_neighbors,
    check_queries,
    directions,
)
from tagkin.records.forms import storable
from tagkin.records.rules import Floats

__all__ = ["ExactNeighbors", "import_faiss", "nearest", "one_faiss_thread", "search"]


@dataclass(frozen=True)
class _Searching:
    """Numbers of the exact search; only rounding depends on them."""

    averaged: int = 1024
    """Points whose mean is the centre: any centre near the points serves."""
    faiss_scores: int = 2**25
    """Scores from which FAISS saves the 0.05 s that its import takes."""
    rows: int = 4096
    """Queries of one call, as many as FAISS itself takes at a time."""
    little: int = 2**22
    """Multiplications that take less time than starting threads."""
    more: int = 16
    """Candidates beyond k, to see whether the k-th is tied with the next."""
    rounding: float = 8.0
    """Points are tied if their ‖q − p‖² differ by less than this multiple of the machine's ε times
    ‖q‖² + ‖p‖². Products of equal points differ by some ε, depending on where the points are."""
    near: float = 0.01
    """Share of ‖q‖² + ‖p‖² below which ‖q − p‖² is a sum over differences: from a product it would
    have fewer than five digits in float32."""


_SEARCHING = _Searching()


@storable
class ExactNeighbors(NeighborIndex):
    """Exact top-k search by cosine or Euclidean distance.

    Large searches of float32 NumPy arrays use FAISS if it is installed; others, and arrays on a
    GPU, are searched with matrix products. Both agree up to rounding. Time grows with queries ×
    points; memory beyond the points stays within the budget (`tagkin.memory_budget`).

    Parameters
    ----------
    metric : "cosine" or "euclidean"
        1 − cosine, with a zero vector at distance 1 from everything; or the Euclidean distance.

    Attributes
    ----------
    points_ : array of shape (N, m)
        The points as they are searched: of unit length for the cosine, else centred.
    n_points_ : int
        N.

    Notes
    -----
    Distances are float32 for float32 and narrower features, else float64. The k nearest points are
    those with the largest products. Points that only rounding parts (1e-6 of the squared lengths in
    float32) come by index. Distances of near points are sums over differences, and as accurate as
    others.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.neighbors import ExactNeighbors
    >>> index = ExactNeighbors("euclidean").fit(np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]]))
    >>> index.kneighbors(np.array([[0.0, 0.0]]), 2).indices
    array([[0, 2]])
    """

    points_: Annotated[Array, Floats("N", "m")]
    _center: Annotated[Array | None, Floats("m")]

    def __init__(self, metric: str = "cosine"):
        self.metric = metric

    def fit(self, points: Array, y: object = None, *, center: Array | None = None) -> Self:
        """Store the points (N×m); y is not used.

        Euclidean distances are computed around a mean of points, or around `center` (m,).

        Parameters
        ----------
        points : array of shape (N, m)
            Points to search among.
        y : ignored
            For scikit-learn; not used.
        center : array of shape (m,), optional
            Where Euclidean distances are computed around. Default: a mean of points.
        """
        check_metric(self.metric)
        points = check_features(points, name="points")
        if self.metric == "cosine":
            center = None
        elif center is None:
            sample = points[:: -(-points.shape[0] // _SEARCHING.averaged)]
            center = namespace(points).mean(centred_rows(sample, 0.0, "points"), axis=0)
        self._center = center
        self.points_ = self._searchable(points, "points")
        return self

    def kneighbors_by_group(
        self, queries: Array, groups: Sequence[np.ndarray], n_neighbors: int
    ) -> Iterator[Neighbors]:
        """Yield the nearest points of each query (n×m) within each group of points.

        Groups are arrays of indices of points, ascending. A group with fewer points than
        `n_neighbors` has shorter lists.

        Parameters
        ----------
        queries : array of shape (n, m)
            Points whose neighbours are wanted.
        groups : sequence of int arrays
            Indices of the points of each group, ascending.
        n_neighbors : int
            How many neighbours to return for each query.
        """
        self._check_fitted()
        queries = check_queries(queries, self.points_.shape[1])
        xp = namespace(queries, self.points_)
        check_n_neighbors(n_neighbors, math.inf)
        rows = self._searchable(queries, "queries")
        for group in groups:
            members = xp.asarray(group, device=device(queries))
            k = min(int(n_neighbors), len(group))
            neighbors = search(rows, self.points_[members], k, self.metric)
            yield Neighbors(members[neighbors.indices], neighbors.distances)

    def _searchable(self, rows: Array, name: str) -> Array:
        if hasattr(self, "points_"):
            namespace(rows, self.points_)  # rejects arrays of different kinds or devices
        if self._center is None:
            return directions(rows, name)
        return centred_rows(rows, self._center, name)

    def _search(self, rows: Array, k: int) -> Neighbors:
        return search(rows, self.points_, k, self.metric)

    def __repr__(self) -> str:
        return f"ExactNeighbors({self.metric!r})"


def nearest(
    queries: Array,
    points: Array,
    n_neighbors: int,
    *,
    metric: str = "cosine",
    exclude: Array | None = None,
) -> Neighbors:
    """Return the exact nearest `points` (N×m) of each of the `queries` (n×m).

    ``nearest(Z, Z, k, exclude=np.arange(len(Z)))`` returns the neighbours of each image among the
    others.

    Parameters
    ----------
    queries : array of shape (n, m)
        Points whose neighbours are wanted.
    points : array of shape (N, m)
        Points to search among.
    n_neighbors : int
        How many neighbours to return for each query.
    metric : {"cosine", "euclidean"}, default "cosine"
        The distance.
    exclude : array of shape (n,) of int, optional
        A point that each query must not find, such as itself.
    """
    return ExactNeighbors(metric).fit(points).kneighbors(queries, n_neighbors, exclude=exclude)


def search(queries: Array, points: Array, k: int, metric: str) -> Neighbors:
    """Return the k nearest points (N×m) of each query (n×m), both in searchable form."""
    with contextlib.ExitStack() as stack:
        if on_accelerator(points):
            stack.enter_context(matmul_precision("float32"))
        return _search_in_blocks(queries, points, k, metric)


@smaller_blocks_when_full
def _search_in_blocks(
    queries: Array, points: Array, k: int, metric: str, width: int | None = None
) -> Neighbors:
    """Return the k nearest of `width` candidates; by default of a few more than k."""
    xp, place = namespace(queries, points), device(points)
    n, (n_points, m) = queries.shape[0], points.shape
    width = min(k + _SEARCHING.more if width is None else width, n_points)
    queries = xp.astype(queries, points.dtype, copy=False)
    faiss = import_faiss() if _faiss_pays(queries, points, width) else None
    if faiss is not None:
        queries, points = np.ascontiguousarray(queries), np.ascontiguousarray(points)
    squares = xp.vecdot(points, points)
    neighbors = Neighbors(
        xp.empty((n, k), dtype=xp.int64, device=place),
        xp.empty((n, k), dtype=points.dtype, device=place),
    )
    is_tied = xp.zeros(n, dtype=xp.bool, device=place)

    def search_block(rows: slice) -> None:
        block = queries[rows]
        if faiss is None:
            products, candidates = _find_largest(block, points, squares, width, metric)
        else:
            products, candidates = _find_with_faiss(faiss, block, points, squares, width, metric)
        far, rounding = _measure(block, points, squares, candidates, products)
        if metric == "cosine":  # a zero vector is at distance 1
            zero = (squares[candidates] == 0) | ~xp.any(block != 0, axis=1)[:, None]
            far = xp.where(zero, xp.full_like(far, 2), far)
        neighbors.indices[rows], far, is_tied[rows] = _sort(candidates, far, rounding, k)
        # 1 − q·p = ‖q − p‖²/2 of unit vectors
        neighbors.distances[rows] = far / 2 if metric == "cosine" else xp.sqrt(far)

    bytes_per_row = (16 * n_points if faiss is None else 4096) + 128 * width
    if is_torch_array(points) or n * n_points * m < _SEARCHING.little:
        for rows in row_blocks(n, bytes_per_row, points):
            search_block(rows)
    else:
        run_in_threads(search_block, n, bytes_per_row, _SEARCHING.rows)
    (crowded,) = xp.nonzero(is_tied)
    if crowded.shape[0] and width < n_points:  # many points are alike: sort all of them
        again = _search_in_blocks(queries[crowded], points, k, metric, n_points)
        neighbors.indices[crowded], neighbors.distances[crowded] = again
    return neighbors


def _find_largest(
    queries: Array, points: Array, squares: Array, k: int, metric: str
) -> tuple[Array, Array]:
    """Return the products (n×k) of queries with their nearest points, and the points' indices."""
    scores = matmul(queries, points.T)
    if metric == "euclidean":
        scores -= squares / 2  # ranks as the distances do
    xp = namespace(scores)
    if is_torch_array(scores):
        best = xp.topk(scores, k, dim=1).indices
    else:
        best = np.argpartition(scores, scores.shape[1] - k, axis=1)[:, -k:]
    products = xp.take_along_axis(scores, best, axis=1)
    return products + squares[best] / 2 if metric == "euclidean" else products, best


def _measure(
    queries: Array, points: Array, squares: Array, indices: Array, products: Array
) -> tuple[Array, Array]:
    """Return ‖q − p‖² (n×w) of queries and the points of these indices, and their rounding."""
    xp = namespace(queries)
    total = xp.vecdot(queries, queries)[:, None] + squares[indices]
    far = total - 2 * products
    near = far < _SEARCHING.near * total
    rows, columns = xp.nonzero(near)
    for part in row_blocks(rows.shape[0], 16 * points.shape[1], points):
        pairs = rows[part], columns[part]
        difference = queries[pairs[0]] - points[indices[pairs]]
        far[pairs] = xp.vecdot(difference, difference)
    eps = float(xp.finfo(points.dtype).eps)
    return far, _SEARCHING.rounding * eps * xp.where(near, far, total)


def _sort(indices: Array, far: Array, rounding: Array, k: int) -> tuple[Array, Array, Array]:
    """Return the k nearest candidates (n×w) by distance; by index, if rounding parts them alone.

    Also return whether the last of them may be tied with a point that is no candidate, (n,).
    """
    xp = namespace(far)
    order = xp.argsort(far, axis=1)
    indices, far, rounding = (
        xp.take_along_axis(part, order, axis=1) for part in (indices, far, rounding)
    )
    apart = far[:, 1:] - far[:, :-1] > rounding[:, 1:]
    (tied,) = xp.nonzero(~xp.all(apart, axis=1))
    if tied.shape[0]:
        steps = xp.astype(apart[tied], xp.int64)
        place = xp.concat([xp.zeros_like(steps[:, :1]), xp.cumulative_sum(steps, axis=1)], axis=1)
        # by place, then by index
        order = xp.argsort(indices[tied], axis=1)
        again = xp.argsort(xp.take_along_axis(place, order, axis=1), axis=1, stable=True)
        order = xp.take_along_axis(order, again, axis=1)
        indices[tied] = xp.take_along_axis(indices[tied], order, axis=1)
    return indices[:, :k], far[:, :k], ~xp.any(apart[:, k - 1 :], axis=1)


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
    find_libraries_again()  # FAISS loads its own BLAS
    # FAISS 1.15 takes ten times as long for fewer than 1,600 queries of 81 dimensions, because it
    # uses products for more queries only
    faiss.cvar.distance_compute_blas_threshold = 0
    return faiss


@contextlib.contextmanager
def one_faiss_thread(faiss: Any) -> Iterator[None]:
    """Use one FAISS thread in this thread: several wait for each other in busy loops."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _faiss_pays(queries: Array, points: Array, k: int) -> bool:
    """Whether FAISS can search these arrays, and saves more time than its import takes."""
    if not isinstance(points, np.ndarray) or points.dtype != np.float32:
        return False
    return 8 * k < len(points) and len(queries) * len(points) >= _SEARCHING.faiss_scores


def _find_with_faiss(
    faiss: Any, queries: Any, points: Any, squares: Any, k: int, metric: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `_find_largest` returns."""
    kind = faiss.METRIC_INNER_PRODUCT if metric == "cosine" else faiss.METRIC_L2
    with one_faiss_thread(faiss):
        scores, indices = faiss.knn(queries, points, k, metric=kind)
    if metric == "euclidean":
        scores = (np.vecdot(queries, queries)[:, None] + squares[indices] - scores) / 2
    return scores, indices
