"""The common interface of exact and approximate neighbour searches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from array_api_compat import device

from tagkin.arrays import (
    Array,
    as_block,
    check_features,
    check_finite,
    check_integer,
    namespace,
    row_blocks,
    to_numpy,
)
from tagkin.arrays.checks import not_fitted
from tagkin.arrays.linalg import unit_rows
from tagkin.errors import InvalidInput

__all__ = ["METRICS", "NeighborIndex", "Neighbors", "recall"]

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
    points_: Any

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
        points = check_queries(points, self.n_features_in_, "points")
        self._append(self._searchable(points, "points"))
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
        rows = self._searchable(queries, "queries")
        if exclude is None:
            return self._like_queries(self._search(rows, int(n_neighbors)), queries)
        excluded = check_excluded(exclude, queries.shape[0], self.n_points_)
        neighbors = drop_excluded(self._search(rows, int(n_neighbors) + 1), excluded)
        return self._like_queries(neighbors, queries)

    def kneighbors_of(self, rows: np.ndarray, n_neighbors: int) -> Neighbors:
        """Return the nearest other points of the points with indices `rows` (n,).

        Parameters
        ----------
        rows : array of shape (n,) of int
            Indices of points.
        n_neighbors : int
            How many neighbours to return for each query.
        """
        check_n_neighbors(n_neighbors, self.n_points_, excluding=True)
        return drop_excluded(self._search(self.points_[rows], int(n_neighbors) + 1), rows)

    @abstractmethod
    def _searchable(self, rows: Array, name: str) -> Array:
        """Return rows (n×m) in the form that is searched."""

    @abstractmethod
    def _search(self, rows: Array, k: int) -> Neighbors:
        """Return the k nearest points of searchable rows (n×m)."""

    def _append(self, rows: Array) -> None:
        """Add searchable rows (n×m)."""
        xp = namespace(self.points_, rows)
        self.points_ = xp.concat([self.points_, xp.astype(rows, self.points_.dtype)])

    def _like_queries(self, neighbors: Neighbors, queries: Array) -> Neighbors:
        """Return neighbours on the device of the queries."""
        return neighbors

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


def directions(rows: Array, name: str) -> Array:
    """Divide rows (n×m) by their length, in float; a zero row stays zero."""
    return _convert_rows(rows, lambda part, numbers: unit_rows(part, name, numbers)[0])


def centred_rows(rows: Array, center: Array | float, name: str) -> Array:
    """Subtract the centre (m,), in float (n×m), which keeps distances and makes squares smaller."""

    def center_rows(part: Array, numbers: range) -> Array:
        check_finite(part, name, rows=numbers)
        return as_block(part, double=True, finite=False) - center

    return _convert_rows(rows, center_rows)


def _convert_rows(rows: Array, convert: Callable[[Array, range], Array]) -> Array:
    """Convert rows in blocks to their own float (n×m)."""
    xp = namespace(rows)
    dtype = as_block(rows[:1], finite=False).dtype
    converted = xp.empty(rows.shape, dtype=dtype, device=device(rows))
    for block in row_blocks(rows.shape[0], 24 * rows.shape[1], rows):
        part = as_block(rows[block], finite=False)
        converted[block] = xp.astype(convert(part, range(block.start, block.stop)), dtype)
    return converted


def nearest_first(neighbors: Neighbors, k: int | None = None) -> Neighbors:
    """Sort lists by distance, then by index, and cut them to k."""
    xp = namespace(neighbors.indices)
    order = xp.argsort(neighbors.indices, axis=1, stable=True)
    neighbors = Neighbors(*(xp.take_along_axis(part, order, axis=1) for part in neighbors))
    order = xp.argsort(neighbors.distances, axis=1, stable=True)[:, :k]
    return Neighbors(*(xp.take_along_axis(part, order, axis=1) for part in neighbors))


def drop_excluded(neighbors: Neighbors, exclude: np.ndarray) -> Neighbors:
    """Drop the excluded index from each list of k+1, or the last entry if it is absent."""
    xp = namespace(neighbors.indices)
    n, width = neighbors.indices.shape
    excluded = xp.asarray(exclude, device=device(neighbors.indices))
    hit = neighbors.indices == excluded[:, None]
    column = xp.where(xp.any(hit, axis=1), xp.argmax(xp.astype(hit, xp.int64), axis=1), width - 1)
    keep = xp.arange(width, device=device(neighbors.indices))[None, :] != column[:, None]
    return Neighbors(*(array[keep].reshape(n, width - 1) for array in neighbors))


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
