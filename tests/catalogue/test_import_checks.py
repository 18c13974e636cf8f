"""An import comes from anybody: every field is checked, and nothing outside is ever changed."""

import base64
import hashlib
import json
import zlib
from typing import Any

import pytest

from tagkin.catalogue import ACCEPTED, Filters
from tagkin.errors import InvalidInput, StorageError
from tests.catalogue.photographs import check_invariants, files
from tests.catalogue.suggested import offer

NOW = "2026-01-02T03:04:05.000006+00:00"
DIGEST = hashlib.sha256(b"x").hexdigest()
FIRST = {"kind": "tagkin", "format": "tagkin-decisions", "version": 1}
RUN = {
    "kind": "run",
    "id": 1,
    "what": "write",
    "started_at": NOW,
    "ended_at": NOW,
    "model": None,
    "parameters": {},
    "outcome": {},
    "undoes": None,
}
TAG = {"kind": "tag", "tag": "sea", "same_as": None, "forgotten": True}
DECISION = {
    "kind": "decision",
    "run": 1,
    "content": DIGEST,
    "path": "a.jpg",
    "tag": "sea",
    "verdict": 1,
    "made_at": NOW,
    "suggested_by": None,
    "confidence": 0.5,
    "kin": [[DIGEST, 0.5]],
    "name_share": 0.5,
    "readout_share": 0.5,
    "note": None,
    "taken_back_by": None,
}
WRITE = {
    "kind": "write",
    "run": 1,
    "path": "a.jpg",
    "file": "a.jpg.xmp",
    "tags": ["sea"],
    "added": [["dc:subject", "sea"]],
    "before": None,
    "after": DIGEST,
    "backup": None,
    "state": "done",
    "undone_by": None,
    "note": None,
}


def packed(data):
    return base64.b64encode(zlib.compress(data, 9)).decode()


def lines(*objects):
    return [json.dumps(one) for one in (FIRST, RUN, *objects)]


def test_lines_as_they_should_be_are_taken(catalogue):
    came = catalogue.import_lines(lines(TAG, DECISION, WRITE))
    assert (came.runs, came.tags, came.decisions, came.writes) == (1, 1, 1, 1)
    check_invariants(catalogue)


BAD: list[tuple[dict[str, Any], str, list[Any]]] = [
    (RUN, "id", [0, "1", 1.5, True, 2**63]),
    (RUN, "what", ["", "x" * 100, "write\x1b[2J", 3]),
    (RUN, "started_at", ["yesterday", "2026-01-02T03:04:05", "", 5, None]),
    (RUN, "ended_at", ["soon", "9999-12-31T23:59:59-23:00"]),
    (RUN, "parameters", [None, [], {"n": 1e999}, {"a": [[[[[[[[[[]]]]]]]]]]}]),
    (RUN, "model", ["m" * 20_000, "\ud800"]),
    (RUN, "undoes", [7]),
    (TAG, "tag", ["", " ", None, 5, "x" * 1_000_000, "a\ud800"]),
    (TAG, "same_as", ["", "y" * 1_000_000]),
    (TAG, "forgotten", [1, None, "yes"]),
    (DECISION, "run", [None, 2, "1"]),
    (DECISION, "content", [None, "", "ab", DIGEST.upper(), DIGEST + "00"]),
    (DECISION, "tag", ["x" * 1_000_000, "a\ud800"]),
    (DECISION, "verdict", [0, True, 1.0, "1"]),
    (DECISION, "made_at", ["now"]),
    (DECISION, "confidence", [2, -1, 1e999, "1"]),
    (DECISION, "kin", [None, {}, [[]], [[DIGEST]], [[DIGEST, 2]], ["ab"]]),
    (DECISION, "name_share", ["a lot"]),
    (DECISION, "note", ["n" * 20_000, 5]),
    (DECISION, "taken_back_by", [9]),
    (WRITE, "path", ["../a.jpg", "/etc/a.jpg", "a\0.jpg", "", "b//a.jpg", "./a.jpg", None]),
    (
        WRITE,
        "file",
        [
            "../victim/.bashrc",
            "../victim/x.xmp",
            "/etc/x.xmp",
            "notes.txt",
            "b/../../x.xmp",
            ".xmp",
        ],
    ),
    (WRITE, "tags", [[1], "sea", ["x" * 1_000_000], [None], ["\udfff"]]),
    (WRITE, "added", [[[]], [["dc:subject"]], [["dc:subject", 1]], [["<x>", "sea"]], {}]),
    (WRITE, "before", ["not base64!", base64.b64encode(b"not zlib").decode(), 5]),
    (WRITE, "before", [packed(b"cut off")[:8], packed(b"\0" * (1 << 28))]),
    (WRITE, "after", ["", None, "zz" * 32]),
    (WRITE, "backup", ["../a.jpg_original", "", "b/a.jpg_original"]),
    (WRITE, "state", ["doing", None]),
    (WRITE, "undone_by", [4]),
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
    good = [] if line is RUN else [RUN, TAG]
    text = [json.dumps(one) for one in (FIRST, *good, line | {field: value})]
    # a backup makes the file a photograph's own, so either field may be named
    named = "`(file|backup)`" if field == "backup" else f"`{field}`"
    with pytest.raises(
        InvalidInput, match=rf"^Line {len(text)} cannot be imported: {named} "
    ) as said:
        catalogue.import_lines(text)
    assert len(str(said.value)) < 400
    assert (len(catalogue.runs.history()), len(catalogue.tags.list_all())) == (n_runs, n_tags)
    check_invariants(catalogue)


def test_the_content_of_a_photographs_backup_is_a_digest(catalogue):
    line = WRITE | {"file": "a.jpg", "backup": "a.jpg_original", "before": packed(b"anything")}
    with pytest.raises(InvalidInput, match="`before` must be the SHA-256"):
        catalogue.import_lines(lines(line))
    catalogue.import_lines(lines(line | {"before": packed(DIGEST.encode())}))


# --- undo --------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [None, b"attacker's"])
@pytest.mark.parametrize("file", ["../victim/x.xmp", "2024/../../victim/x.xmp", "notes.txt"])
def test_a_catalogue_that_names_another_file_does_not_undo_there(catalogue, folder, file, before):
    """An import refuses such a name; somebody may have edited the catalogue by hand."""
    victim = folder.root / file
    victim.resolve().parent.mkdir(exist_ok=True)
    victim.resolve().write_bytes(b"theirs")
    line = WRITE | {"after": hashlib.sha256(b"theirs").hexdigest()}
    catalogue.import_lines(lines(line | {"before": None if before is None else packed(before)}))
    with catalogue.transaction() as connection:
        connection.execute("UPDATE writes SET file = ?", (file,))
    undone = catalogue.undo()
    assert ["must be" in one.reason for one in undone.failures] == [True]
    assert victim.resolve().read_bytes() == b"theirs"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("before", b"not zlib"),
        ("before", zlib.compress(b"\0" * (1 << 28), 9)),
        ("tags", "[1]"),
        ("added", "[[]]"),
        ("added", "{}"),
        ("after", "text"),
        ("file", b"bytes"),
    ],
)
def test_a_damaged_write_is_a_sentence(catalogue, folder, column, value):
    catalogue.import_lines(lines(WRITE))
    before = files(folder.root)
    with catalogue.transaction() as connection:
        connection.execute(f"UPDATE writes SET {column} = ?", (value,))
    with pytest.raises(StorageError, match="The catalogue is damaged"):
        catalogue.undo()
    assert files(folder.root) == before


def test_a_property_that_tagkin_does_not_write_is_left_alone(catalogue, folder):
    folder.tag("a.jpg", ["sea", "beach"])
    before = files(folder.root)
    catalogue.import_lines(lines(WRITE | {"added": [["other:property", "sea"]]}))
    assert [one.how for one in catalogue.undo().files] == ["kept"]
    assert files(folder.root) == before


def test_what_was_written_here_is_undone_after_a_round_trip(catalogue, folder):
    offer(catalogue)
    before = files(folder.root)
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.6))
    catalogue.write()
    kept = [json.dumps(one) for one in catalogue.export_lines()]
    with catalogue.transaction() as connection:
        connection.execute("DELETE FROM writes")
    n_written = catalogue.status().n_accepted
    assert catalogue.import_lines(kept).writes == 3
    catalogue.undo()
    assert files(folder.root) == before
    assert n_written
