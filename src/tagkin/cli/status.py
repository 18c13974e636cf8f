"""tagkin status: how a collection stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tagkin.cli import options
from tagkin.cli.catalogues import day, opened
from tagkin.cli.output import data, json_line, relative, send, shown
from tagkin.cli.tables import count, facts, photographs_text, size

if TYPE_CHECKING:
    from tagkin.catalogue import Status

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin status
  tagkin status --json
"""


def run(as_json: options.AsJson = False, catalogue: options.Catalogue = None) -> None:
    """Tell how a collection stands: what is tagged, suggested, decided, and left to do."""
    with opened(catalogue) as one:
        found = one.status()
    if as_json:
        plain = found.to_dict()
        send(json_line(plain | {name: relative(plain[name]) for name in ("root", "catalogue")}))
        return
    console = data()
    console.print(facts(_rows(found)))
    console.print()
    console.print(f"Next: [bold]{_next(found)}[/bold]")


def _rows(found: Status) -> list[tuple[str, str]]:
    of_photographs = photographs_text(found.n_photographs, found.n_files, found.n_untagged)
    if found.n_problems:
        of_photographs += f", {found.n_problems:,} with something that could not be read"
    rows = [
        ("Folder", shown(found.root)),
        ("Photographs", of_photographs),
        ("Tags", f"{found.n_tags:,}"),
        ("Model", f"{found.model[:12] if found.model else 'none yet'}"),
        (
            "Suggestions",
            f"{found.n_suggestions:,} to decide on, for {found.n_to_review:,} photographs; about "
            f"{found.expected:,.0f} are right",
        ),
        ("Decisions", f"{found.n_accepted:,} accepted, {found.n_rejected:,} rejected"),
        ("To write", f"tags for {count(found.n_to_write, 'file')}"),
        ("Catalogue", f"{shown(found.catalogue)} ({size(found.n_bytes)})"),
    ]
    if found.last_scan is not None:
        rows.insert(1, ("Last scan", day(found.last_scan.started_at)))
    if found.n_unfinished:
        rows.append(("Unfinished", f"{found.n_unfinished:,} writes of a run that was stopped"))
    return rows


def _next(found: Status) -> str:
    if found.model is None:
        return "tagkin train"
    if found.n_sure:
        return "tagkin accept --at-least 0.9 --dry-run"
    if found.n_to_write:
        return "tagkin write --dry-run"
    return "tagkin review" if found.n_suggestions else "tagkin suggest"
