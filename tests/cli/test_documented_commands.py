"""Every command in the documents runs, or names what is there."""

import contextlib
import functools
import importlib.util
import itertools
import json
import re
import shutil
import sqlite3
import tomllib
from pathlib import Path

import pytest
import typer.main

from tagkin.cli import app
from tagkin.server import Server

from ..documents import PAGES, ROOT, blocks, inline_commands, name_of, shell_lines
from ..sharing import built_once
from .conftest import World, call
from .reference import commands
from .synthetic import write_tag_file


def _plain(words: list[str]) -> list[str]:
    """With one name for the folder of photographs, so that each command runs once."""
    return ["pictures" if word in ("~/Pictures", "photos") else word for word in words]


MAKEFILE = (ROOT / "Makefile").read_text()
SHELL = [(name_of(page), line) for page in PAGES for line in shell_lines(page)]
EXTRAS = set(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
)
TAGKIN = sorted({tuple(_plain(line[1:])) for _, line in SHELL if line[0] == "tagkin"})
CATALOGUE = {"scan", "accept", "reject", "status", "history", "tags", "export", "import"}
CATALOGUE |= {"review", "write", "undo"}
PHOTOGRAPHS = ("scene-0754.jpg", "photo.jpg", "2024/photo.jpg")
INLINE = [(name_of(page), line) for page in PAGES for line in inline_commands(page)]


@pytest.fixture(scope="session")
def prepared(world: World, catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A desk with everything that the documents speak of, and a catalogue of the pictures on it."""

    def build(home: Path) -> None:
        (home / "desk").mkdir()
        put_on_desk(home / "desk", world)
        copy_catalogue(catalogued, home / "catalogue.sqlite", home / "desk")
        tagged = ("accept", "pictures/scene-0754.jpg", "--tag", "beach", "--tag", "dog")
        with contextlib.chdir(home / "desk"):
            for command in (("scan",), tagged, ("export", "--output", home / "decisions.jsonl")):
                said = call(world.cache, *command, "--catalogue", home / "catalogue.sqlite")
                assert said.exit_code == 0, said.stderr

    return built_once(tmp_path_factory, "documented", build)


def put_on_desk(desk: Path, world: World) -> None:
    shutil.copytree(world.fresh, desk / "other-photos")
    for name in ("Photos", "pictures", "new-photos"):
        shutil.copytree(world.photos, desk / name)
        write_tag_file(desk / name / "metadata.jsonl", dict([*world.tags_of.items()][::2]))
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
    rows = [f"pictures/{name},{'|'.join(tags)}" for name, tags in world.tags_of.items()]
    (desk / "tags.csv").write_text("\n".join(["file_name,tags", *rows]))
    (desk / "same.csv").write_text("red, scarlet\n")
    (desk / "words.txt").write_text("dog\nbeach\n")
    (desk / "old-cache").mkdir()


def copy_catalogue(catalogue: Path, copy: Path, desk: Path) -> None:
    """A catalogue and its model, for the pictures on a desk."""
    shutil.copy(catalogue, copy)
    shutil.copytree(catalogue.with_suffix(".model"), copy.with_suffix(".model"))
    root = str((desk / "pictures").resolve())
    with contextlib.closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("UPDATE collection SET root = ?, settings = '{}'", (root,))


@pytest.fixture
def desk(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that desk, which is the home folder, too."""
    for one in (prepared / "desk").iterdir():
        if one.name in ("Photos", "new-photos", "other-photos"):  # they are only looked at
            (tmp_path / one.name).symlink_to(one)
        else:
            (shutil.copytree if one.is_dir() else shutil.copy2)(one, tmp_path / one.name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def catalogued_desk(desk: Path, prepared: Path, world: World, line: tuple[str, ...]) -> None:
    """Let the pictures on the desk have a catalogue, with everything that a command needs."""
    copy_catalogue(prepared / "catalogue.sqlite", desk / "catalogue.sqlite", desk)
    (desk / "Pictures").symlink_to(desk / "pictures")
    (desk / "data").mkdir()
    known = {"collections": {str((desk / "pictures").resolve()): str(desk / "catalogue.sqlite")}}
    (desk / "data" / "collections.json").write_text(json.dumps(known))
    if line[0] != "export":
        shutil.copy(prepared / "decisions.jsonl", desk)
    if line[:2] == ("tags", "restore"):
        assert call(world.cache, "tags", "forget", "red").exit_code == 0


def needs_catalogue(line: tuple[str, ...]) -> bool:
    plain = {"train", "suggest", "explain", "audit", "similar", "map"}
    alone = line == ("info",) or (line[0] in plain and "--model" not in line)
    return alone or line[0] in CATALOGUE


@pytest.fixture
def _ended_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Ctrl-C, as soon as a page is served; no browser opens, and this process goes on."""

    def ended(server: Server) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "run", ended)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    monkeypatch.setattr("os._exit", lambda status: None)


@pytest.mark.usefixtures("_ended_at_once")
@pytest.mark.parametrize("line", TAGKIN, ids=" ".join)
def test_it_runs(line: tuple[str, ...], desk: Path, prepared: Path, world: World) -> None:
    if "--embed" in line and shutil.which("exiftool") is None:
        pytest.skip("exiftool is not installed")
    if needs_catalogue(line):
        catalogued_desk(desk, prepared, world, line)
    if line[0] != "train" or "--overwrite" in line:
        for model in ("my-tags", "model"):
            shutil.copytree(world.model, desk / model)
    if "--backbone" in line:  # none was looked at through that network: two of each kind are enough
        for photograph in desk.glob("pictures/*-[2-9].jpg"):
            photograph.unlink()
    cache = desk / "cache" if line[0] == "cache" else world.cache  # others need theirs
    said = call(cache, *(str(Path(word).expanduser()) for word in line))
    assert said.exit_code == 0, said.stderr
    for option, target in itertools.pairwise(line):
        if option in ("--report", "--sheet", "--output", "-o", "--model"):
            assert (desk / target).exists()


def test_the_code_of_the_front_page_runs(
    desk: Path, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TAGKIN_CACHE", str(world.cache))
    (code,) = blocks(ROOT / "docs" / "index.md", "python")
    exec(compile(code, "docs/index.md", "exec"), {})
    assert "red-circle-0.jpg [('" in capsys.readouterr().out


@functools.cache
def options_of_all() -> set[str]:
    found = {option for p in typer.main.get_command(app).params for option in p.opts}
    # what typer adds to every program
    return found | {"--install-completion", "--help"}


every_command = functools.cache(commands)


def known_options(words: list[str]) -> bool:
    """Whether there is such a command, and whether it has these options."""
    of_all, by_name = options_of_all(), every_command()
    name = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in by_name), None)
    options = {word for word in words if word.startswith("-")}
    if name is not None:
        of_all = {option for p in by_name[name].params for option in p.opts}
    return options <= of_all and (name is not None or bool(options))


def extras(requirement: str) -> set[str]:
    found = re.fullmatch(r"\.(?:\[([\w,]+)\])?", requirement)
    assert found, requirement
    return set((found[1] or "").split(",")) - {""}


def is_there(line: list[str]) -> bool:
    """Whether there is what a command names: options, targets, modules, extras."""
    program, *words = line
    if program == "tagkin":
        return known_options(words)
    if program == "make":
        names = [f"{words[0]}:", *(f"{word.partition('=')[0]} +\\?=" for word in words[1:])]
        return all(re.search(f"^{name}", MAKEFILE, flags=re.MULTILINE) for name in names)
    if program == "python":
        found = importlib.util.find_spec(words[1])
        source = Path("" if found is None else str(found.origin))
        if source.name == "__init__.py":
            return words[0] == "-m" and source.with_name("__main__.py").is_file()
        return words[0] == "-m" and '__name__ == "__main__"' in source.read_text()
    if program == "pip":
        return words[0] == "install" and extras(words[1]) <= EXTRAS
    return program == "dask"


def test_commands_name_what_is_there() -> None:
    found = [*SHELL, *INLINE]
    assert len(found) > 80
    assert not [f"{page}: {' '.join(line)}" for page, line in found if not is_there(line)]
