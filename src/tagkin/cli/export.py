"""tagkin export: decisions and history as JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import opened
from tagkin.cli.files import check_target, write_file
from tagkin.cli.output import json_line, say, send, shown
from tagkin.cli.tables import count

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin export > decisions.jsonl
  tagkin export --output decisions.jsonl
"""


def run(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a .jsonl file."),
    ] = None,
    overwrite: options.Overwrite = False,
    dry_run: options.DryRun = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Write decisions and history as JSON lines.

    They are what only the catalogue holds: tags and photographs are in your files. `tagkin import`
    reads them again, here or on another machine. Photographs go by their content.
    """
    check_target(output, overwrite, (".jsonl",))
    if dry_run and output is None:
        raise typer.BadParameter("--dry-run is for --output: nothing is written without it.")
    with opened(catalogue) as one:
        if output is None:
            for line in one.export_lines():
                send(json_line(line))
            return
        lines = [json_line(line) for line in one.export_lines()]
    if not dry_run:
        write_file(output, "".join(lines))
    would = "would be " if dry_run else ""
    say(f"{count(len(lines), 'line')} {would}written to {shown(output)}.")
