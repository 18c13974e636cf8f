"""The quality of suggestions as tables on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from tagkin.cli.output import data, shown_tag, shown_text
from tagkin.cli.tables import bar, count, percent, rule

if TYPE_CHECKING:
    from tagkin.annotator import Quality
    from tagkin.annotator.quality import Measures

__all__ = ["show_quality"]

_EACH = 8  # of the first tags, and of the last
_COUNTED = "Suggestions as tagkin suggest makes and counts them, of tags that were held out."
_ORDER = (
    "Tags are ordered by their average precision, damped: drawn towards the mean of all tags as if "
    "each were on ten photographs more."
)


def show_quality(quality: Quality) -> None:
    """Tables: per photograph, as the paper has it, what can be asked for, and tag by tag."""
    from tagkin.annotator.quality import MEASURES

    console = data()
    each, n_tags = quality.tags_per_photograph, quality.truth.shape[1]
    console.print(
        f"Measured: {shown_text(quality.how)}. They carry {each:.1f} of {count(n_tags, 'tag')} on "
        "average."
    )
    compared = [(_compared(quality, group), group.note) for group in MEASURES]
    for table, note in (*compared, (_reached(quality), _COUNTED), (_tag_by_tag(quality), _ORDER)):
        console.print()
        console.print(table)
        if note:
            console.print(note, style="dim")


def _table(*heads: str) -> Table:
    table = Table(box=rule(), header_style="bold", pad_edge=False, show_edge=False)
    for k, head in enumerate(heads):
        table.add_column(head, justify="right" if k else "left", overflow="ellipsis")
    return table


def _compared(quality: Quality, group: Measures) -> Table:
    table = _table(group.title, "Visual neighbours", "Semantic space")
    for key, name in group.names.items():
        visual = percent(quality.visual[key]) if quality.visual else "–"
        table.add_row(name, visual, f"[bold]{percent(quality.semantic[key])}[/bold]")
    if "MAP" in group.names:
        visual = f"{quality.visual['n_plus']:,.0f}" if quality.visual else "–"
        table.add_row("Tags found at all (N+)", visual, f"{quality.semantic['n_plus']:,.0f}")
    return table


def _reached(quality: Quality) -> Table:
    table = _table(
        "Asked for (--precision)",
        "Suggestions",
        "Right",
        "Tags found",
        "Per photograph",
        "No suggestion",
    )
    rows = {"nothing (confidence of 50 %)": quality.by_default}
    rows |= {percent(one.wanted): one for one in quality.operating_points}
    for wanted, one in rows.items():
        table.add_row(
            wanted,
            f"{one.n_suggestions:,}",
            percent(one.precision),
            percent(one.recall),
            f"{one.per_photograph:.1f}",
            percent(one.without),
        )
    return table


def _tag_by_tag(quality: Quality) -> Table:
    labels = quality.labels
    order = [t for t in labels.order if labels.support[t] > 0]
    table = _table("Tag", "Photographs", "Average precision", "Damped", "")
    table.columns[0].style = "cyan"
    cut = len(order) > 2 * _EACH + 1
    chosen = [*order[:_EACH], None, *order[-_EACH:]] if cut else order
    damped = labels.damped_precision
    for t in chosen:
        if t is None:
            table.add_row(f"[dim]… {len(order) - 2 * _EACH:,} more[/dim]", "", "", "", "")
            continue
        table.add_row(
            shown_tag(str(labels.names[t])),
            f"{labels.support[t]:,}",
            percent(float(labels.average_precision[t])),
            percent(float(damped[t])),
            bar(float(damped[t])),
        )
    return table
