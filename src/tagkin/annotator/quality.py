"""Measure how good suggestions are, on photographs whose tags were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse

from tagkin.annotator.hold_out import (
    FoldModels,
    HeldOut,
    calibrate_held_out,
    fit_method,
    hold_out,
)
from tagkin.annotator.label_input import NamedLabels
from tagkin.annotator.model import describe_groups
from tagkin.annotator.problem import Labels, Part, Problem, check_enough, check_memory
from tagkin.annotator.recipe import Recipe, usual_recipe
from tagkin.arrays import Array, to_numpy
from tagkin.calibration import (
    Calibration,
    ReliabilityCurve,
    fit_calibration,
    reliability_curve,
)
from tagkin.errors import InvalidInput
from tagkin.evaluation import LabelReport, evaluate, label_report
from tagkin.progress import Counted, Progress, silent
from tagkin.transfer import NeighborTransfer
from tagkin.wording import count

__all__ = [
    "MEASURES",
    "Measures",
    "OperatingPoint",
    "Quality",
    "cross_validate",
    "measure_scores",
    "score_visually",
]

_PRECISIONS = (0.5, 0.7, 0.8, 0.9)  # to report operating points for
_MOST = 0.99  # share of the photographs learned from that a fair baseline needs


@dataclass(frozen=True)
class Measures:
    """Metrics that are a mean over the same things, with the names that people see."""

    title: str
    note: str
    """Advice for reading them."""
    names: dict[str, str]
    """Name of each key of `tagkin.evaluate`, in display order."""


MEASURES = (
    Measures(
        "Per photograph, with the 5 best tags",
        "The average photograph. A photograph with 2 tags reaches a precision of 40 % at most.",
        {
            "image_precision": "Right of the 5 (precision)",
            "image_recall": "Found of its tags (recall)",
            "hit_rate": "At least one right",
            "MiAP": "Its tags ranked first (MiAP)",
        },
    ),
    Measures(
        "Mean over tags, as in the paper",
        "Every tag counts the same, however rare. A tag never among the 5 best counts as 0.",
        {
            "MAP": "Its photographs ranked first (MAP)",
            "macro_precision": "Macro precision at 5",
            "macro_recall": "Macro recall at 5",
        },
    ),
)


@dataclass(frozen=True)
class OperatingPoint:
    """Suggestions at the thresholds for a wanted precision."""

    wanted: float
    precision: float
    """Share of right suggestions; NaN without suggestions."""
    recall: float
    """Share of the tags that are suggested."""
    n_suggestions: int
    """Suggestions for all photographs together."""
    per_photograph: float
    """Suggestions per photograph."""
    without: float
    """Share of photographs without a suggestion."""


@dataclass(frozen=True, eq=False)
class Quality:
    """Quality of the suggestions for n photographs with D tags.

    Attributes
    ----------
    how : str
        How it was measured, in words.
    semantic, visual : dict of str to float
        Metrics of `tagkin.evaluate` for the model, and for the same method in visual feature space
        (empty if unknown).
    operating_points : list of OperatingPoint
        Suggestions at the thresholds for wanted precisions.
    labels : LabelReport
        Metrics of each tag, for suggestions with a confidence of .5 and more.
    truth : CSR array of shape (n, D)
    confidences : float32 array of shape (n, D)
    """

    how: str
    semantic: dict[str, float]
    visual: dict[str, float]
    operating_points: list[OperatingPoint]
    labels: LabelReport
    truth: scipy.sparse.csr_array
    confidences: np.ndarray

    @property
    def tags_per_photograph(self) -> float:
        """Mean number of known tags on a photograph."""
        return self.truth.nnz / self.truth.shape[0]

    @property
    def by_default(self) -> OperatingPoint:
        """Suggestions by default, with a confidence of .5 and more."""
        return _operating_point(0.5, self.truth, self.confidences >= 0.5)

    @property
    def reliability(self) -> ReliabilityCurve:
        """Share of right suggestions, by confidence."""
        return reliability_curve(self.truth, self.confidences, 10)


def cross_validate(problem: Problem, recipe: Recipe, step: Progress = silent) -> Quality:
    """Hold out each fold of the photographs in turn; photographs of one group together.

    The confidences are learned for each half of the photographs from the scores of the other half,
    so they, too, are measured on photographs they have not seen.
    """
    Y, groups = problem.Y, problem.groups
    check_enough(Y)
    check_memory(Y)
    part = Part.whole(problem)
    fold_done = Counted(step, "Cross-validating", 2 * len(part.folds))

    def calibrate(problem: Problem, recipe: Recipe) -> HeldOut:
        # the sums of all folds are large, and nothing else may hold them
        learned = hold_out(part, FoldModels(problem, part, recipe).score_fold, fold_done)
        return calibrate_held_out(problem, part, learned)

    held_out = calibrate(problem, recipe)
    scores = held_out.calibrated.log_odds
    baseline = calibrate(replace(problem, naming=None), Recipe(None, recipe.method)).calibrated
    confidences, thresholds = np.empty_like(scores), np.empty((len(_PRECISIONS), len(scores)))
    halves = split_into_halves(len(scores), groups, problem.seed)
    for rows, others in zip(halves, reversed(halves), strict=True):
        mates = None if groups is None else groups[others]
        some = held_out.scores.take(others)
        judged = held_out.judged
        calibration = fit_calibration(some, Y[others], groups=mates, judged=judged).calibration
        confidences[rows] = calibration.probabilities(
            calibration.mix(held_out.scores.take(rows).all)
        )
        thresholds[:, rows] = [[calibration.threshold(wanted)] for wanted in _PRECISIONS]
    n_tagged, source = count(len(scores), "tagged photograph"), problem.source or NamedLabels(Y)
    how = f"{len(part.folds)}-fold cross-validation on {n_tagged}"
    if series := describe_groups(groups):
        how += f" ({series}, each series held out as a whole)"
    measured = _Measured(Y, scores, baseline.log_odds, confidences, thresholds)
    return _measure(how, measured, list(source.classes()))


def split_into_halves(
    n: int, groups: np.ndarray | None, random_state: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Split n photographs at random into two parts of about one size, with no group in both."""
    codes = np.arange(n) if groups is None else groups
    order = np.random.default_rng(random_state).permutation(codes.max() + 1)
    rank = np.argsort(order)[codes]
    ends = np.cumsum(np.bincount(rank))  # photographs up to the end of each group
    first = rank <= np.abs(ends[:-1] - n / 2).argmin()
    return np.flatnonzero(first), np.flatnonzero(~first)


def measure_scores(
    Y: scipy.sparse.csr_array,
    scores: np.ndarray,
    visual_scores: np.ndarray | None,
    calibrator: Calibration,
    names: Sequence[str],
) -> Quality:
    """Measure a model's scores (n×D) for photographs that it was not learned from."""
    how = f"{count(len(scores), 'tagged photograph')} that the model had not seen"
    thresholds = np.array([[calibrator.threshold(wanted)] for wanted in _PRECISIONS])
    P = calibrator.probabilities(scores)
    return _measure(how, _Measured(Y, scores, visual_scores, P, thresholds), names)


class _Measured(NamedTuple):
    """What is measured of n photographs and D tags."""

    truth: scipy.sparse.csr_array
    scores: np.ndarray
    visual_scores: np.ndarray | None
    confidences: np.ndarray
    thresholds: np.ndarray
    """Least confidences for each wanted precision, and for each photograph or all of them."""


def _measure(how: str, measured: _Measured, names: Sequence[str]) -> Quality:
    truth, scores, visual_scores, confidences, thresholds = measured
    if truth.nnz == 0:
        raise InvalidInput(
            "None of these photographs has a tag that the model knows, so there is nothing to "
            "compare suggestions with."
        )
    points = zip(_PRECISIONS, thresholds, strict=True)
    return Quality(
        how,
        evaluate(truth, scores),
        {} if visual_scores is None else evaluate(truth, visual_scores),
        [_operating_point(wanted, truth, confidences >= c[:, None]) for wanted, c in points],
        label_report(truth, confidences, names=list(names), min_scores=0.5),
        truth,
        confidences,
    )


def _operating_point(
    wanted: float, truth: scipy.sparse.csr_array, suggested: np.ndarray
) -> OperatingPoint:
    n_right, n = int(truth.multiply(suggested).sum()), int(suggested.sum())
    return OperatingPoint(
        wanted,
        n_right / n if n else float("nan"),
        n_right / truth.nnz,
        n,
        n / len(suggested),
        float((~suggested.any(axis=1)).mean()),
    )


def score_visually(
    method: NeighborTransfer | None,
    labels: scipy.sparse.csr_array,
    known: np.ndarray,
    X: Array,
    new: Array,
) -> np.ndarray | None:
    """Score new images (n×D) by the same method in visual feature space, as a baseline.

    Returns None if too few of the images learned from could be read: the baseline would be weaker
    than it should be.

    Parameters
    ----------
    method : method by neighbours or None
        Default: `KinReadout`.
    labels : CSR array of shape (N, D)
        Labels of the images learned from.
    known : int array of shape (k,)
        Number of each image that could be read among those learned from, or −1.
    X : array of shape (k, d)
        Features of the images that could be read.
    new : array of shape (n, d)
        Features of the new images.
    """
    rows = np.flatnonzero(known >= 0)
    if len(rows) < _MOST * labels.shape[0]:
        return None
    problem = Problem(X[rows], Labels.of(labels[known[rows]]))
    method = fit_method(usual_recipe(None, method, 0).method, problem.X, problem)
    return to_numpy(method.decision_function(new))
