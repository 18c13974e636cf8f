"""tagkin history: the runs of a catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tagkin.cli import options
from tagkin.cli.catalogues import day, opened
from tagkin.cli.output import data, json_line, say, send, shown_text
from tagkin.cli.tables import count, rule

if TYPE_CHECKING:
    from tagkin.catalogue import PastRun

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin history
  tagkin history -n 100 --json
"""
_WORDS = {
    "photographs": "photograph",
    "suggestions": "suggestion",
    "decisions": "decision",
    "tags": "tag",
    "files": "file",
    "added": "new photograph",
}


def run(
    n: Annotated[
        int, typer.Option("-n", "--n-runs", metavar="N", min=1, help="The last N runs.")
    ] = 20,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON Lines on standard output, one run per line.")
    ] = False,
    catalogue: options.Catalogue = None,
) -> None:
    """List what was done with a collection, the latest first.

    Each command that changed something is a run, with a number, the model that it made or used,
    and what came of it.
    """
    from tagkin.catalogue import history

    with opened(catalogue) as one:
        found = history(one, n)
    if as_json:
        for past in found:
            send(json_line(past.to_dict()))
        return
    table = Table(
        box=rule(), header_style="bold", padding=(0, 1, 0, 0), pad_edge=False, show_edge=False
    )
    for name in ("Run", "When", "What", "Model", "With", "Outcome"):
        table.add_column(name, justify="right" if name == "Run" else "left", overflow="fold")
    for past in found:
        table.add_row(
            str(past.id),
            day(past.started_at),
            shown_text(past.what),
            (past.model or "–")[:12],
            shown_text(_parameters(past)),
            shown_text(_outcome(past)),
        )
    if found:
        data().print(table)
    else:
        say("Nothing was done yet.")


def _parameters(past: PastRun) -> str:
    parts = []
    for name, value in past.parameters.items():
        if value is None:
            continue
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        parts.append(f"{name.replace('_', ' ')} {text}")
    return ", ".join(parts) or "–"


def _outcome(past: PastRun) -> str:
    if past.ended_at is None:
        return "not finished"
    known = [(name, n) for name, n in past.outcome.items() if name in _WORDS and n]
    said = ", ".join(count(n, _WORDS[name]) for name, n in known) or "no change"
    return f"{said}; undone by run {past.undone_by}" if past.undone_by else said
