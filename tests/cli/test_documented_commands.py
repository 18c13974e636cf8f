"""Every command in the documents runs, or names what is there."""

import functools
import importlib.util
import itertools
import os
import re
import shutil
import tomllib
from pathlib import Path

import pytest
import typer.main

from tagkin.cli import app, registry
from tagkin.server import Server

from ..documents import PAGES, ROOT, blocks, inline_commands, name_of, prose, shell_lines
from ..rules import obey
from .conftest import World
from .desk import (
    CONNECTING,
    READING,
    SERVING,
    copy_desk,
    examples,
    find_command,
    plain_words,
    put_what_it_needs,
)
from .reference import OVERVIEW, commands
from .synthetic import write_sidecar
from .terminals import speak
from .test_dry_runs import everything

MAKEFILE = (ROOT / "Makefile").read_text()
SHELL = [(name_of(page), line) for page in PAGES for line in shell_lines(page)]
EXTRAS = set(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
)
TAGKIN = sorted({plain_words(line[1:]) for _, line in SHELL if line[0] == "tagkin"})
INLINE = [(name_of(page), line) for page in PAGES for line in inline_commands(page)]


@pytest.fixture
def desk(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the desk, which is the home folder, too."""
    copy_desk(prepared, tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
    line: tuple[str, ...],
    desk: Path,
    data_folder: Path,
    prepared: Path,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a terminal without accents, beside photographs that cannot be read or have odd names."""
    if "--embed" in line and shutil.which("exiftool") is None:
        pytest.skip("exiftool is not installed")
    put_what_it_needs(line, desk, data_folder, prepared, world)
    cache = desk / "cache" if line[0] == "cache" else world.cache  # others need theirs
    monkeypatch.setenv("TAGKIN_CACHE", str(cache))
    words = [os.path.expanduser(word) for word in line]
    if "--host" in line:
        words += ["--port", "0"]  # another program of this machine may have the usual port
    entry = find_command(line)
    if entry.name not in READING | SERVING and line in examples(entry):
        before = everything(desk)
        would = speak(monkeypatch, *words, *({"--dry-run"} - {*words}), encoding="ascii")
        assert would.exit_code == 0, would.err
        assert everything(desk) == before
    if entry.name in CONNECTING:
        return  # tests/cli/test_models.py has a server for it
    result = speak(monkeypatch, *words, encoding="ascii")
    assert result.exit_code == 0, result.err
    assert b"Error" not in result.err
    for option, target in itertools.pairwise(line):
        if option == "--report":
            assert (desk / target).exists()


def test_the_code_of_the_front_page_runs(
    desk: Path, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TAGKIN_CACHE", str(world.cache))
    for name, tags in [*world.tags_of.items()][::2]:
        write_sidecar(desk / "pictures" / name, tags)
    (code,) = blocks(ROOT / "docs" / "index.md", "python")
    exec(compile(code, "docs/index.md", "exec"), {})
    assert "red-circle-0.jpg [('" in capsys.readouterr().out


@functools.cache
def options_of_all() -> set[str]:
    options = {option for p in typer.main.get_command(app).params for option in p.opts}
    # what typer adds to every program
    return options | {"--install-completion", "--help"}


every_command = functools.cache(commands)


def known_options(words: list[str]) -> bool:
    """Whether there is such a command, and whether it has these options."""
    of_all, by_name = options_of_all(), every_command()
    name = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in by_name), None)
    options = {word for word in words if word.startswith("-")} - {"-"}
    if name is not None:
        of_all = {option for p in by_name[name].params for option in p.opts}
    return options <= of_all and (name is not None or bool(options))


def extras(requirement: str) -> set[str]:
    match = re.fullmatch(r"\.(?:\[([\w,-]+)\])?", requirement)
    assert match, requirement
    return set((match[1] or "").split(",")) - {""}


def is_there(line: list[str]) -> bool:
    """Whether there is what a command names: options, targets, modules, extras."""
    program, *words = line
    if program == "tagkin":
        return known_options(words)
    if program == "make":
        names = [f"{words[0]}:", *(f"{word.partition('=')[0]} +\\?=" for word in words[1:])]
        return all(re.search(f"^{name}", MAKEFILE, flags=re.MULTILINE) for name in names)
    if program == "python":
        spec = importlib.util.find_spec(words[1])
        source = Path("" if spec is None else str(spec.origin))
        if source.name == "__init__.py":
            return words[0] == "-m" and source.with_name("__main__.py").is_file()
        return words[0] == "-m" and '__name__ == "__main__"' in source.read_text()
    if program == "pip":
        return words[0] == "install" and extras(words[1]) <= EXTRAS
    return program == "dask"


def test_commands_name_what_is_there() -> None:
    commands = [*SHELL, *INLINE]
    assert len(commands) > 80
    assert not [f"{page}: {' '.join(line)}" for page, line in commands if not is_there(line)]


def test_options_in_the_text_are_there() -> None:
    wrong = []
    for page in PAGES:
        if page.name == "CONTRIBUTING.md" or page.parent.name == "results":
            continue  # they name options of pytest and of experiments
        options = set(re.findall(r"`(--[a-z-]+)", prose(page)))
        every = options_of_all().union(
            *(c.opts for p in every_command().values() for c in p.params)
        )
        wrong += [f"{name_of(page)}: {option}" for option in options - every]
    obey("options in the documents exist", wrong, "write the option of today on that page")


def test_the_overview_lists_every_command() -> None:
    rows = re.findall(r"^\| \[(.+)\]\(\w+\.md\) \| (.+) \|$", OVERVIEW.read_text("utf-8"), re.M)
    listed = {panel: re.findall(r"`(\w+)`", names) for panel, names in rows}
    panels = registry.PANELS.items()
    assert listed == {name: [*dict.fromkeys(c.split()[0] for c in of)] for name, of in panels}
