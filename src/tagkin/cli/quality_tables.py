"""The quality of suggestions as tables on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from tagkin.cli.output import data, shown_tag, shown_text
from tagkin.cli.tables import bar, percent, rule

if TYPE_CHECKING:
    from tagkin.annotator import Quality

__all__ = ["MEASURES", "show_quality"]

MEASURES = {
    "MAP": "Photographs of a tag ranked first (MAP)",
    "MiAP": "Tags of a photograph ranked first (MiAP)",
    "precision": "Precision of 5 tags a photograph",
    "recall": "Recall of 5 tags a photograph",
}
_EACH = 8  # of the best tags, and of the worst


def show_quality(quality: Quality) -> None:
    """Three tables: against looks alone, what can be asked for, and tag by tag."""
    console = data()
    console.print(f"Measured by {shown_text(quality.how)}.")
    for table in (_against_looks(quality), _reached(quality), _tag_by_tag(quality)):
        console.print()
        console.print(table)


def _table(*heads: str) -> Table:
    table = Table(box=rule(), header_style="bold", pad_edge=False, show_edge=False)
    for k, head in enumerate(heads):
        table.add_column(head, justify="right" if k else "left", overflow="ellipsis")
    return table


def _against_looks(quality: Quality) -> Table:
    table = _table("How good", "By looks", "Semantic")
    for key, name in MEASURES.items():
        looks = percent(quality.visual[key]) if quality.visual else "–"
        table.add_row(name, looks, f"[bold]{percent(quality.semantic[key])}[/bold]")
    looks = f"{quality.visual['n_plus']:,.0f}" if quality.visual else "–"
    table.add_row("Tags that are found at all", looks, f"{quality.semantic['n_plus']:,.0f}")
    return table


def _reached(quality: Quality) -> Table:
    table = _table("Asked for (--precision)", "Right", "Tags found", "A photograph", "Without any")
    for one in quality.reached:
        table.add_row(
            percent(one.wanted),
            percent(one.precision),
            percent(one.recall),
            f"{one.n_suggestions:.1f}",
            percent(one.without),
        )
    return table


def _tag_by_tag(quality: Quality) -> Table:
    labels = quality.labels
    there = [t for t in range(len(labels.names)) if labels.support[t] > 0]
    order = sorted(there, key=lambda t: (-labels.average_precision[t], str(labels.names[t])))
    table = _table("Tag", "Photographs", "Average precision", "")
    table.columns[0].style = "cyan"
    cut = len(order) > 2 * _EACH + 1
    chosen = [*order[:_EACH], None, *order[-_EACH:]] if cut else order
    for t in chosen:
        if t is None:
            table.add_row(f"[dim]… {len(order) - 2 * _EACH:,} more[/dim]", "", "", "")
            continue
        value = float(labels.average_precision[t])
        table.add_row(
            shown_tag(str(labels.names[t])), f"{labels.support[t]:,}", percent(value), bar(value)
        )
    return table
