"""Are confidences right?"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import scipy.sparse
from matplotlib.figure import Figure

from experiments.problem import Problem, sample
from tagkin import FeatureAnnotator, SemanticSpace
from tagkin.calibration import expected_calibration_error, reliability_curve
from tagkin.model_selection import find_groups

__all__ = ["draw", "reached", "reliability_rows"]

WANTED = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
N_DRAWS = 16
MOST_IMAGES = 40_000  # of a collection
FEWEST = 200  # suggestions, for a precision to say something
N_BINS, FEWEST_PAIRS = 15, 20
COLOR = "#4477AA"

Row = dict[str, Any]


def reliability_rows(
    problem: Problem,
    name: str,
    n_draws: int = N_DRAWS,
    n_known: int = 5000,
    n_new: int = 4000,
    space: SemanticSpace | None = None,
) -> list[Row]:
    """Expected calibration error, and precision asked for and reached, on new images.

    All images of the problem are shuffled again for each draw, near-duplicates together: some to
    learn from, others to ask about. Default `space`: the annotator's.
    """
    pool = sample(len(problem.known) + len(problem.new), MOST_IMAGES, seed=0)
    X = np.concatenate([problem.known, problem.new])[pool]
    Y = scipy.sparse.csr_array(scipy.sparse.vstack([problem.Y, problem.truth]))[pool]
    groups = find_groups(X)
    draws = []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        some, others = _split(groups, min(n_known, len(X) * 5 // 6), n_new, rng)
        often = np.diff(Y[some].tocsc().indptr) > 1
        annotator = FeatureAnnotator(space).fit(X[some], Y[some][:, often])
        draws.append(_said(annotator, X[others], Y[others][:, often].toarray() > 0))
    return [_row(name, draws)]


def _split(
    groups: np.ndarray, n_known: int, n_new: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Images to learn from, and others to ask about, none of a group of the first."""
    rank = rng.permutation(groups.max() + 1)[groups]
    order = np.argsort(rank, kind="stable")
    known, rest = order[:n_known], order[n_known:]
    return known, rest[rank[rest] > rank[known[-1]]][:n_new]


class _Said(NamedTuple):
    """What an annotator says of new images and some labels, and what is right: (n×d) each."""

    P: np.ndarray
    right: np.ndarray
    given: tuple[np.ndarray, ...]
    """Which labels are suggested, for each precision that is asked for."""


def _said(annotator: FeatureAnnotator, new: np.ndarray, truth: np.ndarray) -> _Said:
    P = annotator.predict_proba(new)
    least = (annotator.calibration_.threshold(wanted) for wanted in WANTED)
    return _Said(P, truth, tuple(at <= P for at in least))


def _row(name: str, draws: Sequence[_Said]) -> Row:
    P, right = (
        np.concatenate([getattr(said, part).ravel() for said in draws]) for part in ("P", "right")
    )
    likely = P >= 0.1
    row: Row = {
        "dataset": name,
        "ECE": expected_calibration_error(right[:, None], P[:, None]),
        "ECE of p ≥ .1": _error_of(P[likely], right[likely]),
    }
    for number, wanted in enumerate(WANTED):
        given = np.array([said.given[number].sum() for said in draws])
        held = np.array([said.right[said.given[number]].sum() for said in draws])
        row[f"asked {wanted}"] = reached(given, held)
    curve = reliability_curve(right[:, None], P[:, None], N_BINS)
    pairs = zip(*curve, strict=True)
    row["curve"] = ";".join(f"{p:.4f} {o:.4f} {n}" for p, o, n in pairs if n)
    return row


def reached(given: np.ndarray, held: np.ndarray) -> str:
    """Precision of suggestions and of how many, with its 95 % interval by how draws differ.

    Of `given` (k,) suggestions in k draws `held` (k,) are right: p = Σh / Σg, with the standard
    error √(Σ(h − p g)² k/(k − 1)) / Σg of a ratio whose draws are independent.
    """
    n, k = int(given.sum()), len(given)
    if not n:
        return "none"
    p = held.sum() / n
    error = np.sqrt(((held - p * given) ** 2).sum() * k / max(k - 1, 1)) / n
    text = f"{p:.3f} ± {1.96 * error:.3f} ({n:,})"
    return text if n >= FEWEST else f"{text}, few"


def draw(table: Path, target: Path) -> None:
    """Draw the reliability diagrams of a stored table: one panel per dataset."""
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    figure = Figure(figsize=(3.2 * len(names), 3.4), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        axes.plot([0, 1], [0, 1], color="#BBBBBB", linewidth=1)
        (row,) = (row for row in rows if row["dataset"] == name)
        points = np.array([point.split() for point in row["curve"].split(";")], dtype=float)
        predicted, observed, n = points[points[:, 2] >= FEWEST_PAIRS].T
        spread = 1.96 * np.sqrt(observed * (1 - observed) / n)
        axes.errorbar(predicted, observed, spread, color=COLOR, marker="o", ms=4, lw=1)
        axes.set(title=name, xlabel="confidence", xlim=(0, 1), ylim=(0, 1))
        axes.set_aspect("equal")
    figure.axes[0].set_ylabel("share that is right")
    with mpl.rc_context({"svg.hashsalt": "tagkin"}):
        figure.savefig(target, metadata={"Date": None})


def _error_of(p: np.ndarray, right: np.ndarray, n_bins: int = 15) -> float:
    """The expected calibration error of some pairs of an image and a label."""
    if not len(p):
        return float("nan")
    bins = np.minimum((p * n_bins).astype(int), n_bins - 1)
    gaps = np.bincount(bins, p, n_bins) - np.bincount(bins, right, n_bins)
    return float(np.abs(gaps).sum() / len(p))
