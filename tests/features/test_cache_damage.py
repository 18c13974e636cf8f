"""A feature cache whose database is damaged, foreign, or of another version."""

import os
import shutil
import warnings

import pytest

from tagkin.features import FeatureCache
from tests.journals import interrupt_transaction, plant_journal

from .cache_samples import D, cached, change, content, database, fill, held, is_sound, keep


def test_a_changed_byte_is_never_a_changed_feature(tmp_path):
    """Every byte of the vectors, and a sample of all others."""
    fill(tmp_path / "cache", range(5))
    whole = database(tmp_path / "cache").read_bytes()
    start = whole.index(content(4)[1].tobytes())
    written = [place for place, byte in enumerate(whole) if byte]
    places = [*range(start, start + 4 * D), *written[::10]]
    n_right = 0
    for place in places:
        folder = tmp_path / str(place)
        folder.mkdir()
        changed = bytes([whole[place] ^ 0x40])
        database(folder).write_bytes(whole[:place] + changed + whole[place + 1 :])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            there = cached(folder, range(5))  # which are right, or the test fails
            n_right += len(there) == 5
            if start <= place < start + 4 * D:
                assert there == {0, 1, 2, 3}
                fill(folder, range(5))  # computed again, and cached
                assert cached(folder, range(5)) == set(range(5))
        shutil.rmtree(folder)
    assert n_right < len(places)


@pytest.mark.parametrize("first", ["read", "write"])
@pytest.mark.parametrize("damage", ["no database", "cut short", "scrambled"])
def test_a_damaged_database_is_set_aside(tmp_path, damage, first):
    fill(tmp_path, range(300))
    whole = database(tmp_path).read_bytes()
    damaged = {
        "no database": b"something else altogether, " * 1000,
        "cut short": whole[: len(whole) // 3],
        "scrambled": whole[:16384] + bytes(reversed(whole[16384:])),
    }[damage]
    database(tmp_path).write_bytes(damaged)
    with FeatureCache(tmp_path) as cache:
        use = {"read": held, "write": keep}[first]
        with pytest.warns(UserWarning, match=r"is damaged .*renamed to features.sqlite.damaged"):
            use(cache, range(10))
        keep(cache, range(10))
        assert held(cache, range(300)) == set(range(10))
    assert (tmp_path / "features.sqlite.damaged").read_bytes()[:1000] == damaged[:1000]
    assert cached(tmp_path, range(300)) == set(range(10))
    assert is_sound(tmp_path)


@pytest.mark.parametrize(
    "statements", [("PRAGMA user_version = 9",), ("PRAGMA user_version = 0", "CREATE TABLE a (b)")]
)
def test_a_database_of_another_program_or_version_is_set_aside(tmp_path, statements):
    fill(tmp_path, range(3))
    change(tmp_path, *statements)
    before = database(tmp_path).read_bytes()
    with FeatureCache(tmp_path) as cache:
        with pytest.warns(UserWarning, match="is of another version of tagkin"):
            assert held(cache, range(3)) == set()
        keep(cache, [4])
    assert cached(tmp_path, range(5)) == {4}
    assert (tmp_path / "features.sqlite.damaged").read_bytes() == before


@pytest.mark.parametrize("value", ["5", "'text'"])
def test_a_value_that_nobody_writes_is_not_read(tmp_path, value):
    path = tmp_path / "a.jpg"
    path.write_bytes(b"one")
    os.utime(path, ns=(10**18, 10**18))
    with FeatureCache(tmp_path) as cache:
        keep(cache, [1])
        cache.remember([str(path)], [path.stat()], ["12" * 32])
    change(tmp_path, f"UPDATE files SET digest = {value}", f"UPDATE vectors SET data = {value}")
    with FeatureCache(tmp_path) as cache:
        assert cache.digests([str(path)], [path.stat()]) == [None]
        assert held(cache, [1]) == set()


def test_a_planted_journal_deletes_nothing(tmp_path):
    """The run goes on without the cache, until the cache is cleared."""
    folder = tmp_path / "cache"
    fill(folder, range(5))
    victim = plant_journal(database(folder), tmp_path)
    cache = FeatureCache(folder)
    with pytest.warns(UserWarning, match="-journal names another file"):
        keep(cache, range(5, 8))
    assert held(cache, range(8)) == set()
    assert victim.exists()
    cache.clear()
    assert victim.exists()
    assert not list(folder.iterdir())
    fill(folder, range(5))
    assert cached(folder, range(5)) == set(range(5))


def test_the_journal_of_a_killed_run_is_rolled_back(tmp_path):
    """Of a cache where the file system has no logs."""
    folder = tmp_path / "cache"
    fill(folder, range(500))
    interrupt_transaction(database(folder), "UPDATE vectors SET data = zeroblob(28)")
    assert cached(folder, range(500)) == set(range(500))
