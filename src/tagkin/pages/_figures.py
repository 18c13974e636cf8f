"""Quality metrics for templates: the rows of a table and the dots of a curve."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tagkin.calibration import ReliabilityCurve
from tagkin.evaluation import LabelReport

__all__ = ["Dot", "TagRow", "common_threshold", "dots_of", "tag_rows"]

_FEWEST = 5  # minimum pairs in a bin; the share of fewer pairs says little
_SMALLEST, _LARGEST = 3.0, 11.0  # radius of a dot


@dataclass(frozen=True)
class Dot:
    """A bin of a reliability curve."""

    predicted: float
    observed: float
    n_pairs: int
    radius: float


def dots_of(curve: ReliabilityCurve) -> list[Dot]:
    """Return the bins of a curve with enough pairs of a photograph and a tag.

    A dot's area is proportional to the pairs in its bin, relative to the fullest bin. The first bin
    is left out of that maximum, because nearly all pairs are there, too unlikely to be suggested.
    """
    fullest = max(curve.n_pairs[1:].tolist(), default=0)
    return [
        Dot(predicted, observed, n, _radius(n, fullest))
        for predicted, observed, n in zip(*(column.tolist() for column in curve), strict=True)
        if n >= _FEWEST
    ]


def _radius(n: int, fullest: int) -> float:
    return max(_SMALLEST, _LARGEST * math.sqrt(min(1.0, n / max(fullest, 1))))


@dataclass(frozen=True)
class TagRow:
    """The quality of one tag; NaN if a share is unknown."""

    tag: str
    support: int
    average_precision: float
    damped: float
    n_assigned: int
    precision: float
    recall: float
    confused: list[tuple[str, int]]
    """Tags that were suggested instead, and how often."""


def tag_rows(labels: LabelReport) -> Iterator[TagRow]:
    """Yield one row per tag, in the report's order."""
    damped = labels.damped_precision
    for t in labels.order:
        pairs = zip(labels.confused_with[t], labels.confused_count[t], strict=True)
        yield TagRow(
            str(labels.names[t]),
            int(labels.support[t]),
            float(labels.average_precision[t]),
            float(damped[t]),
            int(labels.n_assigned[t]),
            float(labels.precision[t]),
            float(labels.recall[t]),
            [(str(labels.names[other]), int(n)) for other, n in pairs if other >= 0],
        )


def common_threshold(labels: LabelReport) -> float | None:
    """Return the minimum confidence of suggestions, or None if it differs between tags."""
    first = float(labels.min_score[0])
    return first if 0 < first < 1 and (labels.min_score == first).all() else None
