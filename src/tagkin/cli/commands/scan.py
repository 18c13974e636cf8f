"""tagkin scan: bring the catalogue of a folder up to date."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import note_files, note_to_confirm, tell_others
from tagkin.cli.output import data, progress_bar, relative, report_problems, say, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import facts, photographs_fact
from tagkin.errors import InvalidInput
from tagkin.wording import changes_text, count

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue, Scan

_PLURALS = {"folder": "folders", "place": "places", "person": "people"}


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
    folders: Annotated[
        str | None,
        typer.Option(
            "--folders",
            metavar="LEVELS",
            help="Levels whose folder names become tags: 1 is the top level; 2-3, 2-, all, none.",
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without-folder",
            metavar="NAME",
            help="Folder names that are not tags, such as DCIM or '1??CANON'. Can be repeated.",
        ),
    ] = None,
    places: Annotated[
        bool | None,
        typer.Option(
            "--places/--no-places",
            help="Read GPS positions, and name country, region and town by an offline gazetteer.",
        ),
    ] = None,
    people: Annotated[
        bool | None,
        typer.Option("--people/--no-people", help="Read names of people from XMP regions."),
    ] = None,
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

    Names of folders, places and people are tags of their own kinds: shown and searched, never
    learned or suggested, and written only by tagkin write --of-kind. Later scans read them again.

    Examples
    --------
    tagkin scan ~/Pictures
    tagkin scan --dry-run
    tagkin scan ~/Pictures --tags tags.csv --json
    tagkin scan --folders 2- --without-folder DCIM --places --people
    """
    from tagkin.catalogue import open_for_scan

    with progress_bar() as step, open_for_scan(folder, catalogue, dry_run=dry_run) as opened:
        tell_others(opened, catalogue)
        result = opened.scan(
            _tag_file(opened, tags),
            column,
            kinds={"folders": folders, "without": without, "places": places, "people": people},
            progress=step,
        )
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
        "other_tags": _count_others(catalogue),
        "unchanged": result.n_unchanged,
        "added": result.added,
        "moved": [{"from": old, "to": new} for old, new in result.moved],
        "copied": result.copied,
        "edited": result.edited,
        "to_confirm": result.to_confirm,
        "retagged": result.retagged,
        "gone": result.gone,
        "absent": result.absent,
    }


def _rows(catalogue: Catalogue, result: Scan) -> list[tuple[str, str]]:
    counts = catalogue.photographs.count()
    photographs = photographs_fact(counts.n_photographs, counts.n_files, counts.n_untagged)
    others = [count(n, kind, _PLURALS[kind]) for kind, n in _count_others(catalogue).items() if n]
    return [
        ("Folder", relative(catalogue.root)),
        ("Photographs", photographs),
        ("Changes", changes_text(result.counts()) or "none"),
        ("Tags", f"{_count_tags(catalogue):,}"),
        *([("Also", ", ".join(others))] if others else []),
        ("Catalogue", relative(catalogue.path)),
    ]


def _count_tags(catalogue: Catalogue) -> int:
    return sum(tag.n_found > 0 for tag in catalogue.tags.list_all())


def _count_others(catalogue: Catalogue) -> dict[str, int]:
    return {kind: len(catalogue.other_tags.list_all(kind)) for kind in _PLURALS}
