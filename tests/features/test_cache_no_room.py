"""A feature cache in a folder that cannot be written, or only in part."""

import json
import os
import sqlite3
import warnings

import pytest

from tagkin.errors import InvalidInput, StorageError
from tagkin.features import FeatureCache
from tests.forking import in_child, needs_fork
from tests.privileges import without_privileges

from .cache_samples import cached, change, content, database, fill, held, is_sound, keep


def limited(work, n_bytes):
    """What work returns in a process in which no file may grow beyond so many bytes."""
    import resource

    reading, writing = os.pipe()

    def limited_work():
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
        os.write(writing, json.dumps(work()).encode())

    child = in_child(limited_work)
    os.close(writing)
    with open(reading) as pipe:
        output = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return json.loads(output)


needs_limits = needs_fork  # where limits on files are, too


@needs_limits
def test_a_full_disk_costs_one_warning_and_nothing_else(tmp_path):
    """The disk is full after some kilobytes: no file may grow larger than that."""
    fill(tmp_path, range(2))

    def work():
        with FeatureCache(tmp_path) as cache, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for i in range(2, 60):
                keep(cache, [i])
            there = held(cache, range(60))
        return sorted(there), [str(warning.message) for warning in caught]

    there, warned = limited(work, 400_000)
    assert there == list(range(len(there)))
    assert 2 <= len(there) < 60
    (sentence,) = warned
    assert f"Features cannot be kept in {tmp_path}: " in sentence
    assert cached(tmp_path, range(60)) == set(there)
    assert is_sound(tmp_path)
    fill(tmp_path, range(60))
    assert cached(tmp_path, range(60)) == set(range(60))


@needs_limits
@pytest.mark.parametrize("room", [0, 40_000])
def test_a_full_disk_can_be_cleared(tmp_path, room):
    fill(tmp_path, range(100))

    def work():
        with FeatureCache(tmp_path) as cache:
            cache.clear()
            return cache.info().n_entries

    assert limited(work, room) == 0
    assert cached(tmp_path, range(100)) == set()


def test_a_folder_that_may_only_be_read_is_still_used(open_folder):
    fill(open_folder, range(5))
    database(open_folder).chmod(0o444)
    open_folder.chmod(0o555)
    with (
        without_privileges(),
        FeatureCache(open_folder) as cache,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        assert held(cache, range(9)) == set(range(5))
        keep(cache, [6])
        keep(cache, [7])
        assert held(cache, range(9)) == set(range(5))
        assert cache.info().n_entries == 5
        with pytest.raises(StorageError, match="cannot be written: Permission denied"):
            cache.clear()
    (warning,) = caught
    assert "attempt to write a readonly database. This run continues" in str(warning.message)
    open_folder.chmod(0o755)
    assert cached(open_folder, range(9)) == set(range(5))


def test_a_folder_that_cannot_be_made_costs_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    blocked = FeatureCache(tmp_path / "file" / "cache")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(3):
            keep(blocked, [i])
            blocked.remember(["a.jpg"], [os.stat(__file__)], [content(i)[0]])
            assert held(blocked, [i]) == set()
    assert ["cannot be kept in" in str(warning.message) for warning in caught] == [True]
    with pytest.raises(InvalidInput, match="is a file; a feature cache is a folder"):
        FeatureCache(tmp_path / "file")


def test_a_rollback_journal_serves_where_there_is_no_log(tmp_path):
    """As on a file system without shared memory; whoever has it open keeps it from switching."""
    fill(tmp_path, range(3))
    change(tmp_path, "PRAGMA journal_mode = DELETE")
    other = sqlite3.connect(database(tmp_path))
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM vectors").fetchone()
    with FeatureCache(tmp_path) as cache:
        assert held(cache, range(5)) == {0, 1, 2}
        other.close()
        keep(cache, [3])
        assert held(cache, range(5)) == {0, 1, 2, 3}
        assert not (tmp_path / "features.sqlite-wal").exists()
