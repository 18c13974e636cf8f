"""Neighbours outside one's own group: shots of one burst tell nothing about other images."""

from __future__ import annotations

import numpy as np
from array_api_compat import device

from tagkin.arrays import Array, check_groups, namespace, row_blocks, to_numpy
from tagkin.neighbors.base import NeighborIndex, Neighbors, compressed

__all__ = ["neighbors_outside"]


def neighbors_outside(
    index: NeighborIndex, points: Array, n_neighbors: int, groups: Array | None
) -> Neighbors:
    """The nearest other points of every point of an index, those of its own group left out.

    Parameters
    ----------
    index : index of `tagkin.neighbors`, fitted on `points`
    points : array of shape (N, m)
    n_neighbors : int
        N − 1 at most.
    groups : array of shape (N,), or None
        The group of each point; None leaves out the point itself and nothing else.

    Returns
    -------
    neighbors : Neighbors of shape (N, n_neighbors)
        Lists of points with fewer others outside their group end with index −1 at distance ∞.
    """
    n = points.shape[0]
    if groups is None:
        return index.kneighbors(points, n_neighbors, exclude=np.arange(n))
    codes = check_groups(groups, n)
    size = np.bincount(codes)[codes]
    # few more than are wanted do as a rule, and where a large group fills a list, all of it
    found = _searched(index, points, np.arange(n), codes, n_neighbors, n_neighbors)
    xp = namespace(found.indices)
    n_found = to_numpy(xp.sum(xp.astype(found.indices >= 0, xp.int64), axis=1))
    lacking = np.flatnonzero(n_found < np.minimum(n_neighbors, n - size))
    if len(lacking):
        rest = _searched(index, points, lacking, codes, n_neighbors, n)
        at = xp.asarray(lacking, device=device(found.indices))
        found.indices[at], found.distances[at] = rest
    return found


def _searched(
    index: NeighborIndex, points: Array, rows: np.ndarray, codes: np.ndarray, k: int, more: int
) -> Neighbors:
    """Lists (n×k) of the points `rows` without their groups, of which `more` are looked past."""
    n, size = len(codes), np.bincount(codes)[codes]
    by_size = np.argsort(size[rows], kind="stable")  # lists of about one length go together
    parts = []
    width = k + min(int(size[rows].max()) - 1, more)
    for block in row_blocks(len(rows), 64 * width, points):
        some = rows[by_size[block]]
        asked = points[namespace(points).asarray(some, device=device(points))]
        wide = min(n - 1, k + min(int(size[some].max()) - 1, more))
        parts.append(_outside(index.kneighbors(asked, wide, exclude=some), some, codes, k))
    xp = namespace(parts[0].indices)
    order = xp.asarray(np.argsort(by_size), device=device(parts[0].indices))
    indices, distances = (xp.concat(list(some))[order] for some in zip(*parts, strict=True))
    return Neighbors(indices, distances)


def _outside(found: Neighbors, rows: np.ndarray, codes: np.ndarray, width: int) -> Neighbors:
    """Those of the lists of points `rows` that are not of the point's own group, (n×width)."""
    xp = namespace(found.indices)
    groups = xp.asarray(codes, device=device(found.indices))
    own = groups[xp.asarray(rows, device=device(found.indices))]
    others = groups[xp.clip(found.indices, 0, None)] != own[:, None]
    return compressed(found, others & (found.indices >= 0), width)
