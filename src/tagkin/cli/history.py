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
    from tagkin.catalogue import DecisionCounts, PastRun

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin history
  tagkin history -n 100 --json
"""
_NAMED = 3
_FILTERS = (
    *("photographs", "tags", "at_least", "below", "run", "folder"),
    *("n", "threshold", "precision", "only_untagged"),
)
_SCANNED = {
    "added": "new",
    "moved": "moved or renamed",
    "copied": "copied",
    "edited": "edited",
    "retagged": "with other tags",
    "gone": "gone",
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

    Each command that changed something is a run, with the number that tagkin undo --run takes.
    --json tells everything that is kept of a run: id, what (the command), started_at and ended_at
    (null if it did not end), model, parameters, outcome, undoes and undone_by.
    """
    with opened(catalogue) as one:
        found = one.runs.history(n)
        decided = one.runs.count_decisions([past.id for past in found])
    if as_json:
        for past in found:
            send(json_line(past.to_dict()))
        return
    table = Table(
        box=rule(), header_style="bold", padding=(0, 1, 0, 0), pad_edge=False, show_edge=False
    )
    table.add_column("Run", justify="right")
    table.add_column("When", no_wrap=True)
    table.add_column("What was done", overflow="fold")
    for past in found:
        said = _sentence(past, decided.get(past.id))
        table.add_row(str(past.id), day(past.started_at), shown_text(said[0].upper() + said[1:]))
    if found:
        data().print(table)
    else:
        say("No runs yet.")


def _sentence(past: PastRun, decided: DecisionCounts | None) -> str:
    """Tell what a run did, whether it ended, and whether it was taken back."""
    if past.ended_at is None:
        return f"{past.what}: not finished"
    said = _deed(past, decided)
    if past.what in ("accept", "reject", "write", "suggest") and (given := _filters(past)):
        said += f" ({given})"
    return f"{said}; taken back by run {past.undone_by}" if past.undone_by else said


def _deed(past: PastRun, decided: DecisionCounts | None) -> str:
    def n(name: str) -> int:
        value = past.outcome.get(name)
        return value if isinstance(value, int) else 0

    tags = _listed(past.parameters.get("tags"))
    match past.what:
        case "scan":
            changes = [f"{n(name):,} {word}" for name, word in _SCANNED.items() if n(name)]
            photographs = count(n("photographs"), "photograph")
            return f"scanned {photographs}: {', '.join(changes) or 'no change'}"
        case "train":
            return f"learned {count(n('tags'), 'tag')} from {count(n('photographs'), 'photograph')}"
        case "suggest":
            some = count(n("with_suggestions"), "photograph")
            return f"suggested {count(n('suggestions'), 'tag')} for {some}"
        case "accept" | "reject" | "review" if decided is not None:
            verdicts = {"accepted": decided.n_accepted, "rejected": decided.n_rejected}
            done = [f"{verb} {count(n, 'tag')}" for verb, n in verdicts.items() if n]
            return f"{' and '.join(done)} on {count(decided.n_photographs, 'photograph')}"
        case "write":
            failed = f"; {count(n('failures'), 'file')} failed" if n("failures") else ""
            return f"wrote {count(n('tags'), 'tag')} into {count(n('files'), 'file')}{failed}"
        case "undo":
            return f"took back run {past.undoes}"
        case "tags rename" | "tags merge":
            verb = "renamed" if past.what == "tags rename" else "merged"
            return (
                f"{verb} {tags} {'to' if verb == 'renamed' else 'into'} {past.parameters['into']}"
            )
        case "tags forget" | "tags restore":
            return f"{'forgot' if past.what == 'tags forget' else 'restored'} {tags}"
    return past.what


def _filters(past: PastRun) -> str:
    """Write the options that narrowed a run down, as they are typed."""
    parts = []
    for name in _FILTERS:
        value = past.parameters.get(name)
        if name == "photographs" and value:
            parts.append(_listed(value))
        elif name == "only_untagged" and value:
            parts.append("--only-untagged")
        elif name == "n" and value:
            parts.append(f"-n {value}")
        elif value is not None:
            option = "--tag" if name == "tags" else f"--{name.replace('_', '-')}"
            values = value if isinstance(value, list) else [value]
            parts += [f"{option} {one}" for one in values]
    return " ".join(parts)


def _listed(value: object) -> str:
    """Write the first few of a list."""
    each = [str(one) for one in value] if isinstance(value, list) else []
    more = f" and {len(each) - _NAMED:,} more" if len(each) > _NAMED else ""
    return ", ".join(each[:_NAMED]) + more
