"""tagkin history: the runs of a catalogue."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import day, open_for_command
from tagkin.cli.output import data, json_line, quote_tags, say, send
from tagkin.cli.registry import command
from tagkin.cli.streams import escape
from tagkin.cli.tables import changes_text, plain_table
from tagkin.wording import count

if TYPE_CHECKING:
    from tagkin.catalogue import DecisionCounts, PastRun

# parameters of a run that narrowed it down, and the options that set them; "" for arguments
_FILTERS = {
    "photographs": "",
    "tags": "--tag",
    "at_least": "--at-least",
    "below": "--below",
    "run": "--run",
    "folder": "",
    "types": "--type",
    "n": "-n",
    "threshold": "--threshold",
    "precision": "--precision",
    "only_untagged": "--only-untagged",
    "under": "--under",
    "kinds": "--of-kind",
}
_NAMED = 3


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
                send(json_line(asdict(run)))
            return
        if not runs:
            say("No runs yet.")
            return
        table = plain_table("Run", "When", "What was done")
        table.columns[1].no_wrap = True
        table.columns[2].overflow = "fold"
        for run in runs:
            text = _describe(run, decisions.get(run.id))
            table.add_row(str(run.id), day(run.started_at), escape(text[0].upper() + text[1:]))
        data().print(table)


def _describe(run: PastRun, decided: DecisionCounts | None) -> str:
    """Describe what a run did, whether it ended, and whether it was undone."""
    if run.ended_at is None:
        return f"{run.what}: not finished"
    text = _describe_outcome(run, decided)
    filters = _write_filters(run)
    if run.what in ("accept", "reject", "finish", "write", "suggest") and filters:
        text += f" ({filters})"
    return f"{text}; undone by run {run.undone_by}" if run.undone_by else text


def _describe_outcome(run: PastRun, decided: DecisionCounts | None) -> str:
    def n(name: str) -> int:
        value = run.outcome.get(name)
        return value if isinstance(value, int) else 0

    value = run.parameters.get("tags")
    tags = quote_tags(value if isinstance(value, list) else [], _NAMED)
    match run.what:
        case "scan":
            changes = changes_text({name: n(name) for name in run.outcome}) or "no change"
            return f"scanned {count(n('photographs'), 'photograph')}: {changes}"
        case "train":
            return f"learned {count(n('tags'), 'tag')} from {count(n('photographs'), 'photograph')}"
        case "suggest":
            photographs = count(n("with_suggestions"), "photograph")
            return f"suggested {count(n('suggestions'), 'tag')} for {photographs}"
        case "accept" | "reject" | "review" if decided is not None:
            verdicts = {"accepted": decided.n_accepted, "rejected": decided.n_rejected}
            done = [f"{verb} {count(n, 'tag')}" for verb, n in verdicts.items() if n]
            return f"{' and '.join(done)} on {count(decided.n_photographs, 'photograph')}"
        case "finish" if "photographs" in run.outcome:
            rejected = count(n("decisions"), "suggestion")
            return f"finished {count(n('photographs'), 'photograph')}, and rejected {rejected}"
        case "finish":
            return f"finished {tags}: rejected on {count(n('decisions'), 'photograph')}"
        case "incomplete":
            folder = run.parameters.get("folder") or "the whole collection"
            return f"declared incomplete: the tags in {folder}"
        case "write":
            failed = f"; {count(n('failures'), 'file')} failed" if n("failures") else ""
            removed = f", removed {count(n('removed'), 'tag')}" if n("removed") else ""
            wrote = f"wrote {count(n('tags'), 'tag')} into {count(n('files'), 'file')}"
            return f"{wrote}{removed}{failed}"
        case "undo":
            return f"undid run {run.undoes}"
        case "tags rename":
            return f"renamed {tags} to {quote_tags([run.parameters['into']])}"
        case "tags merge":
            return f"merged {tags} into {quote_tags([run.parameters['into']])}"
        case "tags forget":
            return f"forgot {tags}"
        case "tags hide":
            return f"hid {tags}"
        case "tags restore":
            return f"restored {tags}"
    return run.what


def _write_filters(run: PastRun) -> str:
    """Write the options that narrowed a run down, as they are typed."""
    parts = []
    for name, option in _FILTERS.items():
        value = run.parameters.get(name)
        if value is None or value is False or (name == "tags" and run.what == "finish"):
            continue
        if value is True:
            parts.append(option)
            continue
        several = value if isinstance(value, list) else [value or "."]  # the whole collection
        values = [shlex.quote(str(v)) for v in several]
        if name == "photographs":
            more = f" and {len(values) - _NAMED:,} more" if len(values) > _NAMED else ""
            parts.append(" ".join(values[:_NAMED]) + more)
        else:
            parts += [f"{option} {v}".strip() for v in values]
    return " ".join(parts)
