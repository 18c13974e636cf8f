"""Lists of neighbours, and checks of what a search is asked for."""

from __future__ import annotations

from typing import NamedTuple

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
from tagkin.arrays.linalg import unit_rows
from tagkin.errors import InvalidInput

__all__ = [
    "METRICS",
    "Neighbors",
    "check_excluded",
    "check_metric",
    "check_n_neighbors",
    "check_queries",
    "directions",
    "keep_neighbors",
    "sort_lists",
]

METRICS = ("cosine", "euclidean")


class Neighbors(NamedTuple):
    """The neighbours of n queries, by increasing distance, then by index.

    Lists that are shorter than others end with index −1 at distance ∞.
    """

    indices: Array
    """Indices of the points, int array of shape (n, k)."""
    distances: Array
    """1 − cosine, or Euclidean, shape (n, k)."""


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
