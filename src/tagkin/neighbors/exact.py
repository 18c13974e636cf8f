"""Exact nearest neighbours by cosine or Euclidean distance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Self

import numpy as np
from array_api_compat import device

from tagkin.arrays import Array, check_features, namespace
from tagkin.neighbors.exact_search import search
from tagkin.neighbors.neighbor_index import (
    Neighbors,
    PointIndex,
    centred_rows,
    check_metric,
    check_n_neighbors,
    check_queries,
    finite_block,
    unit_rows,
)
from tagkin.records.forms import storable
from tagkin.records.rules import Floats

__all__ = ["ExactNeighbors", "nearest"]

_AVERAGED = 1024  # points whose mean is the centre: any centre near the points serves


@storable
class ExactNeighbors(PointIndex):
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
    Distances are float32 for float32 and narrower features, else float64. Each is a sum over the
    differences of two vectors, so it is accurate for near points, too. Points at equal distances
    come by index. For NumPy arrays, a distance is the same to the bit for any memory budget, number
    of threads and memory layout. FAISS and products may round its last digit differently, so a
    large batch and a small one may differ there; so may torch, other processors and devices.

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

        Euclidean distances are computed around a mean of points, or around `center` (m,), which
        gives equal points equal distances in several indexes.
        """
        check_metric(self.metric)
        points = check_features(points, name="points")
        if self.metric == "cosine":
            center = None
        elif center is None:
            sample = points[:: -(-points.shape[0] // _AVERAGED)]
            wide = finite_block(sample, slice(0, sample.shape[0]), "points")
            center = namespace(points).mean(wide, axis=0)
        self._center = center
        self.points_ = self._prepare(points, "points")
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
        rows = self._searchable(queries, "queries")
        for group in groups:
            members = xp.asarray(group, device=device(queries))
            k = min(int(n_neighbors), len(group))
            neighbors = search(rows, self.points_[members], k, self.metric)
            yield Neighbors(members[neighbors.indices], neighbors.distances)

    def _searchable(self, rows: Array, name: str) -> Array:
        namespace(rows, self.points_)  # rejects arrays of different kinds or devices
        return self._prepare(rows, name)

    def _prepare(self, rows: Array, name: str) -> Array:
        if self._center is None:
            return unit_rows(rows, name)
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
    """
    return ExactNeighbors(metric).fit(points).kneighbors(queries, n_neighbors, exclude=exclude)
