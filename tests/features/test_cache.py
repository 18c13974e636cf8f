"""The cache: what is kept comes back exactly, or not at all, whatever happens to its file."""

import copy
import os
import pickle
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tagkin.features import FeatureCache, default_cache_folder

from .cache_samples import NUMBERS, D, Numbers, content, database, fill, held, keep


def test_what_is_kept_comes_back(tmp_path):
    other = Numbers("other")
    with FeatureCache(tmp_path / "a" / "cache") as cache:
        assert held(cache, range(3)) == set()
        assert not (tmp_path / "a").exists()  # nothing to keep, nothing made
        keep(cache, range(20))
        assert held(cache, range(25)) == set(range(20))  # at once
        keep(cache, range(15, 1500))
        assert held(cache, range(1600)) == set(range(1500))
        assert held(cache, range(3), other) == set()
        keep(cache, [1], other)
    with FeatureCache(tmp_path / "a" / "cache") as cache:
        assert held(cache, range(1600)) == set(range(1500))
        assert held(cache, range(3), other) == {1}
    cache.close()  # twice is once
    assert held(cache, [7]) == {7}  # and it opens again
    cache.close()


def test_copies_and_unknown_contents(tmp_path):
    with FeatureCache(tmp_path) as cache:
        keep(cache, [5])
        out = np.zeros((4, D), dtype=np.float32)
        hits = cache.load(NUMBERS, [content(5)[0], None, content(6)[0], content(5)[0]], out)
        assert hits.tolist() == [True, False, False, True]
        np.testing.assert_array_equal(out[[0, 3]], np.stack([content(5)[1]] * 2))
        assert not out[1:3].any()
        assert cache.load(NUMBERS, [], out[:0]).shape == (0,)


def test_no_name_is_in_the_file(tmp_path):
    path = tmp_path / "holiday.jpg"
    path.write_bytes(b"x")
    os.utime(path, ns=(10**18, 10**18))
    with FeatureCache(tmp_path / "cache") as cache:
        cache.remember([str(path)], [path.stat()], [content(1)[0]])
        keep(cache, [1], Numbers(f"{tmp_path}/weights.onnx"))
    data = b"".join(file.read_bytes() for file in (tmp_path / "cache").iterdir())
    assert b"holiday" not in data
    assert b"weights.onnx" not in data
    assert os.fsencode(tmp_path.name) not in data


def test_a_cache_can_be_copied_and_pickled(tmp_path):
    cache = FeatureCache(tmp_path)
    keep(cache, [1])
    twin = pickle.loads(pickle.dumps(copy.deepcopy(cache)))
    assert held(twin, [1]) == {1}
    assert repr(twin) == repr(cache) == f"FeatureCache('{tmp_path}')"
    assert copy.copy(FeatureCache(tmp_path, read_only=True)).read_only
    cache.close()
    twin.close()


def test_a_cache_that_is_only_read_stores_nothing(tmp_path):
    fill(tmp_path, range(3))
    before = database(tmp_path).read_bytes()
    with FeatureCache(tmp_path, read_only=True) as cache:
        keep(cache, [3])
        cache.remember(["a.jpg"], [os.stat(__file__)], [content(1)[0]])
        assert held(cache, range(4)) == {0, 1, 2}
    assert database(tmp_path).read_bytes() == before


# --- contents by file ---


def test_the_content_of_a_file_is_known_until_it_changes(tmp_path):
    path, other = tmp_path / "a.jpg", str(tmp_path / "b.jpg")
    path.write_bytes(b"one")
    digest = "12" * 32

    def known(cache, file=str(path)):
        return cache.digests([file, file], [path.stat(), None])[0]

    with FeatureCache(tmp_path / "cache") as first:
        soon = time.time_ns() + 10**12  # a clock that is behind
        os.utime(path, ns=(soon, soon))
        first.remember([str(path)], [path.stat()], [digest])
        assert known(first) is None  # changed a moment ago
        os.utime(path, ns=(10**18, 10**18))
        first.remember([str(path)], [path.stat()], [digest])
        assert known(first) == digest
    with FeatureCache(tmp_path / "cache") as second:
        assert known(second) == digest
        assert known(second, os.path.join(tmp_path, "x", "..", "a.jpg")) == digest
        assert known(second, other) is None
        os.utime(path, ns=(10**18, 10**18 + 1))
        assert known(second) is None
        path.write_bytes(b"more")
        os.utime(path, ns=(10**18, 10**18))
        assert known(second) is None


def test_where_features_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("TAGKIN_CACHE", str(tmp_path))
    assert default_cache_folder() == tmp_path
    monkeypatch.delenv("TAGKIN_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_cache_folder().is_relative_to(Path.home())
    if sys.platform != "win32":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
        assert default_cache_folder() == tmp_path / "x" / "tagkin"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_the_cache_is_for_its_user_alone(tmp_path):
    before = os.umask(0o000)
    try:
        with FeatureCache(tmp_path / "a" / "cache") as cache:
            keep(cache, range(3))
            modes = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "a").rglob("*")}
    finally:
        os.umask(before)
    folder = tmp_path / "a" / "cache"
    assert folder / "features.sqlite" in modes
    assert all(mode == (0o700 if path == folder else 0o600) for path, mode in modes.items())
    assert folder.parent.stat().st_mode & 0o777 == 0o700
