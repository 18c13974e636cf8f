"""A dry run tells what would be done, and leaves every byte as it is."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from tagkin.features.efficientnet import EfficientNetLite0

from . import reference
from .conftest import Run, World, call, lines
from .desk import READING, SERVING
from .synthetic import make_photographs, write_sidecar, write_tag_file


def done(result) -> str:
    assert result.exit_code == 0, result.stderr
    return result.stdout


def everything(*folders: Path) -> dict[str, str]:
    """All files in some folders, by what is in them."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def run(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """With a cache in the same folder, that no other test writes to."""
    monkeypatch.chdir(tmp_path)
    seen = world.cache.with_name("cache-of-training")
    passing = shutil.ignore_patterns("*-wal", "*-shm")  # of who reads it at the moment
    cache = shutil.copytree(seen, tmp_path / "cache", ignore=passing)
    return lambda *args: call(cache, *args)


@pytest.fixture
def home(run, catalogue, world, tmp_path) -> Path:
    """The folder of a catalogue with decisions, written sidecars, and an export of it."""
    photos = tmp_path / "photos"
    shutil.copytree(world.photos, photos)
    with_it = ("--catalogue", catalogue)
    tag_file = write_tag_file(tmp_path / "some.jsonl", dict([*world.tags_of.items()][::2]))
    os.rename(catalogue, tmp_path / "of-the-world.sqlite")
    done(run("scan", photos, "--tags", tag_file, *with_it))
    done(run("suggest", "--threshold", "0.1", *with_it))
    done(run("accept", "--tag", "red", *with_it))
    done(run("write", *with_it))
    done(run("accept", "--tag", "blue", *with_it))
    done(run("tags", "forget", "circle", *with_it))
    done(run("export", "kept.jsonl", *with_it))
    return tmp_path


COMMANDS = (
    ("scan",),
    ("scan", "photos", "--tags", "embedded"),
    ("train",),
    ("suggest", "--threshold", "0.1"),
    ("accept", "--at-least", "0"),
    ("reject", "--below", "1"),
    ("finish", "photos/red-circle-1.jpg"),
    ("finish", "--tag", "red"),
    ("incomplete",),
    ("write",),
    ("undo",),
    ("undo", "--run", "3"),
    ("tags", "rename", "green", "verdant"),
    ("tags", "merge", "green", "blue", "--into", "cold"),
    ("tags", "forget", "green"),
    ("tags", "restore", "circle"),
    ("import", "kept.jsonl"),
)


def test_nothing_is_written(run, home, catalogue):
    before = everything(home)
    for command in COMMANDS:
        for options in ((), ("--json",)):
            result = run(*command, "--dry-run", *options, "--catalogue", catalogue)
            done(result)
            if options:
                *_, record = lines(result.stdout)
                assert record["dry_run"] is True, command
                assert record.get("run") is None, command
            assert everything(home) == before, command


def test_every_command_that_writes_has_one():
    for name, command in reference.commands().items():
        has_dry_run = any("--dry-run" in option.opts for option in command.params)
        assert has_dry_run == (name not in READING | SERVING), name


def test_a_scan_tells_what_it_would_find(run, tmp_path, data_folder):
    tags = make_photographs(tmp_path / "photos", n_each=1)
    first, second, third, *_ = tags
    write_sidecar(tmp_path / "photos" / first, ["red"])
    (would,) = lines(done(run("scan", "photos", "--dry-run", "--json")))
    assert not data_folder.exists()
    (did,) = lines(done(run("scan", "photos", "--json")))
    assert (did["run"], did["untagged"], len(did["added"])) == (1, 5, 6)
    assert would == did | {"run": None, "dry_run": True}
    (tmp_path / "photos" / second).unlink()
    os.rename(tmp_path / "photos" / third, tmp_path / "photos" / "elsewhere.jpg")
    write_sidecar(tmp_path / "photos" / first, ["red", "circle"])
    (would,) = lines(done(run("scan", "--dry-run", "--json")))
    assert "1 moved or renamed" in done(run("scan", "--dry-run"))
    (did,) = lines(done(run("scan", "--json")))
    assert (did["gone"], did["retagged"]) == ([second], [first])
    assert did["moved"] == [{"from": third, "to": "elsewhere.jpg"}]
    assert would == did | {"run": None, "dry_run": True}


def test_training_and_suggesting_tell_what_they_would_do(run, catalogue, tmp_path):
    with_it = ("--json", "--catalogue", catalogue)
    (would,) = lines(done(run("train", "--dry-run", *with_it)))
    (did,) = lines(done(run("train", *with_it)))
    assert would["tags"] == did["tags"]
    assert would["photographs"]["tagged"] == did["photographs"]["used"]
    asked = ("suggest", "--threshold", "0.2")
    # features that nobody has computed yet are not kept, either
    *_, would = lines(done(call(tmp_path / "empty", *asked, "--dry-run", *with_it)))
    assert not (tmp_path / "empty").exists()
    *_, did = lines(done(run(*asked, *with_it)))
    for name in ("photographs", "with_suggestions", "suggestions", "expected", "model"):
        expected = pytest.approx(did[name]) if name == "expected" else did[name]
        assert would[name] == expected, name


def test_each_photograph_goes_through_the_network_once(run, catalogue, tmp_path, monkeypatch):
    n_seen, network = 0, EfficientNetLite0.__call__

    def count(self, batch):
        nonlocal n_seen
        n_seen += len(batch)
        return network(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(EfficientNetLite0, "__call__", count)
        asked = ("suggest", "--dry-run", "--json", "--catalogue", catalogue)
        *_, would = lines(done(call(tmp_path / "empty", *asked)))
    assert n_seen == would["photographs"] > 0


def test_a_dry_run_needs_no_turn(run, catalogue):
    from tagkin.catalogue import open_catalogue

    with open_catalogue(catalogue, write=True, command="review"):
        for command in ("scan", "train", "suggest"):
            done(run(command, "--dry-run", "--catalogue", catalogue))


def test_a_training_counts_copies_once_as_its_dry_run_does(run, home, catalogue):
    photograph = next((home / "photos").glob("*.jpg"))
    shutil.copy(photograph, photograph.with_name("copy.jpg"))
    with_it = ("--catalogue", catalogue)
    done(run("scan", *with_it))
    (planned,) = lines(done(run("train", "--dry-run", "--json", *with_it)))
    (learned,) = lines(done(run("train", "--json", *with_it)))
    assert learned["photographs"]["found"] == planned["photographs"]["found"]
