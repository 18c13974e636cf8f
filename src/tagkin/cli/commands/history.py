"""tagkin history: the runs of a catalogue."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import day, open_for_command
from tagkin.cli.output import data, say, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import plain_table

if TYPE_CHECKING:
    from tagkin.catalogue import DecisionCounts, PastRun


@command("history")
def history(
    folder: options.Folder = None,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="The last N runs.")] = 20,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """List runs, latest first.

    A run is a command that changed something; tagkin undo --run takes its number. FOLDER is the
    collection; the default is the current folder's. --json writes a line for each run: id, what
    (the command), started_at and ended_at (null if it did not end), model, parameters, outcome,
    undoes and undone_by.

    Examples
    --------
    tagkin history
    tagkin history ~/Pictures -n 100 --json
    """
    with open_for_command(catalogue, near=folder) as opened:
        runs = opened.runs.history(n)
        decisions = opened.runs.count_decisions([run.id for run in runs])
        if as_json:
            for run in runs:
                send_json(asdict(run))
            return
        if not runs:
            say("No runs yet.")
            return
        table = plain_table("Run", "When", "What was done")
        table.columns[1].no_wrap = True
        table.columns[2].overflow = "fold"
        for run in runs:
            text = _describe(run, decisions.get(run.id))
            table.add_row(str(run.id), day(run.started_at), text[0].upper() + text[1:])
        data().print(table)


def _describe(run: PastRun, decided: DecisionCounts | None) -> str:
    """Describe what a run did, whether it ended, and whether it was undone."""
    if run.ended_at is None:
        return f"{run.what}: not finished"
    text = run.describe(decided)
    return f"{text}; undone by run {run.undone_by}" if run.undone_by else text
