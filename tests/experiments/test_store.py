"""Results are stored whole, found again, and hold no objects."""

import numpy as np
import pytest

from experiments.store import Missing, Store, slug


def test_a_result_is_computed_once(tmp_path):
    store, calls = Store(tmp_path), []

    def compute():
        calls.append(1)
        return {"a": np.arange(3), "words": "κ = 0.5"}

    for _ in range(2):
        result = store.get_or_compute("things", compute, method="NNvot", K=5)
    assert len(calls) == 1
    assert result["a"].tolist() == [0, 1, 2]
    assert str(result["words"]) == "κ = 0.5"
    assert store.path("things", method="NNvot", K=5).name == "method=NNvot,K=5.npz"


def test_what_is_stored_anew_is_found(tmp_path):
    """Also where it was small enough to be kept in memory; nobody can change it there."""
    store = Store(tmp_path)
    for number in (1, 2):
        store.put("things", {"a": np.full(3, number)}, K=1)
        for _ in range(2):
            result = store.get("things", K=1)
            assert result["a"].tolist() == [number] * 3
            with pytest.raises(ValueError, match="read-only"):
                result["a"][0] = 7
            result.clear()


def test_nothing_is_left_of_a_result_that_fails(tmp_path):
    store = Store(tmp_path)

    def fail():
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        store.get_or_compute("things", fail, K=1)
    with pytest.raises(TypeError, match="holds objects"):
        store.put("things", {"a": np.array([None])}, K=1)
    assert not store.has("things", K=1)
    assert list(tmp_path.rglob("*.npz*")) == []


def test_read_only_computes_nothing(tmp_path):
    store = Store(tmp_path)
    store.read_only = True
    with pytest.raises(Missing, match="experiments run"):
        store.get_or_compute("things", lambda: {"a": 1}, K=1)


def test_a_damaged_file_is_named(tmp_path):
    store = Store(tmp_path)
    store.put("things", {"a": 1}, K=1)
    store.path("things", K=1).write_bytes(b"PK nonsense")
    with pytest.raises(SystemExit, match="Remove it and run again"):
        store.get("things", K=1)


def test_names_are_readable_and_distinct():
    assert slug({"kappa": 0.5, "landmarks": 4096}) == "kappa=0.5,landmarks=4096"
    odd = slug({"name": "word vectors"}), slug({"name": "word/vectors"})
    assert odd[0] != odd[1]
    assert all("/" not in name and " " not in name for name in odd)
    long = [slug({"grid": list(range(n))}) for n in (80, 81)]
    assert long[0] != long[1]
    assert max(map(len, long)) < 140
