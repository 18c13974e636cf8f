"""Scores in 8-bit integers: faster than float32 (three times on a Neoverse-N1), and how far off.

Vectors are rounded to grids, p ≈ s P and q ≈ t Q with whole P and Q. By Cauchy and Schwarz the
score q·p and the coarse one t s Q·P differ by at most

    ‖q − t Q‖ ‖p‖ + ‖t Q‖ ‖p − s P‖.

Before, all are turned by one rotation. It leaves scores as they are but for rounding, and no
coordinate large, so that the steps of the grids are short.

So the search stays exact: the k best by coarse scores are at some distance at most, and whatever
is as near has a score, and within the bound a coarse score, that says so. Products of integers
are onnxruntime's. They do not round.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from tagkin.arrays import Array, block_rows, matmul
from tagkin.neighbors._candidates import Bar, Passing, low_bar
from tagkin.neighbors._scorer import Scorer, pair_blocks
from tagkin.onnx_sessions import open_session

__all__ = ["CoarseBar", "pays"]

_TILE_COLUMNS = 8192  # shorter rows are compared with a bar of their own half as fast
_LEVELS = 127
_FEWER_LEVELS = 63  # where pairs of products are added in 16 bits
_MANY_PRODUCTS = 2**33  # from here on, the time that is saved is worth the grid
_MANY_QUERIES = 2048
_QUERIES_A_DIMENSION = 8  # with fewer, rotating the points takes too long
_DIMENSIONS = range(48, 2049)  # with fewer little is saved; with more, rotating rounds too much
_POINTS_A_NEIGHBOR = 256  # with fewer, looking at pairs takes longer than finding them
_TOO_MANY = 1 / 4  # where so many queries are left aside, points are too near for the grid
_OPSET, _IR_VERSION = 13, 8


def pays(queries: Array, scorer: Scorer, k: int) -> bool:
    """Whether coarse scores save time in a search, and the grid fits half the memory budget."""
    points = scorer.points
    if not isinstance(points, np.ndarray) or points.dtype != np.float32 or scorer.euclidean:
        return False
    n, (n_points, m) = queries.shape[0], points.shape
    many = max(_MANY_QUERIES, _QUERIES_A_DIMENSION * m)
    long = n >= many and n * n_points * m >= _MANY_PRODUCTS
    fit = m in _DIMENSIONS and n_points >= _POINTS_A_NEIGHBOR * k
    return long and fit and n_points <= block_rows(2 * m) and _available()


class Asked(NamedTuple):
    """Queries on their grids."""

    rounded: np.ndarray
    """Q, int8 of shape (n, m)."""
    unit: np.ndarray
    """The score that a coarse score of 1 stands for, shape (n, 1)."""
    bound: np.ndarray
    """How far a score may be from its coarse score, shape (n, 1)."""


class Grid:
    """Points (N×m) in 8 bits."""

    def __init__(self, points: np.ndarray):
        n_points, m = points.shape
        self.rotation = _rotation(m)
        blocks = list(pair_blocks(points, 4))  # a row in float64, and what comes of it
        largest = max(float(np.max(np.abs(matmul(points[rows], self.rotation)))) for rows in blocks)
        self.scale = (largest or 1.0) / _levels(m)
        self.longest = self.error = 0.0
        self.rounded = np.empty((m, n_points), dtype=np.int8)
        for rows in blocks:
            exact = matmul(points[rows], self.rotation).astype(np.float64)
            rounded = np.rint(exact / self.scale)
            self.rounded[:, rows] = rounded.astype(np.int8).T
            self.longest = max(self.longest, float(np.max(_lengths(exact))))
            exact -= self.scale * rounded
            self.error = max(self.error, float(np.max(_lengths(exact))))

    def ask(self, queries: np.ndarray) -> Asked:
        """Put queries (n×m) on grids of their own."""
        exact = matmul(queries, self.rotation).astype(np.float64)
        largest = np.max(np.abs(exact), axis=1, keepdims=True)
        scale = np.where(largest > 0, largest, 1.0) / _LEVELS
        rounded = np.rint(exact / scale)
        near = scale * rounded
        bound = _lengths(exact - near) * self.longest + _lengths(near) * self.error
        # each of the m coordinates of both is a sum of m products, rounded
        m = queries.shape[1]
        rounding = float(np.finfo(np.float32).eps) * (m + 4) * math.sqrt(m)
        bound += 1.1 * rounding * _lengths(exact) * self.longest
        return Asked(rounded.astype(np.int8), scale * self.scale, bound)


class CoarseBar(Bar):
    """A bar for coarse scores; queries that those cannot decide are taken over the other one."""

    def __init__(self, points: np.ndarray, k: int):
        super().__init__(points.shape[0], k)
        self.grid = Grid(points)
        self.helps = True
        # twice what blocks need, since half of the budget is for the grid
        self.columns = 2 * (self.sampled + 2 * _TILE_COLUMNS + 4 * self.width + 8 * k)

    def candidates(self, scorer: Scorer, queries: Array, k: int) -> tuple[Array, Array]:
        """As those of any bar."""
        if not self.helps:
            return super().candidates(scorer, queries, k)
        found, aside = self._by_coarse_scores(scorer, queries, k)
        again = np.nonzero(aside)[0]
        if len(again) > _TOO_MANY * len(queries):
            self.helps = False
        if len(again):
            more, aside[again] = super().candidates(scorer, queries[again], k)
            room = max(0, more.shape[1] - found.shape[1])
            found = np.pad(found, ((0, 0), (0, room)), constant_values=-1)
            found[again] = -1
            found[again, : more.shape[1]] = more
        return found, aside

    def _by_coarse_scores(
        self, scorer: Scorer, queries: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Candidates, and queries left aside also where the bar was too high for the bound."""
        asked, points = self.grid.ask(queries), self.grid.rounded
        sample = products(asked.rounded, points[:, :: self.stride])
        margin = np.ceil(asked.bound / asked.unit).astype(np.int32)
        bar = low_bar(sample, self.rank) - margin
        passing = Passing(len(queries), self.width, sample)
        for start in range(0, points.shape[1], _TILE_COLUMNS):
            scores = products(asked.rounded, points[:, start : start + _TILE_COLUMNS])
            passing.add(start, scores, scores >= bar)
        best = np.argpartition(passing.scores(k), -k, axis=1)[:, -k:]
        best = np.take_along_axis(passing.points, best, axis=1)
        # the k nearest are no farther than the farthest of these
        farthest = _farthest(scorer, queries, best)
        cut = (1 - farthest - scorer.rounding(queries) - asked.bound) / asked.unit
        found, aside = passing.over(cut, k)
        return found, aside | (cut < bar)[:, 0]


def _farthest(scorer: Scorer, queries: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The largest distance of each query (n×m) to points of its own (n×k), shape (n, 1)."""
    farthest = np.empty((len(queries), 1))
    for rows in pair_blocks(queries, points.shape[1]):
        distances = scorer.distances(queries[rows], points[rows])
        farthest[rows] = np.max(distances, axis=1, keepdims=True)
    return farthest


def _rotation(m: int) -> np.ndarray:
    """A random rotation of m dimensions, always the same."""
    drawn = np.random.default_rng(0).standard_normal((m, m))
    return np.linalg.qr(drawn)[0].astype(np.float32)


def products(queries: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Q P (n×N, int32) of int8 matrices n×m and m×N."""
    given = {"Q": queries, "P": np.ascontiguousarray(points)}
    return np.asarray(_session().run(None, given)[0])


@functools.cache
def _levels(m: int) -> int:
    """How large the integers of points may be, so that no sum over m products overflows."""
    queries, points = (np.full(shape, _LEVELS, dtype=np.int8) for shape in ((64, m), (m, 64)))
    right = [
        np.all(products(sign * queries[:n], points) == sign * m * _LEVELS**2)
        for n in (1, 64)
        for sign in (1, -1)
    ]
    return _LEVELS if all(right) else _FEWER_LEVELS


def _lengths(rows: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]


@functools.cache
def _available() -> bool:
    """Whether products of integers can be had; float32 finds the same without."""
    try:
        return bool(products(np.ones((1, 2), np.int8), np.ones((2, 1), np.int8))[0, 0] == 2)
    except Exception:  # onnxruntime is not whole, or does not run here
        return False


@functools.cache
def _session() -> Any:
    """A session that multiplies int8 matrices into int32, in the thread that calls it."""
    from onnx import TensorProto, helper

    def matrix(name: str, kind: int, *shape: str) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["Q", "P"], ["scores"])],
        "products",
        [matrix("Q", TensorProto.INT8, "n", "m"), matrix("P", TensorProto.INT8, "m", "N")],
        [matrix("scores", TensorProto.INT32, "n", "N")],
    )
    opset = helper.make_opsetid("", _OPSET)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION)
    return open_session(model.SerializeToString())
