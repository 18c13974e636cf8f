"""When, where and in which folder: what a catalogue knows of any list of its photographs."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Catalogue, Filters, open_for_scan
from tagkin.catalogue.moment_index import MomentIndex
from tagkin.cli import app
from tagkin.collection.times import read_moments, to_seconds
from tagkin.server import Review
from tests.collection.test_facts import ZURICH, packet, photograph
from tests.server.browser import Browser, Running

from .suggested import new_suggestion, store
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


# --- what is near in time ------------------------------------------------------------------------

DAY = {  # time of day and tags in its sidecar
    "asked.jpg": ("12:00:00", []),
    "a.jpg": ("10:00:00", ["Lisbon", "tram"]),
    "b.jpg": ("11:30:00", ["Lisbon"]),
    "c.jpg": ("13:59:59", ["tram"]),
    "early.jpg": ("09:59:59", ["Lisbon"]),
    "untagged.jpg": ("12:00:01", []),
    "gone.jpg": ("12:00:02", ["Lisbon"]),
}


@pytest.fixture
def day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    root = tmp_path / "photos"
    root.mkdir()
    for name, (time, tags) in DAY.items():
        path = old(photograph(root / name, f"2024:05:01 {time}"))
        if tags:
            items = "".join(f"<rdf:li>{tag}</rdf:li>" for tag in tags)
            subject = f'<dc:subject xmlns:dc="http://purl.org/dc/elements/1.1/"><rdf:Bag>{items}'
            path.with_suffix(".xmp").write_bytes(packet("", f"{subject}</rdf:Bag></dc:subject>"))
    photograph(root / "untimed.jpg", None)
    with open_for_scan(root) as catalogue:
        catalogue.scan()
        (root / "gone.jpg").unlink()
        catalogue.scan()
        each = [new_suggestion(tag, 0.6, (), 0.1, 0.3) for tag in ("Lisbon", "tram", "dog")]
        with catalogue.database.run("suggest") as run:
            for asked in ("asked.jpg", "untimed.jpg"):
                store(catalogue, run.id, [(catalogue.photographs.content_of(asked), each)])
        yield catalogue


def near(catalogue: Catalogue, path: str = "asked.jpg") -> tuple[int, dict[str, int]]:
    explained = catalogue.explain(path)
    return explained.n_near, {tag.tag: tag.n_near_with for tag in explained.tags}


def test_an_explanation_counts_what_is_near_in_time(day: Catalogue) -> None:
    assert near(day) == (3, {"Lisbon": 2, "tram": 2, "dog": 0})
    assert near(day, "untimed.jpg") == (0, {"Lisbon": 0, "tram": 0, "dog": 0})
    assert near(day, "early.jpg") == (2, {"Lisbon": 2})
    day.decisions.decide(ACCEPTED, Filters(photographs=["untagged.jpg"], tags=["dog"]))
    day.decisions.decide(REJECTED, Filters(photographs=["c.jpg"], tags=["tram"]))
    assert near(day) == (3, {"Lisbon": 2, "tram": 1, "dog": 1})  # c.jpg has no tag any more
    sidecar = day.root / "asked.xmp"
    sidecar.write_bytes(packet('exif:DateTimeOriginal="2024-05-02T12:00:00"'))
    day.scan()
    assert near(day)[0] == 0


def test_it_is_said_in_words_and_numbers(
    day: Catalogue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "2 of 3 tagged photographs taken within two hours have it"
    path, asked = day.path, str(day.root / "asked.jpg")
    answers = {}
    for options in ((), ("--json",)):
        with pytest.raises(SystemExit):
            app(["explain", asked, "--catalogue", str(path), *options])
        answers[options] = capsys.readouterr().out
    assert answers[()].count(f"  {said}\n") == 2  # Lisbon and tram
    (document,) = map(json.loads, answers[("--json",)].splitlines())
    assert document["n_near"] == 3
    assert {tag["tag"]: tag["n_near_with"] for tag in document["tags"]} == near(day)[1]
    review = Review(day, tmp_path / "cache", fits=False)
    running = Running(review)
    browser = Browser(running.port)
    browser.open(running.access.key)
    page = browser.get(f"/photographs/{day.photographs.content_of('asked.jpg')}")
    lines = [line.text_content() for line in page.elements("//p[@class='quiet near']")]
    assert lines == [f"{said}."] * 2
    running.stop()
    review.close()
