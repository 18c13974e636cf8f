"""The exact search against brute force in float64, with ties, zeros and crowds."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, nearest


def brute_force(queries, points, k, metric, exclude=None):
    """All distances in float64, sorted by (distance, index)."""
    q, p = (np.asarray(a, dtype=np.float64) for a in (queries, points))
    if metric == "cosine":
        lengths = [np.linalg.norm(a, axis=1, keepdims=True) for a in (q, p)]
        q, p = (a / np.where(n > 0, n, 1) for a, n in zip((q, p), lengths, strict=True))
        distances = 1 - q @ p.T
    else:
        distances = np.linalg.norm(q[:, None] - p[None], axis=2)
    distances = np.round(distances, 12)  # equal points, equal distances
    if exclude is not None:
        distances[np.arange(len(q)), exclude] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(distances, order, axis=1)


def drawn(n, m, seed=0):
    return np.random.default_rng(seed).standard_normal((n, m))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("k", [1, 7, 300])
def test_it_is_brute_force(metric, k, as_array):
    queries, points = drawn(40, 9), drawn(300, 9, seed=1)
    neighbors = nearest(as_array(queries), as_array(points), k, metric=metric)
    indices, distances = brute_force(queries, points, k, metric)
    np.testing.assert_array_equal(np.asarray(neighbors.indices), indices)
    np.testing.assert_allclose(np.asarray(neighbors.distances), distances, atol=1e-12)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_equal_points(metric, dtype, as_array):
    """Every point occurs many times. Rounding decides which of them come, but all are as near."""
    distinct = drawn(23, 11).astype(dtype)
    copies = np.random.default_rng(2).integers(0, 23, 400)
    queries = drawn(17, 11, seed=3).astype(dtype)
    neighbors = nearest(as_array(queries), as_array(distinct[copies]), 50, metric=metric)
    order, _ = brute_force(queries, distinct, 23, metric)
    for row in range(17):
        points = np.concatenate([np.full(np.sum(copies == point), point) for point in order[row]])
        np.testing.assert_array_equal(copies[np.asarray(neighbors.indices)[row]], points[:50])


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_the_image_itself_is_left_out_on_request(metric, as_array):
    points = drawn(80, 5)
    points[7] = points[3]  # a twin of another is not left out with it
    neighbors = nearest(
        as_array(points), as_array(points), 10, metric=metric, exclude=np.arange(80)
    )
    indices, distances = brute_force(points, points, 10, metric, exclude=np.arange(80))
    np.testing.assert_array_equal(np.asarray(neighbors.indices), indices)
    np.testing.assert_allclose(np.asarray(neighbors.distances), distances, atol=1e-7)
    assert int(neighbors.indices[3, 0]) == 7
    assert float(neighbors.distances[3, 0]) == 0
    plain = nearest(as_array(points), as_array(points), 10, metric=metric, exclude=np.full(80, -1))
    assert int(plain.indices[5, 0]) == 5


def test_a_zero_vector_is_at_distance_one_from_everything(as_array):
    points = drawn(30, 4)
    points[4] = points[9] = 0
    queries = np.vstack([np.zeros(4), points[0]])
    neighbors = nearest(as_array(queries), as_array(points), 30)
    np.testing.assert_array_equal(np.asarray(neighbors.indices)[0], np.arange(30))
    np.testing.assert_allclose(np.asarray(neighbors.distances)[0], 1)
    of_zero = np.isin(np.asarray(neighbors.indices)[1], [4, 9])
    np.testing.assert_allclose(np.asarray(neighbors.distances)[1][of_zero], 1)


def test_near_points_keep_their_digits():
    """1 − cos from a product would lose them all."""
    point = drawn(1, 16)
    away = drawn(1, 16, seed=1)
    away -= (away @ point.T) / (point @ point.T) * point
    steps = 1e-6 * np.arange(1, 6)[:, None]
    neighbors = nearest(point, point + steps * away, 5)
    np.testing.assert_array_equal(neighbors.indices[0], np.arange(5))
    tangent = steps[:, 0] * np.linalg.norm(away) / np.linalg.norm(point)
    np.testing.assert_allclose(neighbors.distances[0], tangent**2 / 2, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_length_does_not_matter_to_the_cosine(scale):
    queries, points = drawn(10, 5), drawn(50, 5, seed=1)
    neighbors = nearest(
        (scale * queries).astype(np.float32), (points / scale).astype(np.float32), 3
    )
    np.testing.assert_array_equal(neighbors.indices, nearest(queries, points, 3).indices)


def test_euclidean_far_from_the_origin():
    queries, points = drawn(10, 5), drawn(50, 5, seed=1)
    neighbors = nearest(queries + 1e6, points + 1e6, 5, metric="euclidean")
    indices, distances = brute_force(queries, points, 5, "euclidean")
    np.testing.assert_array_equal(neighbors.indices, indices)
    np.testing.assert_allclose(neighbors.distances, distances, rtol=1e-8)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_added_points_get_the_next_indices(metric, as_array):
    queries, points = drawn(10, 5), drawn(60, 5, seed=1)
    index = ExactNeighbors(metric).fit(as_array(points[:45])).add(as_array(points[45:]))
    assert index.n_points_ == 60
    neighbors = index.kneighbors(as_array(queries), 8)
    np.testing.assert_array_equal(
        np.asarray(neighbors.indices), brute_force(queries, points, 8, metric)[0]
    )


def test_input_is_neither_kept_nor_changed():
    points = drawn(20, 3)
    before = points.copy()
    index = ExactNeighbors("euclidean").fit(points)
    np.testing.assert_array_equal(points, before)
    first = index.kneighbors(before[:2], 3)
    points[:] = 0
    np.testing.assert_array_equal(index.kneighbors(before[:2], 3).indices, first.indices)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda i: i.kneighbors(np.ones((2, 4)), 3), "4 features, but the points have 5"),
        (lambda i: i.kneighbors(np.ones((2, 5)), 21), "21 neighbours among 20 points"),
        (lambda i: i.kneighbors(np.ones((2, 5)), 20, exclude=[0, 1]), "at most 19"),
        (lambda i: i.kneighbors(np.ones((2, 5)), 0), "from 1; found 0"),
        (lambda i: i.kneighbors(np.ones((2, 5)), 2.0), "whole number"),
        (lambda i: i.kneighbors(np.full((2, 5), np.nan), 2), "queries contains NaN .* row 0"),
        (lambda i: i.kneighbors(np.ones((2, 5)), 2, exclude=[0, 20]), "−1 \\(none\\) to 19"),
        (lambda i: i.kneighbors(np.ones((2, 5)), 2, exclude=[0]), "each of the 2 queries"),
        (lambda i: i.add(np.ones((2, 4))), "points with 4 features"),
        (lambda i: i.fit(np.ones((0, 4))), "minimum of 1"),
        (lambda i: ExactNeighbors("manhattan").fit(np.ones((2, 5))), "cosine, euclidean"),
    ],
)
def test_bad_input(call, message):
    index = ExactNeighbors().fit(drawn(20, 5))
    with pytest.raises(ValueError, match=message) as caught:
        call(index)
    assert isinstance(caught.value, InvalidInput) or "minimum" in message
    assert index.n_points_ == 20


def test_unfitted():
    with pytest.raises(NotFittedError):
        ExactNeighbors().kneighbors(np.ones((2, 5)), 1)


def test_what_is_known_of_the_points_is_found_anew_when_they_change(tmp_path):
    """Norms are kept from search to search, but not beyond a fit, an addition or a file."""
    index = ExactNeighbors("euclidean").fit(drawn(50, 4))
    query = drawn(1, 4, seed=5)
    index.kneighbors(query, 3)
    index.add(query)
    assert index.kneighbors(query, 1).indices[0, 0] == 50
    index.fit(np.concatenate([drawn(20, 4, seed=1), query]))
    assert index.kneighbors(query, 1).indices[0, 0] == 20
    index.metric = "cosine"
    index.fit(np.concatenate([query * 9, drawn(20, 4, seed=1)]))
    assert index.kneighbors(query, 1).indices[0, 0] == 0


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_neighbours_of_the_points_themselves(metric):
    points = np.random.default_rng(0).standard_normal((80, 5)) + 3
    index = ExactNeighbors(metric).fit(points)
    rows = np.array([7, 3, 79, 3])
    neighbors = index.kneighbors_of(rows, 10)
    expected = index.kneighbors(points[rows], 10, exclude=rows)
    np.testing.assert_array_equal(neighbors.indices, expected.indices)
    np.testing.assert_allclose(neighbors.distances, expected.distances, atol=1e-12)
    with pytest.raises(InvalidInput, match="at most 79"):
        index.kneighbors_of(rows, 80)
