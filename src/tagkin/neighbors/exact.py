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
    namespace,
    row_blocks,
    smaller_blocks_when_full,
)
from tagkin.arrays.linalg import matmul
from tagkin.errors import InvalidInput, MissingExtra
from tagkin.neighbors.faiss import FaissNeighbors, faiss_finder, import_faiss
from tagkin.neighbors.neighbor_index import (
    Finder,
    NeighborIndex,
    Neighbors,
    check_metric,
    directions,
    rank_candidates,
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
def search(
    queries: Array, points: Array, k: int, metric: str, width: int | None = None
) -> Neighbors:
    """Return the k nearest points (N×m) of each query (n×m), both `as_searched`.

    They are the nearest of `width` candidates; by default of a few more than k.
    """
    xp, n_points = namespace(queries, points), points.shape[0]
    width = min(k + _SEARCHING.more if width is None else width, n_points)
    queries = xp.astype(queries, points.dtype, copy=False)
    find, bytes_per_row = _find_with_products(points, width, metric), 16 * n_points
    if _faiss_pays(queries, points, width):
        with contextlib.suppress(MissingExtra):
            queries, points = np.ascontiguousarray(queries), np.ascontiguousarray(points)
            find, bytes_per_row = _find_with_faiss(points, width, metric), 4096
    bytes_per_row += 128 * width
    neighbors, is_tied = rank_candidates(
        find, queries, k, metric=metric, bytes_per_row=bytes_per_row
    )
    if width < n_points and bool(xp.any(is_tied)):  # many points are alike: rank all of them
        again = search(queries[is_tied], points, k, metric, n_points)
        neighbors.indices[is_tied], neighbors.distances[is_tied] = again
    return neighbors


def _find_with_products(points: Array, width: int, metric: str) -> Finder:
    """Return the plain search: candidates have the largest products with the query.

    For unit vectors, ‖q − p‖² is 2 − 2 q·p; for a zero vector that is 2, so its cosine is 0.
    """
    xp = namespace(points)
    halves = xp.vecdot(points, points) / 2 if metric == "euclidean" else None
    eps = _SEARCHING.rounding * float(xp.finfo(points.dtype).eps)

    def find(queries: Array) -> tuple[Array, Array, Array]:
        scores, length = matmul(queries, points.T), 2.0
        if halves is not None:
            scores -= halves  # ranks as the distances do
            length = xp.vecdot(queries, queries)[:, None]
        if is_torch_array(scores):
            best = xp.topk(scores, width, dim=1).indices
        else:
            best = np.argpartition(scores, scores.shape[1] - width, axis=1)[:, -width:]
        far = length - 2 * xp.take_along_axis(scores, best, axis=1)
        total = length if halves is None else length + 2 * halves[best]
        near = far < _SEARCHING.near * total
        rows, columns = xp.nonzero(near)
        for part in row_blocks(rows.shape[0], 16 * points.shape[1], points):
            pairs = rows[part], columns[part]
            difference = queries[pairs[0]] - points[best[pairs]]
            far[pairs] = xp.vecdot(difference, difference)
        return best, far, eps * xp.where(near, far, total * xp.ones_like(far))

    return find


def _faiss_pays(queries: Array, points: Array, width: int) -> bool:
    """Whether FAISS can search these arrays, and saves more time than its import takes.

    Beside torch and scikit-learn, its OpenMP library is safe on Linux only (see docs/scale.md).
    """
    if not isinstance(points, np.ndarray) or points.dtype != np.float32:
        return False
    is_large = len(queries) * len(points) >= _SEARCHING.faiss_scores and 8 * width < len(points)
    return is_large and platform.system() == "Linux"


def _find_with_faiss(points: np.ndarray, width: int, metric: str) -> Finder:
    faiss = import_faiss()
    kind = faiss.METRIC_INNER_PRODUCT if metric == "cosine" else faiss.METRIC_L2
    return faiss_finder(
        lambda queries: faiss.knn(queries, points, width, metric=kind)[1], points, metric
    )
