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
from tagkin.arrays.records import storable
from tagkin.arrays.rules import Floats
from tagkin.neighbors._search import search
from tagkin.neighbors.neighbor_index import (
    Neighbors,
    PointIndex,
    check_metric,
    check_n_neighbors,
    check_queries,
    finite_block,
    unit_rows,
)
from tagkin.neighbors.scorer import Scorer

__all__ = ["ExactNeighbors", "nearest"]

_HOST_BLOCK, _DEVICE_BLOCK = 2**18, 2**26  # bytes summed at a time


@storable
class ExactNeighbors(PointIndex):
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

    def _searchable(self, rows: Array, name: str) -> Array:
        namespace(rows, self.points_)  # rejects arrays of different kinds or devices
        return searchable_rows(rows, self._center, name)

    def _search(self, rows: Array, k: int) -> Neighbors:
        return search(rows, self._scorer(), k)

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
    """
    return ExactNeighbors(metric).fit(points).kneighbors(queries, n_neighbors, exclude=exclude)


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
