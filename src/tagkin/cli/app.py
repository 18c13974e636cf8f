"""The command line: its commands under one name, each built when it is needed."""

from __future__ import annotations

import gc
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tagkin.cli.guard import guarded
from tagkin.cli.registry import Command, Group, Panel, commands, groups
from tagkin.cli.streams import discard, only_our_words, prepare_streams
from tagkin.version import __version__

# Garbage collection after so many new objects. A short command mostly imports modules, which are
# not garbage: to look for some after every 700th object took a twelfth of its time.
_COLLECT_AFTER = 20_000

_EPILOG = """\b
Start like this, with a page in your browser:
  tagkin review ~/Pictures
  tagkin write

\b
Or step by step:
  tagkin suggest ~/Pictures
  tagkin accept --at-least 0.9
  tagkin write

\b
Exit codes:
  0    done; standard error names files that could not be read
  1    failed; standard error says why
  2    invalid usage
  130  interrupted; photographs analysed so far are in the cache

tagkin COMMAND --help explains a command, with examples.
"""


class CommandGroup(TyperGroup):
    """Commands whose names begin with the group's name; all of them for tagkin itself."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.prefix = "" if self.name == "tagkin" else f"{self.name} "
        names = (n.removeprefix(self.prefix) for n in commands() if n.startswith(self.prefix))
        unbuilt: Any = None
        self.commands = dict.fromkeys((name.partition(" ")[0] for name in names), unbuilt)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Build a command or a group; most of them are not needed."""
        return _build(self.prefix, cmd_name) if cmd_name in self.commands else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command, below the headings of their panels."""
        entries = [_entry(self.prefix + name) for name in self.commands]
        width = max(len(entry.name) for entry in entries) - len(self.prefix)
        for panel in Panel:
            rows = [
                (entry.name.removeprefix(self.prefix).ljust(width), entry.summary)
                for entry in entries
                if entry.panel == panel
            ]
            if rows:
                with formatter.section(panel.value):
                    formatter.write_dl(rows)


def _entry(name: str) -> Command | Group:
    return groups().get(name) or commands()[name]


def _build(prefix: str, name: str) -> Any:
    entry = _entry(prefix + name)
    if isinstance(entry, Command):
        alone = _new_typer(name, "")
        examples = "".join(f"\n  {example}" for example in entry.examples)
        epilog = f"\b\nExamples:{examples}"
        alone.command(name, help=entry.text, epilog=epilog)(guarded(entry.run))
        return typer.main.get_command(alone)
    several = _new_typer(name, entry.summary)
    several.callback()(lambda: None)
    return typer.main.get_command(several)


def _new_typer(name: str, text: str, epilog: str | None = None) -> typer.Typer:
    return typer.Typer(
        name=name,
        cls=CommandGroup,
        help=text,
        epilog=epilog,
        no_args_is_help=True,
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
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


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
