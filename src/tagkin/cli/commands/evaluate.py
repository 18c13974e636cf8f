"""tagkin evaluate: how good suggestions are, on tags that were held out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tagkin.cli import options
from tagkin.cli.catalogues import check_whole, open_collection
from tagkin.cli.output import (
    check_target,
    data,
    progress_bar,
    relative,
    report_problems,
    say,
    send,
    send_json,
)
from tagkin.cli.registry import command
from tagkin.cli.tables import plain_table
from tagkin.errors import InvalidInput
from tagkin.features.backbone_names import BACKBONES
from tagkin.wording import count, percent

if TYPE_CHECKING:
    import numpy as np
    from rich.table import Table

    from tagkin.annotator import Quality
    from tagkin.annotator.quality import Measures
    from tagkin.images import Failure

_NAMED = 3  # unreadable photographs
_COUNTED = "Suggestions as tagkin suggest makes them, for photographs whose tags were held out."


@command("evaluate")
def evaluate(
    folder: options.Folder = None,
    backbone: options.Backbone = BACKBONES[0],
    min_count: options.MinCount = 1,
    report: options.Report = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
    as_csv: options.AsCsv = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Measure how good suggestions are, by cross-validation.

    FOLDER is the collection; it is scanned first if it has no catalogue. The default is the
    current folder's collection. Parts of the tagged photographs are held out in turn.

    Means over photographs say what to expect of suggestions. Means over tags are the paper's; a tag
    that is never suggested adds 0 to them. The baseline is visual neighbours: the photographs
    nearest in visual feature space, with the same names, times, places and folders. If times are
    known, the photographs of an event are held out together. A table shows what each input says
    alone. --csv writes metrics per tag.

    Examples
    --------
    tagkin evaluate ~/Pictures --report quality.html
    tagkin evaluate --csv > tags-quality.csv
    """
    from tagkin.annotator import Annotator

    check_target(report, overwrite, (".html", ".htm"))
    annotator = Annotator(backbone=options.backbone_name(backbone), min_count=min_count)
    with progress_bar() as step:
        with open_collection(folder, catalogue, "evaluate", step) as opened:
            check_whole(opened, folder)
            contents = {c.file: c for c in opened.model.to_evaluate_on()}
            moments = opened.model.moments_of(list(contents.values()))
        seen = annotator.read_features(list(contents), progress=step)
        if not seen.files:
            first = "; ".join(f"{relative(f.file)}: {f.reason}" for f in seen.failures[:_NAMED])
            raise InvalidInput(f"None of the {len(contents):,} photographs could be read. {first}")
        number_of = {file: number for number, file in enumerate(contents)}
        quality = annotator.cross_validate(
            seen,
            [contents[file].tags for file in seen.files],
            moments=moments.take([number_of[file] for file in seen.files]),
            rejected=[contents[file].rejected for file in seen.files],
            progress=step,
        )
        if report is not None:
            step("Writing the report", 0, 1)
            _write_report(quality, report, seen.failures)
    problems = report_problems(seen.failures)
    if as_json:
        send_json(_document(quality) | {"unreadable": problems})
    elif as_csv:
        send(quality.labels.to_csv())
    else:
        _show(quality)
    if report is not None:
        say(f"Report: {relative(report)}")


# --- tables ----------------------------------------------------------------------------------


def _show(quality: Quality) -> None:
    from tagkin.annotator.quality import INPUT_MEASURES, MEASURES

    console = data()
    mean, n_tags = quality.tags_per_photograph, quality.truth.shape[1]
    console.print(
        f"Measured: {quality.how}. They have {mean:.1f} of {count(n_tags, 'tag')} on average. "
        "tagkin suggests in the semantic space; visual neighbours are a simple method to compare "
        "with."
    )
    compared = [(_compare(quality, group), group.note) for group in MEASURES]
    if quality.inputs:
        compared.append((_tabulate_inputs(quality), INPUT_MEASURES.note))
    by_precision = _tabulate_precisions(quality), _COUNTED
    for table, remark in (*compared, by_precision):
        console.print()
        console.print(table)
        if remark:
            console.print(remark, style="dim")


def _compare(quality: Quality, group: Measures) -> Table:
    columns = ("Visual neighbours", "Semantic space")
    table = plain_table(group.title, *columns, right=columns)
    for key, name in group.names.items():
        visual = percent(quality.visual[key]) if quality.visual else "–"
        table.add_row(name, visual, data().text((percent(quality.semantic[key]), "bold")))
    if "MAP" in group.names:
        visual = f"{quality.visual['n_plus']:,.0f}" if quality.visual else "–"
        table.add_row("Tags found at all (N+)", visual, f"{quality.semantic['n_plus']:,.0f}")
    return table


def _tabulate_inputs(quality: Quality) -> Table:
    from tagkin.annotator.quality import INPUT_MEASURES

    columns = ("Right of the 5", "MiAP", "MAP")
    table = plain_table(INPUT_MEASURES.title, *columns, right=columns)
    for name, metrics in quality.by_input.items():
        table.add_row(name, *(percent(metrics[key]) for key in INPUT_MEASURES.names))
    return table


def _tabulate_precisions(quality: Quality) -> Table:
    columns = ("Suggestions", "Right", "Tags found", "Per photograph", "No suggestion")
    table = plain_table("Asked for (--precision)", *columns, right=columns)
    rows = {"default (confidence of 50 %)": quality.by_default}
    rows |= {percent(point.wanted): point for point in quality.operating_points}
    for wanted, point in rows.items():
        table.add_row(
            wanted,
            f"{point.n_suggestions:,}",
            percent(point.precision),
            percent(point.recall),
            f"{point.per_photograph:.1f}",
            percent(point.without),
        )
    return table


# --- JSON ------------------------------------------------------------------------------------


def _document(quality: Quality) -> dict[str, object]:
    labels, columns = quality.labels, ["support", "average_precision", "damped_precision"]
    columns += ["n_assigned", "precision", "recall"]
    return {
        "how": quality.how,
        "photographs": quality.truth.shape[0],
        "tags_per_photograph": quality.tags_per_photograph,
        "semantic": quality.semantic,
        "visual": quality.visual or None,
        "inputs": quality.inputs,
        "by_default": asdict(quality.by_default),
        "reached": [asdict(point) for point in quality.operating_points],
        "reliability": _rows(("confidence", "right", "pairs"), quality.reliability),
        "tags": _rows(
            ("tag", *columns),
            [getattr(labels, name)[labels.order] for name in ("names", *columns)],
        ),
    }


def _rows(names: Sequence[str], columns: Iterable[np.ndarray]) -> list[dict[str, object]]:
    values = zip(*(column.tolist() for column in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in values]


# --- page ------------------------------------------------------------------------------------


def _write_report(quality: Quality, path: Path, failures: Sequence[Failure]) -> None:
    from tagkin.pages import Report, comparisons_of, write_report

    n, n_tags = quality.truth.shape
    facts = [
        ("photographs", f"{n:,}"),
        ("tags", f"{n_tags:,}"),
        ("tags per photograph", f"{quality.tags_per_photograph:.1f}"),
    ]
    for point in quality.operating_points:
        if point.n_suggestions:
            suggestions = count(point.n_suggestions, "suggestion")
            fact = f"right of {suggestions}, {percent(point.wanted)} asked for"
            facts.append((fact, percent(point.precision)))
    report = Report(
        "How good are the suggestions?",
        facts,
        comparisons_of(quality),
        reliability=quality.reliability,
        labels=quality.labels,
        failures=failures,
        notes=[f"Measured: {quality.how}."],
    )
    write_report(report, path)
