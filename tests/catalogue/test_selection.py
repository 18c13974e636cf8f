"""Filters of photographs: what each leaves, and the counts, against plain loops."""

import itertools
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tagkin.catalogue import ACCEPTED, Catalogue, Filters, open_for_scan
from tagkin.catalogue.open_index import OpenIndex
from tagkin.catalogue.selection import NONE, PhotographIndex, Selection
from tagkin.errors import InvalidInput
from tests.catalogue.suggested import new_suggestion

CANON, PHONE = ("Canon", "Canon EOS 5D", "50mm"), ("Apple", "iPhone 12", None)
# path: camera, time, stars in EXIF, tags
PHOTOGRAPHS = {
    "2023/a.jpg": (CANON, "2023:05:01 10:00:00", 5, ["beach"]),
    "2023/b.jpg": (CANON, "2023:05:01 10:00:01", 3, []),
    "2023/trip/c.png": (PHONE, "2023:11:02 10:00:00", None, ["beach", "sea"]),
    "2024/d.jpeg": (PHONE, "2024:05:01 10:00:00", None, []),
    "e.jpg": (None, None, None, []),
}


def put(path: Path, camera: tuple | None, taken: str | None, stars: int | None, shade: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    if camera is not None:
        exif[0x010F], exif[0x0110] = camera[:2]
        inside = exif.get_ifd(0x8769)
        inside[0x9003] = taken
        if camera[2]:
            inside[0xA434] = camera[2]
    if stars:
        exif[0x4746] = stars
    Image.fromarray(np.full((8, 8, 3), shade, np.uint8)).save(path, exif=exif)
    os.utime(path, (time.time() - 100,) * 2)


@pytest.fixture
def catalogue(tmp_path, monkeypatch):
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    root = tmp_path / "photos"
    for i, (path, (camera, taken, stars, tags)) in enumerate(PHOTOGRAPHS.items()):
        put(root / path, camera, taken, stars, 40 * i)
        if tags:
            items = "".join(f"<rdf:li>{tag}</rdf:li>" for tag in tags)
            (root / f"{path}.xmp").write_text(
                '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF '
                'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description '
                'xmlns:dc="http://purl.org/dc/elements/1.1/" '
                'xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="4">'
                f"<dc:subject><rdf:Bag>{items}</rdf:Bag></dc:subject>"
                "</rdf:Description></rdf:RDF></x:xmpmeta>"
            )
    with open_for_scan(root) as opened:
        opened.scan()
        yield opened


def number(catalogue: Catalogue, tag: str) -> int:
    return catalogue.database.value("SELECT id FROM tags WHERE name = ?", (tag,))


def paths(catalogue: Catalogue, **filters: Any) -> list[str]:
    selected = PhotographIndex(catalogue.database).select(catalogue.database, Selection(**filters))
    rows: dict[int, str] = dict(catalogue.database.rows("SELECT id, path FROM photographs"))
    return sorted(rows[i] for i in selected.numbers.tolist())


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, "abcde"),
        ({"folder": "2023"}, "abc"),
        ({"folder": "2023/trip/"}, "c"),
        ({"folder": "202"}, ""),
        ({"taken": "2023"}, "abc"),
        ({"taken": "2023-05"}, "ab"),
        ({"taken": NONE}, "e"),
        ({"camera": "Canon EOS 5D"}, "ab"),
        ({"camera": "Apple iPhone 12"}, "cd"),
        ({"camera": NONE}, "e"),
        ({"lens": "50mm"}, "ab"),
        ({"lens": NONE}, "cde"),
        ({"rating": "4"}, "ac"),  # that of a sidecar counts before the photograph's own
        ({"rating": "3"}, "abc"),
        ({"rating": "5"}, ""),
        ({"rating": NONE}, "de"),
        ({"type": "jpg"}, "abde"),
        ({"type": "png"}, "c"),
        ({"untagged": True}, "bde"),
        ({"untagged": False}, "ac"),
        ({"burst": "any"}, ""),
        ({"burst": NONE}, "abcde"),
        ({"camera": "Canon EOS 5D", "taken": "2023-05", "untagged": True}, "b"),
        ({"folder": "2023", "rating": "4", "type": "png"}, "c"),
    ],
)
def test_filters_compose(catalogue, filters, expected):
    letters = "".join(path.rpartition("/")[2][0] for path in paths(catalogue, **filters))
    assert sorted(letters) == sorted(expected)


def test_tags_and_decisions(catalogue):
    beach, sea = number(catalogue, "beach"), number(catalogue, "sea")
    assert paths(catalogue, tags=(beach,)) == ["2023/a.jpg", "2023/trip/c.png"]
    assert paths(catalogue, tags=(beach, sea)) == ["2023/trip/c.png"]
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["e.jpg"], tags=["sea"]))
    assert paths(catalogue, tags=(sea,)) == ["2023/trip/c.png", "e.jpg"]
    assert "e.jpg" not in paths(catalogue, untagged=True)


@pytest.mark.parametrize("filters", [{"rating": "6"}, {"type": "doc"}])
def test_choices_that_do_not_exist_are_refused(filters):
    with pytest.raises(InvalidInput):
        Selection(**filters)


def test_every_count_is_what_its_choice_leaves(catalogue):
    """Of each pair of filters, too: the counts of a filter ignore its own choice."""
    index = PhotographIndex(catalogue.database)
    every = index.count(catalogue.database, Selection())
    choices = [
        (name, value)
        for name in ("folder", "taken", "camera", "lens", "rating", "type", "burst")
        for value, _ in every.counts[name]
    ]
    assert len(choices) > 20
    for name, value in choices:
        assert dict(every.counts[name])[value] == len(paths(catalogue, **{name: value}))
    for (name, value), (other, choice) in itertools.permutations(choices, 2):
        counts = index.count(catalogue.database, Selection(**{other: choice}))
        expected = {other: choice} | {name: value}
        assert dict(counts.counts[name]).get(value, 0) == len(paths(catalogue, **expected))
    assert every.counts["untagged"] == [("true", 3), ("false", 2)]
    assert [(name, n) for _, name, n in every.tags] == [("beach", 2), ("sea", 1)]
    assert [value for value, _ in every.counts["taken"]] == [
        "2024", "2024-05", "2023", "2023-05", "2023-11", NONE
    ]  # fmt: skip


def test_open_suggestions_in_memory_are_those_of_the_catalogue(catalogue):
    contents = [c for (c,) in catalogue.database.rows("SELECT id FROM contents ORDER BY id")]
    with catalogue.database.run("suggest") as run:
        catalogue.suggestions.replace(
            run.id,
            [
                (c, [new_suggestion("x", 0.1 * i), new_suggestion("y", 0.5)])
                for i, c in enumerate(contents)
            ],
        )
    index, view = OpenIndex(catalogue.database), PhotographIndex(catalogue.database)
    every = view.select(catalogue.database, Selection())
    x = number(catalogue, "x")
    assert index.is_current(catalogue.database)

    def same() -> bool:
        stored = catalogue.suggestions.for_tag(x)
        shown = index.select(every).for_tag(x, 60)
        assert [s._replace(path="", run=None) for s in stored] == shown
        assert index.select(every).for_tag(x, 2, shown[1]) == shown[2:4]
        counted = Counter(t for (t,) in catalogue.database.rows("SELECT tag FROM suggestions"))
        assert {tag: n for tag, (n, _) in index.select(every).counts.items()} == counted
        return index.is_current(catalogue.database)

    assert same()
    batch = catalogue.decisions.decide_pairs([(contents[1], x)], [(contents[3], x)])
    index.learn(catalogue.decisions.verdicts_after(batch.run))
    assert same()
    fresh = OpenIndex(catalogue.database)
    undone = catalogue.decisions.undo(batch.run)
    for suggestions in (index, fresh):
        suggestions.learn(catalogue.decisions.verdicts_after(undone.run))
    assert same()
    assert not fresh.is_current(catalogue.database)  # it does not know what was decided before
    only = view.select(catalogue.database, Selection(folder="2023"))
    assert len(index.select(only).for_tag(x, 60)) == 3


def test_a_scan_that_reads_files_again_makes_the_index_stale(catalogue):
    catalogue.database.execute("UPDATE photographs SET mtime = -1, camera = NULL, taken = NULL")
    assert paths(catalogue, camera="Canon EOS 5D") == []
    index = PhotographIndex(catalogue.database)
    catalogue.scan()
    assert not index.is_current(catalogue.database)
    assert paths(catalogue, camera="Canon EOS 5D") == ["2023/a.jpg", "2023/b.jpg"]


def test_folders_and_bursts_are_all_counted_however_many(catalogue):
    with catalogue.database.transaction():
        for i in range(400):
            number = catalogue.database.execute(
                "INSERT INTO contents (id, digest, burst) VALUES (?, ?, ?)",
                (1000 + i, bytes([i % 256, i // 256]), 1000 + i),
            )
            catalogue.database.execute(
                "INSERT INTO photographs (path, content, size, mtime, inode, added) "
                "VALUES (?, ?, 0, 0, 0, 1)",
                (f"many/{i:03}/a.jpg", number),
            )
    counts = (
        PhotographIndex(catalogue.database)
        .count(catalogue.database, Selection(burst="1399"))
        .counts
    )
    assert counts["burst"] == [("any", 400), ("1399", 1), (NONE, 5)]
    folders = PhotographIndex(catalogue.database).count(catalogue.database, Selection()).counts
    assert len([name for name, _ in folders["folder"] if name.startswith("many/")]) == 400
