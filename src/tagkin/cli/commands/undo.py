"""tagkin undo: undo a run."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import open_for_command
from tagkin.cli.guard import FAILED
from tagkin.cli.output import failure_rows, note, progress_bar, relative, say, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import file_table, show_first
from tagkin.wording import count, quote_tags

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue, UndoResult


@command("undo")
def undo(
    folder: options.Folder = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--run",
            metavar="N",
            min=1,
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
        note(f"{relative(failure.file)} was not restored. {failure.reason}")
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
        return f"{'Would undo' if dry_run else 'Undid'} {run}: {result.describe()}."
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
