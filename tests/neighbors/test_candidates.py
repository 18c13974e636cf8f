"""Candidates from rounded scores: whatever the points are like, the order of all pairs is found."""

import tracemalloc

import numpy as np
import pytest

from tagkin import memory_budget
from tagkin.neighbors import ExactNeighbors
from tagkin.neighbors.neighbor_index import unit_rows
from tagkin.neighbors.scorer import Scorer

N_POINTS, N_QUERIES = 20_000, 120  # enough that a sample of the points sets the cutoff


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
    scorer, everything = Scorer(points, "cosine"), np.arange(len(points))[None]
    distances = np.vstack([scorer.distances(q[None], everything) for q in queries])
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(distances, order, axis=1)


def check(queries, points, k, rows, fewer=()):
    """The search for all queries, of k and of fewer, against all pairs for some rows of them."""
    index = ExactNeighbors().fit(points)
    indices, distances = by_pairs(queries[rows], points, k)
    for n in (*fewer, k):
        found = index.kneighbors(queries, n)
        np.testing.assert_array_equal(found.indices[rows], indices[:, :n])
        np.testing.assert_array_equal(found.distances[rows], distances[:, :n])
    q, p = (unit_rows(a.astype(np.float64), "rows") for a in (queries[rows], points))
    wide = np.sort(1 - q @ p.T, axis=1)[:, :k]
    np.testing.assert_allclose(distances, wide, atol=2e-6)
    return found


@pytest.mark.parametrize("kind", [spread, clustered, close, sparse, twins])
def test_it_is_the_order_of_all_pairs(kind):
    queries, points = kind(N_QUERIES, 24, seed=1), kind(N_POINTS, 24)
    check(queries, points, 150, slice(None, None, 8), fewer=(1, 10))


@pytest.mark.parametrize("m", [1, 2, 5, 81, 300])
def test_it_is_the_order_of_all_pairs_for_few_and_many_dimensions(m):
    check(spread(N_QUERIES, m, seed=1), spread(N_POINTS, m), 20, slice(None, None, 10))


@pytest.mark.parametrize("near", [45, 60])
def test_a_sample_that_promises_too_much_is_noticed(near):
    """The nearest points of one query are all in the sample: too few others reach its cutoff."""
    points, queries = spread(N_POINTS, 81), spread(N_QUERIES, 81, seed=1)
    order = np.argsort(-(queries[:1] @ unit_rows(points, "points").T)[0])
    sampled = np.arange(0, N_POINTS, 4)[:near] + 4 * np.arange(near)
    rest = np.setdiff1d(np.arange(N_POINTS), sampled)
    arranged = np.empty_like(points)
    arranged[sampled], arranged[rest] = points[order[:near]], points[order[near:]]
    check(queries, arranged, 100, slice(0, 4))


def test_a_zero_query_is_at_distance_one_from_everything():
    queries = spread(N_QUERIES, 24, seed=1)
    queries[3] = 0
    found = check(queries, spread(N_POINTS, 24), 12, slice(0, 6))
    np.testing.assert_array_equal(found.indices[3], np.arange(12))
    np.testing.assert_array_equal(found.distances[3], 1)


def test_all_points_zero():
    points = np.zeros((N_POINTS, 5), np.float32)
    found = ExactNeighbors().fit(points).kneighbors(spread(N_QUERIES, 5), 3)
    np.testing.assert_array_equal(found.indices, N_QUERIES * [[0, 1, 2]])
    np.testing.assert_array_equal(found.distances, 1)


def test_points_that_are_all_alike_take_no_more_memory_than_allowed():
    points, queries = np.ones((40_000, 3), np.float32), np.ones((100, 3), np.float32)
    index = ExactNeighbors().fit(points)
    tracemalloc.start()
    with memory_budget(2**21):
        found = index.kneighbors(queries, 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.indices == np.arange(20)).all()
    assert peak < 2**23
