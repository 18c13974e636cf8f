"""What the exact search computes for pairs of a query and a point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from tagkin.arrays import Array, block_rows, matmul, namespace, on_accelerator

__all__ = ["Scorer", "pair_blocks"]

_PAIRS = 2**14  # vectors of so many stay near the cache


class Scorer:
    """Scores that rank as the distances do: q·p for unit vectors, else q·p − ‖p‖²/2."""

    def __init__(self, points: Array, metric: str):
        xp = namespace(points)
        self.points, self.metric = points, metric
        self.euclidean = metric == "euclidean"
        norms = xp.linalg.vector_norm(points, axis=1)
        self.half_squares = norms * norms / 2
        self.longest = float(xp.max(norms))
        self.is_zero = norms == 0

    def scores(self, queries: Array, some: Any, out: Array | None = None) -> Array:
        """Scores (n × number of points) for the points that a slice selects."""
        transposed = self.points[some].T
        if out is None:
            out = queries @ transposed
        else:
            matmul(queries, transposed, out)
        if self.euclidean:
            out -= self.half_squares[some]
        return out

    def rounding(self, queries: Array) -> Array:
        """A bound on the rounding of the difference of two scores of each query, shape (n, 1)."""
        xp = namespace(queries)
        length = xp.linalg.vector_norm(queries, axis=1, keepdims=True)
        size = self.longest * (length + (self.longest if self.euclidean else 0))
        return float(xp.finfo(queries.dtype).eps) * (queries.shape[1] + 8) * size

    def distances(self, queries: Array, candidates: Array) -> Array:
        """Distance of each query (n×m) to each of its own candidates (n×w), pair by pair."""
        xp = namespace(queries)
        if is_torch_array(queries):
            difference = self.points[candidates] - queries[:, None, :]
            squares = xp.sum(difference * difference, axis=2)
        else:
            difference = np.take(self.points, candidates, axis=0)
            difference -= queries[:, None, :]
            squares = np.einsum("nwm,nwm->nw", difference, difference)
        if self.euclidean:
            return xp.sqrt(squares)
        # for unit vectors 1 − q·p = ‖q − p‖²/2, which keeps its digits where they are near
        zero = self.is_zero[candidates] | xp.all(queries == 0, axis=1)[:, None]
        return xp.where(zero, xp.ones_like(squares), squares / 2)


def pair_blocks(queries: Array, width: int) -> Iterator[slice]:
    """Slices over queries (n×m), so that the work for `width` pairs of each fits memory."""
    n, m = queries.shape
    step = block_rows(width * (2 * queries.dtype.itemsize * m + 32), queries)
    if not on_accelerator(queries):
        step = max(1, min(step, _PAIRS // max(1, width)))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
