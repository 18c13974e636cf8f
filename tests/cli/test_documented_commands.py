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
INLINE = [(name_of(page), line) for page in PAGES for line in inline_commands(page)]


@pytest.fixture
def desk(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with everything that the documents speak of, which is the home folder, too."""
    shutil.copytree(world.fresh, tmp_path / "other-photos")
    for name in ("Photos", "pictures", "new-photos"):
        shutil.copytree(world.photos, tmp_path / name)
        write_tag_file(tmp_path / name / "metadata.jsonl", dict([*world.tags_of.items()][::2]))
    photograph = world.photos / "red-circle-0.jpg"
    for target in ("photo.jpg", "pictures/scene-0754.jpg"):
        shutil.copy(photograph, tmp_path / target)
    shutil.copytree(world.fresh, tmp_path / "pictures" / "later")
    write_tag_file(
        tmp_path / "train.jsonl", {f"pictures/{name}": tags for name, tags in world.tags_of.items()}
    )
    later = (tmp_path / "pictures/later/metadata.jsonl").read_text()
    (tmp_path / "test.jsonl").write_text(
        later.replace('"file_name": "', '"file_name": "pictures/later/')
    )
    data = (tmp_path / "train.jsonl").read_text()
    (tmp_path / "data.jsonl").write_text(data.replace('"tags"', '"labels"'))
    rows = [f"pictures/{name},{'|'.join(tags)}" for name, tags in world.tags_of.items()]
    (tmp_path / "tags.csv").write_text("\n".join(["file_name,tags", *rows]))
    (tmp_path / "same.csv").write_text("red, scarlet\n")
    (tmp_path / "words.txt").write_text("dog\nbeach\n")
    (tmp_path / "old-cache").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def catalogued_desk(desk: Path, catalogue: Path, world: World, line: tuple[str, ...]) -> None:
    """Let the pictures on the desk have a catalogue, with everything that a command needs."""
    for target in ("photo.jpg", "2024/photo.jpg"):
        (desk / "pictures" / target).parent.mkdir(exist_ok=True)
        shutil.copy(desk / "photo.jpg", desk / "pictures" / target)
    (desk / "Pictures").symlink_to(desk / "pictures")
    with contextlib.closing(sqlite3.connect(catalogue)) as connection, connection:
        root = str((desk / "pictures").resolve())
        connection.execute("UPDATE collection SET root = ?, settings = '{}'", (root,))
    (desk / "data").mkdir()
    known = {"collections": {root: str(catalogue)}}
    (desk / "data" / "collections.json").write_text(json.dumps(known))
    tagged = ("accept", "pictures/scene-0754.jpg", "--tag", "beach", "--tag", "dog")
    before = [("scan",), tagged, ("export", "--output", "decisions.jsonl")]
    before += [("tags", "forget", "red")] * (line[:2] == ("tags", "restore"))
    for command in before:
        said = call(world.cache, *command)
        assert said.exit_code == 0, said.stderr


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
def test_it_runs(
    line: tuple[str, ...], desk: Path, world: World, request: pytest.FixtureRequest
) -> None:
    if "--embed" in line and shutil.which("exiftool") is None:
        pytest.skip("exiftool is not installed")
    if needs_catalogue(line):
        catalogued_desk(desk, request.getfixturevalue("catalogue"), world, line)
        if line[0] == "export":
            (desk / "decisions.jsonl").unlink()
    if line[0] != "train" or "--overwrite" in line:
        for model in ("my-tags", "model"):
            shutil.copytree(world.model, desk / model)
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
