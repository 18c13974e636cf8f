"""The registry of commands: every module in `cli/commands` enters its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module


class Panel(StrEnum):
    """Headings of ``tagkin --help``, in their order."""

    TAG = "Tag photographs"
    ASK = "Ask questions"
    KEEP = "Keep order"
    MODEL = "Without a catalogue"


@dataclass(frozen=True)
class Command:
    """A command and everything that is true of it."""

    name: str
    """As typed after ``tagkin``, such as "undo" or "tags rename"."""
    run: Callable[..., None]
    panel: Panel
    rank: int
    """Its place in the panel, or in its group."""
    writes: bool
    """Whether it changes files, the catalogue, a model or the cache; it has --dry-run then."""
    serves: bool
    """Whether it runs until a person stops it."""
    connects: bool
    """Whether it downloads from a server of others: `models get` alone."""

    @property
    def text(self) -> str:
        """Its docstring without the examples."""
        return (inspect.getdoc(self.run) or "").partition(_EXAMPLES)[0]

    @property
    def summary(self) -> str:
        """The first paragraph of its docstring."""
        return " ".join(self.text.partition("\n\n")[0].split())

    @property
    def examples(self) -> list[str]:
        """The examples at the end of its docstring."""
        lines = (inspect.getdoc(self.run) or "").partition(_EXAMPLES)[2].splitlines()
        return [line.strip() for line in lines]

    @property
    def needs_catalogue(self) -> bool:
        """Whether it works on a collection."""
        return "catalogue" in inspect.signature(self.run).parameters


@dataclass(frozen=True)
class Group:
    """Commands whose names begin with the same word."""

    name: str
    summary: str
    panel: Panel
    rank: int


_EXAMPLES = "\n\nExamples\n--------\n"
_COMMANDS: dict[str, Command] = {}
_GROUPS: dict[str, Group] = {}


def command(
    name: str,
    panel: Panel,
    rank: int,
    *,
    writes: bool = False,
    serves: bool = False,
    connects: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Enter a function as a command; its docstring and parameters are its help."""

    def enter(run: Callable[..., None]) -> Callable[..., None]:
        _COMMANDS[name] = Command(name, run, panel, rank, writes, serves, connects)
        return run

    return enter


def group(name: str, summary: str, panel: Panel, rank: int) -> None:
    """Enter the first word that several commands share."""
    _GROUPS[name] = Group(name, summary, panel, rank)


@functools.cache
def commands() -> dict[str, Command]:
    """Return all commands by name, in the order of ``tagkin --help``."""
    import pkgutil

    package = import_module("tagkin.cli.commands")
    for module in pkgutil.iter_modules(package.__path__):
        import_module(f"tagkin.cli.commands.{module.name}")
    return {entry.name: entry for entry in sorted(_COMMANDS.values(), key=_place_in_help)}


def groups() -> dict[str, Group]:
    """Return all groups by name."""
    commands()  # whose modules enter them
    return _GROUPS


def _place_in_help(entry: Command) -> tuple[int, int, int]:
    first = _GROUPS.get(entry.name.partition(" ")[0])
    return list(Panel).index(entry.panel), first.rank if first else entry.rank, entry.rank
