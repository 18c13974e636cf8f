"""Exact nearest neighbours by cosine or Euclidean distance."""

from __future__ import annotations

import contextlib
import math
import platform
from dataclasses import dataclass
from typing import Annotated, Self

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
from tagkin.arrays.threads import run_in_threads
from tagkin.errors import InvalidInput, MissingExtra
from tagkin.neighbors.faiss import FaissNeighbors, import_faiss, search_with_faiss
from tagkin.neighbors.neighbor_index import (
    NeighborIndex,
    Neighbors,
    check_metric,
    directions,
    nearest_first,
)
from tagkin.records.forms import storable
from tagkin.records.rules import Floats

__all__ = ["ExactNeighbors", "nearest", "recommended_index", "search"]


@dataclass(frozen=True)
class _Searching:
    """Numbers of the exact search; only time and rounding depend on them."""

    points: int = 200_000
    """Points for which the exact search is fast enough."""
    faiss_scores: int = 2**25
    """Scores from which FAISS saves the 0.05 s that its import takes."""
    more: int = 16
    """Candidates beyond k: products round, and distances rank the candidates."""
    near: float = 0.02
    """Share of ‖q‖² below which ‖q − p‖² is a sum over differences: from a product it would have
    fewer than five digits in float32."""


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
    those with the largest products; of equal ones, the first. Distances of near points are sums over differences, and as
    accurate as others.

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

    def fit(self, points: Array) -> Self:
        """Store the points (N×m). Euclidean distances are computed around a mean of points."""
        check_metric(self.metric)
        points, center = check_features(points, name="points"), None
        if self.metric == "euclidean":  # any centre near the points serves
            sample = points[:: -(-points.shape[0] // 1024)]
            zero = namespace(points).zeros(1, device=device(points))
            center = namespace(points).mean(directions(sample, "points", zero), axis=0)
        self._center, self.points_ = center, directions(points, "points", center)
        return self

    def as_searched(self, rows: Array) -> Array:
        """Return rows (n×m) of unit length for the cosine, else centred."""
        namespace(rows, self.points_)  # rejects arrays of different kinds or devices
        return directions(rows, "queries", self._center)

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
    points : array of shape (N, m)
    n_neighbors : int
    metric : "cosine" or "euclidean"
    exclude : int array of shape (n,), optional
        A point that each query must not find, such as itself; −1 excludes nothing.
    """
    return ExactNeighbors(metric).fit(points).kneighbors(queries, n_neighbors, exclude=exclude)


def recommended_index(
    n_points: int, n_features: int, metric: str = "cosine"
) -> ExactNeighbors | FaissNeighbors:
    """Return an index for `n_points` points: the exact search, or FAISS if that is too slow.

    More than 200,000 points are sorted into lists. A search compares the query with the lists
    nearest to it, by codes of four bits per dimension, and ranks the best points by full
    distances. Among a million embeddings it finds more than 99 of the 100 nearest in a tenth of
    the time. Compare it with the exact search on your points with `recall`, and raise ``nprobe`` if
    it finds too few. It is made for embeddings: with a thousand features or more, learning the
    codes takes long.

    Parameters
    ----------
    n_points, n_features : int
        Number of points, and of their dimensions.
    metric : "cosine" or "euclidean"

    Examples
    --------
    >>> from tagkin.neighbors import recommended_index
    >>> recommended_index(50_000, 81)
    ExactNeighbors('cosine')
    """
    check_metric(metric)
    if n_points < 1 or n_features < 1:
        raise InvalidInput(f"There is no index for {n_points} points of {n_features} features.")
    if n_points <= _SEARCHING.points or n_features == 1:
        return ExactNeighbors(metric)
    n_lists = 2 ** round(math.log2(4 * math.sqrt(n_points)))
    n_probed = round(2 * math.sqrt(n_lists))
    codes = f"IVF{n_lists},PQ{n_features}x4fsr"
    return FaissNeighbors(codes, f"nprobe={n_probed}", metric=metric)


@smaller_blocks_when_full
def search(queries: Array, points: Array, k: int, metric: str) -> Neighbors:
    """Return the k nearest points (N×m) of each query (n×m), both `as_searched`."""
    xp, place = namespace(queries, points), device(points)
    n, n_points = queries.shape[0], points.shape[0]
    width = min(k + _SEARCHING.more, n_points)
    queries = xp.astype(queries, points.dtype, copy=False)
    if _faiss_pays(queries, points, width):
        with contextlib.suppress(MissingExtra):
            return _search_with_faiss(queries, points, k, width, metric)
    halves = xp.vecdot(points, points) / 2 if metric == "euclidean" else None
    indices = xp.empty((n, k), dtype=xp.int64, device=place)
    distances = xp.empty((n, k), dtype=points.dtype, device=place)

    def search_block(rows: slice) -> None:
        candidates, squares = _find_candidates(queries[rows], points, halves, width)
        # 1 − q·p = ‖q − p‖²/2 of unit vectors
        far = squares / 2 if halves is None else xp.sqrt(squares)
        indices[rows], distances[rows] = nearest_first(Neighbors(candidates, far), k)

    bytes_per_row = 16 * n_points + 128 * width
    with matmul_precision("float32") if on_accelerator(points) else contextlib.nullcontext():
        if is_torch_array(points):
            for rows in row_blocks(n, bytes_per_row, points):
                search_block(rows)
        else:
            run_in_threads(search_block, n, bytes_per_row, n)
    return Neighbors(indices, distances)


def _find_candidates(
    queries: Array, points: Array, halves: Array | None, width: int
) -> tuple[Array, Array]:
    """Return the indices of the nearest points (n×width), and ‖q − p‖², from all products.

    `halves` are ‖p‖²/2, or None for unit vectors: then ‖q − p‖² is 2 − 2 q·p. For a zero vector
    that is 2, so its cosine is 0.
    """
    xp = namespace(queries)
    scores = matmul(queries, points.T)
    length = 2.0 if halves is None else xp.vecdot(queries, queries)[:, None]
    if halves is not None:
        scores -= halves  # ranks as the distances do
    if is_torch_array(scores):
        best = xp.topk(scores, width, dim=1).indices
    else:
        best = np.argpartition(scores, scores.shape[1] - width, axis=1)[:, -width:]
    least = xp.min(xp.take_along_axis(scores, best, axis=1), axis=1)
    is_tied = xp.sum(scores >= least[:, None], axis=1) > width
    if bool(xp.any(is_tied)):  # take the first of equal points
        best[is_tied] = xp.argsort(-scores[is_tied], axis=1, stable=True)[:, :width]
    squares = length - 2 * xp.take_along_axis(scores, best, axis=1)
    rows, columns = xp.nonzero(squares < _SEARCHING.near * length)
    for part in row_blocks(rows.shape[0], 16 * points.shape[1], points):
        pairs = rows[part], columns[part]
        difference = queries[pairs[0]] - points[best[pairs]]
        squares[pairs] = xp.vecdot(difference, difference)
    return best, squares


def _faiss_pays(queries: Array, points: Array, width: int) -> bool:
    """Whether FAISS can search these arrays, and saves more time than its import takes.

    Beside torch and scikit-learn, its OpenMP library is safe on Linux only (see docs/scale.md).
    """
    if not isinstance(points, np.ndarray) or points.dtype != np.float32:
        return False
    is_large = len(queries) * len(points) >= _SEARCHING.faiss_scores and 8 * width < len(points)
    return is_large and platform.system() == "Linux"


def _search_with_faiss(queries: Array, points: Array, k: int, width: int, metric: str) -> Neighbors:
    faiss, points = import_faiss(), np.ascontiguousarray(points)
    kind = faiss.METRIC_INNER_PRODUCT if metric == "cosine" else faiss.METRIC_L2

    def find(rows: np.ndarray) -> np.ndarray:
        return faiss.knn(rows, points, width, metric=kind)[1]

    return search_with_faiss(find, width, np.asarray(queries), points, k, metric)
