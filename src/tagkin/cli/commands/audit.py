"""tagkin audit: tags that seem wrong, and tags that seem to be missing."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import check_whole, open_for_command
from tagkin.cli.output import (
    check_target,
    csv_text,
    data,
    document,
    note,
    progress_bar,
    relative,
    say,
    send,
    send_json,
)
from tagkin.cli.registry import command
from tagkin.cli.tables import file_table, kin_text
from tagkin.wording import count, name_first, percent

if TYPE_CHECKING:
    from tagkin.annotator import Annotator, Finding
    from tagkin.catalogue import Catalogue

_SHOWN = 250  # findings in a report: with more, the page grows slow
_LIKELY = 0.5  # findings of this confidence are all shown, unless -n is given
_FEWEST = 20  # findings that are shown in any case
_COLOURS = {"wrong": "red", "missing": "green"}
_NOTHING = {
    "wrong": "no tag seems wrong",
    "missing": "no tag seems to be missing",
    None: "no tag seems wrong, and none seems to be missing",
}


class FindingKind(StrEnum):
    """A kind of finding."""

    wrong = "wrong"
    missing = "missing"


@command("audit")
def audit(
    folder: options.Folder = None,
    kind: Annotated[
        FindingKind | None,
        typer.Option(
            "--kind",
            metavar="wrong|missing",
            parser=options.parse_choice(FindingKind),
            autocompletion=lambda: list(FindingKind),
            help="Only wrong tags, or only missing tags.",
        ),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(
            "-n",
            metavar="N",
            parser=options.parse_count,
            help="The N most likely findings. Default: all with a confidence of at least 50 %, "
            "and at least 20.",
        ),
    ] = None,
    report: options.Report = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
    as_csv: options.AsCsv = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Find tags that seem wrong, and tags that seem to be missing.

    FOLDER is the collection; the default is the current folder's. Models that have not seen a
    photograph judge its tags. For a missing tag, kin are the most similar photographs with the
    tag; for a wrong tag, the nearest photographs, few or none of which have it. Nothing changes,
    and tags that you decided on are left out.

    The rates of wrong and missing tags are learned from the collection: of findings with a
    confidence of 80 %, about 80 % are right. --json writes a line for each finding.

    Examples
    --------
    tagkin audit ~/Pictures
    tagkin audit --kind wrong -n 100 --csv > doubtful.csv
    tagkin audit --report audit.html
    """
    check_target(report, overwrite, (".html", ".htm"))
    with progress_bar() as step:
        with open_for_command(catalogue, near=folder) as opened:
            check_whole(opened, folder)
            step("Judging tags", 0, 1)
            annotator = opened.model.load()[0]
            findings = _find_undecided(opened, annotator, n, kind and kind.value)
        if report is not None:
            step("Writing the report", 0, 1)
            _write_report(annotator, findings, kind, report)
    missing = [file for file in dict.fromkeys(f.file for f in findings) if not os.path.exists(file)]
    if missing:
        named = name_first([*map(relative, missing)])
        note(f"photographs are not there: {named}. If they have moved: `tagkin scan FOLDER`")
    if as_json:
        for finding in findings:
            send_json(document(finding))
    elif as_csv:
        send(_write_csv(findings))
    else:
        _show(findings)
        say(_summarise(findings, len(annotator.files_), kind))
    if report is not None:
        say(f"Report: {relative(report)}")


def _find_undecided(
    catalogue: Catalogue, annotator: Annotator, n: int | None, kind: str | None
) -> list[Finding]:
    """Return findings that nobody has decided on yet, with the present names of the tags."""
    if n is None:
        likely: list[Finding] = catalogue.doubts.select_undecided(annotator.audit(kind=kind))
        if len(likely) >= _FEWEST:
            return likely
        n = _FEWEST
    progress = catalogue.suggestions.progress()
    n_asked = n + progress.n_accepted + progress.n_rejected
    while True:
        every = annotator.audit(n_asked, kind=kind)
        undecided: list[Finding] = catalogue.doubts.select_undecided(every)
        if len(undecided) >= n or len(every) < n_asked:
            return undecided[:n]
        n_asked *= 2


def _write_csv(findings: list[Finding]) -> str:
    rows = (
        [
            relative(finding.file),
            finding.tag,
            finding.kind,
            finding.confidence,
            "|".join(relative(kin.file) for kin in finding.kin),
        ]
        for finding in findings
    )
    return csv_text(["file_name", "tag", "kind", "confidence", "kin"], rows)


def _show(findings: list[Finding]) -> None:
    table = file_table("Photograph", "Tag", "Issue", "Confidence", "Kin")
    issues = {kind: data().text((kind, colour)) for kind, colour in _COLOURS.items()}
    for finding in findings:
        table.add_row(
            relative(finding.file),
            finding.tag,
            issues[finding.kind],
            percent(finding.confidence),
            kin_text((kin.file, kin.share) for kin in finding.kin),
        )
    if findings:
        data().print(table)
        data().print()


def _summarise(findings: list[Finding], n_photographs: int, kind: FindingKind | None) -> str:
    likely = [finding for finding in findings if finding.confidence >= _LIKELY]
    n_wrong = sum(finding.kind == "wrong" for finding in likely)
    parts = []
    if n_wrong:
        parts.append(f"{count(n_wrong, 'tag seems', 'tags seem')} wrong")
    if n_missing := len(likely) - n_wrong:
        parts.append(f"{count(n_missing, 'tag seems', 'tags seem')} to be missing")
    n_files = len({finding.file for finding in likely})
    text = (
        f"{' and '.join(parts)}, on {count(n_files, 'photograph')}."
        if likely
        else f"Checked {count(n_photographs, 'tagged photograph')}: {_NOTHING[kind]} with a "
        f"confidence of {percent(_LIKELY)} or more."
    )
    if n_others := len(findings) - len(likely):
        text += f" Also shown: {count(n_others, 'finding')} below {percent(_LIKELY)}, "
        text += "which are mostly no mistakes."
    return text


def _write_report(
    annotator: Annotator, findings: list[Finding], kind: FindingKind | None, path: Path
) -> None:
    from tagkin.pages import Report, write_report

    notes = [_summarise(findings, len(annotator.files_), kind)]
    if len(findings) > _SHOWN:
        notes.append(f"The {_SHOWN} most likely are shown; --csv lists all.")
    facts = [
        ("tagged photographs", f"{len(annotator.files_):,}"),
        ("tags", f"{len(annotator.vocabulary_.names_):,}"),
        ("findings", f"{len(findings):,}"),
    ]
    title = "Tags to look at again"
    write_report(Report(title, facts, findings=findings[:_SHOWN], notes=notes), path)
