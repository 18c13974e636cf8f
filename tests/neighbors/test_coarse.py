"""Scores in 8 bits: how far off they are, and that a search over them stays exact."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import tagkin
from tagkin.neighbors import ExactNeighbors, _candidates, _coarse, _search
from tagkin.neighbors._coarse import CoarseBar, Grid, pays, products
from tagkin.neighbors._scorer import Scorer
from tagkin.neighbors.base import unit_rows
from tests import layouts


def drawn(n, m, seed=0):
    return np.random.default_rng(seed).standard_normal((n, m), dtype=np.float32)


def spread(n, m, seed=0):
    """Directions without order."""
    return drawn(n, m, seed)


def clustered(n, m, seed=0):
    """A few clusters, some of them narrower than a step of the grid."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(99).standard_normal((12, m))
    width = np.geomspace(1e-4, 1, 12)[:, None]
    of = rng.integers(0, 12, n)
    return (centers[of] + width[of] * rng.standard_normal((n, m))).astype(np.float32)


def spiky(n, m, seed=0):
    """One large coordinate each, so that the steps of the grid are as long as they get."""
    X = 0.05 * drawn(n, m, seed)
    X[np.arange(n), np.random.default_rng(seed).integers(0, m, n)] = 1
    return X


def sparse(n, m, seed=0):
    """Many zeros, and zero vectors."""
    X = np.maximum(drawn(n, m, seed) - 1, 0)
    X[::17] = 0
    return X


def twins(n, m, seed=0):
    """Every point several times, and again with a last digit changed."""
    distinct = drawn(n // 8 + 1, m, seed=5)
    X = distinct[np.random.default_rng(seed).integers(0, len(distinct), n)]
    X[1::2, 0] = np.nextafter(X[1::2, 0], np.float32(np.inf))
    return X


KINDS = [spread, clustered, spiky, sparse, twins]


@pytest.fixture
def decided(monkeypatch):
    """Coarse scores for small searches, too, in one thread; (candidates, left aside) by block."""
    for module, name, value in (
        (_candidates, "_FEW_POINTS", 100),
        (_search, "_FEW_SCORES", 0),
        (_coarse, "_MANY_PRODUCTS", 0),
        (_coarse, "_MANY_QUERIES", 0),
        (_coarse, "_QUERIES_A_DIMENSION", 0),
        (_coarse, "_DIMENSIONS", range(1, 2049)),
        (_coarse, "_POINTS_A_NEIGHBOR", 1),
    ):
        monkeypatch.setattr(module, name, value)
    blocks = []
    find = CoarseBar._by_coarse_scores

    def spy(self, *args):
        found, aside = find(self, *args)
        blocks.append((found.copy(), aside.copy()))
        return found, aside

    monkeypatch.setattr(CoarseBar, "_by_coarse_scores", spy)
    with threadpool_limits(1, "blas"):
        yield blocks


def by_pairs(queries, points, k):
    """Distances of all pairs, each sum on its own, sorted by (distance, index)."""
    queries, points = unit_rows(queries, "queries"), unit_rows(points, "points")
    scorer, everything = Scorer(points, "cosine"), np.arange(len(points))[None]
    distances = np.vstack([scorer.distances(q[None], everything) for q in queries])
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(distances, order, axis=1)


def check(found, queries, points, k):
    indices, distances = by_pairs(queries, points, k)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_array_equal(found.distances, distances)
    q, p = (unit_rows(a.astype(np.float64), "rows") for a in (queries, points))
    wide = np.sort(1 - q @ p.T, axis=1)[:, :k]
    np.testing.assert_allclose(found.distances, wide, atol=2e-6)


@pytest.mark.parametrize("levels", [63, 127])
@pytest.mark.parametrize("m", [1, 2, 3, 16, 81, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_no_score_is_farther_off_than_the_bound(kind, m, levels, monkeypatch):
    monkeypatch.setattr(_coarse, "_levels", lambda m: levels)
    points, queries = (unit_rows(kind(n, m, seed), "rows") for n, seed in ((400, 0), (60, 1)))
    grid = Grid(points)
    asked = grid.ask(queries)
    exact = queries.astype(np.float64) @ points.T.astype(np.float64)
    coarse = asked.unit * products(asked.rounded, grid.rounded)
    assert np.all(np.abs(exact - coarse) <= asked.bound)
    assert np.abs(grid.rounded).max() <= levels


def test_the_bound_is_reached():
    """By a query that points where the rounding of a point does: less would be wrong."""
    points = unit_rows(drawn(300, 40), "points")
    grid = Grid(points)
    off = points - grid.scale * grid.rounded.T @ grid.rotation.T
    worst = np.argmax(np.linalg.norm(off, axis=1))
    asked = grid.ask(unit_rows(off[worst : worst + 1], "queries"))
    exact = float(off[worst] @ points[worst]) / np.linalg.norm(off[worst])
    coarse = (asked.unit * products(asked.rounded, grid.rounded))[0, worst]
    assert 0.6 * asked.bound[0, 0] < abs(exact - coarse) <= asked.bound[0, 0]


@pytest.mark.parametrize("kind", [spiky, sparse])
def test_points_are_rotated_so_that_steps_are_short(kind):
    points = unit_rows(kind(500, 64), "points")
    assert Grid(points).scale < 0.6 * np.abs(points).max() / 127


def test_products_of_integers_are_exact():
    rng = np.random.default_rng(0)
    for n, m, n_points in ((1, 1, 1), (1, 81, 300), (70, 33, 9), (64, 500, 100)):
        Q, P = (rng.integers(-127, 128, shape).astype(np.int8) for shape in ((n, m), (m, n_points)))
        expected = Q.astype(np.int64) @ P.astype(np.int64)
        np.testing.assert_array_equal(products(Q, P), expected)
        np.testing.assert_array_equal(products(Q, P[:, ::2]), expected[:, ::2])


@pytest.mark.parametrize("n", [1, 2, 7, 64, 130])
@pytest.mark.parametrize("m", [1, 2, 3, 31, 64, 81, 515])
@pytest.mark.parametrize("n_points", [1, 17, 64, 1025])
def test_products_of_the_largest_integers_are_exact(n, m, n_points):
    """Without VNNI, x86-64 adds pairs of products in 16 bits, where 2 · 255 · 127 has no room."""
    levels, rng = _coarse._levels(m), np.random.default_rng(0)
    Q = rng.choice(np.array([-127, 127], np.int8), (n, m))
    P = rng.choice(np.array([-levels, levels], np.int8), (m, n_points))
    Q[0], P[:, 0] = 127, levels
    Q[-1], P[:, -1] = -127, -levels
    for queries in (Q, layouts.one_element_on(Q), np.asfortranarray(Q)):
        for points in (P, layouts.one_element_on(P), layouts.with_gaps(P)):
            expected = Q.astype(np.int64) @ P.astype(np.int64)
            np.testing.assert_array_equal(products(queries, points), expected)


def saturating(queries, points):
    """Products as processors form them that add pairs in 16 bits, with queries from 0 to 255."""
    filled = ((0, 0), (0, queries.shape[1] % 2))
    Q = np.pad(queries.astype(np.int64) + 128, filled)
    P = np.pad(points.astype(np.int64).T, filled)
    terms = (Q[:, None, :] * P[None]).reshape(len(Q), len(P), -1, 2).sum(axis=3)
    return np.clip(terms, -(2**15), 2**15 - 1).sum(axis=2) - 128 * P.sum(axis=1)


def test_points_have_fewer_levels_where_pairs_of_products_would_overflow(monkeypatch):
    monkeypatch.setattr(_coarse, "products", saturating)
    assert _coarse._levels.__wrapped__(81) == 63
    Q = np.random.default_rng(0).choice([-127, 127], (40, 81))
    P = np.random.default_rng(1).choice([-63, 63], (81, 30))
    np.testing.assert_array_equal(saturating(Q, P), Q @ P)


@pytest.mark.parametrize("k", [1, 10, 150])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_order_of_all_pairs(kind, k, decided):
    points, queries = kind(3000, 24), kind(70, 24, seed=1)
    check(ExactNeighbors().fit(points).kneighbors(queries, k), queries, points, k)
    assert decided


@pytest.mark.parametrize("m", [1, 2, 5, 64, 81, 100])
def test_it_is_the_order_of_all_pairs_for_few_and_many_dimensions(m, decided):
    points, queries = drawn(9000, m), drawn(40, m, seed=1)
    check(ExactNeighbors().fit(points).kneighbors(queries, 20), queries, points, 20)
    if m > 5:
        found, aside = decided[0]
        assert not aside.any()
        # few more than were asked for: less than a tenth of the points were looked at
        assert (found >= 0).sum(axis=1).max() < 900


def test_it_is_the_search_without_coarse_scores(decided, monkeypatch):
    points, queries = clustered(20_000, 48), spread(300, 48, seed=1)
    index = ExactNeighbors().fit(points)
    coarse = index.kneighbors(queries, 30)
    assert decided
    monkeypatch.setattr(_search, "pays", lambda *args: False)
    for a, b in zip(coarse, index.kneighbors(queries, 30), strict=True):
        np.testing.assert_array_equal(a, b)


def test_of_equal_points_the_lower_index_comes_first(decided):
    distinct, queries = drawn(600, 31), drawn(25, 31, seed=3)
    copies = np.random.default_rng(2).integers(0, 600, 6000)
    found = ExactNeighbors().fit(distinct[copies]).kneighbors(queries, 40)
    order = np.argsort(-(queries @ unit_rows(distinct, "points").T), axis=1)
    for row in range(25):
        by_point = [np.flatnonzero(copies == point) for point in order[row, :40]]
        np.testing.assert_array_equal(found.indices[row], np.concatenate(by_point)[:40])
    assert not decided[0][1].all()


def test_neither_budget_nor_threads_change_a_bit(decided):
    points, queries = drawn(6000, 31), drawn(90, 31, seed=1)
    index = ExactNeighbors().fit(points)
    whole = index.kneighbors(queries, 20)
    assert len(decided) == 1
    with tagkin.memory_budget(4 * points.size):
        small = index.kneighbors(queries, 20)
    assert len(decided) > 10
    decided.clear()
    with threadpool_limits(3, "blas"):
        threads = index.kneighbors(queries, 20)
    assert len(decided) == 3
    for a, b, c in zip(whole, small, threads, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


@pytest.mark.parametrize("near", [45, 60])
def test_a_bar_that_is_too_high_is_noticed(near, decided):
    """The nearest points of one query are all in the sample, which then promises too much."""
    points, queries = drawn(20_000, 81), drawn(8, 81, seed=1)
    order = np.argsort(-(queries[:1] @ unit_rows(points, "points").T)[0])
    places = np.arange(0, 20_000, 4)[:near] + 4 * np.arange(near)
    rest = np.setdiff1d(np.arange(20_000), places)
    arranged = np.empty_like(points)
    arranged[places], arranged[rest] = points[order[:near]], points[order[near:]]
    found = ExactNeighbors().fit(arranged).kneighbors(queries, 100)
    check(found, queries, arranged, 100)
    candidates, aside = decided[0]
    assert aside.tolist() == [True] + 7 * [False]
    # some had been listed, and those are not taken for all
    assert (candidates[0] >= 0).any() or near == 60


def test_where_points_are_too_near_for_the_grid_it_is_given_up(decided):
    points = 1 + 1e-3 * drawn(5000, 20)
    queries = 1 + 1e-3 * drawn(1100, 20, seed=1)
    found = ExactNeighbors().fit(points).kneighbors(queries, 10)
    assert all(aside.all() for _, aside in decided)
    assert sum(len(aside) for _, aside in decided) < 1100
    some = slice(None, None, 50)
    indices, distances = by_pairs(queries[some], points, 10)
    np.testing.assert_array_equal(found.indices[some], indices)
    np.testing.assert_array_equal(found.distances[some], distances)


def test_a_zero_vector_is_at_distance_one_from_everything(decided):
    points, queries = drawn(3000, 24), drawn(20, 24, seed=1)
    points[[4, 900]], queries[3] = 0, 0
    found = ExactNeighbors().fit(points).kneighbors(queries, 12)
    check(found, queries, points, 12)
    np.testing.assert_array_equal(found.indices[3], np.arange(12))
    np.testing.assert_array_equal(found.distances[3], 1)
    assert decided[0][1].tolist() == [row == 3 for row in range(20)]


def test_all_points_zero(decided):
    found = ExactNeighbors().fit(np.zeros((3000, 5), np.float32)).kneighbors(drawn(4, 5), 3)
    np.testing.assert_array_equal(found.indices, 4 * [[0, 1, 2]])
    np.testing.assert_array_equal(found.distances, 1)


def test_it_is_for_long_searches_by_cosine_in_float32_within_the_budget():
    points = unit_rows(drawn(60_000, 64), "points")
    queries = np.broadcast_to(points[:1], (4000, 64))
    assert pays(queries, Scorer(points, "cosine"), 200)
    assert not pays(queries, Scorer(points, "cosine"), 2000)
    assert not pays(queries[:500], Scorer(points, "cosine"), 200)
    assert not pays(queries, Scorer(points, "euclidean"), 200)
    assert not pays(queries, Scorer(points.astype(np.float64), "cosine"), 200)
    assert not pays(queries[:, :20], Scorer(points[:, :20], "cosine"), 200)
    wide = np.broadcast_to(points[:20_000, :1], (20_000, 600))
    assert not pays(wide[:4000], Scorer(wide, "cosine"), 50)
    assert pays(wide[:5000], Scorer(wide, "cosine"), 50)
    with tagkin.memory_budget(points.size):
        assert not pays(queries, Scorer(points, "cosine"), 200)


def test_tensors_are_left_to_torch():
    torch = pytest.importorskip("torch")
    points = torch.ones((60_000, 64), dtype=torch.float32)
    assert not pays(points, Scorer(points, "cosine"), 10)


def test_without_products_of_integers_float32_finds_the_same(monkeypatch):
    def broken():
        raise ImportError("onnxruntime")

    scorer = Scorer(unit_rows(drawn(120_000, 64), "points"), "cosine")
    queries = unit_rows(drawn(2048, 64, seed=1), "queries")
    assert pays(queries, scorer, 5)
    monkeypatch.setattr(_coarse, "_session", broken)
    _coarse._available.cache_clear()
    try:
        assert not pays(queries, scorer, 5)
    finally:
        _coarse._available.cache_clear()
