"""Charts as inline SVG and bars; what they show also stands there as text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tagkin.calibration import ReliabilityCurve
from tagkin.pages._html import Markup, bar, element, join

__all__ = ["comparison_bars", "reliability_chart"]

_LEFT, _TOP, _SIDE = 44.0, 8.0, 300.0
_FEWEST = 5  # pairs that a bin needs to be drawn; the share of fewer says little
_SMALLEST, _LARGEST = 3.0, 11.0  # radius of a dot


def comparison_bars(methods: Sequence[str], measures: Mapping[str, Sequence[float]]) -> Markup:
    """For every measure one bar a method; the best is in the accent colour."""
    blocks = []
    for name, values in measures.items():
        best = max((v for v in values if not math.isnan(v)), default=math.nan)
        rows = []
        for method, value in zip(methods, values, strict=True):
            lead = value == best
            number = "–" if math.isnan(value) else f"{100 * value:.1f} %"
            rows.append(
                element(
                    "div",
                    element("span", method),
                    bar(0.0 if math.isnan(value) else value, "fill" if lead else "other"),
                    element("span", number, class_="number"),
                    class_="row best" if lead else "row",
                )
            )
        blocks.append(element("div", element("h4", name), *rows, class_="measure"))
    return join(blocks)


def reliability_chart(curve: ReliabilityCurve) -> Markup:
    """How often tags were there against how probable they were said to be.

    A dot's area is the share that its bin has of the fullest bin. The first bin counts as no
    fuller than the others: nearly all pairs of a photograph and a tag lie there, as suggestions
    that nobody would make.
    """
    bins = zip(curve.predicted.tolist(), curve.observed.tolist(), curve.n_pairs, strict=True)
    points = [(p, o, int(n)) for p, o, n in bins if n >= _FEWEST]
    said = "; ".join(map(_in_words, points))
    fullest = max(curve.n_pairs[1:].tolist(), default=0)
    return element(
        "svg",
        *_axes(),
        element("line", class_="ideal", x1=_x(0), y1=_y(0), x2=_x(1), y2=_y(1)),
        element(
            "polyline", class_="curve", points=" ".join(f"{_x(p)},{_y(o)}" for p, o, _ in points)
        ),
        *(_dot(point, fullest) for point in points),
        *(_count(point, fullest) for point in points),
        class_="chart",
        viewBox=f"0 0 {_LEFT + _SIDE + 12:.0f} {_TOP + _SIDE + 48:.0f}",
        role="img",
        aria_label=f"Reliability curve: {said or 'too few suggestions to draw'}.",
    )


def _dot(point: tuple[float, float, int], fullest: int) -> Markup:
    said = element("title", _in_words(point))
    p, o, n = point
    return element("circle", said, cx=_x(p), cy=_y(o), r=f"{_radius(n, fullest):.1f}")


def _count(point: tuple[float, float, int], fullest: int) -> Markup:
    """How many stand behind a dot, beside a curve that rises from corner to corner."""
    p, o, n = point
    r = _radius(n, fullest)
    off = 0.7 * r + 4
    x, y, anchor = float(_x(p)) + off, float(_y(o)) + off + 4, "start"
    if p < 0.1:  # below and to the left are the numbers of the axes
        x, y = float(_x(p)) - r, float(_y(o)) - r - 8
    elif p >= 0.5:
        x, y, anchor = float(_x(p)) - off, float(_y(o)) - off + 4, "end"
    return element("text", f"{n:,}", class_="count", x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def _radius(n: int, fullest: int) -> float:
    return max(_SMALLEST, _LARGEST * math.sqrt(min(1.0, n / max(fullest, 1))))


def _in_words(point: tuple[float, float, int]) -> str:
    p, o, n = point
    return f"said {100 * p:.0f} %, right {100 * o:.0f} % of {n:,}"


def _axes() -> list[Markup]:
    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        text = f"{100 * tick:.0f} %"
        parts += [
            element("line", class_="grid", x1=_x(0), y1=_y(tick), x2=_x(1), y2=_y(tick)),
            element("text", text, x=f"{_LEFT - 8:.0f}", y=float(_y(tick)) + 4, text_anchor="end"),
            element("text", text, x=_x(tick), y=f"{_TOP + _SIDE + 20:.0f}", text_anchor="middle"),
        ]
    below = f"{_TOP + _SIDE + 42:.0f}"
    parts.append(element("text", "confidence", x=_x(0.5), y=below, text_anchor="middle"))
    return parts


def _x(share: float) -> str:
    return f"{_LEFT + _SIDE * share:.1f}"


def _y(share: float) -> str:
    return f"{_TOP + _SIDE * (1 - share):.1f}"
