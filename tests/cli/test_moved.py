"""Photographs that were moved since the model was made: said, and found again."""

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path
from typing import NamedTuple

import pytest

from .conftest import call


class Moved(NamedTuple):
    """A model that was handed on, and the photographs in a place that it does not know."""

    model: Path
    photos: Path
    new: Path
    cache: Path

    def run(self, *args: object) -> tuple[str, str]:
        command, photo, *options = args
        said = call(self.cache, "model", command, photo, self.model, *options)
        assert said.exit_code == 0, said.stderr
        return said.stdout, said.stderr


@pytest.fixture
def moved(world, tmp_path):
    shutil.copytree(world.model, tmp_path / "models" / "model")
    shutil.copytree(world.photos, tmp_path / "new place")
    new = shutil.copy(world.fresh / "red-circle-0.jpg", tmp_path / "new.jpg")
    # features go by content; where the photographs were is said in other files of a cache
    (tmp_path / "c").mkdir()
    shutil.copy(world.cache.with_name("cache-of-training") / "features.sqlite", tmp_path / "c")
    return Moved(tmp_path / "models" / "model", tmp_path / "new place", Path(new), tmp_path / "c")


def commands(moved, tmp_path):
    return {
        "suggest": ("suggest", moved.new, "-n", 2, "--json"),
        "explain": ("explain", moved.new, "-n", 2, "--json", "--sheet", tmp_path / "why.png"),
        "similar": ("similar", moved.new, "--json"),
    }


@pytest.mark.parametrize("command", ["suggest", "explain", "similar"])
def test_what_cannot_be_found_is_said_and_found_with_its_folder(moved, tmp_path, command):
    args = commands(moved, tmp_path)[command]
    _, stderr = moved.run(*args)
    assert "photographs that the model names are not there: " in stderr
    assert ".jpg, " in stderr
    assert f"tagkin model relocate FOLDER {moved.model}" in stderr
    _, stderr = moved.run("relocate", moved.photos)
    assert stderr == "Found 42 of 42 photographs.\n"
    stdout, stderr = moved.run(*args, *overwritten(command))
    assert "not there" not in stderr
    assert "new place" in stdout


def test_a_renamed_folder_is_found_by_being_looked_at(moved):
    """Also where none of the photographs learned from is asked about."""
    shutil.copy(moved.new, moved.photos / "untagged.jpg")
    stdout, stderr = moved.run("suggest", moved.photos, "--only-untagged", "-n", 2, "--json")
    assert "not there" not in stderr
    kin = [one["file"] for line in stdout.splitlines() for one in kin_of(json.loads(line))]
    assert kin
    assert all("new place" in file for file in kin)


def kin_of(found):
    return [kin for suggestion in found["suggestions"] for kin in suggestion["kin"]]


def overwritten(command):
    return ("--overwrite",) if command == "explain" else ()


def test_a_single_photograph_that_is_gone_is_named(moved):
    moved.run("relocate", moved.photos)
    stdout, _ = moved.run("similar", moved.new, "-n", 3, "--json")
    gone = Path(json.loads(stdout)["similar"][1]["file"])
    gone.unlink()
    _, stderr = moved.run("similar", moved.new, "-n", 3, "--json")
    assert "1 of the 3 photographs that the model names is not there: " in stderr
    assert gone.name in stderr


def test_suggesting_for_the_photographs_themselves_finds_them(moved):
    _, stderr = moved.run("suggest", moved.photos, "--threshold", 0, "--json")
    assert "not there" not in stderr
    stdout, stderr = moved.run("similar", moved.new, "--json")
    assert "not there" not in stderr
    assert all(Path(one["file"]).is_file() for one in json.loads(stdout)["similar"])


def test_evaluate_needs_the_photographs(moved, world):
    assert "42 of the 42 photographs that the model names" in moved.run("evaluate", world.fresh)[1]
    moved.run("relocate", moved.photos)
    assert "not there" not in moved.run("evaluate", world.fresh)[1]


def test_photographs_are_looked_for_in_a_folder(moved):
    said = call(moved.cache, "model", "relocate", moved.new, moved.model)
    assert (said.exit_code, said.stdout) == (1, "")
    assert "is not a folder" in said.stderr


def test_a_collection_that_was_deleted_is_said(catalogue, tmp_path, monkeypatch):
    """By a catalogue that knows another folder with the same photographs."""
    photos = tmp_path / "photos"
    with contextlib.closing(sqlite3.connect(catalogue)) as connection, connection:
        connection.execute("UPDATE collection SET root = ?", (str(photos),))
    photos.mkdir()
    empty = tmp_path / "empty"  # nothing is known of where the photographs were
    audit = ("audit", "-n", 3, "--catalogue", catalogue, "--report", tmp_path / "audit.html")
    said = call(empty, *audit)
    assert said.exit_code == 0, said.stderr
    assert "photographs that the model names are not there: " in said.stderr
    assert "tagkin scan FOLDER" in said.stderr
    assert "that the model names are not there" in (tmp_path / "audit.html").read_text()
    said = call(empty, "map", "--catalogue", catalogue, "--output", tmp_path / "map.png")
    assert said.exit_code == 1
    assert "tagkin scan FOLDER" in said.stderr


def test_a_model_in_its_folder_holds_no_whole_path(world):
    for file in world.model.iterdir():
        assert str(world.photos.parent).encode() not in file.read_bytes()
