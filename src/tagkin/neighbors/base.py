"""The contract of every neighbour search, exact or approximate."""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from array_api_compat import device

from tagkin.arrays import (
    Array,
    as_block,
    bytes_allowed,
    check_features,
    check_finite,
    check_integer,
    memory_budget,
    namespace,
    row_blocks,
    to_numpy,
)
from tagkin.errors import InvalidInput

__all__ = ["METRICS", "NeighborIndex", "Neighbors", "recall"]

METRICS = ("cosine", "euclidean")

_CACHED = 2**21  # bytes of blocks that are read several times over


class Neighbors(NamedTuple):
    """The neighbours of n queries, nearest first; of equal distances the lower index first.

    Where an approximate search finds fewer than k, the rest has index −1 and distance ∞.
    """

    indices: Array
    """Indices of the points, int array of shape (n, k)."""
    distances: Array
    """1 − cosine, or Euclidean, shape (n, k)."""


@runtime_checkable
class NeighborIndex(Protocol):
    """A searchable set of points (N×m)."""

    n_points_: int

    def fit(self, points: Array) -> Self:
        """Store the points, shape (N, m)."""

    def add(self, points: Array) -> Self:
        """Add points; they get the next indices."""

    def kneighbors(
        self, queries: Array, n_neighbors: int, *, exclude: Array | None = None
    ) -> Neighbors:
        """The nearest points of each query; `exclude` (n,) is one index per query to leave out."""


def check_metric(metric: str) -> None:
    """Refuse an unknown metric."""
    if not isinstance(metric, str) or metric not in METRICS:
        raise InvalidInput(f"metric must be one of {', '.join(METRICS)}; found {metric!r}.")


def check_queries(queries: Array, n_features: int, name: str = "queries") -> Array:
    """Queries as a 2-D array with as many features as the points."""
    queries = check_features(queries, name=name)
    if queries.shape[1] != n_features:
        raise InvalidInput(
            f"Found {name} with {queries.shape[1]} features where the points have {n_features}. "
            "Project both with the same space, or compute both with the same network."
        )
    return queries


def check_n_neighbors(n_neighbors: int, n_points: float, *, excluding: bool = False) -> None:
    """Refuse more neighbours than there are points (one fewer if each query leaves one out)."""
    check_integer("n_neighbors", n_neighbors)
    available = n_points - excluding
    if n_neighbors > available:
        left_out = ", one of which each query leaves out" if excluding else ""
        raise InvalidInput(
            f"Asked for {n_neighbors} neighbours among {n_points} points{left_out}. Ask for at "
            f"most {available}."
        )


def check_excluded(exclude: Array, n_queries: int, n_points: int) -> np.ndarray:
    """One index per query, on the host."""
    exclude = to_numpy(exclude)
    whole = exclude.dtype.kind in "iu" and exclude.shape == (n_queries,)
    if not whole or (exclude.size and not -1 <= exclude.min() <= exclude.max() < n_points):
        raise InvalidInput(
            f"exclude must hold one index from −1 (none) to {n_points - 1} for each of the "
            f"{n_queries} queries; found shape {exclude.shape}, dtype {exclude.dtype}."
        )
    return exclude


def check_rows(rows: Array, n_points: int) -> np.ndarray:
    """Indices of points (n,), on the host."""
    rows = to_numpy(rows)
    whole = rows.dtype.kind in "iu" and rows.ndim == 1
    if not whole or (rows.size and not 0 <= rows.min() <= rows.max() < n_points):
        raise InvalidInput(
            f"rows must be indices of points, from 0 to {n_points - 1}; found shape {rows.shape}, "
            f"dtype {rows.dtype}."
        )
    return rows


def finite_block(rows: Array, block: slice, name: str) -> Array:
    """A block of rows in float64, contiguous in memory and checked to be finite.

    So the order of a sum over a row depends neither on the layout of the given rows in memory nor
    on the size of the block.
    """
    xp, some = namespace(rows), rows[block]
    wide = xp.empty(some.shape, dtype=xp.float64, device=device(rows))
    wide[...] = some
    check_finite(wide, name, rows=range(block.start, block.stop))
    return wide


def unit_rows(rows: Array, name: str) -> Array:
    """Rows divided by their length, in float (n×m); a zero row stays zero."""
    xp = namespace(rows)
    dtype = as_block(rows[:1], finite=False).dtype
    unit = xp.empty(rows.shape, dtype=dtype, device=device(rows))
    for block in _blocks_to_scale(rows):
        wide = finite_block(rows, block, name)
        if dtype == xp.float64:  # whose squares may overflow: scaled to a largest entry of 1 first
            wide = _divided(wide, xp.max(xp.abs(wide), axis=1))
        unit[block] = xp.astype(_divided(wide, xp.linalg.vector_norm(wide, axis=1)), dtype)
    return unit


def _blocks_to_scale(rows: Array) -> list[slice]:
    """Blocks of rows (n×m) that are read several times over: on the host, in a core's cache."""
    on_host = isinstance(rows, np.ndarray)
    with memory_budget(min(bytes_allowed(), _CACHED)) if on_host else nullcontext():
        return list(row_blocks(rows.shape[0], 24 * rows.shape[1], rows))


def _divided(rows: Array, lengths: Array) -> Array:
    xp = namespace(rows)
    return rows / xp.where(lengths > 0, lengths, xp.ones_like(lengths))[:, None]


def without_excluded(found: Neighbors, exclude: np.ndarray) -> Neighbors:
    """Drop the excluded index from each list of k+1, or the last one where it is not there."""
    xp = namespace(found.indices)
    n, width = found.indices.shape
    excluded = xp.asarray(exclude, device=device(found.indices))
    hit = found.indices == excluded[:, None]
    column = xp.where(xp.any(hit, axis=1), xp.argmax(xp.astype(hit, xp.int64), axis=1), width - 1)
    keep = xp.arange(width, device=device(found.indices))[None, :] != column[:, None]
    return Neighbors(*(array[keep].reshape(n, width - 1) for array in found))


def compressed(found: Neighbors, kept: Array, width: int | None = None) -> Neighbors:
    """Lists of those kept (n×k), in the order that they have, filled up with index −1.

    They are `width` long at most; without it, as long as the longest.
    """
    xp = namespace(kept)
    if width is None:
        longest = xp.max(xp.sum(xp.astype(kept, xp.int64), axis=1)) if kept.shape[0] else 0
        width = max(int(longest), 1)
    order = xp.argsort(xp.astype(~kept, xp.int8), axis=1, stable=True)[:, :width]
    kept = xp.take_along_axis(kept, order, axis=1)
    indices, distances = (xp.take_along_axis(part, order, axis=1) for part in found)
    return Neighbors(
        xp.where(kept, indices, xp.full_like(indices, -1)),
        xp.where(kept, distances, xp.full_like(distances, np.inf)),
    )


def recall(found: Array, exact: Array) -> float:
    """Share of the exact neighbours (n×k) that are among those found (n×k'), over all queries."""
    found, exact = to_numpy(found), to_numpy(exact)
    if found.ndim != 2 or exact.ndim != 2 or found.shape[0] != exact.shape[0] or not exact.size:
        raise InvalidInput(
            "recall compares two lists of neighbours of the same queries; found shapes "
            f"{found.shape} and {exact.shape}."
        )
    # one key per (query, neighbour), so that one lookup serves all queries
    span = int(max(found.max(initial=0), exact.max())) + 2
    offset = span * np.arange(exact.shape[0])[:, None]
    return float(np.isin(exact + offset, found + offset).mean())
