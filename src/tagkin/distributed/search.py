"""Find nearest neighbours among points on many machines, shard by shard."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from tagkin.distributed.chunks import (
    Block,
    as_features,
    blocks,
    float_dtype,
    key,
    named_rows,
    stack,
)
from tagkin.distributed.cluster import dask
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.neighbors.lists import check_metric, check_n_neighbors

__all__ = ["nearest"]

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from dask.delayed import Delayed

_BRANCHES = 8  # lists of neighbours that one task merges


def nearest(
    queries: DaskArray | np.ndarray,
    points: DaskArray,
    n_neighbors: int,
    *,
    metric: str = "cosine",
) -> Neighbors:
    """Find the nearest points of each query, over all shards of the points.

    Every chunk of the points is a shard with its own index. Every chunk of the queries searches all
    shards, and the results are merged: nearest first, and in a tie the lower index first, like
    `tagkin.neighbors.nearest`.

    Parameters
    ----------
    queries : Dask array or NumPy array of shape (n, m)
    points : Dask array of shape (N, m)
    n_neighbors : int
    metric : "cosine" or "euclidean"

    Returns
    -------
    neighbors : Neighbors
        Two Dask arrays of shape (n, n_neighbors), with the rows of the queries' chunks. `compute`
        fetches them.
    """
    check_metric(metric)
    queries, points = as_features(queries, "queries"), as_features(points, "points")
    if queries.shape[1] != points.shape[1]:
        raise InvalidInput(
            f"Found queries with {queries.shape[1]} features, but points with "
            f"{points.shape[1]}. Project both with the same space."
        )
    check_n_neighbors(n_neighbors, points.shape[0])
    k, cuts = int(n_neighbors), queries.chunks[0]
    indexed = _shards(points, metric)
    neighbors = [_best_of_shards(query, indexed, k) for query in blocks(queries, "queries")]
    dtype = float_dtype(points.dtype)
    return Neighbors(
        stack([pair[0] for pair in neighbors], cuts, k, np.empty((0, k), np.int64)),
        stack([pair[1] for pair in neighbors], cuts, k, np.empty((0, k), dtype)),
    )


# --- shards ------------------------------------------------------------------------------


def _shards(points: DaskArray, metric: str) -> list[Block]:
    """Return an index over each chunk of the points, as blocks."""
    delayed = dask().delayed
    return [
        Block(
            delayed(_build_index, pure=False)(
                metric, block.value, block.start, dask_key_name=key("index")
            ),
            block.start,
            block.stop,
        )
        for block in blocks(points, "points")
    ]


def _build_index(metric: str, rows: np.ndarray, start: int) -> ExactNeighbors:
    with named_rows(start, start + len(rows)):
        return ExactNeighbors(metric).fit(rows)


def _best_of_shards(query: Block, indexed: list[Block], k: int) -> Delayed:
    """Return the k nearest of all shards for a block of queries, a `Delayed` pair (n, k)."""
    import dask.bag

    search = dask.delayed(_search_shard, pure=False)
    starts = [(query.start, shard.start) for shard in indexed]
    parts = [
        search(shard.value, query.value, k, at, dask_key_name=key("search"))
        for shard, at in zip(indexed, starts, strict=True)
    ]
    merge = functools.partial(merge_neighbors, k=k)
    lists = dask.bag.from_delayed(parts)
    return lists.reduction(merge, merge, split_every=_BRANCHES).to_delayed(False)


def _search_shard(
    index: ExactNeighbors, queries: np.ndarray, k: int, starts: tuple[int, int]
) -> list[Neighbors]:
    """Return the nearest of one shard, by index in all points, as a list of one for the bag.

    `starts` are the first rows of the queries and of the shard.
    """
    with named_rows(starts[0], starts[0] + len(queries)):
        neighbors = index.kneighbors(queries, min(k, index.n_points_))
    missing = neighbors.indices < 0
    indices = np.where(missing, -1, neighbors.indices + starts[1])
    distances = np.where(missing, np.inf, neighbors.distances)
    return [Neighbors(indices, distances.astype(neighbors.distances.dtype))]


def merge_neighbors(lists: Iterable[Neighbors], k: int) -> Neighbors:
    """Return the k nearest of several lists, or fewer if there are fewer."""
    parts = list(lists)
    indices = np.concatenate([part.indices for part in parts], axis=1)
    distances = np.concatenate([part.distances for part in parts], axis=1)
    order = np.lexsort((indices, distances), axis=1)[:, :k]
    return Neighbors(
        np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)
    )
