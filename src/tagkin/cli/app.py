"""The command line: its commands under one name, each built when it is needed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tagkin.cli.guard import guard_command
from tagkin.cli.registry import GROUPS, MODULES, PANELS, find_command
from tagkin.cli.streams import discard, only_our_words, prepare_streams
from tagkin.version import __version__

# Garbage collection after so many new objects. A short command mostly imports modules, which are
# not garbage: to look for some after every 700th object took a twelfth of its time.
_COLLECT_AFTER = 20_000

_EPILOG = """\b
Start with tagkin alone, which opens a page in your browser.
tagkin COMMAND --help explains a command, with examples.
Exit codes: 0 done, 1 failed, 2 invalid usage, 130 interrupted.
"""


# Any: typer keeps the classes of contexts, commands and formatters private.


class CommandGroup(TyperGroup):
    """Commands whose names begin with the group's name; all of them for tagkin itself."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.prefix = "" if self.name == "tagkin" else f"{self.name} "
        unbuilt: Any = None
        self.commands = dict.fromkeys(self._names(MODULES), unbuilt)

    def _names(self, names: Iterable[str]) -> list[str]:
        """Return the next words of commands that begin with the prefix, each once."""
        words = (name.removeprefix(self.prefix) for name in names if name.startswith(self.prefix))
        return list(dict.fromkeys(word.partition(" ")[0] for word in words))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Build a command or a group; most of them are not needed."""
        return _build(self.prefix + cmd_name, cmd_name) if cmd_name in self.commands else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command, below the headings of their panels."""
        width = max(map(len, self.commands))
        for heading, panel in PANELS.items():
            rows = [
                (name.ljust(width), _summary(self.prefix + name)) for name in self._names(panel)
            ]
            if rows:
                with formatter.section("Commands" if self.prefix else heading):
                    formatter.write_dl(rows)


class SingleCommand(TyperCommand):
    """A command whose usage names its arguments as its text does: PHOTO, not {PHOTO}."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words behind the name of the command."""
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]


def _summary(name: str) -> str:
    return GROUPS.get(name) or find_command(name).summary


def _build(name: str, word: str) -> Any:
    if name in GROUPS:
        several = _new_typer(word, GROUPS[name])
        several.callback()(lambda: None)
        return typer.main.get_command(several)
    entry = find_command(name)
    alone = _new_typer(word, "")
    examples = "".join(f"\n  {example}" for example in entry.examples)
    epilog = f"\b\nExamples:{examples}"
    add = alone.command(word, cls=SingleCommand, help=entry.text, epilog=epilog)
    add(guard_command(entry.run))
    return typer.main.get_command(alone)


def _new_typer(name: str, text: str, epilog: str | None = None) -> typer.Typer:
    return typer.Typer(
        name=name,
        cls=CommandGroup,
        help=text,
        epilog=epilog,
        no_args_is_help=name != "tagkin",
        invoke_without_command=name == "tagkin",
        add_completion=name == "tagkin",  # once, for all commands
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


app = _new_typer(
    "tagkin",
    "Learn from the tags on your photographs, and suggest tags for the rest.",
    _EPILOG,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tagkin {__version__}")
        raise typer.Exit


@app.callback()
def _tagkin(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        from tagkin.cli.commands.review import open_start_page

        guard_command(open_start_page)()


def main() -> None:
    """Run the command line of this process."""
    gc.set_threshold(_COLLECT_AFTER)
    prepare_streams()
    try:
        with only_our_words():
            app(prog_name="tagkin")
    except SystemExit as end:
        # help and version write without a command that would handle a closed pipe
        if isinstance(end.__context__, BrokenPipeError):
            discard(sys.stdout)
            raise SystemExit(0) from None
        raise
