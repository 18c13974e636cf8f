"""How large a feature cache is, and how it is kept small."""

import os
from functools import partial

import numpy as np
import pytest

from tagkin.errors import InvalidInput, StorageError
from tagkin.features import FeatureCache

from .cache_samples import NUMBERS, D, Numbers, content, database, held, is_sound, keep


def test_info_counts_by_backbone(tmp_path):
    with FeatureCache(tmp_path / "none") as cache:
        info = cache.info()
        assert (info.n_entries, info.n_bytes, info.backbones) == (0, 0, ())
        assert not (tmp_path / "none").exists()
    wide = Numbers("wide", 3)
    with FeatureCache(tmp_path, max_bytes=10**7) as cache:
        keep(cache, range(4))
        cache.store(wide, [content(i)[0] for i in range(9)], np.zeros((9, 3), np.float32))
        info = cache.info()
        uses = [
            (b.name, b.fingerprint, b.dimension, b.n_entries, b.n_bytes) for b in info.backbones
        ]
        assert uses == [
            ("wide", wide.fingerprint, 3, 9, 9 * 12),
            ("numbers", NUMBERS.fingerprint, D, 4, 4 * 4 * D),
        ]
        assert (info.folder, info.n_entries, info.max_bytes) == (tmp_path, 13, 10**7)
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


def test_the_least_recently_used_are_pruned_first(tmp_path):
    with FeatureCache(tmp_path) as cache:
        keep_large(cache, range(100))
        keep_large(cache, range(100, 200))
        cache.remember(["a.jpg"], [os.stat(__file__)], [content(150)[0]])
        cache.remember(["b.jpg"], [os.stat(__file__)], [content(60)[0]])
    with FeatureCache(tmp_path) as cache:
        before = cache.info().n_bytes
        would = cache.prune(700_000, dry_run=True)
        assert held_large(cache, range(200)) == set(range(200))
    with FeatureCache(tmp_path) as cache:
        held_large(cache, range(200))
    with FeatureCache(tmp_path) as cache:
        held_large(cache, [*range(50), 150])
        done = cache.prune(700_000)
        assert abs(done.n_entries - would.n_entries) <= 5
        assert 110 < done.n_entries < 150
        assert cache.info().n_bytes <= 700_000 < before
        left = held_large(cache, range(200))
        assert left >= {*range(50), 150}
        assert len(left) == 200 - done.n_entries
        assert max(set(range(50, 200)) - left) < min(left - {*range(50), 150})
        statuses = [os.stat(__file__)] * 2
        assert cache.digests(["a.jpg", "b.jpg"], statuses) == [content(150)[0], None]
        assert cache.prune(700_000).n_entries == 0
        assert cache.prune().n_entries == 0  # the limit is far
        assert cache.prune(0).n_entries == len(left)
        assert cache.info().backbones == ()
    assert is_sound(tmp_path)


def test_the_size_limit_holds_while_photographs_come_in(tmp_path):
    with FeatureCache(tmp_path, max_bytes=600_000) as cache:
        for start in range(0, 400, 4):
            keep_large(cache, range(start, start + 4))
            assert held_large(cache, range(4)) == set(range(4))  # used all the time
        left = held_large(cache, range(400))
        assert 40 < len(left) < 75
        assert left >= {*range(4), *range(396, 400)}
    assert cache.info().n_bytes <= 600_000
    cache.close()
    with FeatureCache(tmp_path, max_bytes=None) as unlimited:
        keep_large(unlimited, range(400))
        assert held_large(unlimited, range(400)) == set(range(400))
        assert unlimited.prune().n_entries == 0


@pytest.mark.parametrize("limit", [-1, 1.5, True, "10 GB"])
def test_a_limit_is_a_whole_number(tmp_path, limit):
    for use in (partial(FeatureCache, tmp_path), FeatureCache(tmp_path).prune):
        with pytest.raises(InvalidInput, match="max_bytes must be a whole number"):
            use(max_bytes=limit)


def test_clear_removes_everything_while_others_go_on(tmp_path):
    with FeatureCache(tmp_path) as other, FeatureCache(tmp_path) as cache:
        keep(other, range(500))
        would = cache.clear(dry_run=True)
        assert held(cache, range(500)) == set(range(500))
        assert cache.clear() == would
        assert would.n_entries == 500
        assert held(other, range(500)) == set()
        keep(other, [3])
        assert held(cache, range(500)) == {3}
    assert FeatureCache(tmp_path / "none").clear().n_entries == 0


def test_clear_removes_what_is_damaged(tmp_path):
    database(tmp_path).write_bytes(b"no database" * 1000)
    (tmp_path / "features.sqlite.damaged").write_bytes(bytes(500))
    cache = FeatureCache(tmp_path)
    with pytest.raises(StorageError, match=r"cannot be read: .*`tagkin cache --max-size 0`"):
        cache.info()
    assert cache.clear(dry_run=True).n_bytes == 11_500
    assert cache.clear().n_bytes == 11_500
    assert list(tmp_path.iterdir()) == []
