"""How large a feature cache is, and how it is kept small."""

import numpy as np
import pytest

from tagkin.errors import StorageError
from tagkin.features import FeatureCache
from tagkin.features import cache as cache_module

from .cache_samples import Numbers, content, database, held, is_sound, keep


def test_info_counts_vectors_and_bytes(tmp_path):
    with FeatureCache(tmp_path / "none") as cache:
        info = cache.info()
        assert (info.n_entries, info.n_bytes) == (0, 0)
        assert not (tmp_path / "none").exists()
    with FeatureCache(tmp_path) as cache:
        keep(cache, range(4))
        keep(cache, range(9), Numbers("other"))
        info = cache.info()
        assert (info.folder, info.n_entries) == (tmp_path, 13)
        assert info.n_bytes >= database(tmp_path).stat().st_size


LARGE = Numbers("large", 2000)  # 8,000 bytes each


def keep_large(cache, numbers):
    digests = [content(i)[0] for i in numbers]
    cache.store(LARGE, digests, np.stack([np.full(2000, i, np.float32) for i in numbers]))


def held_large(cache, numbers):
    numbers = list(numbers)
    out = np.zeros((len(numbers), 2000), np.float32)
    hits = cache.load(LARGE, [content(i)[0] for i in numbers], out)
    np.testing.assert_array_equal(out[hits], out[hits][:, :1] + np.zeros(2000))
    return {i for i, there in zip(numbers, hits, strict=True) if there}


def test_beyond_the_limit_the_oldest_features_go(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_module, "MAX_BYTES", 600_000)
    with FeatureCache(tmp_path) as cache:
        for start in range(0, 400, 4):
            keep_large(cache, range(start, start + 4))
        left = held_large(cache, range(400))
        assert left == {*range(min(left), 400)}
        assert 40 < len(left) < 75
    assert cache.info().n_bytes < 10**6
    assert is_sound(tmp_path)


def test_clear_removes_everything_while_others_go_on(tmp_path):
    with FeatureCache(tmp_path) as other, FeatureCache(tmp_path) as cache:
        keep(other, range(500))
        before = cache.info().n_bytes
        cache.clear()
        assert held(other, range(500)) == set()
        assert cache.info().n_bytes < before / 2
        keep(other, [3])
        assert held(cache, range(500)) == {3}
    FeatureCache(tmp_path / "none").clear()
    assert not (tmp_path / "none").exists()


def test_clear_removes_what_is_damaged(tmp_path):
    database(tmp_path).write_bytes(b"no database" * 1000)
    (tmp_path / "features.sqlite.damaged").write_bytes(bytes(500))
    cache = FeatureCache(tmp_path)
    with pytest.raises(StorageError, match=r"cannot be read: .*`tagkin cache --clear`"):
        cache.info()
    cache.clear()
    assert list(tmp_path.iterdir()) == []
