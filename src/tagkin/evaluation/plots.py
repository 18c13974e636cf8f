"""Matplotlib figures for notebooks and papers, which the caller shows or saves.

Charts on tagkin's own pages do not need matplotlib, which is imported at the first figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tagkin.arrays import Array, check_integer
from tagkin.calibration.reliability import reliability_curve
from tagkin.errors import InvalidInput, MissingExtra, pip_install

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_labels", "draw_reliability"]

# From Paul Tol's bright scheme, which colour-blind people can distinguish.
_BLUE, _RED, _GREY = "#4477AA", "#EE6677", "#BBBBBB"
_LONGEST = 28  # characters of a name
# Style of numbers, legible over the line of the mean.
_TEXT: dict[str, Any] = {  # of the many types that matplotlib takes
    "va": "center",
    "fontsize": 8,
    "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.5},
}


def draw_labels(
    names: np.ndarray, precision: np.ndarray, support: np.ndarray, n_labels: int = 40
) -> Figure:
    """Draw bars of average precision and numbers of images of D labels, in their order.

    Labels with a precision of NaN are counted but not shown. If there are more than `n_labels`,
    the first and the last are shown, with a gap between them.
    """
    shown, rows, gap = _choose(precision, max(2, check_integer("n_labels", n_labels)))
    figure = _figure(8, 1.4 + 0.22 * (rows[-1] + 1))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 1])
    left.barh(rows, precision[shown], color=_BLUE)
    left.axvline(np.nanmean(precision), color=_RED, linewidth=1, zorder=0)
    left.set(
        xlim=(0, 1.1),
        xticks=np.linspace(0, 1, 6),
        xlabel="average precision (small counts damped in the order)",
    )
    right.barh(rows, support[shown], color=_GREY)
    right.set(xscale="log", xlim=(0.5, 6 * support[shown].max()), xlabel="images")
    right.minorticks_off()
    # names are never formulas
    texts = [str(n) if len(n) <= _LONGEST else f"{n[: _LONGEST - 1]}…" for n in names[shown]]
    left.set_yticks(rows, texts, fontsize=8, parse_math=False)
    left.set_ylim(rows[-1] + 0.6, -0.6)
    for row, label in zip(rows, shown, strict=True):
        _write(left, row, precision[label], f"{precision[label]:.2f}")
        _write(right, row, support[label], f"{support[label]:,}")
    for axes in (left, right):
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right"]].set_visible(False)
    if gap is not None:
        hidden = np.count_nonzero(~np.isnan(precision)) - len(shown)
        left.text(0.5, gap, f"{hidden:,} labels in between", ha="center", **_TEXT)
    figure.suptitle(_title(precision), fontsize=10)
    return figure


def draw_reliability(Y: Array, P: Array, n_bins: int = 15) -> Figure:
    """Draw a matplotlib Figure of observed frequency against predicted probability.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n, D)
    P : array of shape (n, D)
        Probabilities, such as those of `LabelCalibrator.predict_proba`.
    n_bins : int
        See `reliability_curve`.
    """
    curve = reliability_curve(Y, P, n_bins)
    share = curve.n_pairs / curve.n_pairs.sum()
    error = np.nansum(np.abs(curve.predicted - curve.observed) * share)
    figure = _figure(5, 6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    filled = curve.n_pairs > 0
    above.plot([0, 1], [0, 1], color=_GREY, linestyle="--", label="as predicted")
    above.plot(curve.predicted[filled], curve.observed[filled], "o-", color=_BLUE, label="observed")
    above.set(xlim=(0, 1), ylim=(0, 1), ylabel="share of images with the label")
    above.legend(frameon=False, loc="upper left")
    edges = np.linspace(0, 1, n_bins + 1)
    below.bar(edges[:-1], curve.n_pairs, width=1 / n_bins, align="edge", color=_GREY, ec="white")
    below.set(yscale="log", ylim=(0.5, None), ylabel="pairs", xlabel="predicted probability")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"Expected calibration error {error:.2g}", fontsize=10)
    return figure


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra(f"A figure needs matplotlib: {pip_install('plot')}") from error
    return Figure(figsize=(width, height), layout="constrained")


def _choose(precision: np.ndarray, n_labels: int) -> tuple[np.ndarray, np.ndarray, float | None]:
    """Return the labels to show, their rows, and the row of the gap or None."""
    measured = np.flatnonzero(~np.isnan(precision))
    if not len(measured):
        raise InvalidInput("No label is on any image, so there is nothing to draw.")
    if len(measured) <= n_labels:
        return measured, np.arange(len(measured)), None
    n_first = (n_labels + 1) // 2
    row = np.arange(n_labels)
    shown = np.where(row < n_first, measured[:n_labels], measured[-n_labels:])
    return shown, row + 2 * (row >= n_first), n_first + 0.5


def _write(axes: Axes, row: float, value: float, text: str) -> None:
    """Write a number at the end of its bar."""
    axes.annotate(text, (value, row), xytext=(4, 0), textcoords="offset points", **_TEXT)


def _title(precision: np.ndarray) -> str:
    missing = np.count_nonzero(np.isnan(precision))
    measured = len(precision) - missing
    labels = f"{measured:,} label{'' if measured == 1 else 's'}"
    without = f"; {missing:,} more on no image" if missing else ""
    return f"{labels}, mean average precision {np.nanmean(precision):.3f} (line){without}"
