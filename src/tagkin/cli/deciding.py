"""What accept and reject share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tagkin.cli.catalogues import filters_of, opened
from tagkin.cli.output import data, json_line, relative, say, send, shown, shown_tag
from tagkin.cli.tables import count, file_table, percent, photographs, show

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue, Decided

__all__ = ["decide_on"]

_SHOWN = 20  # of a dry run


def decide_on(
    verdict: int,
    photos: Sequence[Path] | None,
    tags: Sequence[str] | None,
    at_least: float | None,
    below: float | None,
    run: int | None,
    folder: Path | None,
    types: Sequence[str] | None,
    everything: bool,
    note: str | None,
    dry_run: bool,
    as_json: bool,
    catalogue: Path | None,
) -> None:
    """Accept or reject what the options name, and tell what that was."""
    from tagkin.catalogue import ACCEPTED

    command = "accept" if verdict == ACCEPTED else "reject"
    near = photos[0] if photos and catalogue is None and photos[0].exists() else None
    with opened(catalogue, command, write=not dry_run, near=near) as one:
        filters = filters_of(one, photos, tags, at_least, below, run, folder, types)
        if filters.is_empty and not everything:
            raise typer.BadParameter(
                f"say which suggestions to {command}: photographs, --tag, --at-least, --below, "
                "--run, --folder, --type; or --all."
            )
        decided = one.decisions.decide(verdict, filters, note=note, dry_run=dry_run)
        if as_json:
            send(json_line(_document(one, decided, dry_run)))
        elif dry_run:
            _show(one, decided)
    if not as_json:
        say(_sentence(decided, command, dry_run))


def _document(catalogue: Catalogue, decided: Decided, dry_run: bool) -> dict[str, object]:
    return {
        "run": decided.run,
        "dry_run": dry_run,
        "decisions": [
            {
                "file": relative(catalogue.absolute(one.path)),
                "tag": one.tag,
                "confidence": one.confidence,
                "suggested_by": one.run,
                "copies": [relative(catalogue.absolute(path)) for path in one.copies],
            }
            for one in decided.each
        ],
    }


def _show(catalogue: Catalogue, decided: Decided) -> None:
    if not decided.each:
        return
    table = file_table("Photograph", "Tag", "Confidence", "Run")
    for one in decided.each[:_SHOWN]:
        sure = "–" if one.confidence is None else percent(one.confidence)
        run = "–" if one.run is None else str(one.run)
        name = shown(catalogue.absolute(one.path))
        if one.copies:
            name += f" (and {count(len(one.copies), 'copy', 'copies')})"
        table.add_row(name, shown_tag(one.tag), sure, run)
    show(table)
    if len(decided) > _SHOWN:
        data().print(f"and {len(decided) - _SHOWN:,} more (--json lists them all)")
    data().print()


def _sentence(decided: Decided, command: str, dry_run: bool) -> str:
    if not decided.each:
        return f"There is nothing to {command}: no open suggestion matches."
    n_files = {one.path: 1 + len(one.copies) for one in decided.each}
    what = f"{count(len(decided), 'tag')} on {photographs(len(n_files), sum(n_files.values()))}"
    if dry_run:
        return f"{what} would be {command}ed."
    return f"Run {decided.run}: {command}ed {what}."
