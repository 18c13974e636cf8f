"""An import comes from anybody: every field is checked, and no file is ever changed by it."""

import hashlib
import json
from typing import Any

import pytest

from tagkin.errors import InvalidInput
from tests.catalogue.photographs import check_invariants, files
from tests.catalogue.suggested import decisions

NOW = "2026-01-02T03:04:05.000006+00:00"
DIGEST = hashlib.sha256(b"x").hexdigest()
FIRST = {"kind": "tagkin", "format": "tagkin-decisions", "version": 1}
TAG = {"kind": "tag", "tag": "sea", "same_as": None, "forgotten": True}
FOLDER = {"kind": "incomplete", "folder": "2024"}
DECISION = {
    "kind": "decision",
    "content": DIGEST,
    "path": "a.jpg",
    "tag": "sea",
    "verdict": 1,
    "made_at": NOW,
    "confidence": 0.5,
    "note": None,
}


def lines(*objects):
    return [json.dumps(record) for record in (FIRST, *objects)]


def test_lines_as_they_should_be_are_taken(catalogue):
    came = catalogue.import_lines(lines(TAG, FOLDER, DECISION))
    assert (came.tags, came.folders, came.decisions) == (1, 1, 1)
    check_invariants(catalogue)


def test_runs_and_writes_are_not_taken(catalogue, folder):
    before, n_runs = files(folder.root), len(catalogue.runs.history())
    run = {"kind": "run", "id": 1, "what": "write", "started_at": NOW}
    write = {"kind": "write", "run": 1, "path": "a.jpg", "file": "a.jpg.xmp", "state": "done"}
    catalogue.import_lines(lines(run, write | {"before": None, "after": DIGEST}))
    assert len(catalogue.runs.history()) == n_runs
    assert not catalogue.database.rows("SELECT 1 FROM writes")
    with pytest.raises(InvalidInput, match="Nothing to undo"):
        catalogue.undo()
    assert files(folder.root) == before


def test_decisions_before_the_merge_of_their_tag_go_to_the_new_tag(catalogue):
    """As in two exports, one after the other."""
    digest = catalogue.database.value("SELECT digest FROM contents LIMIT 1").hex()
    merge = TAG | {"tag": "dog", "same_as": "hound", "forgotten": False}
    decision = DECISION | {"content": digest, "tag": "dog"}
    catalogue.import_lines(lines(decision, merge))
    check_invariants(catalogue)
    assert [verdict for (_, tag), verdict in decisions(catalogue).items() if tag == "hound"] == [1]


def test_a_tag_with_a_nul_is_not_taken_for_another_tag(catalogue):
    """SQLite's functions read a text up to its first NUL."""
    catalogue.import_lines(lines(TAG | {"tag": "dog\0house"}))
    assert [tag.name for tag in catalogue.tags.list_all() if tag.is_forgotten] == ["doghouse"]
    assert catalogue.tags.count(catalogue.tags.find(["dog"])[0]).n_found == 1


def test_many_incomplete_folders_are_imported_at_once(catalogue):
    folders = [FOLDER | {"folder": f"{number}/2024"} for number in range(1200)]
    assert catalogue.import_lines(lines(*folders, FOLDER)).folders == 1201
    complete = {photo.file for photo in catalogue.photographs.with_tags() if photo.is_complete}
    assert complete == {catalogue.absolute(path) for path in ("a.jpg", "b.jpg")}


BAD: list[tuple[dict[str, Any], str, list[Any]]] = [
    (TAG, "tag", ["", " ", None, 5, "x" * 1_000_000, "a\ud800"]),
    (TAG, "same_as", ["", "y" * 1_000_000]),
    (TAG, "forgotten", [1, None, "yes"]),
    (FOLDER, "folder", ["../a", "/etc", "a\0", "b//a", "./a", None]),
    (DECISION, "content", [None, "", "ab", DIGEST.upper(), DIGEST + "00"]),
    (DECISION, "tag", ["x" * 1_000_000, "a\ud800"]),
    (DECISION, "verdict", [0, True, 1.0, "1"]),
    (DECISION, "made_at", ["now"]),
    (DECISION, "confidence", [2, -1, 1e999, "1"]),
    (DECISION, "note", ["n" * 20_000, 5]),
]


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        pytest.param(line, field, value, id=f"{line['kind']}-{field}-{i}")
        for line, field, values in BAD
        for i, value in enumerate(values)
    ],
)
def test_a_bad_field_is_named_with_its_line_and_nothing_is_stored(catalogue, line, field, value):
    n_runs, n_tags = len(catalogue.runs.history()), len(catalogue.tags.list_all())
    text = lines(TAG, line | {field: value})
    with pytest.raises(
        InvalidInput, match=rf"^Line {len(text)} cannot be imported: `{field}` "
    ) as caught:
        catalogue.import_lines(text)
    assert len(str(caught.value)) < 400
    assert (len(catalogue.runs.history()), len(catalogue.tags.list_all())) == (n_runs, n_tags)
    check_invariants(catalogue)
