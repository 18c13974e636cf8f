"""The paper's own numbers, from published/*.csv."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["MEASURES", "gain", "number", "rows"]

FOLDER = Path(__file__).parent / "published"
MEASURES = ("MAP", "precision", "recall", "n_plus")


@cache
def _read(table: str) -> list[dict[str, str]]:
    with open(FOLDER / f"{table}.csv", newline="") as file:
        return list(csv.DictReader(file))


def rows(table: str, **wanted: str) -> Iterator[dict[str, str]]:
    """Rows of a table that match all given values."""
    for row in _read(table):
        if all(row[name] == value for name, value in wanted.items()):
            yield row


def number(table: str, measure: str, **wanted: str) -> float | None:
    """One number, or None if the paper does not report it."""
    for row in rows(table, **wanted):
        if row.get(measure):
            return float(row[measure])
    return None


def gain(table: str, measure: str, dataset: str, method: str) -> float | None:
    """What the paper's semantic space gained over its visual baseline."""
    ours, theirs = (
        number(table, measure, dataset=dataset, method=method, group=group)
        for group in ("semantic", "visual")
    )
    return None if ours is None or theirs is None else ours - theirs
