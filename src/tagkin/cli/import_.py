"""tagkin import: take in what ``tagkin export`` wrote."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import opened
from tagkin.cli.output import json_line, note, relative, say, send
from tagkin.cli.tables import count
from tagkin.errors import StorageError

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin import decisions.jsonl --dry-run
  tagkin import decisions.jsonl
"""


def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, hidden=True, readable=False)
    ],
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Take in decisions and history that were exported.

    FILE is what `tagkin export` wrote, or - for standard input. What is there already stays, so
    that importing twice changes nothing; of two decisions on one tag of a photograph, the later
    one holds.
    """
    with opened(catalogue, "import", write=True, dry_run=dry_run) as one:
        found = one.import_lines(_lines(file))
    if as_json:
        send(json_line(vars(found) | {"dry_run": dry_run}))
        return
    if found.absent:
        were = count(found.absent, "write was", "writes were")
        note(f"{were} left out, to photographs that are not in this catalogue.")
    what = f"{count(found.decisions, 'decision')}, {count(found.runs, 'run')}"
    say(f"{what} {'would be' if dry_run else 'were'} taken in.")


def _lines(file: Path) -> list[str]:
    if str(file) == "-":
        return sys.stdin.read().split("\n")
    try:
        return file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise StorageError(f"{relative(file)} cannot be read: {why}.") from error
