"""The exact search against all distances in float64, whatever the points are like."""

import tracemalloc

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from tagkin import memory_budget
from tagkin.neighbors import ExactNeighbors
from tests.layouts import LAYOUTS

N_POINTS = 5000
MANY_POINTS, MANY_QUERIES = 36_007, 1000  # which no group of scores divides


def recall(found, exact):
    """Share of the exact neighbours that are found."""
    return np.mean([len({*a} & {*b}) / len(b) for a, b in zip(found, exact, strict=True)])


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
    X = np.maximum(spread(n, m, seed) - np.float32(0.5), 0)
    X[::101] = 0
    return X


def twins(n, m, seed=0):
    """Every point several times, and again with a last digit changed."""
    distinct = spread(n // 8 + 1, m, seed=5)
    X = distinct[np.random.default_rng(seed).integers(0, len(distinct), n)]
    X[1::2, 0] = np.nextafter(X[1::2, 0], np.float32(np.inf))
    return X


def distances_of_all(queries, points, metric):
    """All distances, in float64 and by differences."""
    q, p = (a.astype(np.float64) for a in (queries, points))
    if metric == "cosine":
        q, p = (a / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1e-300) for a in (q, p))
    far = np.array([np.linalg.norm(row - p, axis=1) for row in q])
    if metric == "euclidean":
        return far
    is_zero = ~q.any(axis=1)[:, None] | ~p.any(axis=1)
    return np.where(is_zero, 1, far**2 / 2)


def assert_nearest(lists, queries, points, metric="cosine"):
    """Up to rounding: points at distances that differ by less may change places."""
    exact = distances_of_all(queries, points, metric)
    ordered = np.sort(exact, axis=1)
    tolerance = 2e-6
    if metric == "euclidean":  # squares round by a share of the lengths, and so do their roots
        tolerance = 2e-6 * np.abs(points - points.mean(axis=0)).max() ** 2 * points.shape[1]
        tolerance = np.sqrt(ordered[:, :1] ** 2 + tolerance) - ordered[:, :1]
    for indices, distances in lists:
        k = indices.shape[1]
        assert (np.abs(distances - ordered[:, :k]) <= tolerance).all()
        assert (np.abs(np.take_along_axis(exact, indices, axis=1) - distances) <= tolerance).all()
        assert (np.diff(distances, axis=1) >= 0).all()
        assert (np.diff(indices, axis=1)[np.diff(distances, axis=1) == 0] > 0).all()
        assert all(len(set(row)) == k for row in indices.tolist())


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("kind", [spread, clustered, close, sparse, twins])
def test_products_find_the_nearest(kind, metric):
    queries, points = kind(15, 24, seed=1), kind(N_POINTS, 24)
    index = ExactNeighbors(metric).fit(points)
    lists = [index.kneighbors(queries, k) for k in (1, 10, 150)]
    assert_nearest(lists, queries, points, metric)


@pytest.mark.parametrize("m", [1, 2, 5, 81, 300])
def test_few_and_many_dimensions(m):
    queries, points = spread(12, m, seed=1), spread(N_POINTS, m)
    assert_nearest([ExactNeighbors().fit(points).kneighbors(queries, 20)], queries, points)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("kind", [spread, clustered, sparse, twins])
def test_the_nearest_of_many_points(kind, metric):
    queries, points = kind(MANY_QUERIES, 12, seed=1), kind(MANY_POINTS, 12)
    index, rows = ExactNeighbors(metric).fit(points), slice(None, None, 50)
    indices, distances = index.kneighbors(queries, 30)
    assert_nearest([(indices[rows], distances[rows])], queries[rows], points, metric)


def test_the_nearest_of_near_points_have_all_digits():
    """From products, the distances of a point to its own frames would be rounding alone."""
    points = spread(5000, 40)
    frames = points[:50] + np.float32(1e-3) * spread(50, 40, seed=2)
    distances = ExactNeighbors().fit(points).kneighbors(frames, 1).distances[:, 0]
    exact = distances_of_all(frames, points[:50], "cosine").diagonal()
    np.testing.assert_allclose(distances, exact, rtol=1e-3)
    assert exact.max() < 1e-5


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("n_points", [501, MANY_POINTS])
def test_budget_threads_batch_and_layout_change_rounding_only(metric, n_points):
    queries, points = spread(MANY_QUERIES, 31, seed=1), spread(n_points, 31)
    index = ExactNeighbors(metric).fit(points)
    expected = index.kneighbors(queries, 20)
    with memory_budget(10**6), ThreadpoolController().limit(limits=1):
        lists = [index.kneighbors(queries, 20)]
    lists += [
        ExactNeighbors(metric).fit(layout(points)).kneighbors(queries, 20) for layout in LAYOUTS
    ]
    first = slice(0, 7)
    for neighbors in lists:
        np.testing.assert_allclose(neighbors.distances, expected.distances, atol=5e-6)
        assert recall(neighbors.indices, expected.indices) > 0.9999
    few = index.kneighbors(queries[first], 20)
    np.testing.assert_allclose(few.distances, expected.distances[first], atol=5e-6)
    assert recall(few.indices, expected.indices[first]) == 1


def test_the_nearest_are_found_wherever_they_are():
    """Also all in one group of scores, and among the last, which are in no group."""
    points = spread(MANY_POINTS, 24)
    query = spread(1, 24, seed=1)
    near = np.concatenate([np.arange(0, MANY_POINTS, MANY_POINTS // 16), [MANY_POINTS - 1]])
    points[near] = query + np.float32(1e-2) * spread(len(near), 24, seed=2)
    found = ExactNeighbors().fit(points).kneighbors(query, len(near))
    assert set(found.indices[0].tolist()) == set(near.tolist())


def test_a_zero_query_and_zero_points_are_at_distance_one():
    queries = spread(6, 24, seed=1)
    queries[3] = 0
    neighbors = ExactNeighbors().fit(spread(N_POINTS, 24)).kneighbors(queries, 12)
    np.testing.assert_array_equal(neighbors.distances[3], 1)
    zeros = np.zeros((N_POINTS, 5), np.float32)
    neighbors = ExactNeighbors().fit(zeros).kneighbors(spread(6, 5), 3)
    np.testing.assert_array_equal(neighbors.distances, 1)


def test_points_that_are_all_alike_take_no_more_memory_than_allowed():
    points, queries = np.ones((40_000, 3), np.float32), np.ones((100, 3), np.float32)
    index = ExactNeighbors().fit(points)
    tracemalloc.start()
    with memory_budget(2**21):
        neighbors = index.kneighbors(queries, 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(neighbors.distances, 0, atol=1e-12)
    assert peak < 2**23
