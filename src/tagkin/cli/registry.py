"""The registry of commands: names and modules of all, in the order of ``tagkin --help``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

# Commands and their modules in `cli/commands`, under the headings of the help. A module is
# imported when its command is needed.
PANELS = {
    "Tag photographs": {
        "review": "review",
        "scan": "scan",
        "train": "train",
        "suggest": "suggest",
        "accept": "decide",
        "reject": "decide",
        "finish": "finish",
        "write": "write",
        "undo": "runs",
    },
    "Ask questions": {
        "status": "status",
        "history": "runs",
        "explain": "explain",
        "find": "find",
        "audit": "audit",
        "evaluate": "evaluate",
    },
    "Manage": {
        "tags list": "tags",
        "tags rename": "tags",
        "tags merge": "tags",
        "tags forget": "tags",
        "tags restore": "tags",
        "tags duplicates": "tags",
        "incomplete": "finish",
        "export": "exchange",
        "import": "exchange",
        "connect": "connect",
        "cache": "cache",
    },
}
MODULES = {name: module for panel in PANELS.values() for name, module in panel.items()}

# Words that several commands begin with.
GROUPS = {
    "tags": "List, rename, merge and forget the tags of a collection.",
}

_EXAMPLES = "\n\nExamples\n--------\n"
_COMMANDS: dict[str, Command] = {}


@dataclass(frozen=True)
class Command:
    """A command, with its help."""

    name: str
    """As typed after ``tagkin``, such as "undo" or "tags rename"."""
    run: Callable[..., None]

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


def command(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Enter a function as a command; its docstring and parameters are its help."""

    def enter(run: Callable[..., None]) -> Callable[..., None]:
        _COMMANDS[name] = Command(name, run)
        return run

    return enter


def find_command(name: str) -> Command:
    """Return a command, whose module is imported now."""
    import_module(f"tagkin.cli.commands.{MODULES[name]}")
    return _COMMANDS[name]


@functools.cache
def commands() -> dict[str, Command]:
    """Return all commands by name, in the order of ``tagkin --help``."""
    return {name: find_command(name) for name in MODULES}
