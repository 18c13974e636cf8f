"""The command line: its commands under one name."""

from __future__ import annotations

import gc
import sys
from typing import Annotated

import typer

from tagkin.cli.commands import CommandGroup, group
from tagkin.cli.streams import discard, is_closed_pipe, only_our_words, prepare_streams
from tagkin.light_imports import import_scikit_learn_lightly
from tagkin.version import __version__

__all__ = ["app", "main"]

# Objects until the garbage collector looks through the new ones. Modules are not garbage, and to
# look for some after every 700th took a twelfth of a short command.
_COLLECTED = 20_000

_EPILOG = """\b
Start like this, with a page in your browser:
  tagkin review ~/Pictures
  tagkin write

\b
Or step by step, with a catalogue that keeps what you decide:
  tagkin scan ~/Pictures
  tagkin train
  tagkin suggest
  tagkin accept --at-least 0.9
  tagkin write

\b
Or with a model in a folder, and nothing else kept:
  tagkin train ~/Pictures --model my-tags
  tagkin suggest ~/Pictures/new --model my-tags

\b
Exit codes:
  0    done; files that could not be read are named on standard error
  1    it could not be done; standard error says why and what to do
  2    the command was not understood
  130  interrupted; what was computed so far is in the cache

tagkin COMMAND --help explains a command, with examples.
"""


app = group(
    "tagkin",
    "Learn from the tags on your photographs, and suggest tags for the rest.",
    epilog=_EPILOG,
    cls=CommandGroup,
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
    gc.set_threshold(_COLLECTED)
    prepare_streams()
    import_scikit_learn_lightly()
    try:
        with only_our_words():
            app(prog_name="tagkin")
    except SystemExit as end:
        # help and version, which no command writes
        if is_closed_pipe(end.__context__):
            discard(sys.stdout)
            raise SystemExit(0) from None
        raise
