"""One collection, one model: created once, by the command line itself."""

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import typer.main
from typer.testing import CliRunner

from tagkin.cli import app
from tests.fork_server import Start
from tests.sharing import built_once

from .synthetic import make_photographs, write_tag_file

Run = Callable[..., "Result"]


class Result(NamedTuple):
    """What a command said."""

    exit_code: int
    stdout: str
    stderr: str


class World(NamedTuple):
    """Photographs to learn from, others, and a catalogue of the first with its model."""

    photos: Path
    fresh: Path
    tags: Path
    catalogue: Path
    cache: Path
    train: Result
    tags_of: dict[str, list[str]]

    @property
    def model(self) -> Path:
        return self.catalogue.with_suffix(".model")


def lines(text: str) -> list[dict]:
    """What a command said with --json."""
    return [json.loads(line) for line in text.splitlines()]


def call(cache: Path, *args: object) -> Result:
    """Run a command in this process."""
    runner = CliRunner(env={"TAGKIN_CACHE": str(cache), "COLUMNS": "200"})
    command = typer.main.get_command(app)
    with runner.isolation() as (out, err, _):
        with pytest.raises(SystemExit) as end:
            command.main([str(arg) for arg in args], prog_name="tagkin")
        sys.stdout.flush()
        sys.stderr.flush()
        streams = [stream.getvalue().decode() for stream in (out, err)]
    return Result(int(end.value.code or 0), *streams)


@pytest.fixture(scope="session", autouse=True)
def _put_together_once() -> Iterator[None]:
    """Typer makes the command line of its functions anew for every command that is run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    home = built_once(tmp_path_factory, "cli", _build_world)
    result = Result(*json.loads((home / "train.json").read_text()))
    tags_of = json.loads((home / "tags_of.json").read_text())
    return World(
        photos=home / "photos",
        fresh=home / "fresh",
        tags=home / "tags.jsonl",
        catalogue=home / "catalogue.sqlite",
        cache=home / "cache",
        train=result,
        tags_of=tags_of,
    )


def _build_world(home: Path) -> None:
    tags = make_photographs(home / "photos")
    fresh = make_photographs(home / "fresh", n_each=2, seed=1)
    write_tag_file(home / "fresh" / "metadata.jsonl", fresh)
    tag_file = write_tag_file(home / "tags.jsonl", tags)
    with pytest.MonkeyPatch.context() as here:
        here.setenv("TAGKIN_CATALOGUES", str(home / "data"))
        for command in (("scan", home / "photos", "--tags", tag_file), ("train",)):
            result = call(home / "cache", *command, "--catalogue", home / "catalogue.sqlite")
            assert result.exit_code == 0, result.stderr
    shutil.copytree(home / "cache", home / "cache-of-training")
    (home / "train.json").write_text(json.dumps(result))
    (home / "tags_of.json").write_text(json.dumps(tags))


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Catalogues and networks of a test are its own."""
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture(scope="session")
def catalogued(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue of the photographs, every other one tagged: scanned, learned, suggested."""

    def build(home: Path) -> None:
        with pytest.MonkeyPatch.context() as here:
            here.setenv("TAGKIN_CATALOGUES", str(home / "data"))
            tag_file = write_tag_file(home / "some.jsonl", dict([*world.tags_of.items()][::2]))
            for command in (
                ("scan", world.photos, "--tags", tag_file),
                ("train",),
                ("suggest", "--threshold", "0.1"),
            ):
                result = call(world.cache, *command, "--catalogue", home / "catalogue.sqlite")
                assert result.exit_code == 0, result.stderr

    return built_once(tmp_path_factory, "catalogued", build) / "catalogue.sqlite"


@pytest.fixture(scope="session")
def prepared(world: World, catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A desk with everything that examples speak of, and a catalogue of the pictures on it."""
    from .desk import prepare

    return built_once(tmp_path_factory, "desk", lambda home: prepare(home, world, catalogued))


@pytest.fixture
def catalogue(catalogued: Path, tmp_path: Path) -> Path:
    """A copy of that catalogue and its model, to do anything with."""
    copy = tmp_path / "catalogue.sqlite"
    shutil.copy(catalogued, copy)
    shutil.copytree(catalogued.with_suffix(".model"), copy.with_suffix(".model"))
    return copy


@pytest.fixture
def run(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *args: call(world.cache, *args)


@pytest.fixture
def environment(world: World) -> dict[str, str]:
    """Of a process of its own."""
    package = str(Path(__file__).parents[2] / "src")
    return os.environ | {"TAGKIN_CACHE": str(world.cache), "PYTHONPATH": package}


@pytest.fixture
def start_program(forked: Start, environment: dict[str, str], tmp_path: Path) -> Start:
    """Start what follows ``python`` in a process of its own, with pipes."""

    def started(*command: object, **kwargs: object) -> subprocess.Popen:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        settings = {"cwd": tmp_path, **pipes, **kwargs}
        return forked([*map(str, command)], env=environment, **settings)

    return started


@pytest.fixture
def start(start_program: Start) -> Start:
    """Start a command in a process of its own."""
    return lambda *args, **kwargs: start_program("-m", "tagkin", *args, **kwargs)
