"""Are confidences right, of tags that were learned and of tags that came later?"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.problem import Problem
from tagkin import FeatureAnnotator
from tagkin.calibration import expected_calibration_error

__all__ = ["reliability_rows"]

WANTED = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
FEWEST = 200  # suggestions, for a precision to say something

Row = dict[str, Any]


def reliability_rows(problem: Problem, name: str, seed: int = 0, n_known: int = 5000) -> list[Row]:
    """Expected calibration error, and precision asked for and reached, on new images.

    For new tags, a quarter of the labels is left out of the fit on one half of the images; the
    other half is added with all labels.
    """
    rng = np.random.default_rng(seed)
    some = rng.permutation(len(problem.known))[:n_known]
    X, Y = problem.known[some], problem.Y[some]
    Y, truth = Y[:, np.diff(Y.tocsc().indptr) > 1], problem.truth
    truth = truth[:, np.diff(problem.Y[some].tocsc().indptr) > 1].toarray() > 0
    annotator = FeatureAnnotator(denoise=False).fit(X, Y)
    rows = [_row(name, "learned", annotator, problem.new, truth)]

    order = rng.permutation(Y.shape[1])
    n_old, half = Y.shape[1] - Y.shape[1] // 4, len(X) // 2
    Y, truth = Y[:, order], truth[:, order]
    varied = np.diff(Y[:half, :n_old].tocsc().indptr) > 0
    kept = np.concatenate([np.flatnonzero(varied), np.arange(n_old, Y.shape[1])])
    Y, truth, n_old = Y[:, kept], truth[:, kept], int(varied.sum())
    annotator = FeatureAnnotator(denoise=False).fit(X[:half], Y[:half, :n_old])
    annotator.partial_fit(X[half:], Y[half:])
    rows.append(_row(name, "added later", annotator, problem.new, truth, slice(n_old, None)))
    return rows


def _row(
    name: str,
    tags: str,
    annotator: FeatureAnnotator,
    new: np.ndarray,
    truth: np.ndarray,
    columns: slice = slice(None),
) -> Row:
    scores = annotator.decision_function(new)
    P, right = annotator.predict_proba(new)[:, columns], truth[:, columns]
    likely = P >= 0.1
    row: Row = {
        "dataset": name,
        "tags": tags,
        "ECE": expected_calibration_error(right, P),
        "ECE of p ≥ .1": _error_of(P[likely], right[likely]),
    }
    for wanted in WANTED:
        given = (scores >= annotator.calibrator_.min_scores(wanted))[:, columns]
        n = int(given.sum())
        reached = f"{right[given].mean():.3f} ({n:,})" if n else "none"
        row[f"asked {wanted}"] = reached if n >= FEWEST or not n else f"{reached}, few"
    return row


def _error_of(p: np.ndarray, right: np.ndarray, n_bins: int = 15) -> float:
    """The expected calibration error of some pairs of an image and a label."""
    if not len(p):
        return float("nan")
    bins = np.minimum((p * n_bins).astype(int), n_bins - 1)
    gaps = np.bincount(bins, p, n_bins) - np.bincount(bins, right, n_bins)
    return float(np.abs(gaps).sum() / len(p))
