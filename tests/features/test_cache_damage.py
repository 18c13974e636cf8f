"""A feature cache whose database is damaged, foreign, or of another version."""

import os
import shutil
import warnings

import pytest

from tagkin.errors import StorageError
from tagkin.features import FeatureCache

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
    ("statements", "sentence"),
    [
        (("PRAGMA user_version = 9",), "schema 9, of a newer tagkin; this version reads schema 1"),
        (("PRAGMA application_id = 9",), "is a database of another program"),
    ],
)
def test_a_database_that_is_not_ours_is_left_as_it_is(tmp_path, statements, sentence):
    fill(tmp_path, range(3))
    change(tmp_path, *statements)
    before = database(tmp_path).read_bytes()
    with FeatureCache(tmp_path) as cache, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert held(cache, range(3)) == set()
        keep(cache, [4])
        keep(cache, [5])
        cache.remember(["a.jpg"], [os.stat(__file__)], [content(1)[0]])
    (warning,) = caught
    assert sentence in str(warning.message)
    assert "continues without" in str(warning.message)
    for ask in (FeatureCache(tmp_path).info, FeatureCache(tmp_path).clear):
        with pytest.raises(StorageError, match=sentence):
            ask()
    assert database(tmp_path).read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE clock SET uses = 'text'",
        "UPDATE clock SET uses = 9223372036854775807",
        "DELETE FROM clock",
    ],
)
def test_values_that_nobody_writes_are_damage(tmp_path, statement):
    with FeatureCache(tmp_path) as cache:
        keep(cache, [1])
    change(tmp_path, statement)
    with (
        pytest.warns(UserWarning, match="is damaged"),
        FeatureCache(tmp_path) as cache,
    ):
        keep(cache, [2])
    with FeatureCache(tmp_path) as cache:
        assert held(cache, [1, 2]) == {2}


@pytest.mark.parametrize("digest", ["5", "'text'"])
def test_a_digest_that_is_none_is_damage(tmp_path, digest):
    path = tmp_path / "a.jpg"
    path.write_bytes(b"one")
    os.utime(path, ns=(10**18, 10**18))
    with FeatureCache(tmp_path) as cache:
        cache.remember([str(path)], [path.stat()], ["12" * 32])
    change(tmp_path, f"UPDATE files SET digest = {digest}")
    with (
        pytest.warns(UserWarning, match="is damaged"),
        FeatureCache(tmp_path) as cache,
    ):
        assert cache.digests([str(path)], [path.stat()]) == [None]
