"""Texts inside a catalogue whose bytes changed: SQLite does not notice, and nothing fails raw."""

import pytest

from tagkin.catalogue.columns import read_json
from tagkin.errors import StorageError

from .suggested import offer


@pytest.mark.parametrize("text", ['{"photographs": 3,, "new": 2}', "{", "[1]", "3", b"\xff", None])
def test_a_damaged_text_is_told(text):
    with pytest.raises(StorageError, match=r"The catalogue is damaged: .* scan again"):
        read_json(text, dict)


def test_a_text_that_is_whole_is_read():
    assert read_json('{"a": [1]}', dict) == {"a": [1]}
    assert read_json(b"[1, null]", list) == [1, None]


@pytest.mark.parametrize("column", ["parameters", "outcome"])
def test_a_damaged_run_is_told_by_all_who_read_it(column, catalogue):
    offer(catalogue)
    catalogue.database.execute(f"UPDATE runs SET {column} = '{{,' WHERE id = 1")
    for look in (catalogue.runs.history, catalogue.status):
        with pytest.raises(StorageError, match="damaged"):
            look()
