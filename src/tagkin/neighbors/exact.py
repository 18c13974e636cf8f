"""Exact nearest neighbours by cosine or Euclidean distance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Self, TypeAlias

import numpy as np
from array_api_compat import device, is_torch_array

from tagkin.arrays import (
    Array,
    as_block,
    check_features,
    check_groups,
    namespace,
    row_blocks,
    smaller_blocks_when_full,
    to_numpy,
)
from tagkin.arrays.checks import not_fitted
from tagkin.arrays.linalg import matmul
from tagkin.arrays.threads import run_in_threads
from tagkin.neighbors.lists import (
    Neighbors,
    check_excluded,
    check_metric,
    check_n_neighbors,
    check_queries,
    directions,
    keep_neighbors,
    sort_lists,
)
from tagkin.records.forms import storable
from tagkin.records.rules import Floats

__all__ = ["ExactNeighbors", "nearest", "neighbors_outside", "search"]

Finder: TypeAlias = Callable[[Array], tuple[Array, Array, Array]]
"""Returns candidates of queries: their indices, ‖q − p‖² and its rounding, each (n×width)."""


@dataclass(frozen=True)
class _Searching:
    """Numbers of the exact search; only time and rounding depend on them."""

    group: int = 16
    """Scores of which only the largest is looked at first."""
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
class ExactNeighbors:
    """Exact top-k search by cosine or Euclidean distance.

    Searches with matrix products, on the device of the arrays. Time grows with queries × points;
    memory beyond the points stays within the budget (`tagkin.memory_budget`).

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

    def add(self, points: Array) -> Self:
        """Add points; they get the next indices."""
        rows = self.as_searched(check_queries(points, self.n_features_in_, "points"))
        xp = namespace(self.points_, rows)
        self.points_ = xp.concat([self.points_, xp.astype(rows, self.points_.dtype)])
        return self

    def kneighbors(
        self, queries: Array, n_neighbors: int, *, exclude: Array | None = None
    ) -> Neighbors:
        """Return the nearest points of each query, by increasing distance, then by index.

        Parameters
        ----------
        queries : array of shape (n, m)
        n_neighbors : int
        exclude : int array of shape (n,), optional
            An index per query to exclude, such as its own; −1 excludes nothing.
        """
        queries = check_queries(queries, self.n_features_in_)
        check_n_neighbors(n_neighbors, self.n_points_, excluding=exclude is not None)
        excluded = None
        if exclude is not None:
            excluded = check_excluded(exclude, queries.shape[0], self.n_points_)
        return self._search(self.as_searched(queries), int(n_neighbors), excluded)

    def kneighbors_of(self, rows: np.ndarray, n_neighbors: int) -> Neighbors:
        """Return the nearest other points of some points.

        Parameters
        ----------
        rows : array of shape (n,) of int
            Indices of points.
        n_neighbors : int
        """
        check_n_neighbors(n_neighbors, self.n_points_, excluding=True)
        return self._search(self.points_[rows], int(n_neighbors), rows)

    def as_searched(self, rows: Array) -> Array:
        """Return rows (n×m) of unit length for the cosine, else centred."""
        namespace(rows, self.points_)  # rejects arrays of different kinds or devices
        return directions(rows, "queries", self._center)

    def _search(self, rows: Array, k: int, exclude: np.ndarray | None) -> Neighbors:
        if exclude is None:
            return search(rows, self.points_, k, self.metric)
        neighbors = search(rows, self.points_, k + 1, self.metric)
        excluded = namespace(neighbors.indices).asarray(exclude, device=device(neighbors.indices))
        return keep_neighbors(neighbors, neighbors.indices != excluded[:, None], k)

    @property
    def n_features_in_(self) -> int:
        """Number of dimensions, m."""
        self._check_fitted()
        return int(self.points_.shape[1])

    @property
    def n_points_(self) -> int:
        """Number of points."""
        self._check_fitted()
        return int(self.points_.shape[0])

    def _check_fitted(self) -> None:
        if not hasattr(self, "points_"):
            raise not_fitted("This ExactNeighbors has no points yet. Call fit(points) first.")

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


def neighbors_outside(
    index: ExactNeighbors, points: Array, n_neighbors: int, groups: Array | None
) -> Neighbors:
    """Return the nearest points of every point of an index, without its own group.

    The shots of a burst tell nothing about other images.

    Parameters
    ----------
    index : ExactNeighbors, fitted on points
    points : array of shape (N, m)
    n_neighbors : int
        At most N − 1.
    groups : array of shape (N,), or None
        The group of each point; None excludes only the point itself.

    Returns
    -------
    neighbors : Neighbors of shape (N, n_neighbors)
        Lists end with index −1 at distance ∞ if there are too few points in other groups.
    """
    n, k = points.shape[0], n_neighbors
    if groups is None:
        return index.kneighbors(points, k, exclude=np.arange(n))
    codes = check_groups(groups, n)
    size = np.bincount(codes)[codes]
    xp, place = namespace(points), device(points)
    of_point = xp.asarray(codes, device=place)
    indices = xp.empty((n, k), dtype=xp.int64, device=place)
    distances = xp.empty((n, k), dtype=as_block(points[:1], finite=False).dtype, device=place)
    lacking = np.arange(n)
    # k more usually suffice; lists filled by a large group are searched again in full
    for most in (k, n):
        if not len(lacking):
            break
        widths = np.minimum(k + np.minimum(size[lacking] - 1, most), n - 1)
        short = []
        for block in row_blocks(len(lacking), 64 * int(widths.max()), points):
            part = lacking[block]
            rows = xp.asarray(part, device=place)
            wide = index.kneighbors(points[rows], int(widths[block].max()), exclude=part)
            is_other = of_point[wide.indices] != of_point[rows][:, None]
            lists = keep_neighbors(wide, is_other & (wide.indices >= 0), k)
            indices[rows], distances[rows] = lists
            n_listed = to_numpy(lists.indices >= 0).sum(axis=1)
            short.append(part[n_listed < np.minimum(k, n - size[part])])
        lacking = np.concatenate(short)
    return Neighbors(indices, distances)


@smaller_blocks_when_full
def search(
    queries: Array, points: Array, k: int, metric: str, width: int | None = None
) -> Neighbors:
    """Return the k nearest points (N×m) of each query (n×m), both `as_searched`.

    They are the nearest of `width` candidates; by default of a few more than k.
    """
    xp, place, n_points = namespace(queries, points), device(points), points.shape[0]
    width = min(k + _SEARCHING.more if width is None else width, n_points)
    queries, n = xp.astype(queries, points.dtype, copy=False), queries.shape[0]
    find, bytes_per_row = _find_with_products(points, width, metric), 16 * n_points
    indices = xp.empty((n, k), dtype=xp.int64, device=place)
    distances = xp.empty((n, k), dtype=points.dtype, device=place)
    # whether the k-th is tied with the last candidate: other points may then be as near
    is_tied = xp.zeros(n, dtype=xp.bool, device=place)

    def rank_block(rows: slice) -> None:
        candidates, far, rounding = sort_lists(*find(queries[rows]))
        indices[rows] = candidates[:, :k]
        # 1 − q·p = ‖q − p‖²/2 of unit vectors
        distances[rows] = far[:, :k] / 2 if metric == "cosine" else xp.sqrt(far[:, :k])
        is_tied[rows] = far[:, -1] <= far[:, k - 1] + rounding[:, -1]

    bytes_per_row += 128 * width
    if is_torch_array(queries):
        for rows in row_blocks(n, bytes_per_row, queries):
            rank_block(rows)
    else:
        run_in_threads(rank_block, n, bytes_per_row)
    if width < n_points and bool(xp.any(is_tied)):  # many points are alike: rank all of them
        again = search(queries[is_tied], points, k, metric, n_points)
        indices[is_tied], distances[is_tied] = again
    return Neighbors(indices, distances)


def _find_with_products(points: Array, width: int, metric: str) -> Finder:
    """Return the search by products: candidates have the largest products with the query.

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
            best = _largest(scores, width)
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


def _largest(scores: np.ndarray, width: int) -> np.ndarray:
    """Return the places (n×width) of the largest scores of each row (n×N), in any order.

    The largest scores are in the groups of 16 scores with the largest maxima, so a few maxima and
    the scores of a few groups are sorted instead of all scores. In a search of 60,000 points, that
    halves the time of this step.
    """
    n_groups = scores.shape[1] // _SEARCHING.group
    if n_groups <= 2 * width:
        return _partition(scores, width)
    end = n_groups * _SEARCHING.group
    maxima = scores[:, :end].reshape(len(scores), _SEARCHING.group, n_groups).max(axis=1)
    groups = _partition(maxima, width)
    members = groups[:, None, :] + np.arange(0, end, n_groups)[:, None]
    rest = np.broadcast_to(np.arange(end, scores.shape[1]), (len(scores), scores.shape[1] - end))
    places = np.concatenate([members.reshape(len(scores), -1), rest], axis=1)
    among = _partition(np.take_along_axis(scores, places, axis=1), width)
    return np.take_along_axis(places, among, axis=1)


def _partition(scores: np.ndarray, width: int) -> np.ndarray:
    return np.argpartition(scores, scores.shape[1] - width, axis=1)[:, -width:]
