"""The cache: what is kept comes back exactly, or not at all, whatever happens to its file."""

import copy
import functools
import json
import os
import shutil
import signal
import sqlite3
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from tagkin.errors import InvalidInput, StorageError
from tagkin.features import Backbone, FeatureCache, default_cache_folder
from tagkin.features.base import fingerprint_of
from tests.forking import in_child, needs_fork
from tests.privileges import without_privileges

D = 7


class Numbers(Backbone):
    """A backbone that a cache can keep features of; it is never called."""

    def __init__(self, name="numbers", dimension=D):
        self.name, self.dimension, self.fingerprint = name, dimension, fingerprint_of(name)

    def __call__(self, batch):
        raise NotImplementedError


NUMBERS = Numbers()


@functools.cache  # the killed processes have little time
def content(i):
    """A synthetic content's digest and its features, which follow from its number."""
    return f"{i:064x}", np.random.default_rng(i).standard_normal(D).astype(np.float32)


def keep(cache, numbers, backbone=NUMBERS):
    digests, rows = zip(*map(content, numbers), strict=True)
    cache.store(backbone, digests, np.stack(rows))


def held(cache, numbers, backbone=NUMBERS):
    """Which of these contents a cache has; every one it has must be right."""
    numbers = list(numbers)
    out = np.full((len(numbers), D), np.nan, dtype=np.float32)
    found = cache.load(backbone, [content(i)[0] for i in numbers], out)
    for i, there, row in zip(numbers, found, out, strict=True):
        np.testing.assert_array_equal(row, content(i)[1] if there else np.full(D, np.nan))
    return {i for i, there in zip(numbers, found, strict=True) if there}


def fill(folder, numbers):
    with FeatureCache(folder) as cache:
        for i in numbers:
            keep(cache, [i])


def kept(folder, numbers):
    with FeatureCache(folder) as fresh:
        return held(fresh, numbers)


def database(folder):
    return folder / "features.sqlite"


def is_sound(folder):
    connection = sqlite3.connect(database(folder))
    try:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


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
        found = cache.load(NUMBERS, [content(5)[0], None, content(6)[0], content(5)[0]], out)
        assert found.tolist() == [True, False, False, True]
        np.testing.assert_array_equal(out[[0, 3]], np.stack([content(5)[1]] * 2))
        assert not out[1:3].any()
        assert cache.load(NUMBERS, [], out[:0]).shape == (0,)


def test_no_name_is_in_the_file(tmp_path):
    path = tmp_path / "holiday.jpg"
    path.write_bytes(b"x")
    os.utime(path, ns=(10**18, 10**18))
    with FeatureCache(tmp_path / "cache") as cache:
        cache.remember([str(path)], [path.stat()], [content(1)[0]])
        keep(cache, [1], Numbers(f"vgg16:{tmp_path}/weights.pth"))
        assert cache.info().backbones[0].name == "vgg16:weights.pth"
    data = b"".join(file.read_bytes() for file in (tmp_path / "cache").iterdir())
    assert b"weights.pth" in data
    assert b"holiday" not in data
    assert os.fsencode(tmp_path.name) not in data


def test_caches_of_one_folder_are_equal_and_can_be_copied(tmp_path):
    cache = FeatureCache(tmp_path, max_bytes=10**6)
    keep(cache, [1])
    twin = copy.deepcopy(cache)
    assert twin == cache == FeatureCache(str(tmp_path), max_bytes=10**6)
    assert hash(twin) == hash(cache)
    assert cache != FeatureCache(tmp_path)
    assert cache != str(tmp_path)
    assert held(twin, [1]) == {1}
    assert repr(cache) == f"FeatureCache('{tmp_path}', max_bytes=1000000)"
    cache.close()
    twin.close()


# --- killed, and many at once ---


def write_until_killed(folder, n, mark, pipe):
    """Keep some of what is missing of n contents; note in a file and tell what is kept for sure."""
    with FeatureCache(folder) as cache, open(mark, "ab", buffering=0) as done:
        missing = sorted(set(range(n)) - held(cache, range(n)))
        for i in missing[: n // 4]:
            keep(cache, [i])
            done.write(i.to_bytes(2, "little"))
            os.write(pipe, b".")
        os.close(pipe)
        signal.pause()  # however late the kill comes, some is left for the next round


@needs_fork
def test_killed_at_random_moments_it_loses_only_what_was_being_stored(tmp_path, lean):
    """24 times two processes write the same contents and are killed."""
    lean(kill_at_random, tmp_path)


def kill_at_random(tmp_path):
    n, rng = 400, np.random.default_rng(0)
    folder, mark = tmp_path / "cache", tmp_path / "mark"
    for k in range(24):
        reading, writing = os.pipe()
        work = functools.partial(write_until_killed, folder, n, mark, writing)
        children = [in_child(work) for _ in range(2)]
        os.close(writing)
        for _ in range(rng.integers(0, 12)):  # that many are kept, others are being stored
            os.read(reading, 1)
        os.close(reading)
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        sure = set(np.frombuffer(mark.read_bytes(), "<u2").tolist()) if mark.exists() else set()
        assert kept(folder, range(n)) >= sure, k
        if database(folder).exists():
            assert is_sound(folder)
        if len(sure) == n:  # begin again
            shutil.rmtree(folder)
            mark.unlink()
    fill(folder, range(n))
    assert kept(folder, range(n)) == set(range(n))


@needs_fork
def test_four_processes_write_the_same_and_different_contents_at_once(tmp_path):
    def work(k):
        with FeatureCache(tmp_path) as cache:
            for i in range(60):
                keep(cache, [i])
                keep(cache, [1000 * (k + 1) + i])
                assert held(cache, [i]) == {i}

    children = [in_child(functools.partial(work, k)) for k in range(4)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    everything = {*range(60), *(1000 * (k + 1) + i for k in range(4) for i in range(60))}
    assert kept(tmp_path, range(5000)) == everything
    assert is_sound(tmp_path)


@needs_fork
def test_a_fork_opens_the_database_for_itself(tmp_path):
    with FeatureCache(tmp_path) as cache:
        keep(cache, [0])

        def work():
            for i in range(2, 200, 2):
                keep(cache, [i])
            cache.close()

        child = in_child(work)
        for i in range(1, 200, 2):
            keep(cache, [i])
        assert os.waitpid(child, 0)[1] == 0
        assert held(cache, range(200)) == set(range(200))
    assert is_sound(tmp_path)


def test_threads_share_a_cache(tmp_path):
    with FeatureCache(tmp_path) as cache:

        def work(k):
            for i in range(k, 200, 5):
                keep(cache, [i])
                held(cache, [i])

        threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert held(cache, range(200)) == set(range(200))


# --- a database that is damaged, foreign, or of another version ---


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
            there = kept(folder, range(5))  # which are right, or the test fails
            n_right += len(there) == 5
            if start <= place < start + 4 * D:
                assert there == {0, 1, 2, 3}
                fill(folder, range(5))  # computed again, and kept
                assert kept(folder, range(5)) == set(range(5))
        shutil.rmtree(folder)
    assert n_right < len(places)


@pytest.mark.parametrize("first", ["read", "write"])
@pytest.mark.parametrize("how", ["no database", "cut short", "scrambled"])
def test_a_damaged_database_is_set_aside(tmp_path, how, first):
    fill(tmp_path, range(300))
    whole = database(tmp_path).read_bytes()
    damaged = {
        "no database": b"something else altogether, " * 1000,
        "cut short": whole[: len(whole) // 3],
        "scrambled": whole[:16384] + bytes(reversed(whole[16384:])),
    }[how]
    database(tmp_path).write_bytes(damaged)
    with FeatureCache(tmp_path) as cache:
        use = {"read": held, "write": keep}[first]
        with pytest.warns(UserWarning, match=r"is damaged .*set aside as features.sqlite.damaged"):
            use(cache, range(10))
        keep(cache, range(10))
        assert held(cache, range(300)) == set(range(10))
    assert (tmp_path / "features.sqlite.damaged").read_bytes()[:1000] == damaged[:1000]
    assert kept(tmp_path, range(300)) == set(range(10))
    assert is_sound(tmp_path)


def change(folder, *statements):
    connection = sqlite3.connect(database(folder))
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("statements", "sentence"),
    [
        (("PRAGMA user_version = 9",), "schema 9, of a newer tagkin; this one reads schema 1"),
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
    assert "The run goes on without" in str(warning.message)
    for ask in (FeatureCache(tmp_path).info, FeatureCache(tmp_path).clear):
        with pytest.raises(StorageError, match=sentence):
            ask()
    assert database(tmp_path).read_bytes() == before


def test_a_cache_of_the_first_version_is_told_and_cleared(tmp_path):
    old = tmp_path / "features" / "abc"
    for file in (old / "1.ledger", old / "1.7.float32", tmp_path / "contents" / "2.ledger"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(100))
    (tmp_path / "features" / "mine.txt").write_text("mine")
    with pytest.warns(UserWarning, match=r"older version of tagkin .* `tagkin cache clear`"):
        fill(tmp_path, [1])
    fill(tmp_path, [2])  # once is enough
    with FeatureCache(tmp_path) as cache:
        assert held(cache, range(3)) == {1, 2}
        assert cache.clear().n_entries == 2
        assert held(cache, range(3)) == set()
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {"features", os.path.join("features", "mine.txt"), "features.sqlite"}


# --- a folder that cannot be written ---


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
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return json.loads(said)


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
        return sorted(there), [str(one.message) for one in caught]

    there, warned = limited(work, 400_000)
    assert there == list(range(len(there)))
    assert 2 <= len(there) < 60
    (sentence,) = warned
    assert f"Features cannot be kept in {tmp_path}: " in sentence
    assert kept(tmp_path, range(60)) == set(there)
    assert is_sound(tmp_path)
    fill(tmp_path, range(60))
    assert kept(tmp_path, range(60)) == set(range(60))


@needs_limits
@pytest.mark.parametrize("room", [0, 40_000])
def test_a_full_disk_can_be_cleared(tmp_path, room):
    fill(tmp_path, range(100))

    def work():
        with FeatureCache(tmp_path) as cache:
            with pytest.raises(StorageError) as found:
                cache.prune(1000)
            size = sum(path.stat().st_size for path in tmp_path.iterdir())
            return str(found.value), size, cache.clear().n_bytes

    said, size, cleared = limited(work, room)
    assert "cannot be written" in said
    assert not room or "`tagkin cache clear` removes what is there" in said
    assert 0 < cleared <= size
    assert list(tmp_path.iterdir()) == []


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
        with pytest.raises(StorageError, match="cannot be written: attempt to write a readonly"):
            cache.prune(0)
        with pytest.raises(StorageError, match="cannot be written: Permission denied"):
            cache.clear()
    (warning,) = caught
    assert "attempt to write a readonly database. The run goes on" in str(warning.message)
    open_folder.chmod(0o755)
    assert kept(open_folder, range(9)) == set(range(5))


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
    with pytest.raises(InvalidInput, match="is a file; a cache of features is a folder"):
        FeatureCache(tmp_path / "file")


def test_a_rollback_journal_serves_where_there_is_no_log(tmp_path):
    """As on a file system without shared memory; whoever has it open keeps it from switching."""
    fill(tmp_path, range(3))
    change(tmp_path, "PRAGMA journal_mode = DELETE")
    other = sqlite3.connect(database(tmp_path))
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM entries").fetchone()
    with FeatureCache(tmp_path) as cache:
        assert held(cache, range(5)) == {0, 1, 2}
        other.close()
        keep(cache, [3])
        assert held(cache, range(5)) == {0, 1, 2, 3}
        assert not (tmp_path / "features.sqlite-wal").exists()


# --- size ---


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
    found = cache.load(LARGE, [content(i)[0] for i in numbers], out)
    np.testing.assert_array_equal(out[found], out[found][:, :1] + np.zeros(2000))
    return {i for i, there in zip(numbers, found, strict=True) if there}


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
    with pytest.raises(InvalidInput, match="max_bytes is a whole number"):
        FeatureCache(tmp_path, max_bytes=limit)
    with pytest.raises(InvalidInput, match="max_bytes is a whole number"):
        FeatureCache(tmp_path).prune(limit)


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
    with pytest.raises(StorageError, match=r"cannot be read: .*`tagkin cache clear`"):
        cache.info()
    assert cache.clear(dry_run=True).n_bytes == 11_500
    assert cache.clear().n_bytes == 11_500
    assert list(tmp_path.iterdir()) == []


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
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert default_cache_folder() == tmp_path / "x" / "tagkin"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache_folder() == Path.home() / ".cache" / "tagkin"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_cache_folder() == Path.home() / "Library" / "Caches" / "tagkin"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert default_cache_folder() == tmp_path / "tagkin"
