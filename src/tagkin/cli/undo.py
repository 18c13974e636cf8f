"""tagkin undo: take back a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import opened
from tagkin.cli.guard import FAILED
from tagkin.cli.output import data, json_line, note, relative, say, send, shown, shown_tag
from tagkin.cli.progress import progress_bar
from tagkin.cli.tables import count, file_table, show

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue, UndoResult

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin undo
  tagkin undo --dry-run
  tagkin undo --run 5 --json
"""
_SHOWN = 20  # of a dry run


def run(
    number: Annotated[
        int | None,
        typer.Option(
            "--run",
            metavar="N",
            min=1,
            help="The run to take back, as tagkin history numbers it. By default the last one that "
            "decided or wrote something that still stands.",
        ),
    ] = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Take back the last run, as if it had never been.

    Files that tagkin write changed get every byte back, and those that it made are removed. If
    somebody else wrote to a file since, only the tags of that run are taken out, which is said.
    What was accepted or rejected is open again.

    A file that cannot be written is named and stays as it is, and the command ends with 1; the same
    command tries it again.
    """
    with opened(catalogue, "undo", write=not dry_run) as one:
        with progress_bar() as step:
            result = one.undo(number, dry_run=dry_run, progress=step)
        if as_json:
            send(json_line(_document(one, result, dry_run)))
        else:
            if dry_run:
                _show(one, result)
            say(_sentence(result, dry_run))
            for file in result.not_exact:
                note(f"{relative(one.absolute(file.file))}: {file.said}.")
    for failure in result.failures:
        note(f"{relative(failure.file)} was not put back. {failure.reason}")
    if result.failures:
        raise typer.Exit(FAILED)


def _document(catalogue: Catalogue, result: UndoResult, dry_run: bool) -> dict[str, object]:
    return {
        "run": result.run,
        "undoes": result.undoes.id,
        "what": result.undoes.what,
        "dry_run": dry_run,
        "files": [
            one.to_dict() | {"file": relative(catalogue.absolute(one.file))} for one in result.files
        ],
        "decisions": [
            {"file": relative(catalogue.absolute(one.path)), "tag": one.tag}
            for one in result.decisions
        ],
        "failures": [{"file": relative(one.file), "reason": one.reason} for one in result.failures],
    }


def _show(catalogue: Catalogue, result: UndoResult) -> None:
    rows = [(one.file, ", ".join(map(shown_tag, one.tags))) for one in result.files]
    rows += [(one.path, shown_tag(one.tag)) for one in result.decisions]
    if not rows:
        return
    table = file_table("File", "Tags")
    for path, tags in rows[:_SHOWN]:
        table.add_row(shown(catalogue.absolute(path)), tags)
    show(table)
    if len(rows) > _SHOWN:
        data().print(f"and {len(rows) - _SHOWN:,} more (--json lists them all)")
    data().print()


def _sentence(result: UndoResult, dry_run: bool) -> str:
    what = f"run {result.undoes.id} ({result.undoes.what})"
    if result.undoes.what == "write":
        done = count(len(result.files), "file")
        if dry_run:
            return f"{done} of {what} would be put back."
        n_exact = len(result.files) - len(result.not_exact)
        exact = done if not result.not_exact else f"{n_exact:,} of {done}"
        return f"Took back {what}: put back {exact}, byte for byte."
    done = count(len(result.decisions), "decision")
    if dry_run:
        return f"{done} of {what} would be taken back."
    return f"Took back {what}: {done}.{_replaced(result.n_kept)}"


def _replaced(n: int) -> str:
    if n == 1:
        return " A later decision had replaced 1 other; the later one stays."
    return f" Later decisions had replaced {n:,} others; the later ones stay." if n else ""
