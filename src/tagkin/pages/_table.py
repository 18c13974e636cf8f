"""The quality of every tag as a table that can be sorted."""

from __future__ import annotations

import math

from tagkin.evaluation import LabelReport
from tagkin.pages._html import Markup, bar, element, join

__all__ = ["label_table"]

_HEADS = (
    ("Tag", "words"),
    ("Photographs", "numbers"),
    ("Average precision", "numbers"),
    ("Damped", "numbers"),
    ("Suggested", "numbers"),
    ("Precision", "numbers"),
    ("Recall", "numbers"),
    ("Often said instead", None),
)


def label_table(labels: LabelReport) -> Markup:
    """One row per tag, in the report's order; a click on a head sorts by it."""
    damped = labels.damped_precision
    head = element("thead", element("tr", *(_head(*each) for each in _HEADS)))
    body = element("tbody", *(_row(labels, t, float(damped[t])) for t in labels.order))
    return element("div", element("table", head, body, class_="sortable"), class_="scroll")


def _head(text: str, kind: str | None) -> Markup:
    sort = "descending" if text == "Damped" else None
    inside = element("button", text, type="button") if kind else text
    side = "figure" if kind == "numbers" and text != "Damped" else None
    return element("th", inside, scope="col", class_=side, data_kind=kind, aria_sort=sort)


def _row(labels: LabelReport, t: int, damped: float) -> Markup:
    name = str(labels.names[t])
    support, n_assigned = int(labels.support[t]), int(labels.n_assigned[t])
    return element(
        "tr",
        element("th", element("bdi", name), scope="row", data_value=name),
        element("td", f"{support:,}", class_="figure", data_value=support),
        _share(float(labels.average_precision[t])),
        _share(damped, with_bar=True),
        element("td", f"{n_assigned:,}", class_="figure", data_value=n_assigned),
        _share(float(labels.precision[t])),
        _share(float(labels.recall[t])),
        element("td", _confused(labels, t), class_="confused"),
    )


def _share(value: float, with_bar: bool = False) -> Markup:
    known = not math.isnan(value)
    text = f"{100 * value:.0f} %" if known else "–"
    sort = f"{value:.6f}" if known else ""
    if not with_bar:
        return element("td", text, class_="figure", data_value=sort)
    number = element("span", text, class_="number")
    inside = element("div", bar(value if known else 0.0), number)
    return element("td", inside, class_="with-bar", data_value=sort)


def _confused(labels: LabelReport, t: int) -> Markup:
    pairs = zip(labels.confused_with[t], labels.confused_count[t], strict=True)
    found = [
        join([element("bdi", str(labels.names[other])), f" ({int(count)})"])
        for other, count in pairs
        if other >= 0
    ]
    return join(found, ", ")
