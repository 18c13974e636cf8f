"""Scores and distances of pairs of a query and a point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tagkin.arrays import Array, block_rows, namespace, on_accelerator
from tagkin.arrays.linalg import matmul

__all__ = ["Scorer", "pair_blocks"]

_PAIRS = 2**11  # pairs whose vectors fit in the cache
_TERMS = 2**12  # terms of a sum; NumPy's buffer holds twice as many


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

    def scores(self, queries: Array, columns: Any, out: Array | None = None) -> Array:
        """Return scores (n × number of points) for the points that a slice selects."""
        transposed = self.points[columns].T
        out = matmul(queries, transposed, out)
        if self.euclidean:
            out -= self.half_squares[columns]
        return out

    def rounding(self, queries: Array) -> Array:
        """Return how far a point's score may be below that of a farther point, shape (n, 1).

        Points are ranked by their computed distances. Both scores and both distances round, by at
        most (m + 4) u of ‖q‖‖p‖ and of ‖q − p‖²/2, for any order of their m terms; u is half of ε.
        """
        xp = namespace(queries)
        length = xp.linalg.vector_norm(queries, axis=1, keepdims=True)
        reach = length + self.longest
        size = self.longest * (reach if self.euclidean else length) + reach * reach / 2
        return float(xp.finfo(queries.dtype).eps) * (queries.shape[1] + 8) * size

    def distances(self, queries: Array, candidates: Array) -> Array:
        """Return the distance of each query (n×m) to each of its own candidates (n×w), by pairs."""
        xp = namespace(queries)
        difference = xp.take(self.points, xp.reshape(candidates, (-1,)), axis=0)
        difference = xp.reshape(difference, (*candidates.shape, -1))
        difference -= queries[:, None, :]
        squares = sums_of_squares(difference)
        if self.euclidean:
            return xp.sqrt(squares)
        # for unit vectors 1 − q·p = ‖q − p‖²/2, which is accurate for near points, too
        zero = self.is_zero[candidates] | xp.all(queries == 0, axis=1)[:, None]
        return xp.where(zero, xp.ones_like(squares), squares / 2)


def sums_of_squares(values: Array) -> Array:
    """Return sums of squares over the last axis of an array (n×w×m), which may be overwritten.

    Every sum has the same order of terms. NumPy changes the order if there are more terms than its
    buffer holds, so it gets fewer. Other libraries add halves repeatedly.
    """
    if isinstance(values, np.ndarray):
        parts = (values[..., i : i + _TERMS] for i in range(0, values.shape[-1], _TERMS))
        return sum(np.einsum("nwm,nwm->nw", part, part) for part in parts)
    values *= values
    width = values.shape[-1]
    while width > 1:
        half = width // 2
        values[..., :half] += values[..., width - half : width]
        width -= half
    return values[..., 0]


def pair_blocks(queries: Array, width: int) -> Iterator[slice]:
    """Yield slices over queries (n×m) whose `width` pairs per query fit in memory."""
    n, m = queries.shape
    step = block_rows(width * (2 * queries.dtype.itemsize * m + 32), queries)
    if not on_accelerator(queries):
        step = max(1, min(step, _PAIRS // max(1, width)))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
