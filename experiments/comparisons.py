"""Differences of methods on the same images, with intervals and p values."""

from __future__ import annotations

import numpy as np

from experiments import expert
from experiments.bootstrap import Difference, compare
from experiments.study import Measured, Study

__all__ = ["difference", "holm", "p_text", "semantic", "semantic_over_visual", "span"]


def semantic(kind: str) -> str:
    """The recipe of the paper's own space, for expert labels or for tags."""
    return "linear" if kind == "expert" else "denoised"


def difference(ours: Measured, theirs: Measured, measure: int = 0) -> Difference:
    """Paired difference of two methods on the same images."""
    return compare(
        ours.resampled[measure],
        theirs.resampled[measure],
        float(ours.values[measure]),
        float(theirs.values[measure]),
    )


def semantic_over_visual(study: Study, kind: str, method: str, measure: int = 0) -> Difference:
    """What a method gains from the semantic space."""
    ours = expert.chosen(study, kind, semantic(kind), method)
    return difference(ours, expert.chosen(study, kind, "visual", method), measure)


def holm(p: list[float]) -> list[float]:
    """Correct p values for multiple comparisons, by Holm's method."""
    order = np.argsort(p, kind="stable")
    corrected = np.empty(len(p))
    most = 0.0
    for rank, i in enumerate(order):
        most = max(most, min(1.0, p[i] * (len(p) - rank)))
        corrected[i] = most
    return [float(value) for value in corrected]


def span(found: Difference) -> str:
    """The interval of a difference, in points."""
    return f"{100 * found.low:+.1f} to {100 * found.high:+.1f}".replace("-", "−")


def p_text(value: float, least: float) -> str:
    """Format a p value; one that no resample contradicts is written as a bound."""
    return f"<{least:.2g}" if value <= least else f"{value:.2g}"
