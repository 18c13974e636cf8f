"""tagkin audit: tags that seem wrong, and tags that seem to be missing."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.files import check_target
from tagkin.cli.output import (
    csv_text,
    data,
    document,
    json_line,
    only_one,
    relative,
    say,
    send,
    shown,
    shown_tag,
)
from tagkin.cli.progress import progress_bar
from tagkin.cli.sources import missing_text, open_model, report_missing
from tagkin.cli.tables import count, file_table, kin_text, percent, show
from tagkin.cli.with_catalogue import model_of_catalogue, undecided

if TYPE_CHECKING:
    from tagkin.annotator import Annotator, Finding

__all__ = ["EXAMPLES", "Kind", "run"]

EXAMPLES = """\b
Examples:
  tagkin audit --model my-tags
  tagkin audit --model my-tags --kind wrong -n 100 --csv > doubtful.csv
  tagkin audit --model my-tags --report audit.html
  tagkin audit --kind wrong
"""
_SHOWN = 250  # findings in a report: with more, the page grows slow
_LIKELY = 0.5  # confidence of findings that are listed unless a number is asked for


class Kind(StrEnum):
    """What to look for."""

    wrong = "wrong"
    missing = "missing"


def run(
    model: options.ModelOrCatalogue = None,
    kind: Annotated[
        Kind | None,
        typer.Option(
            "--kind", metavar="wrong|missing", help="Only wrong tags, or only missing ones."
        ),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--n-findings",
            metavar="N",
            min=1,
            help="The N most likely findings. Default: all with a confidence of at least 50 %.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Write JSON Lines to standard output, one finding per line."),
    ] = False,
    as_csv: options.AsCsv = False,
    verbatim: options.Verbatim = False,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE.html", help="Write an HTML report.")
    ] = None,
    overwrite: options.Overwrite = False,
    leaf_only: options.LeafOnly = False,
    collection: options.Collection = None,
    catalogue: options.Catalogue = None,
) -> None:
    """Find tags that seem wrong, and tags that seem to be missing.

    Each tagged photograph is judged by models that have not seen it. Its kin are the tagged
    photographs most similar to it: for a missing tag those that carry it; for a wrong tag the
    nearest ones, few or none of which carry it. Nothing is changed.

    How many tags are wrong, and how many are missing, is learned from the collection. Of findings
    with a confidence of 80 %, about 80 % hold.

    Without --model, the model is that of a catalogue, and what you have decided on is left out.
    """
    only_one(json=as_json, csv=as_csv)
    check_target(report, overwrite, (".html", ".htm"))
    with progress_bar() as step:
        folder, root = (model, None) if model else model_of_catalogue(catalogue)
        annotator = open_model(
            folder, collection=collection, step=step, leaf_only=leaf_only, root=root
        )
        step("Judging tags", 0, 1)
        wanted = None if kind is None else kind.value
        if model is None:
            found = undecided(catalogue, annotator, n, wanted)
        else:
            found = annotator.audit(n, kind=wanted)
        if report is not None:
            step("Writing the report", 0, 1)
            _write(annotator, found, wanted, report)
    report_missing(_named(found))
    if as_json:
        for one in found:
            send(json_line(document(one)))
    elif as_csv:
        send(_csv(found, verbatim))
    else:
        _show(found, len(annotator.files_), wanted)
    if report is not None:
        say(f"Report: {shown(report)}")


def _named(found: list[Finding]) -> list[str]:
    return [file for one in found for file in (one.file, *(kin.file for kin in one.kin))]


def _csv(found: list[Finding], verbatim: bool) -> str:
    rows = (
        [
            relative(one.file),
            one.tag,
            one.kind,
            one.confidence,
            "|".join(relative(k.file) for k in one.kin),
        ]
        for one in found
    )
    return csv_text(["file_name", "tag", "kind", "confidence", "kin"], rows, verbatim=verbatim)


def _show(found: list[Finding], n_photographs: int, kind: str | None) -> None:
    table = file_table("Photograph", "Tag", "Issue", "Confidence", "Kin")
    for one in found:
        colour = "red" if one.kind == "wrong" else "green"
        table.add_row(
            shown(one.file),
            shown_tag(one.tag),
            f"[{colour}]{one.kind}[/{colour}]",
            percent(one.confidence),
            kin_text(one.kin),
        )
    if found:
        show(table)
        data().print()
    say(_summary(found, n_photographs, kind))


def _summary(found: list[Finding], n_photographs: int, kind: str | None) -> str:
    if not found:
        seems = {
            "wrong": "no tag seems wrong",
            "missing": "no tag seems to be missing",
            None: "no tag seems wrong, and none seems to be missing",
        }[kind]
        return (
            f"Looked at {count(n_photographs, 'tagged photograph')}: {seems} with a confidence of "
            f"{percent(_LIKELY)} or more. `tagkin audit -n 20` shows the 20 most likely."
        )
    n_wrong = sum(one.kind == "wrong" for one in found)
    parts = []
    if n_wrong:
        parts.append(f"{count(n_wrong, 'tag seems', 'tags seem')} wrong")
    if n_missing := len(found) - n_wrong:
        parts.append(f"{count(n_missing, 'tag seems', 'tags seem')} to be missing")
    n_files = len({one.file for one in found})
    text = f"{' and '.join(parts)}, on {count(n_files, 'photograph')}."
    if n_doubtful := sum(one.confidence < _LIKELY for one in found):
        text += f" {n_doubtful:,} of them with a confidence below {percent(_LIKELY)}."
    return text


def _write(annotator: Annotator, found: list[Finding], kind: str | None, path: Path) -> None:
    from tagkin.pages import Report, write_report

    notes = [_summary(found, len(annotator.files_), kind)]
    if len(found) > _SHOWN:
        notes.append(f"The {_SHOWN} most likely are shown; --csv lists all.")
    if missing := missing_text(_named(found[:_SHOWN])):
        notes.append(missing)
    facts = [
        ("tagged photographs", f"{len(annotator.files_):,}"),
        ("tags", f"{len(annotator.vocabulary_.names_):,}"),
        ("findings", f"{len(found):,}"),
    ]
    write_report(Report("Tags to look at again", facts, findings=found[:_SHOWN], notes=notes), path)
