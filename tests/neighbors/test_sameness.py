"""The exact search is the same to the bit, however arrays lie in memory and work is cut.

Matrix products are not: their rounding depends on the processor's kernels, on alignment, on shapes
and on threads. `make processors` runs this under other kernels than the machine's own.
"""

import contextlib

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import tagkin
from tagkin.neighbors import ExactNeighbors
from tagkin.neighbors.exact_search import pair_distances
from tests.layouts import LAYOUTS

METRICS = ["cosine", "euclidean"]
DTYPES = ["float32", "float64"]


def drawn(n, m, dtype, seed=0):
    """Away from the origin, so that the mean has digits to lose."""
    return (1 + np.random.default_rng(seed).standard_normal((n, m))).astype(dtype)


def assert_same(neighbors, expected):
    for part, expected_part in zip(neighbors, expected, strict=True):
        np.testing.assert_array_equal(part, expected_part)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, 2, 3, 7, 31, 64, 81, 130, 513])
def test_where_arrays_lie_does_not_matter(metric, dtype, m):
    points, queries = drawn(501, m, dtype), drawn(23, m, dtype, seed=1)
    expected = ExactNeighbors(metric).fit(points).kneighbors(queries, 20)
    for layout in LAYOUTS:
        index = ExactNeighbors(metric).fit(layout(points))
        assert_same(index.kneighbors(layout(queries), 20), expected)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_points", [37, 501, 5003])  # the last have scores in groups
@pytest.mark.parametrize("m", [1, 3, 31, 81])
def test_how_work_is_cut_does_not_matter(metric, dtype, n_points, m):
    """Nor does the number of BLAS threads, nor the budget that the points were taken under."""
    points, queries = drawn(n_points, m, dtype), drawn(17, m, dtype, seed=1)
    expected = ExactNeighbors(metric).fit(points).kneighbors(queries, 20)
    libraries = ThreadpoolController()
    smallest = 3000 if n_points < 1000 else 9000  # a hundred blocks and more
    for budget in (smallest, 200_000, None):
        for n_threads in (1, 2):
            limited = contextlib.nullcontext() if budget is None else tagkin.memory_budget(budget)
            with limited, libraries.limit(limits=n_threads, user_api="blas"):
                index = ExactNeighbors(metric).fit(points)
                assert_same(index.kneighbors(queries, 20), expected)
                for size in (1, 7):
                    rows = slice(5, 5 + size)
                    part = [array[rows] for array in expected]
                    assert_same(index.kneighbors(queries[rows], 20), part)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, 2, 5, 16, 33, 100, 127, 1025, 9001])
def test_a_distance_is_a_sum_of_its_own(dtype, m):
    """Whichever pairs are computed with it, and wherever among them its own lies."""
    points, queries = drawn(40, m, dtype), drawn(7, m, dtype, seed=1)
    rng = np.random.default_rng(2)

    def distances(queries, candidates):
        return pair_distances(queries, points, candidates, "euclidean")

    alone = np.array(
        [[distances(q[None], np.array([[p]]))[0, 0] for p in range(40)] for q in queries]
    )
    for n, width in ((7, 40), (7, 1), (1, 40), (3, 17)):
        rows, candidates = rng.permutation(7)[:n], rng.integers(0, 40, (n, width))
        together = distances(queries[rows], candidates)
        np.testing.assert_array_equal(together, alone[rows[:, None], candidates])


@pytest.mark.parametrize("scale", [1, 1e4, 1e7])
@pytest.mark.parametrize("m", [2, 40])
def test_far_from_all_points_it_is_still_the_order_of_all_pairs(scale, m):
    """Distances that large are equal for many points, of which those of lower index come first."""
    half, queries = drawn(350, m, "float32"), drawn(40, m, "float32", seed=1) * np.float32(scale)
    half, centre = np.round(1024 * half) / 1024, np.float32(0.125)  # their sums are exact
    points = centre + np.vstack([half, -half])
    index = ExactNeighbors("euclidean").fit(points)
    neighbors = index.kneighbors(queries, 10)
    centred = (queries.astype(float) - centre).astype(np.float32)
    everything = np.tile(np.arange(700), (40, 1))
    distances = pair_distances(centred, index.points_, everything, "euclidean")
    order = np.argsort(distances, axis=1, kind="stable")[:, :10]
    np.testing.assert_array_equal(neighbors.indices, order)
    np.testing.assert_array_equal(neighbors.distances, np.take_along_axis(distances, order, axis=1))
