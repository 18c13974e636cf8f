"""Candidates from rounded scores: whatever the points are like, the order of all pairs results."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from tagkin import memory_budget
from tagkin.neighbors import ExactNeighbors
from tagkin.neighbors.exact_search import pair_distances
from tagkin.neighbors.neighbor_index import unit_rows

N_POINTS, N_QUERIES = 20_000, 120  # enough that maxima of groups set the cutoff
MANY_POINTS, MANY_QUERIES = 36_000, 1000  # enough for FAISS


def spread(n, m, seed=0):
    """Directions without order."""
    return np.random.default_rng(seed).standard_normal((n, m), dtype=np.float32)


def clustered(n, m, seed=0):
    """A few clusters, some of them very narrow."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(99).standard_normal((12, m))
    width = np.geomspace(1e-4, 1, 12)[:, None]
    of = rng.integers(0, 12, n)
    return (centers[of] + width[of] * rng.standard_normal((n, m))).astype(np.float32)


def close(n, m, seed=0):
    """All points nearly the same."""
    return 1 + np.float32(1e-4) * spread(n, m, seed)


def sparse(n, m, seed=0):
    """Many zeros, and zero vectors."""
    X = np.maximum(spread(n, m, seed) - 1, 0)
    X[::17] = 0
    return X


def twins(n, m, seed=0):
    """Every point several times, and again with a last digit changed."""
    distinct = spread(n // 8 + 1, m, seed=5)
    X = distinct[np.random.default_rng(seed).integers(0, len(distinct), n)]
    X[1::2, 0] = np.nextafter(X[1::2, 0], np.float32(np.inf))
    return X


def by_pairs(queries, points, k):
    """Distances of all pairs, each sum on its own, sorted by (distance, index)."""
    queries, points = unit_rows(queries, "queries"), unit_rows(points, "points")
    everything = np.arange(len(points))[None]
    distances = np.vstack([pair_distances(q[None], points, everything, "cosine") for q in queries])
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(distances, order, axis=1)


def check(queries, points, k, rows, fewer=()):
    """The search for all queries, of k and of fewer, against all pairs for some rows of them."""
    index = ExactNeighbors().fit(points)
    indices, distances = by_pairs(queries[rows], points, k)
    for n in (*fewer, k):
        neighbors = index.kneighbors(queries, n)
        np.testing.assert_array_equal(neighbors.indices[rows], indices[:, :n])
        np.testing.assert_array_equal(neighbors.distances[rows], distances[:, :n])
    q, p = (unit_rows(a.astype(np.float64), "rows") for a in (queries[rows], points))
    wide = np.sort(1 - q @ p.T, axis=1)[:, :k]
    np.testing.assert_allclose(distances, wide, atol=2e-6)
    return neighbors


@pytest.mark.parametrize("kind", [spread, clustered, close, sparse, twins])
def test_it_is_the_order_of_all_pairs(kind):
    queries, points = kind(N_QUERIES, 24, seed=1), kind(N_POINTS, 24)
    check(queries, points, 150, slice(None, None, 8), fewer=(1, 10))


@pytest.mark.parametrize("m", [1, 2, 5, 81, 300])
def test_it_is_the_order_of_all_pairs_for_few_and_many_dimensions(m):
    check(spread(N_QUERIES, m, seed=1), spread(N_POINTS, m), 20, slice(None, None, 10))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("kind", [spread, clustered, sparse, twins])
def test_faiss_and_products_find_the_same(kind, metric):
    """Up to rounding: points at distances that differ by less may change places."""
    pytest.importorskip("faiss", reason="faiss is not installed")
    queries, points = kind(MANY_QUERIES, 12, seed=1), kind(MANY_POINTS, 12)
    index, k, some = ExactNeighbors(metric).fit(points), 30, slice(None, None, 25)
    by_faiss = index.kneighbors(queries, k)
    assert "faiss" in sys.modules
    for lists in (by_faiss, index.kneighbors(queries[some], k)):  # few queries: by products
        chosen = some if len(lists.indices) == MANY_QUERIES else slice(None)
        indices, distances = (part[chosen] for part in lists)
        q, p = (a.astype(np.float64) for a in (queries[some], points))
        if metric == "cosine":
            q, p = unit_rows(q, "q"), unit_rows(p, "p")
            exact = 1 - q @ p.T
        else:
            exact = np.sqrt(np.maximum(((q**2).sum(1)[:, None] + (p**2).sum(1) - 2 * q @ p.T), 0))
        tolerance = 4e-6 * (1 + exact.min(axis=1, keepdims=True))
        if metric == "euclidean":  # the root of a rounded difference of squares
            tolerance = tolerance + 2e-6
        nearest = np.sort(exact, axis=1)[:, :k]
        assert (np.abs(distances - nearest) <= tolerance).all()
        chosen_exact = np.take_along_axis(exact, indices, axis=1)
        assert (np.abs(chosen_exact - distances) <= tolerance).all()
        assert (np.diff(distances, axis=1) >= 0).all()
        assert (np.diff(indices, axis=1)[np.diff(distances, axis=1) == 0] > 0).all()
        assert all(len(set(row)) == k for row in indices.tolist())


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_with_faiss_neither_budget_nor_threads_nor_batch_change_a_bit(metric):
    faiss = pytest.importorskip("faiss", reason="faiss is not installed")
    queries, points = spread(2 * MANY_QUERIES, 31, seed=1), spread(MANY_POINTS, 31)
    index, n_threads = ExactNeighbors(metric).fit(points), faiss.omp_get_max_threads()
    whole = index.kneighbors(queries, 20)
    half = index.kneighbors(queries[MANY_QUERIES:], 20)
    wide = index.kneighbors(queries.astype(np.float64), 20)
    np.testing.assert_allclose(wide.distances, whole.distances, atol=1e-6)
    with memory_budget(10**6), ThreadpoolController().limit(limits=1):
        small = index.kneighbors(queries, 20)
    for expected, later, in_blocks in zip(whole, half, small, strict=True):
        np.testing.assert_array_equal(later, expected[MANY_QUERIES:])
        np.testing.assert_array_equal(in_blocks, expected)
    assert faiss.omp_get_max_threads() == n_threads


def test_faiss_is_imported_for_large_searches_only_and_is_not_needed():
    """In a process of its own, in which the import fails."""
    code = """
import sys
import numpy as np
from tagkin.neighbors import ExactNeighbors
rng = np.random.default_rng(0)
points, queries = (rng.standard_normal((n, 8), dtype=np.float32) for n in (36_000, 1000))
index = ExactNeighbors().fit(points)
few = index.kneighbors(queries[:20], 5)
assert "faiss" not in sys.modules
sys.modules["faiss"] = None
many = index.kneighbors(queries, 5)
assert (many.indices[:20] == few.indices).all() and (many.distances[:20] == few.distances).all()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_zero_query_is_at_distance_one_from_everything():
    queries = spread(N_QUERIES, 24, seed=1)
    queries[3] = 0
    neighbors = check(queries, spread(N_POINTS, 24), 12, slice(0, 6))
    np.testing.assert_array_equal(neighbors.indices[3], np.arange(12))
    np.testing.assert_array_equal(neighbors.distances[3], 1)


def test_all_points_zero():
    points = np.zeros((N_POINTS, 5), np.float32)
    neighbors = ExactNeighbors().fit(points).kneighbors(spread(N_QUERIES, 5), 3)
    np.testing.assert_array_equal(neighbors.indices, N_QUERIES * [[0, 1, 2]])
    np.testing.assert_array_equal(neighbors.distances, 1)


def test_points_that_are_all_alike_take_no_more_memory_than_allowed():
    points, queries = np.ones((40_000, 3), np.float32), np.ones((100, 3), np.float32)
    index = ExactNeighbors().fit(points)
    tracemalloc.start()
    with memory_budget(2**21):
        neighbors = index.kneighbors(queries, 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (neighbors.indices == np.arange(20)).all()
    assert peak < 2**23
