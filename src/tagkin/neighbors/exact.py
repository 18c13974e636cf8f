"""Exact nearest neighbours by cosine or Euclidean distance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Self

import numpy as np
from array_api_compat import device

from tagkin.arrays import (
    Array,
    as_block,
    check_features,
    namespace,
    on_accelerator,
    row_blocks,
)
from tagkin.arrays.checks import not_fitted
from tagkin.arrays.records import LEFT_OUT, storable
from tagkin.arrays.rules import Floats
from tagkin.neighbors._search import search
from tagkin.neighbors.base import (
    Neighbors,
    check_excluded,
    check_metric,
    check_n_neighbors,
    check_queries,
    check_rows,
    drop_excluded,
    finite_block,
    unit_rows,
)
from tagkin.neighbors.scorer import Scorer

__all__ = ["ExactNeighbors", "nearest"]

_HOST_BLOCK, _DEVICE_BLOCK = 2**18, 2**26  # bytes summed at a time


@storable
class ExactNeighbors:
    """Exact top-k search by cosine or Euclidean distance.

    Time grows with queries × points; memory beyond the points stays within the budget
    (`tagkin.memory_budget`).

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
    Distances are float32 for float32 and narrower features, else float64. Each is a sum over the
    differences of two vectors, in one fixed order. So it is accurate for near points, too, and the
    same to the bit for any memory budget, number of threads or queries, and memory layout. Other
    processors and devices may round the last digit differently when they scale or centre vectors.

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
    _scoring: Annotated[Scorer | None, LEFT_OUT] = None

    def __init__(self, metric: str = "cosine"):
        self.metric = metric

    def fit(self, points: Array, y: object = None, *, center: Array | None = None) -> Self:
        """Store the points (N×m); y is not used.

        Euclidean distances are computed around the points' mean, or around `center` (m,), which
        gives equal points equal distances in several indexes.
        """
        check_metric(self.metric)
        points = check_features(points, name="points")
        if self.metric == "cosine":
            center = None
        elif center is None:
            center = _mean(points)
        self.points_, self._center = searchable_rows(points, center, "points"), center
        return self

    def add(self, points: Array) -> Self:
        """Add points; they get the next indices."""
        self._check_fitted()
        points = check_queries(points, self.points_.shape[1], "points")
        fresh = searchable_rows(points, self._center, "points")
        xp = namespace(self.points_, fresh)
        self.points_ = xp.concat([self.points_, xp.astype(fresh, self.points_.dtype)])
        return self

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

    def kneighbors(
        self,
        queries: Array,
        n_neighbors: int,
        *,
        exclude: Array | None = None,
        by_pairs: bool = True,
    ) -> Neighbors:
        """Return the nearest points of each query, by increasing distance, then by index.

        Parameters
        ----------
        queries : array of shape (n, m)
        n_neighbors : int
        exclude : int array of shape (n,), optional
            An index per query to exclude, such as its own; −1 excludes nothing.
        by_pairs : bool, default True
            If False, distances may have the rounding of a matrix product, and equal points come
            in any order. This halves the time for many neighbours per query.
        """
        self._check_fitted()
        queries = check_queries(queries, self.points_.shape[1])
        namespace(queries, self.points_)
        check_n_neighbors(n_neighbors, self.n_points_, excluding=exclude is not None)
        rows = searchable_rows(queries, self._center, "queries")
        if exclude is None:
            return search(rows, self._scorer(), int(n_neighbors), by_pairs=by_pairs)
        exclude = check_excluded(exclude, queries.shape[0], self.n_points_)
        neighbors = search(rows, self._scorer(), int(n_neighbors) + 1, by_pairs=by_pairs)
        return drop_excluded(neighbors, exclude)

    def kneighbors_of(self, rows: np.ndarray, n_neighbors: int) -> Neighbors:
        """Return the nearest other points of the points with indices `rows` (n,).

        This is `kneighbors` of these points with ``exclude=rows``.
        """
        self._check_fitted()
        check_n_neighbors(n_neighbors, self.n_points_, excluding=True)
        rows = check_rows(rows, self.n_points_)
        neighbors = search(self.points_[rows], self._scorer(), int(n_neighbors) + 1)
        return drop_excluded(neighbors, rows)

    def kneighbors_by_group(
        self, queries: Array, groups: Sequence[np.ndarray], n_neighbors: int
    ) -> Iterator[Neighbors]:
        """Yield the nearest points of each query within each group of points.

        Parameters
        ----------
        queries : array of shape (n, m)
        groups : int arrays
            Points of each group, ascending.
        n_neighbors : int
            All points of a smaller group.

        Yields
        ------
        neighbors : Neighbors of shape (n, min(n_neighbors, points in the group))
        """
        self._check_fitted()
        queries = check_queries(queries, self.points_.shape[1])
        xp = namespace(queries, self.points_)
        check_n_neighbors(n_neighbors, math.inf)
        rows = searchable_rows(queries, self._center, "queries")
        for group in groups:
            members = xp.asarray(group, device=device(queries))
            k = min(int(n_neighbors), len(group))
            neighbors = search(rows, Scorer(self.points_[members], self.metric), k)
            yield Neighbors(members[neighbors.indices], neighbors.distances)

    def _scorer(self) -> Scorer:
        """Return the points with their norms, computed once."""
        scorer = self._scoring
        if scorer is None or scorer.points is not self.points_ or scorer.metric != self.metric:
            scorer = self._scoring = Scorer(self.points_, self.metric)
        return scorer

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
    by_pairs: bool = True,
) -> Neighbors:
    """Return the exact nearest `points` (N×m) of each of the `queries` (n×m).

    ``nearest(Z, Z, k, exclude=np.arange(len(Z)))`` returns the neighbours of each image among the
    others. For `by_pairs` see `ExactNeighbors.kneighbors`.
    """
    index = ExactNeighbors(metric).fit(points)
    return index.kneighbors(queries, n_neighbors, exclude=exclude, by_pairs=by_pairs)


def searchable_rows(rows: Array, center: Array | None, name: str) -> Array:
    """Return rows for searching: of unit length, or centred if there is a `center`.

    Centring keeps distances and makes squares smaller.
    """
    if center is None:
        return unit_rows(rows, name)
    xp = namespace(rows, center)
    dtype = as_block(rows[:1], finite=False).dtype
    centred = xp.empty(rows.shape, dtype=dtype, device=device(rows))
    for block in row_blocks(rows.shape[0], 24 * rows.shape[1], rows):
        wide = finite_block(rows, block, name)
        centred[block] = xp.astype(wide - center, dtype)
    return centred


def _mean(points: Array) -> Array:
    """Return the mean of the points (m,), in float64, independent of the memory budget."""
    xp = namespace(points)
    n, m = points.shape
    total = xp.zeros(m, dtype=xp.float64, device=device(points))
    # blocks of a fixed size, because they decide how a sum rounds
    step = max(1, (_DEVICE_BLOCK if on_accelerator(points) else _HOST_BLOCK) // (8 * m))
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        total += xp.sum(finite_block(points, rows, "points"), axis=0)
    return total / n
