"""The cache: what is kept comes back exactly, or not at all, whatever happens to its files."""

import errno
import functools
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from tagkin.errors import InvalidInput
from tagkin.features import FeatureCache, cache, default_cache_folder

D = 7
PRINT = "ab" * 32


@functools.cache  # the killed processes have little time
def content(i):
    """A made content's digest and its features, which follow from its number."""
    return f"{i:064x}", np.random.default_rng(i).standard_normal(D).astype(np.float32)


def kept(folder, numbers):
    """Which of these contents a fresh cache has; every one it has must be right."""
    with FeatureCache(folder) as fresh:
        shelf = fresh.shelf(PRINT, D)
        out = np.full((len(numbers), D), np.nan, dtype=np.float32)
        found = shelf.fill([content(i)[0] for i in numbers], out)
        for i, there, row in zip(numbers, found, out, strict=True):
            single = shelf.get(content(i)[0])
            assert (single is not None) == there
            if there:
                np.testing.assert_array_equal(row, content(i)[1])
                np.testing.assert_array_equal(single, row)
        return {i for i, there in zip(numbers, found, strict=True) if there}


def keep(folder, numbers):
    with FeatureCache(folder) as writer:
        for i in numbers:
            digest, row = content(i)
            writer.shelf(PRINT, D).add([digest], row[None])


def files_of(folder, suffix):
    return sorted((folder / "features" / PRINT).glob(f"*{suffix}"))


def test_what_is_kept_comes_back(tmp_path):
    digests, rows = zip(*map(content, range(50)), strict=True)
    with FeatureCache(tmp_path) as writer:
        shelf = writer.shelf(PRINT, D)
        shelf.add(digests[:20], np.stack(rows[:20]))
        assert digests[3] in shelf
        assert digests[30] not in shelf
        np.testing.assert_array_equal(shelf.get(digests[3]), rows[3])  # at once
        shelf.add(digests[20:], np.stack(rows[20:]))
        assert len(shelf) == 50
    assert kept(tmp_path, range(60)) == set(range(50))
    with FeatureCache(tmp_path) as other:
        assert other.shelf("cd" * 32, D).get(digests[0]) is None


def test_one_file_is_continued_and_writers_at_once_have_their_own(tmp_path):
    keep(tmp_path, range(3))
    keep(tmp_path, range(3, 6))
    assert len(files_of(tmp_path, ".ledger")) == 1
    with FeatureCache(tmp_path) as one, FeatureCache(tmp_path) as two:
        for i, writer in enumerate([one, two, one, two], start=6):
            digest, row = content(i)
            writer.shelf(PRINT, D).add([digest], row[None])
    assert len(files_of(tmp_path, ".ledger")) == 2
    assert kept(tmp_path, range(12)) == set(range(10))


@pytest.mark.parametrize("suffix", [".ledger", ".float32"])
def test_a_file_cut_short_at_any_byte_of_the_last_records(tmp_path, suffix):
    keep(tmp_path, range(4))
    (path,) = files_of(tmp_path, suffix)
    before = {file: file.read_bytes() for file in files_of(tmp_path, "")}
    whole = before[path]
    record = 40 if suffix == ".ledger" else 4 * D
    start = len(whole) % record
    for end in range(len(whole) - 2 * record, len(whole) + 1):
        for file, data in before.items():
            file.write_bytes(data if file != path else whole[:end])
        there = set(range((end - start) // record))
        assert kept(tmp_path, range(6)) == there
        keep(tmp_path, [5])  # goes on after what is whole
        assert kept(tmp_path, range(6)) == there | {5}
        assert len(files_of(tmp_path, ".ledger")) == 1


def test_a_header_cut_short_at_any_byte(tmp_path):
    keep(tmp_path, [0])
    (ledger,) = files_of(tmp_path, ".ledger")
    whole = ledger.read_bytes()
    for end in range(len(whole) - 40 + 1):
        ledger.write_bytes(whole[:end])
        assert kept(tmp_path, [0]) == set()
        keep(tmp_path, [1])
        assert kept(tmp_path, range(3)) == {1}


@pytest.mark.parametrize("suffix", [".ledger", ".float32"])
def test_a_changed_byte_costs_its_record_only(tmp_path, suffix):
    keep(tmp_path, range(5))
    (path,) = files_of(tmp_path, suffix)
    whole = path.read_bytes()
    record = 40 if suffix == ".ledger" else 4 * D
    start = len(whole) % record
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
        hurt = {(place - start) // record} if place >= start else set(range(5))
        assert kept(tmp_path, range(5)) == set(range(5)) - hurt


def test_foreign_and_missing_files_do_no_harm(tmp_path):
    keep(tmp_path, range(3))
    folder = files_of(tmp_path, ".ledger")[0].parent
    (folder / "0.ledger").write_bytes(b"something else altogether, long enough for a header")
    files_of(tmp_path, ".float32")[0].unlink()
    assert kept(tmp_path, range(3)) == set()
    keep(tmp_path, range(3))
    assert kept(tmp_path, range(3)) == {0, 1, 2}
    assert (folder / "0.ledger").read_bytes().startswith(b"something else")


def write_until_killed(folder, n):
    """In a process of its own: keep some of what is missing of n contents, one after the other."""
    process = os.fork()
    if process:
        return process
    try:
        with FeatureCache(folder) as own:
            shelf = own.shelf(PRINT, D)
            missing = [pair for pair in map(content, range(n)) if pair[0] not in shelf]
            for digest, row in missing[: n // 8]:
                shelf.add([digest], row[None])
        signal.pause()  # however late the kill comes, some is left for the next round
    finally:
        os._exit(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_random_moments_the_work_still_gets_done(tmp_path):
    """Two processes write at a time and are killed, again and again, until all is there."""
    n, rng, before, rounds = 2000, np.random.default_rng(0), set(), 0
    assert kept(tmp_path, range(n)) == before
    while len(before) < n:
        assert rounds < 1000
        children = [write_until_killed(tmp_path, n) for _ in range(2)]
        time.sleep(rng.uniform(0.01, 0.08))
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        now = kept(tmp_path, range(n))
        assert before <= now
        before, rounds = now, rounds + 1
    assert rounds > 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_writes_a_file_of_its_own(tmp_path):
    with FeatureCache(tmp_path) as shared:
        shelf = shared.shelf(PRINT, D)
        shelf.add([content(0)[0]], content(0)[1][None])
        child = os.fork()
        mine = range(1, 200, 2) if child else range(2, 200, 2)
        try:
            for digest, row in map(content, mine):
                shelf.add([digest], row[None])
        finally:
            if not child:
                os._exit(0)
        os.waitpid(child, 0)
    assert len(files_of(tmp_path, ".ledger")) == 2
    assert kept(tmp_path, range(200)) == set(range(200))


# --- a folder that cannot be written ---


def test_a_full_disk_costs_one_warning_and_nothing_else(tmp_path, monkeypatch):
    keep(tmp_path, range(2))
    written = cache._write_all
    left = [3 * 4 * D + 50]

    def write(file, data):
        part = bytes(data)[: left[0]]
        left[0] -= len(part)
        written(file, part)
        if len(part) < len(data):
            raise OSError(errno.ENOSPC, "No space left on device")

    with FeatureCache(tmp_path) as full:
        monkeypatch.setattr(cache, "_write_all", write)
        shelf = full.shelf(PRINT, D)
        digests, rows = zip(*map(content, range(2, 5)), strict=True)
        with pytest.warns(UserWarning, match="cannot be kept in .*: No space left on device"):
            shelf.add(digests, np.stack(rows))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            shelf.add([content(9)[0]], content(9)[1][None])
        np.testing.assert_array_equal(shelf.get(content(1)[0]), content(1)[1])
    monkeypatch.undo()
    there = kept(tmp_path, range(10))
    assert there == {0, 1, 2}  # one record was whole
    keep(tmp_path, range(10))
    assert kept(tmp_path, range(10)) == set(range(10))


def test_a_folder_that_cannot_be_made_costs_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    blocked = FeatureCache(tmp_path / "file" / "cache")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(3):
            blocked.shelf(PRINT, D).add([content(i)[0]], content(i)[1][None])
            blocked.contents.remember("a.jpg", Path(__file__).stat(), content(i)[0])
    assert ["cannot be kept in" in str(warning.message) for warning in caught] == [True]
    with pytest.raises(InvalidInput, match="is a file; a cache of features is a folder"):
        FeatureCache(tmp_path / "file")


# --- contents by file ---


def test_the_content_of_a_file_is_known_until_it_changes(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(b"one")
    digest = "12" * 32
    with FeatureCache(tmp_path / "cache") as first:
        first.contents.remember(str(path), path.stat(), digest)
        assert first.contents.digest(str(path), path.stat()) is None  # changed a moment ago
        os.utime(path, ns=(10**18, 10**18))
        first.contents.remember(str(path), path.stat(), digest)
    with FeatureCache(tmp_path / "cache") as second:
        assert second.contents.digest(str(path), path.stat()) == digest
        assert second.contents.digest(str(tmp_path / "b.jpg"), path.stat()) is None
        os.utime(path, ns=(10**18, 10**18 + 1))
        assert second.contents.digest(str(path), path.stat()) is None
        path.write_bytes(b"more")
        os.utime(path, ns=(10**18, 10**18))
        assert second.contents.digest(str(path), path.stat()) is None


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
