"""Neighbours in other groups, because shots of a burst tell nothing about other images."""

from __future__ import annotations

import numpy as np
from array_api_compat import device

from tagkin.arrays import Array, check_groups, namespace, row_blocks, to_numpy
from tagkin.neighbors.neighbor_index import NeighborIndex, Neighbors, keep_neighbors

__all__ = ["neighbors_outside"]


def neighbors_outside(
    index: NeighborIndex, points: Array, n_neighbors: int, groups: Array | None
) -> Neighbors:
    """Return the nearest points of every point of an index, without its own group.

    Parameters
    ----------
    index : index of `tagkin.neighbors`, fitted on `points`
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
    n = points.shape[0]
    if groups is None:
        return index.kneighbors(points, n_neighbors, exclude=np.arange(n))
    codes = check_groups(groups, n)
    size = np.bincount(codes)[codes]
    # a few more usually suffice; lists filled by a large group are searched again in full
    neighbors = _search_outside(index, points, np.arange(n), codes, n_neighbors, n_neighbors)
    xp = namespace(neighbors.indices)
    n_listed = to_numpy(xp.sum(xp.astype(neighbors.indices >= 0, xp.int64), axis=1))
    lacking = np.flatnonzero(n_listed < np.minimum(n_neighbors, n - size))
    if len(lacking):
        more = _search_outside(index, points, lacking, codes, n_neighbors, n)
        positions = xp.asarray(lacking, device=device(neighbors.indices))
        neighbors.indices[positions], neighbors.distances[positions] = more
    return neighbors


def _search_outside(
    index: NeighborIndex, points: Array, rows: np.ndarray, codes: np.ndarray, k: int, more: int
) -> Neighbors:
    """Return lists (n×k) of the points `rows` without their groups; skip at most `more` points."""
    n, size = len(codes), np.bincount(codes)[codes]
    by_size = np.argsort(size[rows], kind="stable")  # lists of similar length go together
    parts = []
    width = k + min(int(size[rows].max()) - 1, more)
    for block in row_blocks(len(rows), 64 * width, points):
        part = rows[by_size[block]]
        queries = points[namespace(points).asarray(part, device=device(points))]
        wide = min(n - 1, k + min(int(size[part].max()) - 1, more))
        parts.append(_drop_own_group(index.kneighbors(queries, wide, exclude=part), part, codes, k))
    xp = namespace(parts[0].indices)
    order = xp.asarray(np.argsort(by_size), device=device(parts[0].indices))
    indices, distances = (xp.concat(list(part))[order] for part in zip(*parts, strict=True))
    return Neighbors(indices, distances)


def _drop_own_group(
    neighbors: Neighbors, rows: np.ndarray, codes: np.ndarray, width: int
) -> Neighbors:
    """Drop the neighbours of the points `rows` in the point's own group, (n×width)."""
    xp = namespace(neighbors.indices)
    groups = xp.asarray(codes, device=device(neighbors.indices))
    own = groups[xp.asarray(rows, device=device(neighbors.indices))]
    others = groups[xp.clip(neighbors.indices, 0, None)] != own[:, None]
    return keep_neighbors(neighbors, others & (neighbors.indices >= 0), width)
