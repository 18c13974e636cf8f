"""The commands, imported when they are asked for: most of what a short command takes is that."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["SUMMARIES", "CommandGroup", "group"]

# In the order in which help lists them, with the first sentence of each one's own help.
SUMMARIES = {
    "review": "Review suggestions in the browser: accept, reject, undo.",
    "scan": "Find the photographs in a folder and the tags that they carry.",
    "train": "Learn from photographs and their tags.",
    "suggest": "Suggest tags for photographs.",
    "accept": "Accept suggested tags.",
    "reject": "Reject suggested tags.",
    "write": "Write the tags that were accepted into XMP files beside the photographs.",
    "undo": "Take back the last run, as if it had never been.",
    "status": "Tell how a collection stands: what is tagged, suggested, decided, and left to do.",
    "history": "List what was done with a collection, the latest first.",
    "explain": "Show why tags are suggested for a photograph.",
    "similar": "Find the tagged photographs that are most similar to a photograph.",
    "audit": "Find tags that seem wrong, and tags that seem to be missing.",
    "evaluate": "Measure how good suggestions are, on tags that were held out.",
    "map": "Draw a map: every photograph a dot, close to similar ones.",
    "info": "Show what a model learned from, and how.",
    "export": "Write decisions and history as JSON lines.",
    "import": "Take in decisions and history that were exported.",
    "tags": "List the tags of a collection; rename, merge and forget tags.",
    "cache": "Show, shrink or empty the feature cache.",
}


def group(
    name: str, text: str, *, epilog: str | None = None, cls: type[TyperGroup] = TyperGroup
) -> typer.Typer:
    """Commands under one name."""
    return typer.Typer(
        name=name,
        cls=cls,
        help=text,
        epilog=epilog,
        no_args_is_help=True,
        add_completion=cls is CommandGroup,  # once, for all commands
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


class CommandGroup(TyperGroup):
    """All commands; one is imported when it is run, or its own help is asked for."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of help."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """What each does, in a line."""
        brief: dict[str, Any] = {
            name: TyperCommand(name, help=text) for name, text in SUMMARIES.items()
        }
        TyperGroup(name=self.name, commands=brief).format_commands(ctx, formatter)


class _Commands(UserDict[str, Any]):
    """Commands by name, put together at first use."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(SUMMARIES))

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = _imported(name)
        return self.data[name]


def _imported(name: str) -> Any:
    from tagkin.cli.guard import guarded

    module = import_module(f"tagkin.cli.{'import_' if name == 'import' else name}")
    own = group(name, getattr(module, "HELP", ""))
    alone = ((name, module.run, module.EXAMPLES),) if hasattr(module, "run") else ()
    for inner, run, examples in alone or module.COMMANDS:
        own.command(inner, epilog=examples)(guarded(run))
    return typer.main.get_command(own)
