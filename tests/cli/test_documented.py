"""The pages on the command line are whole and current, and so is the help."""

import pkgutil
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tagkin import cli
from tagkin.cli import app, registry
from tagkin.cli import commands as commands_package
from tagkin.server import api, files_page, pages, start

from ..rules import obey
from .reference import OVERVIEW, PAGES, commands, page_of
from .terminals import speak

LINES = 40  # of a screen
FIRST = OVERVIEW.parents[1] / "first-folder.md"
# Commands, and the address of a page or its request that does the same.
ON_THE_PAGE = {
    "/start": ["review"],
    "/api/v1/desk/open": ["scan", "train", "suggest"],
    "/api/v1/desk/immich": ["connect"],
    "/decisions": ["accept", "reject"],
    "/finish": ["finish"],
    "/write": ["write"],
    "/undo": ["undo"],
    "/overview": ["status", "history", "tags list"],
    "/photographs/{content}": ["explain"],
    "/search": ["find"],
    "/doubtful": ["audit"],
    "/tags/{tag}/change": ["tags rename", "tags merge", "tags forget", "tags restore"],
    "/api/v1/incomplete": ["incomplete"],
    "/decisions.jsonl": ["export"],
}


def test_every_command_and_option_is_in_the_documentation():
    assert list(PAGES) == list(registry.PANELS)
    for panel, page in PAGES.items():
        written = page.read_text(encoding="utf-8")
        assert written == page_of(panel), "run `python -m tests.cli.reference`"


def test_every_command_teaches_with_examples_and_every_option_with_words():
    for name, command in commands().items():
        assert registry.commands()[name].examples, name
        assert re.search(rf"^  tagkin {name}\b", command.epilog, flags=re.MULTILINE), name
        assert max(map(len, command.epilog.splitlines())) < 85, name
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert parameter.help, (name, parameter.name)
            else:
                assert parameter.metavar in command.help, (name, parameter.name)


@pytest.mark.parametrize("name", registry.commands())
def test_help_fits_a_screen(name, monkeypatch):
    result = speak(monkeypatch, *name.split(), "--help", encoding="utf-8", columns=80)
    assert result.exit_code == 0
    lines = result.out.decode().splitlines()
    assert len(lines) <= LINES, f"shorten the docstring or options of {name} in src/tagkin/cli"
    assert max(map(len, lines)) <= 80


def test_help_lists_every_command_with_what_its_own_help_begins_with():
    whole = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout
    for name, entry in registry.commands().items():
        first, _, second = name.partition(" ")
        listed = CliRunner().invoke(app, [first, "--help"]).stdout if second else whole
        assert re.search(
            rf"^  {second or first} +{re.escape(entry.summary)}$", listed, re.MULTILINE
        )
    for name, summary in registry.GROUPS.items():
        assert re.search(rf"^  {name} +{re.escape(summary)}$", whole, re.MULTILINE)


def test_an_option_has_one_meaning():
    """The same name stands for the same kind of value in all commands, and has no other name."""
    kinds: dict[str, set[tuple[object, ...]]] = {}
    for command in commands().values():
        for option in command.params:
            if option.param_type_name == "option":
                kind = (option.is_flag, option.multiple)
                kinds.setdefault(" ".join(sorted(option.opts)), set()).add(kind)
    assert not {name: kind for name, kind in kinds.items() if len(kind) > 1}
    names = " ".join(kinds).split()
    assert sorted(names) == sorted(set(names))


def test_exit_codes_are_in_help_and_documentation():
    page = OVERVIEW.read_text(encoding="utf-8")
    for code in ("0", "1", "2", "130"):
        assert re.search(rf"[:,] {code} \w", app.info.epilog)
        assert f"\n| {code} |" in page


def test_the_map_of_files_names_every_module():
    named = set(re.findall(r"^- `(\w+)`: ", cli.__doc__, flags=re.MULTILINE))
    modules = {module.name for module in pkgutil.iter_modules(cli.__path__) if not module.ispkg}
    assert named == modules


def test_the_registry_names_every_command_and_its_module():
    for path in Path(commands_package.__file__).parent.glob("[!_]*.py"):
        entered = re.findall(r'^@command\("([^"]+)"', path.read_text("utf-8"), flags=re.MULTILINE)
        named = [name for name, module in registry.MODULES.items() if module == path.stem]
        assert sorted(named) == sorted(entered), path.name


def test_what_is_not_on_the_page_is_listed_with_a_reason():
    part = FIRST.read_text("utf-8").partition("### What only the terminal does")[2]
    rows = re.findall(r"^\| (`.+?) \| (\w.+\.) \|$", part, re.M)
    listed = [name for names, _ in rows for name in re.findall(r"`([^`]+)`", names)]
    every = commands()
    wrong = []
    for name in listed:
        command, _, option = name.partition(" --")
        options = (
            {word for p in every[command].params for word in p.opts} if command in every else {}
        )
        if command not in every or (option and f"--{option}" not in options):
            wrong.append(name)
    obey("commands in the list exist", wrong, f"write the commands of today in {FIRST.name}")
    routers = (api.router, start.router, pages.router, files_page.router)
    addresses = {route.path for router in routers for route in router.routes}
    assert set(ON_THE_PAGE) <= addresses
    placed = {name for names in ON_THE_PAGE.values() for name in names} | set(listed)
    obey(
        "a command is on the page or in the list of what only the terminal does",
        set(every) - placed,
        f"write it into ON_THE_PAGE above, or into {FIRST.name} with a reason",
    )
