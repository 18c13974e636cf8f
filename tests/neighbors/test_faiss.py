"""FAISS behind the contract, and recall against the exact search."""

import builtins

import numpy as np
import pytest

from tagkin import memory_budget
from tagkin.errors import InvalidInput, MissingExtra
from tagkin.neighbors import (
    ExactNeighbors,
    FaissNeighbors,
    NeighborIndex,
    recall,
    recommended_index,
)


@pytest.fixture(autouse=True)
def faiss():
    return pytest.importorskip("faiss", reason="faiss is not installed")


def drawn(n, m, seed=0):
    return np.random.default_rng(seed).standard_normal((n, m)).astype(np.float32)


def test_both_keep_the_contract():
    assert isinstance(ExactNeighbors().fit(drawn(5, 3)), NeighborIndex)
    assert isinstance(FaissNeighbors().fit(drawn(5, 3)), NeighborIndex)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("exclude", [None, np.arange(50)])
def test_the_flat_index_is_the_exact_search(metric, exclude, as_array):
    points = drawn(700, 12)
    queries = points[:50]
    exact = ExactNeighbors(metric).fit(points).kneighbors(queries, 10, exclude=exclude)
    index = FaissNeighbors(metric=metric).fit(as_array(points))
    neighbors = index.kneighbors(as_array(queries), 10, exclude=exclude)
    assert type(neighbors.indices) is type(as_array(exact.indices))
    np.testing.assert_array_equal(np.asarray(neighbors.indices), exact.indices)
    np.testing.assert_allclose(np.asarray(neighbors.distances), exact.distances, atol=1e-6)


def test_an_approximate_index_finds_most_and_more_when_it_looks_longer():
    points, queries = drawn(5000, 16), drawn(200, 16, seed=1)
    exact = ExactNeighbors().fit(points).kneighbors(queries, 20)
    shares = [
        recall(
            FaissNeighbors("IVF64,Flat", f"nprobe={n}").fit(points).kneighbors(queries, 20).indices,
            exact.indices,
        )
        for n in (1, 8, 64)
    ]
    assert 0.05 < shares[0] < shares[1] < shares[2]
    assert shares[2] == 1


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_codes_find_candidates_and_full_distances_rank_them(metric):
    points, queries = drawn(5000, 16), drawn(200, 16, seed=1)
    exact = ExactNeighbors(metric).fit(points).kneighbors(queries, 20)
    index = FaissNeighbors("IVF16,PQ8x4fsr", "nprobe=16", metric=metric).fit(points)
    neighbors = index.kneighbors(queries, 20)
    assert recall(neighbors.indices, exact.indices) > 0.95
    vectors, wide = index.points_, queries.astype(np.float64)
    if metric == "cosine":
        wide = wide / np.linalg.norm(wide, axis=1, keepdims=True)
        expected = 1 - np.einsum("nkm,nm->nk", vectors[neighbors.indices], wide)
    else:
        expected = np.linalg.norm(vectors[neighbors.indices] - wide[:, None], axis=2)
    np.testing.assert_allclose(neighbors.distances, expected, atol=1e-5)
    with memory_budget(2**16):  # in blocks
        again = index.kneighbors(queries, 20)
    np.testing.assert_array_equal(again.indices, neighbors.indices)
    np.testing.assert_array_equal(again.distances, neighbors.distances)
    twins = index.add(points[:10]).kneighbors(points[:10], 2)
    np.testing.assert_array_equal(twins.indices, np.stack([np.arange(10), np.arange(10) + 5000], 1))
    np.testing.assert_allclose(twins.distances, 0, atol=1e-6)


def test_missing_neighbours_are_marked():
    """One of 40 cells has fewer than 300 points."""
    index = FaissNeighbors("IVF40,Flat").fit(drawn(2000, 8))
    neighbors = index.kneighbors(drawn(5, 8, seed=1), 300)
    missing = neighbors.indices < 0
    assert missing.any()
    assert not missing.all()
    assert np.isinf(neighbors.distances[missing]).all()
    assert np.isfinite(neighbors.distances[~missing]).all()
    assert (np.diff(missing.astype(int), axis=1) >= 0).all(), "missing neighbours come last"


def test_adding_and_equal_points():
    points = drawn(30, 4)
    index = FaissNeighbors().fit(points).add(points)
    neighbors = index.kneighbors(points[:6], 2)
    np.testing.assert_array_equal(neighbors.indices, np.stack([np.arange(6), np.arange(6) + 30], 1))


def test_recall_counts():
    assert recall(np.array([[1, 2], [3, 4]]), np.array([[2, 5], [4, 3]])) == 0.75
    assert recall(np.array([[1, -1]]), np.array([[1, 0]])) == 0.5
    assert recall(np.array([[1], [2]]), np.array([[2], [1]])) == 0
    with pytest.raises(InvalidInput, match="shapes"):
        recall(np.zeros((2, 1), int), np.zeros((3, 1), int))


@pytest.mark.parametrize(
    "index", [FaissNeighbors("Nonsense"), FaissNeighbors("IVF4,Flat", "efSearch=3")]
)
def test_what_faiss_refuses_is_said(index):
    with pytest.raises(InvalidInput, match="FAISS cannot build the index"):
        index.fit(drawn(300, 4))


def test_without_faiss_the_install_command_is_named(monkeypatch):
    real = builtins.__import__

    def no_faiss(name, *args, **kwargs):
        if name == "faiss":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_faiss)
    with pytest.raises(MissingExtra, match=r"pip install faiss-cpu"):
        FaissNeighbors().fit(drawn(5, 3))


def test_few_points_are_searched_exactly_and_many_by_lists():
    assert isinstance(recommended_index(200_000, 81), ExactNeighbors)
    assert isinstance(recommended_index(10**6, 1), ExactNeighbors)
    index = recommended_index(200_001, 81, metric="euclidean")
    assert isinstance(index, FaissNeighbors)
    assert index.metric == "euclidean"
    assert recommended_index(10**6, 81).factory == "IVF4096,PQ81x4fsr"
    with pytest.raises(InvalidInput, match="no index for 0 points"):
        recommended_index(0, 81)


def test_the_recommended_index_finds_nearly_all():
    centres = drawn(300, 16)
    points = centres[np.random.default_rng(1).integers(0, 300, 30_000)] + drawn(30_000, 16, 2) / 3
    queries = points[::500] + drawn(60, 16, 3) / 10
    index = recommended_index(200_001, 16).fit(points)
    assert isinstance(index, FaissNeighbors)
    exact = ExactNeighbors().fit(points).kneighbors(queries, 20).indices
    assert recall(index.kneighbors(queries, 20).indices, exact) > 0.97
