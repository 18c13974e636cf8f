"""A desk with everything that examples of commands speak of, and all examples."""

import contextlib
import inspect
import json
import os
import re
import shlex
import shutil
import sqlite3
from pathlib import Path

from tagkin.cli.registry import Command, commands

from ..collection.program_catalogues import make_digikam, make_lightroom
from .conftest import World, call
from .synthetic import write_tag_file
from .terminals import write_broken_png

PHOTOGRAPHS = ("scene-0754.jpg", "photo.jpg", "2024/photo.jpg")
ODD = "a] 夕é.jpg"

# Commands that change nothing; all others have --dry-run, unless a person stops them.
READING = {
    "status",
    "history",
    "explain",
    "find",
    "audit",
    "evaluate",
    "export",
    "tags list",
    "tags duplicates",
}
SERVING = {"review"}
CONNECTING = {"connect"}
"""Commands that always connect to another machine."""


def plain_words(words: list[str]) -> tuple[str, ...]:
    """Return a command with one name for the folder of photographs, without shell syntax."""
    ends = [words.index(sign) for sign in (">", "|") if sign in words]
    words = [word.removeprefix("~/") for word in words[: min(ends, default=None)]]
    return tuple(re.sub(r"^(Pictures|photos)(?=/|$)", "pictures", word) for word in words)


def examples(entry: Command) -> list[tuple[str, ...]]:
    """Return the examples of a command, in words after ``tagkin``."""
    return [plain_words(shlex.split(line)[1:]) for line in entry.examples]


def find_command(line: tuple[str, ...]) -> Command:
    """Return the command that a line begins with."""
    named = commands()
    return named[" ".join(line[:2])] if " ".join(line[:2]) in named else named[line[0]]


def prepare(home: Path, world: World, catalogued: Path) -> None:
    """Make a desk, a catalogue of the pictures on it, and an export of its decisions."""
    desk = home / "desk"
    desk.mkdir()
    _put_on_desk(desk, world)
    _copy_catalogue(catalogued, home / "catalogue.sqlite", desk / "pictures")
    by_hand = ("accept", "pictures/scene-0754.jpg")
    with contextlib.chdir(desk):
        for command in (
            ("scan",),
            (*by_hand, "--tag", "beach", "--tag", "dog", "--tag", "blurred"),
            ("tags", "forget", "blurred"),
            ("export", home / "decisions.jsonl"),
        ):
            result = call(world.cache, *command, "--catalogue", home / "catalogue.sqlite")
            assert result.exit_code == 0, result.stderr


def _put_on_desk(desk: Path, world: World) -> None:
    shutil.copytree(world.fresh, desk / "other-photos")
    tags = dict([*world.tags_of.items()][::2]) | {ODD: ["[/夕焼け", "é]"], "broken.png": ["[bold"]}
    for name in ("Photos", "pictures", "new-photos"):
        shutil.copytree(world.photos, desk / name)
        shutil.copy(world.photos / "red-circle-0.jpg", desk / name / ODD)
        write_broken_png(desk / name / "broken.png")
        (desk / name / "empty.jpg").touch()
        write_tag_file(desk / name / "metadata.jsonl", tags)
    if hasattr(os, "mkfifo"):
        os.mkfifo(desk / "pictures" / "pipe.jpg")
    (desk / "pictures" / "2024").mkdir()
    photograph = world.photos / "red-circle-0.jpg"
    for target in ("photo.jpg", *(f"pictures/{name}" for name in PHOTOGRAPHS)):
        shutil.copy(photograph, desk / target)
    shutil.copytree(world.fresh, desk / "pictures" / "later")
    write_tag_file(
        desk / "train.jsonl", {f"pictures/{name}": tags for name, tags in world.tags_of.items()}
    )
    later = (desk / "pictures/later/metadata.jsonl").read_text()
    (desk / "test.jsonl").write_text(
        later.replace('"file_name": "', '"file_name": "pictures/later/')
    )
    data = (desk / "train.jsonl").read_text()
    (desk / "data.jsonl").write_text(data.replace('"tags"', '"labels"'))
    rows = [f"pictures/{name},{';'.join(tags)}" for name, tags in world.tags_of.items()]
    (desk / "tags.csv").write_text("\n".join(["file_name,tags", *rows]))
    (desk / "pictures" / "Lightroom").mkdir()
    make_lightroom(desk / "pictures/Lightroom/Catalog.lrcat", world.tags_of, "C:/Pictures/")
    make_digikam(desk / "pictures/digikam4.db", world.tags_of, "volumeid:?uuid=1", "/Pictures")
    (desk / "same.csv").write_text("red, scarlet\n")
    (desk / "words.txt").write_text("dog\nbeach\n")
    (desk / "password.txt").write_text("correct horse battery staple\n")


def _copy_catalogue(catalogue: Path, copy: Path, pictures: Path) -> None:
    """Copy a catalogue and its model, for pictures on another desk."""
    shutil.copy(catalogue, copy)
    shutil.copytree(catalogue.with_suffix(".model"), copy.with_suffix(".model"))
    root = str(pictures.resolve())
    with contextlib.closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("UPDATE collection SET root = ?, settings = '{}'", (root,))


def copy_desk(prepared: Path, desk: Path, *, links: bool = True) -> None:
    """Copy the things on a desk; folders that are only read may be links."""
    for path in (prepared / "desk").iterdir():
        if links and path.name in ("Photos", "new-photos", "other-photos"):
            (desk / path.name).symlink_to(path)
        elif path.is_dir():
            special = shutil.ignore_patterns("pipe.jpg")  # which cannot be copied
            shutil.copytree(path, desk / path.name, ignore=special)
        else:
            shutil.copy2(path, desk / path.name)
    if links and hasattr(os, "mkfifo"):
        os.mkfifo(desk / "pictures" / "pipe.jpg")


def put_catalogue(prepared: Path, data: Path, pictures: Path, place: Path) -> None:
    """Put the catalogue of the pictures into a data folder that will lie in a place."""
    _copy_catalogue(prepared / "catalogue.sqlite", data / "catalogue.sqlite", pictures)
    known = {str(pictures.resolve()): str(place / "catalogue.sqlite")}
    (data / "collections.json").write_text(json.dumps(known))


def put_what_it_needs(
    line: tuple[str, ...], desk: Path, data: Path, prepared: Path, world: World
) -> None:
    """Put the catalogue or the model on a desk that a command needs."""
    if "catalogue" in inspect.signature(find_command(line).run).parameters:
        data.mkdir(parents=True)
        put_catalogue(prepared, data, desk / "pictures", data)
        if line[0] == "import":
            shutil.copy(prepared / "decisions.jsonl", desk)
    if "--backbone" in line:  # no feature of that network is cached: two of each kind are enough
        for photograph in desk.glob("pictures/*-[2-9].jpg"):
            photograph.unlink()
