"""tagkin scan: bring the catalogue of a folder up to date."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import tag_file_in, tell_others
from tagkin.cli.output import data, json_line, note, relative, say, send, shown
from tagkin.cli.progress import progress_bar
from tagkin.cli.sources import report_problems
from tagkin.cli.tables import count, facts, photographs_text
from tagkin.errors import pip_install

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue, Scan

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin scan ~/Pictures
  tagkin scan
  tagkin scan --dry-run
  tagkin scan ~/Pictures --tags tags.csv --json
"""
_NAMED = 3


def run(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", show_default=False, hidden=True, readable=False),
    ] = None,
    tags: Annotated[
        Path | None,
        typer.Option(
            "--tags",
            metavar="FILE|embedded",
            help="A tag file to read besides the keywords in photographs and sidecars; it is "
            "remembered. Without it, metadata.jsonl or metadata.csv in the folder. embedded: the "
            "keywords alone.",
        ),
    ] = None,
    column: options.Column = None,
    catalogue: Annotated[
        Path | None,
        typer.Option(
            "--catalogue",
            metavar="FILE",
            help="Catalogue file. Default: in your data folder. A folder that has another "
            "catalogue keeps that as its own.",
        ),
    ] = None,
    dry_run: options.DryRun = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the photographs in a folder and the tags that they carry.

    FOLDER is searched with all folders in it. What is found goes into a catalogue, one file for
    each folder, in your folder for data; a folder keeps its catalogue when it is moved. Without
    FOLDER, the folder whose catalogue is meant is scanned again.

    Photographs that did not change are not read again. One that was moved, renamed, copied or
    edited is recognised, and what you decided stays with it. Nothing in the folder is changed.
    With --dry-run, photographs that are new or changed are read, and nothing is kept of it.
    """
    from tagkin.catalogue import open_for_scan

    with progress_bar() as step, open_for_scan(folder, catalogue, dry_run=dry_run) as opened:
        tell_others(opened, catalogue)
        found = opened.scan(tag_file_in(opened, tags), column, progress=step)
        facts_of = _facts(opened, found, dry_run)
    problems = report_problems(found.failures, verbose)
    if as_json:
        send(json_line(facts_of | {"unreadable": problems}))
        return
    _remark(found)
    _show(facts_of, found)
    if dry_run:
        say("This is what a scan would find. Nothing was written.")


def _facts(catalogue: Catalogue, found: Scan, dry_run: bool) -> dict[str, Any]:
    counts = catalogue.photographs.count()
    return {
        "folder": relative(catalogue.root),
        "catalogue": relative(catalogue.path),
        "run": None if dry_run else found.run,
        "dry_run": dry_run,
        "photographs": counts["n_photographs"],
        "files": counts["n_files"],
        "untagged": counts["n_untagged"],
        "tags": sum(tag.n_found > 0 for tag in catalogue.tags.list_all()),
        "unchanged": found.n_unchanged,
        "added": found.added,
        "moved": [{"from": old, "to": new} for old, new in found.moved],
        "copied": found.copied,
        "edited": found.edited,
        "retagged": found.retagged,
        "gone": found.gone,
        "absent": found.absent,
    }


def _remark(found: Scan) -> None:
    if found.absent:
        named = ", ".join(found.absent[:_NAMED]) + (", …" if len(found.absent) > _NAMED else "")
        are = count(len(found.absent), "photograph that is", "photographs that are")
        note(f"the tag file names {are} not there: {named}")
    if found.raw_of:
        lie = count(len(found.raw_of), "RAW file lies", "RAW files lie")
        note(f"{lie} beside a photograph of the same name: the two are taken as one photograph.")
    if found.unread_raw:
        were = count(len(found.unread_raw), "RAW file was", "RAW files were")
        note(f"{were} left out. To read RAW files: {pip_install('raw')}")


def _show(told: dict[str, Any], found: Scan) -> None:
    kinds: dict[str, Sequence[object]] = {
        "new": found.added,
        "moved or renamed": found.moved,
        "copied": found.copied,
        "edited": found.edited,
        "with other tags": found.retagged,
        "gone": found.gone,
    }
    changes = [f"{len(some):,} {name}" for name, some in kinds.items() if some]
    rows = [
        ("Folder", shown(told["folder"])),
        ("Photographs", photographs_text(told["photographs"], told["files"], told["untagged"])),
        ("Changes", ", ".join(changes) or "none"),
        ("Tags", f"{told['tags']:,}"),
        ("Catalogue", shown(told["catalogue"])),
    ]
    data().print(facts(rows))
