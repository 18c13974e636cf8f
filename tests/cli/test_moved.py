"""Photographs that were moved or deleted since the model was made."""

import contextlib
import sqlite3

from tagkin.catalogue import open_catalogue

from .conftest import call


def test_a_collection_that_was_deleted_is_said(catalogue, tmp_path):
    """By a catalogue that knows another folder with the same photographs."""
    photos = tmp_path / "photos"
    with contextlib.closing(sqlite3.connect(catalogue)) as connection, connection:
        connection.execute("UPDATE collection SET root = ?", (str(photos),))
    photos.mkdir()
    empty = tmp_path / "empty"  # nothing is known of where the photographs were
    audit = ("audit", "-n", 3, "--catalogue", catalogue, "--report", tmp_path / "audit.html")
    result = call(empty, *audit)
    assert result.exit_code == 0, result.stderr
    assert "photographs are not there: " in result.stderr
    assert "tagkin scan FOLDER" in result.stderr
    assert (tmp_path / "audit.html").exists()


def test_a_model_in_its_folder_holds_no_whole_path(world):
    for file in world.model.iterdir():
        assert str(world.photos.parent).encode() not in file.read_bytes()


def test_a_photograph_that_is_gone_is_named_where_it_was(catalogue, world):
    with contextlib.closing(sqlite3.connect(catalogue)) as connection, connection:
        connection.execute("UPDATE photographs SET gone = 1")
    with open_catalogue(catalogue) as opened:
        annotator, _ = opened.model.load()
    assert set(annotator.paths_) <= {str(world.photos / name) for name in world.tags_of}
