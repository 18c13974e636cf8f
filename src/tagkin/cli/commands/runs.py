"""tagkin history and tagkin undo: the runs of a catalogue, and how to undo one."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import day, open_for_command
from tagkin.cli.guard import FAILED
from tagkin.cli.output import data, failure_rows, note, progress_bar, relative, say, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import file_table, plain_table, show_first
from tagkin.wording import count, quote_tags

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue, DecisionCounts, PastRun, UndoResult


@command("history")
def history(
    folder: options.Folder = None,
    n: Annotated[
        int, typer.Option("-n", metavar="N", parser=options.parse_count, help="The last N runs.")
    ] = 20,
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
        standing = opened.runs.list_undoable([run.id for run in runs])
        for run in runs:
            text = _describe(run, decisions.get(run.id), is_standing=run.id in standing)
            table.add_row(str(run.id), day(run.started_at), text[0].upper() + text[1:])
        data().print(table)


def _describe(run: PastRun, decided: DecisionCounts | None, *, is_standing: bool) -> str:
    """Describe what a run did, whether it ended, and whether all of it was undone."""
    if run.ended_at is None:
        return f"{run.what}: not finished"
    text = run.describe(decided)
    undone = "undone in part" if is_standing else "undone"
    return f"{text}; {undone} by run {run.undone_by}" if run.undone_by else text


@command("undo")
def undo(
    folder: options.Folder = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--run",
            metavar="N",
            parser=options.parse_count,
            help="The run to undo, as tagkin history numbers it. Default: the last run whose "
            "decisions, writes or edits of tags still apply.",
        ),
    ] = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Undo the last run.

    Files that tagkin write changed get every byte back; files that it made are removed. If
    somebody else wrote to a file since, undo removes only the tags of that run, and says so.
    Accepted or rejected suggestions become open again, and finished photographs are no longer
    finished. Renamed, merged or forgotten tags are restored. FOLDER is the collection; the
    default is the current folder's.

    If a file cannot be written, the command names it, leaves it unchanged and ends with exit code
    1; the same command tries again.

    Examples
    --------
    tagkin undo
    tagkin undo --dry-run
    tagkin undo --run 5 --json
    """
    with open_for_command(catalogue, "undo", write=True, near=folder, dry_run=dry_run) as opened:
        with progress_bar() as step:
            result = opened.undo(number, progress=step)
        if as_json:
            send_json(_document(opened, result, dry_run))
        else:
            if dry_run:
                _show(opened, result)
            say(_summarise(result, dry_run))
            for file in result.not_exact:
                note(f"{relative(opened.absolute(file.file))}: {file.said}.")
    for failure in result.failures:
        reason = failure.reason.removeprefix(f"{failure.file}: ")
        note(f"{relative(failure.file)} was not restored: {reason}")
    if result.failures:
        raise typer.Exit(FAILED)


def _document(catalogue: Catalogue, result: UndoResult, dry_run: bool) -> dict[str, object]:
    return {
        "run": None if dry_run else result.run,
        "undoes": result.undoes.id,
        "what": result.undoes.what,
        "dry_run": dry_run,
        "files": [
            asdict(file) | {"file": relative(catalogue.absolute(file.file))}
            for file in result.files
        ],
        "decisions": [
            {"file": relative(catalogue.absolute(decision.path)), "tag": decision.tag}
            for decision in result.decisions
        ],
        "tags": result.edited,
        "finished": [relative(catalogue.absolute(path)) for path in result.finished],
        "failures": failure_rows(result.failures),
    }


def _show(catalogue: Catalogue, result: UndoResult) -> None:
    tags_of = [(file.file, file.tags) for file in result.files]
    tags_of += [(decision.path, [decision.tag]) for decision in result.decisions]
    rows = [(relative(catalogue.absolute(path)), ", ".join(tags)) for path, tags in tags_of]
    if rows:
        show_first(file_table("File", "Tags"), rows)


def _summarise(result: UndoResult, dry_run: bool) -> str:
    run = f"run {result.undoes.id} ({result.undoes.what})"
    if result.undoes.what == "write":
        if not dry_run and result.run is None:
            return f"Nothing of {run} was undone."
        did = "Would undo" if dry_run else f"Undid{' a part of' if result.n_left else ''}"
        return f"{did} {run}: {result.describe()}."
    what = count(len(result.decisions), "decision")
    if result.undoes.what == "incomplete":
        what = "the tags count as complete again"
    elif result.edited:
        what = f"{quote_tags(result.edited)} as before"
    elif result.finished:
        what = f"{count(len(result.finished), 'finished photograph')} and {what}"
    if dry_run:
        return f"Would undo {run}: {what}."
    return f"Undid {run}: {what}.{_replaced_text(result.n_kept)}"


def _replaced_text(n: int) -> str:
    if n == 1:
        return " A later decision had replaced 1 other; the later decision stays."
    return f" Later decisions had replaced {n:,} others; the later decisions stay." if n else ""
