"""The quality of suggestions as tables on a terminal, as data, and as a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagkin.cli.output import data, send
from tagkin.cli.streams import escape
from tagkin.cli.tables import bar, plain_table
from tagkin.wording import count, percent

if TYPE_CHECKING:
    import numpy as np
    from rich.table import Table

    from tagkin.annotator import OperatingPoint, Quality
    from tagkin.annotator.quality import Measures

_FIRST = 8  # of the best tags, and of the worst
_COUNTED = "Suggestions as tagkin suggest makes them, for photographs whose tags were held out."
_ORDER = (
    "Tags are sorted by damped average precision: it is shrunk towards the mean of all tags, as if "
    "each tag were on ten more photographs."
)
# names in JSON say whether a mean is over photographs or over tags (macro)
_NAMES = {
    "image_precision": "photograph_precision",
    "image_recall": "photograph_recall",
    "hit_rate": "at_least_one_right",
}


def report_quality(quality: Quality, as_csv: bool) -> None:
    """Print quality as CSV of all tags, or as tables."""
    if as_csv:
        send(quality.labels.to_csv())
    else:
        _show(quality)


# --- tables ----------------------------------------------------------------------------------


def _show(quality: Quality) -> None:
    from tagkin.annotator.quality import MEASURES

    console = data()
    mean, n_tags = quality.tags_per_photograph, quality.truth.shape[1]
    console.print(
        f"Measured: {escape(quality.how)}. They have {mean:.1f} of {count(n_tags, 'tag')} on "
        "average."
    )
    compared = [(_compare(quality, group), group.note) for group in MEASURES]
    by_precision = _tabulate_precisions(quality), _COUNTED
    for table, remark in (*compared, by_precision, (_tabulate_tags(quality), _ORDER)):
        console.print()
        console.print(table)
        if remark:
            console.print(remark, style="dim")


def _make_table(*heads: str) -> Table:
    table = plain_table()
    for k, head in enumerate(heads):
        table.add_column(head, justify="right" if k else "left", overflow="ellipsis")
    return table


def _compare(quality: Quality, group: Measures) -> Table:
    table = _make_table(group.title, "Visual neighbours", "Semantic space")
    for key, name in group.names.items():
        visual = percent(quality.visual[key]) if quality.visual else "–"
        table.add_row(name, visual, f"[bold]{percent(quality.semantic[key])}[/bold]")
    if "MAP" in group.names:
        visual = f"{quality.visual['n_plus']:,.0f}" if quality.visual else "–"
        table.add_row("Tags found at all (N+)", visual, f"{quality.semantic['n_plus']:,.0f}")
    return table


def _tabulate_precisions(quality: Quality) -> Table:
    table = _make_table(
        "Asked for (--precision)",
        "Suggestions",
        "Right",
        "Tags found",
        "Per photograph",
        "No suggestion",
    )
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


def _tabulate_tags(quality: Quality) -> Table:
    labels = quality.labels
    order = [t for t in labels.order if labels.support[t] > 0]
    table = _make_table("Tag", "Photographs", "Average precision", "Damped", "")
    table.columns[0].style = "cyan"
    cut = len(order) > 2 * _FIRST + 1
    for t in [*order[:_FIRST], None, *order[-_FIRST:]] if cut else order:
        if t is None:
            table.add_row(f"[dim]… {len(order) - 2 * _FIRST:,} more[/dim]", "", "", "", "")
            continue
        damped = float(labels.damped_precision[t])
        table.add_row(
            escape(str(labels.names[t])),
            f"{labels.support[t]:,}",
            percent(float(labels.average_precision[t])),
            percent(damped),
            bar(damped),
        )
    return table


# --- JSON ------------------------------------------------------------------------------------


def quality_document(quality: Quality) -> dict[str, Any]:
    """Return quality as JSON has it."""
    labels, columns = quality.labels, ["support", "average_precision", "damped_precision"]
    columns += ["n_assigned", "precision", "recall"]
    return {
        "how": quality.how,
        "photographs": quality.truth.shape[0],
        "tags_per_photograph": quality.tags_per_photograph,
        "semantic": _rename(quality.semantic),
        "visual": _rename(quality.visual) or None,
        "by_default": _point(quality.by_default),
        "reached": [{"wanted": point.wanted} | _point(point) for point in quality.operating_points],
        "reliability": _rows(("confidence", "right", "pairs"), quality.reliability),
        "tags": _rows(
            ("tag", *columns),
            [getattr(labels, name)[labels.order] for name in ("names", *columns)],
        ),
    }


def _rows(names: Sequence[str], columns: Iterable[np.ndarray]) -> list[dict[str, Any]]:
    values = zip(*(column.tolist() for column in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in values]


def _point(point: OperatingPoint) -> dict[str, float]:
    return {
        "precision": point.precision,
        "recall": point.recall,
        "suggestions": point.n_suggestions,
        "suggestions_per_photograph": point.per_photograph,
        "photographs_without": point.without,
    }


def _rename(measures: dict[str, float]) -> dict[str, float]:
    return {_NAMES.get(key, key): value for key, value in measures.items()}


# --- page ------------------------------------------------------------------------------------


def write_quality(quality: Quality, path: Path, failures: Sequence[Any]) -> None:
    """Write a page with metrics and charts."""
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
