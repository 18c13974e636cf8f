"""Where photographs are: neighbours against a plain loop, and files that are no map."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from tagkin.server.mapping import CollectionMap, colour_tags, lay_out, map_path


def put_map(catalogue: Path, n: int = 50) -> np.ndarray:
    embeddings = np.random.default_rng(0).normal(size=(n, 8))
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    arrays: dict[str, np.ndarray] = {
        "contents": np.arange(n) + 100,
        "embeddings": embeddings.astype(np.float16),
        "drawn": np.array([3, 1]),
        "positions": np.array([[0, 1], [1, 0]], np.float32),
        "colours": np.array([0, -1]),
    }
    map_path(catalogue).write_bytes(save(arrays, {"model": "f", "tags": json.dumps(["dog"])}))
    return embeddings


def test_similar_photographs(tmp_path: Path) -> None:
    embeddings = put_map(tmp_path / "one.sqlite")
    similar = CollectionMap(tmp_path / "one.sqlite").similar(107, 5)
    cosines = embeddings @ embeddings[7]
    expected = [i for i in np.argsort(-cosines) if i != 7][:5]
    assert similar == [100 + i for i in expected]
    every = CollectionMap(tmp_path / "one.sqlite").similar(100, 500)
    assert every is not None
    assert len(every) == 49


def test_what_is_drawn(tmp_path: Path) -> None:
    put_map(tmp_path / "one.sqlite")
    collection_map = CollectionMap(tmp_path / "one.sqlite")
    assert collection_map.model == "f"
    tags, places = collection_map.drawn()
    assert tags == ["dog"]
    assert [tuple(place) for place in places] == [(103, [0, 1], 0), (101, [1, 0], -1)]


def test_no_map_yet_or_a_damaged_one(tmp_path: Path) -> None:
    collection_map = CollectionMap(tmp_path / "one.sqlite")
    assert collection_map.model is None
    assert collection_map.drawn() == ([], [])
    assert collection_map.similar(1, 5) is None
    map_path(tmp_path / "one.sqlite").write_bytes(b"no map")
    assert collection_map.drawn() == ([], [])
    put_map(tmp_path / "one.sqlite")
    assert collection_map.similar(1, 5) is None  # a photograph that came later
    assert collection_map.similar(101, 5) is not None


def test_the_legend_folds_case_and_shows_the_most_frequent_spelling():
    tags = [["Beach"], ["beach", "sea"], ["BEACH", "sea"], ["beach"], ["sea"], ["Sea"], ["x"], []]
    # each photograph has the colour of the rarest of its shown tags
    assert colour_tags(tags, 2) == (["beach", "sea"], [0, 1, 1, 0, 1, 1, -1, -1])
    assert colour_tags([["b", "b"], ["a"], ["c", "a"], ["b"]], 2)[0] == ["a", "b"]


def clusters(n_each=25, d=20, seed=0):
    rng = np.random.default_rng(seed)
    middles = 6 * rng.standard_normal((3, d))
    which = np.repeat(np.arange(3), n_each)
    return middles[which] + 0.3 * rng.standard_normal((3 * n_each, d)), which


def test_neighbours_stay_neighbours():
    X, which = clusters()
    positions = lay_out(X)
    assert positions.shape == (75, 2)
    assert (positions.min(), positions.max()) == (0, 1)
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert (which[distance.argmin(axis=1)] == which).all()


def test_the_same_input_gives_the_same_places():
    X, _ = clusters()
    np.testing.assert_array_equal(lay_out(X), lay_out(X))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("d", [1, 2, 60])
def test_few_photographs_are_placed_too(n, d):
    positions = lay_out(np.random.default_rng(0).standard_normal((n, d)))
    assert positions.shape == (n, 2)
    assert np.isfinite(positions).all()


def test_photographs_that_are_all_the_same():
    for X in (np.ones((30, 4)), np.zeros((30, 4))):
        np.testing.assert_array_equal(lay_out(X), np.zeros((30, 2)))


def test_only_directions_count():
    X, _ = clusters(n_each=1)
    longer = X * np.array([[1.0], [2.0], [4.0]])
    np.testing.assert_allclose(lay_out(longer), lay_out(X), atol=1e-6)
