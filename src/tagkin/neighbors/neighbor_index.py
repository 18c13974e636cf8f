"""The common interface of exact and approximate searches, and lists of neighbours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from array_api_compat import device, is_torch_array

from tagkin.arrays import (
    Array,
    as_block,
    check_features,
    check_finite,
    check_groups,
    check_integer,
    namespace,
    row_blocks,
    to_numpy,
)
from tagkin.arrays.checks import not_fitted
from tagkin.arrays.linalg import unit_rows
from tagkin.arrays.threads import run_in_threads
from tagkin.errors import InvalidInput

__all__ = ["METRICS", "NeighborIndex", "Neighbors", "neighbors_outside", "recall"]

METRICS = ("cosine", "euclidean")


class Neighbors(NamedTuple):
    """The neighbours of n queries, by increasing distance, then by index.

    If an approximate search returns fewer than k, lists end with index −1 at distance ∞.
    """

    indices: Array
    """Indices of the points, int array of shape (n, k)."""
    distances: Array
    """1 − cosine, or Euclidean, shape (n, k)."""


class NeighborIndex(ABC):
    """A searchable set of points (N×m), which are in memory in the form that is searched."""

    metric: str
    points_: Array

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

    @abstractmethod
    def fit(self, points: Array) -> Self:
        """Store the points, shape (N, m)."""

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
        neighbors = self._search_without(self.as_searched(queries), int(n_neighbors), excluded)
        if is_torch_array(neighbors.indices) or not is_torch_array(queries):
            return neighbors
        xp = namespace(queries)
        return Neighbors(*(xp.asarray(part, device=queries.device) for part in neighbors))

    def kneighbors_of(self, rows: np.ndarray, n_neighbors: int) -> Neighbors:
        """Return the nearest other points of some points.

        Parameters
        ----------
        rows : array of shape (n,) of int
            Indices of points.
        n_neighbors : int
            How many neighbours to return for each query.
        """
        check_n_neighbors(n_neighbors, self.n_points_, excluding=True)
        return self._search_without(self.points_[rows], int(n_neighbors), rows)

    @abstractmethod
    def as_searched(self, rows: Array) -> Array:
        """Return rows (n×m) in the form that is searched."""

    @abstractmethod
    def _search(self, rows: Array, k: int) -> Neighbors:
        """Return the k nearest points of rows (n×m) `as_searched`."""

    def _search_without(self, rows: Array, k: int, exclude: np.ndarray | None) -> Neighbors:
        if exclude is None:
            return self._search(rows, k)
        neighbors = self._search(rows, k + 1)
        excluded = namespace(neighbors.indices).asarray(exclude, device=device(neighbors.indices))
        return keep_neighbors(neighbors, neighbors.indices != excluded[:, None], k)

    def _check_fitted(self) -> None:
        if not hasattr(self, "points_"):
            name = type(self).__name__
            raise not_fitted(f"This {name} has no points yet. Call fit(points) first.")


def check_metric(metric: str) -> None:
    """Reject an unknown metric."""
    if not isinstance(metric, str) or metric not in METRICS:
        raise InvalidInput(f"metric must be one of {', '.join(METRICS)}; found {metric!r}.")


def check_queries(queries: Array, n_features: int, name: str = "queries") -> Array:
    """Return queries as a 2-D array with as many features as the points."""
    queries = check_features(queries, name=name)
    if queries.shape[1] != n_features:
        raise InvalidInput(
            f"Found {name} with {queries.shape[1]} features, but the points have {n_features}. "
            "Project both with the same space, or compute both with the same network."
        )
    return queries


def check_n_neighbors(n_neighbors: int, n_points: float, *, excluding: bool = False) -> None:
    """Reject more neighbours than points (or points − 1 if each query excludes a point)."""
    check_integer("n_neighbors", n_neighbors)
    available = n_points - excluding
    if n_neighbors > available:
        left_out = ", one of which each query leaves out" if excluding else ""
        raise InvalidInput(
            f"Asked for {n_neighbors} neighbours among {n_points} points{left_out}. Ask for at "
            f"most {available}."
        )


def check_excluded(exclude: Array, n_queries: int, n_points: int) -> np.ndarray:
    """Return an index per query, on the host."""
    exclude = to_numpy(exclude)
    whole = exclude.dtype.kind in "iu" and exclude.shape == (n_queries,)
    if not whole or (exclude.size and not -1 <= exclude.min() <= exclude.max() < n_points):
        raise InvalidInput(
            f"exclude must hold one index from −1 (none) to {n_points - 1} for each of the "
            f"{n_queries} queries; found shape {exclude.shape}, dtype {exclude.dtype}."
        )
    return exclude


def directions(rows: Array, name: str, center: Array | None = None) -> Array:
    """Return rows (n×m), in float, of unit length; or with a centre (m,), minus this centre.

    A zero row stays zero. A centre keeps distances, and makes squares smaller.
    """
    xp = namespace(rows)
    dtype = as_block(rows[:1], finite=False).dtype
    converted = xp.empty(rows.shape, dtype=dtype, device=device(rows))
    for block in row_blocks(rows.shape[0], 24 * rows.shape[1], rows):
        part, numbers = as_block(rows[block], finite=False), range(block.start, block.stop)
        if center is None:
            converted[block] = unit_rows(part, name, numbers)[0]
        else:
            check_finite(part, name, rows=numbers)
            converted[block] = as_block(part, double=True, finite=False) - center
    return converted


# --- lists of neighbours -----------------------------------------------------------------


Finder: TypeAlias = Callable[[Array], tuple[Array, Array, Array]]
"""Returns candidates of queries: their indices, ‖q − p‖² and its rounding, each (n×width)."""


def rank_candidates(
    find: Finder, queries: Array, k: int, *, metric: str, bytes_per_row: int
) -> tuple[Neighbors, Array]:
    """Return the k nearest candidates of each query (n×m), in blocks of queries.

    Also return whether the k-th is tied with the last candidate, (n,): points that are no
    candidates may then be as near.
    """
    xp, place, n = namespace(queries), device(queries), queries.shape[0]
    indices = xp.empty((n, k), dtype=xp.int64, device=place)
    distances = xp.empty((n, k), dtype=queries.dtype, device=place)
    is_tied = xp.zeros(n, dtype=xp.bool, device=place)

    def rank_block(rows: slice) -> None:
        candidates, far, rounding = sort_lists(*find(queries[rows]))
        indices[rows] = candidates[:, :k]
        # 1 − q·p = ‖q − p‖²/2 of unit vectors
        distances[rows] = far[:, :k] / 2 if metric == "cosine" else xp.sqrt(far[:, :k])
        is_tied[rows] = far[:, -1] <= far[:, k - 1] + rounding[:, -1]

    if is_torch_array(queries):
        for rows in row_blocks(n, bytes_per_row, queries):
            rank_block(rows)
    else:
        run_in_threads(rank_block, n, bytes_per_row)
    return Neighbors(indices, distances), is_tied


def sort_lists(indices: Array, far: Array, rounding: Array) -> tuple[Array, Array, Array]:
    """Sort lists (n×k) by how far points are; by index, if rounding alone parts them."""
    xp = namespace(far)
    order = xp.argsort(far, axis=1)
    indices, far, rounding = (
        xp.take_along_axis(part, order, axis=1) for part in (indices, far, rounding)
    )
    apart = far[:, 1:] > far[:, :-1] + rounding[:, 1:]
    (tied,) = xp.nonzero(~xp.all(apart, axis=1))
    if tied.shape[0]:
        steps = xp.astype(apart[tied], xp.int64)
        place = xp.concat([xp.zeros_like(steps[:, :1]), xp.cumulative_sum(steps, axis=1)], axis=1)
        order = xp.argsort(indices[tied], axis=1)
        again = xp.argsort(xp.take_along_axis(place, order, axis=1), axis=1, stable=True)
        order = xp.take_along_axis(order, again, axis=1)
        indices[tied] = xp.take_along_axis(indices[tied], order, axis=1)
    return indices, far, rounding


def keep_neighbors(neighbors: Neighbors, keep: Array, width: int | None = None) -> Neighbors:
    """Return lists of the neighbours to `keep` (n×k), in order, padded with index −1.

    Lists have at most `width` entries; by default as many as the longest.
    """
    xp = namespace(keep)
    if width is None:
        longest = xp.max(xp.sum(xp.astype(keep, xp.int64), axis=1)) if keep.shape[0] else 0
        width = max(int(longest), 1)
    order = xp.argsort(xp.astype(~keep, xp.int8), axis=1, stable=True)[:, :width]
    keep = xp.take_along_axis(keep, order, axis=1)
    indices, distances = (xp.take_along_axis(part, order, axis=1) for part in neighbors)
    return Neighbors(
        xp.where(keep, indices, xp.full_like(indices, -1)),
        xp.where(keep, distances, xp.full_like(distances, np.inf)),
    )


def neighbors_outside(
    index: NeighborIndex, points: Array, n_neighbors: int, groups: Array | None
) -> Neighbors:
    """Return the nearest points of every point of an index, without its own group.

    The shots of a burst tell nothing about other images.

    Parameters
    ----------
    index : index of tagkin.neighbors, fitted on points
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


def recall(found: Array, exact: Array) -> float:
    """Return the share of `exact` neighbours (n×k) that are in `found` (n×k'), over all queries.

    Parameters
    ----------
    found : array of shape (n, k) of int
        Neighbours that a search found.
    exact : array of shape (n, k) of int
        The exact neighbours.
    """
    found, exact = to_numpy(found), to_numpy(exact)
    if found.ndim != 2 or exact.ndim != 2 or found.shape[0] != exact.shape[0] or not exact.size:
        raise InvalidInput(
            "recall compares two lists of neighbours of the same queries; found shapes "
            f"{found.shape} and {exact.shape}."
        )
    # a key per (query, neighbour), so a single lookup serves all queries
    span = int(max(found.max(initial=0), exact.max())) + 2
    offset = span * np.arange(exact.shape[0])[:, None]
    return float(np.isin(exact + offset, found + offset).mean())
