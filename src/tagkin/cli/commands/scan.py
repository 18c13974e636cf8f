"""tagkin scan: bring the catalogue of a folder up to date."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import note_files, note_to_confirm, open_or_forget
from tagkin.cli.output import data, progress_bar, relative, report_problems, say, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import facts, photographs_fact
from tagkin.errors import InvalidInput
from tagkin.wording import changes_text

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue, Scan


@command("scan")
def scan(
    folder: options.Folder = None,
    tags: Annotated[
        Path | None,
        typer.Option(
            "--tags",
            metavar="FILE|embedded",
            help="A tag file, digikam4.db, .lrcat or .photoslibrary to read besides keywords, even "
            "in later scans; embedded: keywords only. Default: metadata.jsonl or metadata.csv in "
            "the folder.",
        ),
    ] = None,
    column: options.Column = None,
    catalogue: options.Catalogue = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the photographs in a folder and their tags.

    FOLDER is searched with its subfolders; the default is the current folder's collection. The
    result goes into a catalogue in your data folder, or into --catalogue. A folder keeps its first
    catalogue as its own, even after it moves.

    A scan reads only what is new or changed. It recognises a photograph that was moved, renamed or
    copied, and your decisions stay with it; see also tagkin status. Nothing in the folder changes.

    Examples
    --------
    tagkin scan ~/Pictures
    tagkin scan --dry-run
    tagkin scan ~/Pictures --tags tags.csv --json
    """
    with (
        progress_bar() as step,
        open_or_forget(folder, catalogue, "scan", dry_run=dry_run) as opened,
    ):
        result = opened.scan(_tag_file(opened, tags), column, progress=step)
        summary = _document(opened, result, dry_run) if as_json else {}
        rows = [] if as_json else _rows(opened, result)
    problems = report_problems(result.failures)
    if as_json:
        send_json(summary | {"unreadable": problems})
        return
    note_files(result)
    note_to_confirm(result.to_confirm)
    data().print(facts(rows))
    if dry_run:
        say("Dry run; nothing was written.")


def _tag_file(catalogue: Catalogue, tags: Path | None) -> str | None:
    """Return a tag file as the catalogue keeps it: from its root if it lies there."""
    if tags is None or str(tags) == "embedded":
        return None if tags is None else "embedded"
    try:
        return catalogue.relative(tags)
    except InvalidInput:
        return os.path.abspath(tags)


def _document(catalogue: Catalogue, result: Scan, dry_run: bool) -> dict[str, object]:
    counts = catalogue.photographs.count()
    return {
        "folder": relative(catalogue.root),
        "catalogue": relative(catalogue.path),
        "run": None if dry_run else result.run,
        "dry_run": dry_run,
        "photographs": counts.n_photographs,
        "files": counts.n_files,
        "untagged": counts.n_untagged,
        "tags": _count_tags(catalogue),
        "unchanged": result.n_unchanged,
        "added": result.added,
        "moved": [{"from": old, "to": new} for old, new in result.moved],
        "copied": result.copied,
        "edited": result.edited,
        "to_confirm": result.to_confirm,
        "retagged": result.retagged,
        "overwritten": result.overwritten,
        "gone": result.gone,
        "absent": result.absent,
    }


def _rows(catalogue: Catalogue, result: Scan) -> list[tuple[str, str]]:
    counts = catalogue.photographs.count()
    photographs = photographs_fact(counts.n_photographs, counts.n_files, counts.n_untagged)
    return [
        ("Folder", relative(catalogue.root)),
        ("Photographs", photographs),
        ("Changes", changes_text(result.counts()) or "none"),
        ("Tags", f"{_count_tags(catalogue):,}"),
        ("Catalogue", relative(catalogue.path)),
    ]


def _count_tags(catalogue: Catalogue) -> int:
    return sum(tag.n_found > 0 for tag in catalogue.tags.list_all())
