"""Measure how good suggestions are, on photographs whose tags were held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from tagkin.annotator.hold_out import FoldModels, HeldOut, calibrate_held_out, hold_out
from tagkin.annotator.label_input import NamedLabels
from tagkin.annotator.model import describe_clusters, describe_groups
from tagkin.annotator.part import Part, check_memory
from tagkin.annotator.problem import Problem, check_enough
from tagkin.annotator.recipe import Recipe
from tagkin.calibration import (
    HeldOutScores,
    ReliabilityCurve,
    fit_calibration,
    reliability_curve,
)
from tagkin.evaluation import LabelReport, evaluate, label_report
from tagkin.model_selection.kinds import KINDS, Kind, number_clusters
from tagkin.progress import Counted, Progress, silent
from tagkin.wording import count

__all__ = [
    "INPUT_MEASURES",
    "MEASURES",
    "Measures",
    "OperatingPoint",
    "Quality",
    "cross_validate",
]

_PRECISIONS = (0.5, 0.7, 0.8, 0.9)  # to report operating points for


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

_INPUTS = {
    "pictures": "Pictures alone",
    "names": "Names of tags alone",
    "moments": "Times, places and folders alone",
}
"""Inputs of a model, with the names that people see."""
INPUT_MEASURES = Measures(
    "What each input says alone",
    "In the semantic space. A tag that no picture shows, such as a trip, is known by its time.",
    {
        "image_precision": "Right of the 5 (precision)",
        "MiAP": "Its tags ranked first (MiAP)",
        "MAP": "Its photographs ranked first (MAP)",
    },
)
"""Metrics of each input alone."""


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
        Metrics of `tagkin.evaluate` for the model, and for the same method and the same inputs in
        visual feature space.
    inputs : dict of str to dict
        The same for each input of the model alone: "pictures", "names" and "moments" (times, places
        and folders). Empty if there is only one.
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
    inputs: dict[str, dict[str, float]]
    operating_points: list[OperatingPoint]
    labels: LabelReport
    truth: scipy.sparse.csr_array
    confidences: np.ndarray

    @property
    def by_input(self) -> dict[str, dict[str, float]]:
        """The metrics of each input alone and of all together, by the names that people see."""
        alone = {_INPUTS[name]: metrics for name, metrics in self.inputs.items()}
        return alone and {**alone, "All together": self.semantic}

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

    If times are known, the photographs of an event are held out together: the suggestions measured
    are those for an event of which no photograph is tagged.

    The confidences are learned for each half of the photographs from the scores of the other half,
    so they, too, are measured on photographs they have not seen.
    """
    Y, groups, source = problem.Y, problem.groups, problem.source or NamedLabels(problem.Y)
    check_enough(Y, source.tags is not None)
    check_memory(Y)
    part = Part.whole(problem, KINDS.rounds)
    fold_done = Counted(step, "Cross-validating", 2 * len(part.folds))

    def calibrate(problem: Problem, recipe: Recipe) -> HeldOut:
        # the sums of all folds are large, and nothing else may hold them
        learned = hold_out(part, FoldModels(problem, part, recipe).score_fold, fold_done)
        return calibrate_held_out(problem, part, learned)

    held_out = calibrate(problem, recipe)
    testable, entries = held_out.testable, part.entries_as(Kind.EVENT)
    scores = held_out.entries.take(entries)

    def measure(scores: HeldOutScores) -> dict[str, float]:
        return evaluate(Y, fit_calibration(scores, Y, groups=groups, testable=testable).log_odds)

    visual = measure(calibrate(problem, Recipe(None, recipe.method)).entries.take(entries))
    P = np.empty(Y.shape, dtype=np.float32)
    thresholds = np.empty((len(_PRECISIONS), len(P)))
    events = _number_events(problem)
    halves = split_into_halves(len(P), events, problem.seed)
    for rows, others in zip(halves, reversed(halves), strict=True):
        mates = None if groups is None else groups[others]
        some = scores.take(others)
        calibration = fit_calibration(some, Y[others], groups=mates, testable=testable).calibration
        P[rows] = calibration.probabilities(calibration.mix(scores.take(rows).all))
        thresholds[:, rows] = [[calibration.threshold(wanted)] for wanted in _PRECISIONS]
    how = f"{len(part.folds) // part.n_rounds}-fold cross-validation on "
    how += count(len(P), "tagged photograph")
    if problem.occasions is not None and events is not None:
        together = describe_clusters(events, "event")
        how += f" ({together}, each event held out as a whole)" if together else ""
    elif series := describe_groups(groups):
        how += f" ({series}, each series held out as a whole)"
    points = zip(_PRECISIONS, thresholds, strict=True)
    return Quality(
        how,
        measure(scores),
        visual,
        {name: measure(alone) for name, alone in _split_inputs(scores).items()},
        [_operating_point(wanted, Y, least[:, None] <= P) for wanted, least in points],
        label_report(Y, P, names=list(source.classes()), min_scores=0.5),
        Y,
        P,
    )


def _split_inputs(scores: HeldOutScores) -> dict[str, HeldOutScores]:
    """Return the scores of each input alone; nothing if there is only one."""
    inputs = {"pictures": HeldOutScores(scores.learned)}
    if scores.name is not None:
        inputs["names"] = HeldOutScores((), scores.name)
    if scores.occasions:
        inputs["moments"] = HeldOutScores((), None, scores.occasions)
    return inputs if len(inputs) > 1 else {}


def _number_events(problem: Problem) -> np.ndarray | None:
    """Return what is held out together, shape (N,): events if times are known, else groups."""
    known = problem.occasions
    if known is None:
        return problem.groups
    return number_clusters(known.times, known.folders, KINDS.event, problem.Y.shape[0])


def split_into_halves(
    n: int, groups: np.ndarray | None, random_state: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Split n photographs at random into two parts of about one size, with no group in both.

    A single group, such as the event of a folder from one afternoon, is split.
    """
    codes = np.arange(n) if groups is None or not np.ptp(groups) else groups
    order = np.random.default_rng(random_state).permutation(codes.max() + 1)
    rank = np.argsort(order)[codes]
    ends = np.cumsum(np.bincount(rank))  # photographs up to the end of each group
    first = rank <= np.abs(ends[:-1] - n / 2).argmin()
    return np.flatnonzero(first), np.flatnonzero(~first)


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
