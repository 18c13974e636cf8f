"""When, where and in which folder: what a catalogue knows of any list of its photographs."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tagkin.catalogue import Catalogue, open_for_scan
from tagkin.catalogue.moment_index import MomentIndex
from tagkin.collection.times import read_moments, to_seconds
from tests.collection.test_facts import ZURICH, packet, photograph

from .test_facts import old

NAN = np.nan


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    root = tmp_path / "photos"
    (root / "Ireland" / "Cork").mkdir(parents=True)
    old(photograph(root / "Ireland" / "Cork" / "a.jpg", below={0x9291: "25"}, gps=ZURICH))
    old(photograph(root / "Ireland" / "b.jpg", "2000:01:01 00:00:30"))
    old(photograph(root / "c.jpg", None))
    return root


def contents(catalogue: Catalogue, *paths: str) -> list[int]:
    return [catalogue.photographs.content_of(path) for path in paths]


def test_moments_of_any_contents_in_their_order(root: Path) -> None:
    with open_for_scan(root) as catalogue:
        empty = MomentIndex(catalogue.database).of([1, 2])
        assert np.isnan(empty.times).all()
        assert empty.folders.tolist() == ["", ""]
        catalogue.scan()
        paths = ["c.jpg", "Ireland/Cork/a.jpg", "Ireland/b.jpg"]
        index = MomentIndex(catalogue.database)
        c, a, b = contents(catalogue, *paths)
        moments = index.of([c, a, 99, b, a, 0, -1])
        taken = to_seconds(["2024-01-31T15:45:07.250000"])[0]
        np.testing.assert_array_equal(moments.times, [NAN, taken, NAN, NAN, taken, NAN, NAN])
        np.testing.assert_array_equal(moments.places[1], [47.377, 8.54])
        assert np.isnan(moments.places[[0, 2, 3, 5, 6]]).all()
        folders = ["", "Ireland/Cork", "", "Ireland", "Ireland/Cork", "", ""]
        assert moments.folders.tolist() == folders
        assert [array.shape for array in index.of([])] == [(0,), (0, 2), (0,)]
        files = [catalogue.absolute(path) for path in paths]
        for of_files, known in zip(read_moments(files, root), index.of([c, a, b]), strict=True):
            np.testing.assert_array_equal(of_files, known)


def test_a_scan_makes_it_stale(root: Path) -> None:
    with open_for_scan(root) as catalogue:
        catalogue.scan()
        index = MomentIndex(catalogue.database)
        assert index.is_current(catalogue.database)
        sidecar = root / "c.xmp"
        sidecar.write_bytes(packet('exif:DateTimeOriginal="2024-02-01T10:00:00"'))
        catalogue.scan()
        assert not index.is_current(catalogue.database)
        number = contents(catalogue, "c.jpg")
        assert np.isnan(index.of(number).times)
        (time,) = MomentIndex(catalogue.database).of(number).times
        assert time == to_seconds(["2024-02-01T10:00:00"])[0]


def test_copies_have_one_moment_and_gone_photographs_keep_theirs(root: Path) -> None:
    with open_for_scan(root) as catalogue:
        shutil.copy2(root / "Ireland" / "Cork" / "a.jpg", root / "Ireland" / "z.jpg")
        catalogue.scan()
        numbers = contents(catalogue, "Ireland/z.jpg", "Ireland/Cork/a.jpg", "Ireland/b.jpg")
        assert numbers[0] == numbers[1]
        before = MomentIndex(catalogue.database).of(numbers)
        assert before.folders.tolist() == ["Ireland/Cork", "Ireland/Cork", "Ireland"]
        (root / "Ireland" / "Cork" / "a.jpg").unlink()
        (root / "Ireland" / "b.jpg").unlink()
        catalogue.scan()
        after = MomentIndex(catalogue.database).of(numbers)
        np.testing.assert_array_equal(after.times, before.times)
        assert after.folders.tolist() == ["Ireland", "Ireland", "Ireland"]


def test_the_clocks_of_the_whole_collection_count(root: Path) -> None:
    """A camera that is five hours behind in all photographs is so in the one that is asked."""
    rng = np.random.default_rng(0)
    with open_for_scan(root) as catalogue:
        catalogue.scan()
        database = catalogue.database
        sights = np.cumsum(rng.exponential(3000, 600)) + np.repeat(np.arange(60), 10) * 8e4
        start = np.datetime64("2024-03-01T00:00:00", "s")
        with database.transaction():
            for i, seconds in enumerate(np.repeat(sights, 2) + np.tile([0, 70], 600)):
                late = i % 2 * 5 * 3600
                taken = str(start + np.timedelta64(int(seconds) - late, "s"))
                number = database.execute(
                    "INSERT INTO contents (digest) VALUES (?)", (f"{i}".encode(),)
                )
                database.execute(
                    "INSERT INTO photographs (path, content, size, mtime, inode, added, taken, "
                    "camera) VALUES (?, ?, 0, 0, 0, 1, ?, ?)",
                    (f"{i}.jpg", number, taken, f"camera {i % 2}"),
                )
        first, second = MomentIndex(database).of([number - 1, number]).times
        assert abs(second - first) < 400
        database.execute("UPDATE photographs SET camera = NULL WHERE camera = 'camera 1'")
        first, second = MomentIndex(database).of([number - 1, number]).times
        assert second - first < -4.5 * 3600  # of an unknown camera, nothing is known
