"""Any text on any terminal: encodings that lack characters, and texts that look like markup."""

import csv
import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tagkin.cli.streams import prepare_streams

from .conftest import World
from .synthetic import make_photographs, write_tag_file
from .terminals import Closed, Said, ended, speak, write_broken_png

ENCODINGS = ("utf-8", "cp1252", "ascii", "latin-1", "cp437", "shift_jis")
# two that look like one tag of rich's markup when a comma joins them, and other scripts
TAGS = {"red": "[/夕焼け", "green": "é]", "blue": "[/a]", "circle": "[bold", "square": "[red]🏖\\"}
# of photographs, in a folder whose name ends in [
NAME = "a] 夕é"


class Odd(NamedTuple):
    """A collection of odd names and tags with a broken file, and another photograph."""

    photos: Path
    photo: Path
    train: Said
    catalogue: Path


@pytest.fixture(scope="module")
def odd(world: World, tmp_path_factory: pytest.TempPathFactory) -> Odd:
    home = tmp_path_factory.mktemp("odd")
    photos, fresh = home / "photos [", home / "fresh ["
    for folder, n_each, seed in ((photos, 4, 0), (fresh, 2, 1)):
        tags = make_photographs(folder, n_each, seed)
        named = {f"{NAME} {name}": [TAGS[t] for t in row] for name, row in tags.items()}
        for name in tags:
            (folder / name).rename(folder / f"{NAME} {name}")
        named[f"{NAME} red-circle-0.jpg"].append("once[/b]")
        write_broken_png(folder / f"{NAME} broken.png")
        named[f"{NAME} broken.png"] = ["[/a]"]
        named["[/gone].jpg"] = ["[/a]"]
        write_tag_file(folder / "metadata.jsonl", named)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAGKIN_CACHE", str(world.cache))
        patch.setenv("TAGKIN_CATALOGUES", str(home / "data"))
        catalogue = home / "[" / "a.sqlite"
        catalogue.parent.mkdir()
        options = ("--min-count", 2, "--catalogue", catalogue)  # names the tag that is left out
        learned = speak(patch, "train", photos, *options, encoding="ascii")
        assert learned.exit_code == 0, learned.err
    return Odd(photos, min(fresh.glob("*.jpg")), learned, catalogue)


Speak = Callable[..., Said]


@pytest.fixture
def say(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Speak:
    """Run ``tagkin`` in a folder of its own, with standard streams of an encoding."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAGKIN_CACHE", str(world.cache))
    return lambda *args, **kwargs: speak(monkeypatch, *args, **kwargs)


def commands(odd: Odd) -> dict[str, tuple[object, ...]]:
    """Commands that show tags and names, in an order that leaves the photographs unchanged."""
    photo = min(odd.photos.glob("*.jpg"))
    Path("decisions[").mkdir(exist_ok=True)  # a folder, which is not made for a file in it
    on_collection: dict[str, tuple[object, ...]] = {
        "suggest": ("suggest", "--threshold", 0),
        "evaluate": ("evaluate",),
        "explain": ("explain", photo),
        "similar": ("find", "--like", odd.photo, "-n", 24),
        "audit": ("audit", "-n", 8),
        "accept": ("accept", photo, "--tag", "[/b] 夕é"),
        "reject": ("reject", photo, "--tag", TAGS["blue"]),
        "write": ("write",),
        "status": ("status",),
        "history": ("history",),
        "tags": ("tags", "list"),
        "undo": ("undo",),
        "export": ("export", "decisions[/a].jsonl", "--overwrite"),
        "import": ("import", "decisions[/a].jsonl"),
    }
    return {
        "cache": ("cache",),
        "scan": ("scan", odd.photos, "--catalogue", "[b.sqlite"),
        **{
            name: (*command, "--catalogue", odd.catalogue)
            for name, command in on_collection.items()
        },
    }


# These say what they did on standard error.
WITHOUT_DATA = {"accept", "reject", "write", "undo", "export", "import"}


# --- encodings ---------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_command_speaks_every_encoding(say, odd, encoding):
    for name, command in commands(odd).items():
        result = say(*command, encoding=encoding)
        assert result.exit_code == 0, (name, result.err)
        text = result.out.decode(encoding) + result.err.decode(encoding)
        assert "Error" not in text, name
        assert "\ufdd0" not in text, name
        assert "\ufdd1" not in text, name


def test_a_terminal_with_colours_and_progress_speaks_every_encoding(say, odd, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    for encoding in ("utf-8", "cp437", "ascii"):
        result = say(*commands(odd)["evaluate"], encoding=encoding, is_terminal=True)
        assert result.exit_code == 0, result.err
        assert b"\x1b[" in result.out
        result.err.decode(encoding)


def test_an_encoding_keeps_what_it_has_and_escapes_the_rest(say, odd):
    tags = {
        "utf-8": ("[/夕焼け", "é]", "[red]🏖\\"),
        "cp1252": ("[/\\u5915\\u713c\\u3051", "é]", "[red]\\U0001f3d6\\"),
        "ascii": ("[/\\u5915\\u713c\\u3051", "\\xe9]", "[red]\\U0001f3d6\\"),
        "shift_jis": ("[/夕焼け", "\\xe9]", "[red]\\U0001f3d6\\"),
    }
    for encoding, expected in tags.items():
        result = say("tags", "list", "--catalogue", odd.catalogue, encoding=encoding)
        for tag in expected:
            assert tag in result.out.decode(encoding), encoding


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "shift_jis"])
def test_data_are_utf8_whatever_the_terminal(say, odd, encoding):
    on_it = ("--catalogue", odd.catalogue)
    suggest, audit = ("suggest", *on_it), ("audit", *on_it, "-n", 4)
    for command in (
        (*suggest, "--threshold", 0),
        ("explain", min(odd.photos.glob("*.jpg")), *on_it),
        ("find", "--like", odd.photo, *on_it),
        audit,
        ("tags", "list", *on_it),
    ):
        out = say(*command, "--json", encoding=encoding).out
        assert b"\r" not in out
        assert [json.loads(line) for line in out.decode("utf-8").splitlines()], command
        assert "夕" in out.decode("utf-8"), command
    for command in ((*suggest, "-n", 5), audit):
        out = say(*command, "--csv", encoding=encoding).out
        rows = list(csv.DictReader(io.StringIO(out.decode("utf-8"))))
        assert {row["tag"] for row in rows} <= set(TAGS.values()), command


def test_wrong_usage_and_errors_speak_every_encoding(say, odd):
    for encoding in ENCODINGS:
        result = say("find", "--like", "夕é[/a", "--catalogue", odd.catalogue, encoding=encoding)
        assert (result.exit_code, result.out) == (1, b"")
        assert "[/a" in result.err.decode(encoding)
        wrong = ("audit", "--catalogue", odd.catalogue, "--report", "夕é[/a].txt")
        result = say(*wrong, encoding=encoding)
        assert (result.exit_code, result.out) == (2, b"")
        # what reads commands takes ASCII for a setting gone wrong and writes UTF-8
        assert "[/a].txt" in result.err.decode("utf-8" if encoding == "ascii" else encoding)


# --- texts that look like markup ---------------------------------------------------------


def test_train_shows_tags_names_and_reasons_as_they_are(odd):
    out, err = odd.train.out.decode("ascii"), odd.train.err.decode("ascii")
    assert "once[/b]" in out
    assert "[/gone].jpg" in err
    assert "(chunk b'[/a]')" in err


def test_every_command_shows_tags_and_names_as_they_are(say, odd):
    results = {
        name: say(*command, encoding="utf-8", columns=400)
        for name, command in commands(odd).items()
    }
    assert {name for name, result in results.items() if result.exit_code != 0} == set()
    out = {name: result.out.decode() for name, result in results.items()}
    err = {name: result.err.decode() for name, result in results.items()}
    assert "[/夕焼け" in out["suggest"]
    assert "[bold" in out["suggest"]
    for name in ("suggest", "explain", "similar", "audit"):
        assert f"[{os.sep}{NAME} " in out[name], name
    for name in ("suggest", "evaluate"):
        assert "(chunk b'[/a]')" in err[name], name
        assert f"[{os.sep}{NAME} broken.png: " in err[name], name
    # tags in a row, one that begins like markup before one that ends like it
    assert "[/a], [bold" in out["similar"]
    assert "[bold, é]" in out["similar"]
    for tag in TAGS.values():
        assert tag in out["tags"], tag
    assert "decisions[/a].jsonl" in err["export"]
    for name in ("explain", "tags"):
        assert "[bold" in out[name], name
    assert "[/gone].jpg" in err["scan"]


def test_markup_that_is_split_over_two_texts(say, world, tmp_path):
    tags = make_photographs(tmp_path / "photos", n_each=2)
    odd = {name: ["[/a", "b]", f"{row[0]}\\"] for name, row in tags.items()}
    write_tag_file(tmp_path / "photos" / "metadata.jsonl", odd)
    assert say("train", "photos", encoding="utf-8").exit_code == 0
    result = say("find", "--like", "photos/red-circle-0.jpg", encoding="utf-8")
    assert result.exit_code == 0, result.err
    assert "[/a, b], red\\" in result.out.decode()


def test_names_that_control_a_terminal_are_only_shown(say, world, tmp_path):
    """Whatever a command says about them; tags like these come from files alone."""
    odd = "\x1b]0;title\x07\x1b[31m[red][link=e]\r\u202e"
    photos = tmp_path / f"{odd}photos"
    tags = make_photographs(photos, n_each=2)
    for name in tags:
        (photos / name).rename(photos / f"{odd}{name}")
    named = {f"{odd}{name}": [f"{odd}{tag}" for tag in row] for name, row in tags.items()}
    write_tag_file(photos / "metadata.jsonl", named | {f"{odd}gone.jpg": ["x"]})
    write_broken_png(photos / f"{odd}broken.png")
    photo, at = min(photos.glob("*.jpg")), ("--catalogue", tmp_path / f"{odd}.sqlite")
    commands = [
        (0, "train", photos, *at),
        (0, "suggest", "--threshold", 0, *at),
        (0, "explain", photo, *at),
        (0, "find", "--like", photo, *at),
        (0, "accept", photo, "--tag", "new", *at),
        (0, "write", "--dry-run", *at),
        (0, "history", *at),
        (0, "tags", "list", *at),
        (0, "tags", "rename", f"{odd}red", "red", *at),
        (0, "status", *at),
        (1, "scan", tmp_path / odd),
        (1, "explain", tmp_path / odd, *at),
        (1, "import", odd, *at),
        (2, "audit", *at, "--report", f"{odd}.txt"),
    ]
    controls = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
    for code, *command in commands:
        result = say(*command, encoding="utf-8")
        assert result.exit_code == code, result.err
        text = (result.out + result.err).decode()
        assert controls.findall(text) == [], command
        if code:
            assert "[31m[red][link=e]" in text, command


# --- readers that go away ----------------------------------------------------------------


@pytest.mark.parametrize("as_data", [False, True])
def test_a_reader_that_has_gone_is_no_error(world, odd, tmp_path, monkeypatch, as_data):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAGKIN_CACHE", str(world.cache))
    everything = commands(odd) | {
        "train": ("train", odd.photos, "--catalogue", "own.sqlite"),
        "help": ("--help",),
        "version": ("--version",),
        "help of a command": ("suggest", "--help"),
    }
    for name, command in everything.items():
        if as_data and name in {"help", "version", "help of a command"}:
            continue
        args = (*command, "--json") if as_data and name != "export" else command
        err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        closed = io.TextIOWrapper(io.BufferedWriter(Closed()), encoding="utf-8")
        with monkeypatch.context() as patch:
            code = ended(patch, closed, err, *args)
        assert code == 0, name
        assert b"Error" not in err.buffer.getvalue(), name
    assert (tmp_path / "own.model" / "model.safetensors").is_file()


def test_words_that_nobody_reads_stop_nothing(world, odd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAGKIN_CACHE", str(world.cache))
    for name, command in commands(odd).items():
        out = io.BytesIO()
        closed = io.TextIOWrapper(io.BufferedWriter(Closed()), encoding="utf-8")
        code = ended(monkeypatch, io.TextIOWrapper(out, encoding="utf-8"), closed, *command)
        assert code == 0, name
        assert bool(out.getvalue()) == (name not in WITHOUT_DATA), name


def test_streams_that_are_closed_take_everything(monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    prepare_streams()
    for stream in (sys.stdout, sys.stderr):
        with stream:
            stream.write("夕\n")
