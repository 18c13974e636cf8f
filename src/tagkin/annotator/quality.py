"""How good suggestions are: measured on photographs whose tags were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from tagkin.annotator.grouping import series_text
from tagkin.annotator.hold_out import hold_out
from tagkin.annotator.problem import Part, Problem, check_enough, check_memory
from tagkin.annotator.recipe import Recipe
from tagkin.calibration import LabelCalibrator, ReliabilityCurve, reliability_curve
from tagkin.errors import InvalidInput
from tagkin.evaluation import LabelReport, evaluate, label_report, mean_average_precision
from tagkin.progress import Counted, Progress, silent
from tagkin.wording import count

__all__ = ["MEASURES", "Measures", "Quality", "Reached", "cross_validate", "held_out"]

WANTED = (0.5, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Measures:
    """Figures that are a mean over the same things, as people are shown them."""

    title: str
    note: str
    """What to know before reading them."""
    names: dict[str, str]
    """Key in what `tagkin.evaluate` returns -> name, in the order in which they are shown."""


MEASURES = (
    Measures(
        "Per photograph, with the 5 best tags",
        "What you meet photograph by photograph. One that carries 2 tags reaches a precision of "
        "40 % at most.",
        {
            "image_precision": "Right of the 5 (precision)",
            "image_recall": "Found of its tags (recall)",
            "hit_rate": "At least one right",
            "MiAP": "Its tags ranked first (MiAP)",
        },
    ),
    Measures(
        "Mean over tags, as in the paper",
        "Every tag counts alike, however rare; one that is never among the 5 best counts as 0.",
        {
            "MAP": "Its photographs ranked first (MAP)",
            "macro_precision": "Macro precision at 5",
            "macro_recall": "Macro recall at 5",
        },
    ),
)


@dataclass(frozen=True)
class Reached:
    """What a threshold for a wanted precision gives."""

    wanted: float
    precision: float
    """Share of right suggestions; NaN where there is none."""
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
    """What suggestions are worth on n photographs with D tags.

    Attributes
    ----------
    how : str
        How it was measured, in words.
    semantic, visual : dict of str to float
        What `tagkin.evaluate` says of the model, and of the same method in visual feature space
        (empty where that is not known); `MEASURES` has their names.
    reached : list of Reached
        What the thresholds for wanted precisions give.
    labels : LabelReport
        Tag by tag, where suggestions are those with a confidence of .5 and more.
    truth : CSR array of shape (n, D)
    confidences : float32 array of shape (n, D)
    """

    how: str
    semantic: dict[str, float]
    visual: dict[str, float]
    reached: list[Reached]
    labels: LabelReport
    truth: scipy.sparse.csr_array
    confidences: np.ndarray

    @property
    def tags_per_photograph(self) -> float:
        """Known tags that a photograph carries, on average."""
        return self.truth.nnz / self.truth.shape[0]

    @property
    def by_default(self) -> Reached:
        """What suggestions give if nothing is asked for: those with a confidence of .5 and more."""
        return _reached(0.5, self.truth, self.confidences >= 0.5)

    @property
    def reliability(self) -> ReliabilityCurve:
        """How many suggestions are right, against how sure they are."""
        return reliability_curve(self.truth, self.confidences, 10)


def cross_validate(
    problem: Problem, recipe: Recipe, names: Sequence[str], step: Progress = silent
) -> Quality:
    """Hold out each fold of the photographs in turn; those of one group together.

    How to denoise is chosen in each fold anew. Whether to, how much the names of tags count, and
    the confidences, are learned for one half of the photographs from the scores of the other half,
    so that they, too, are measured on photographs that they have not seen. Where the halves decide
    otherwise, scores of both ways stand in one ranking.
    """
    X, Y, groups, naming = problem.X, problem.Y, problem.groups, problem.naming
    check_enough(Y)
    check_memory(Y)
    plain, visual = replace(recipe, denoiser=None), Recipe(None, recipe.method)
    recipes = [plain] if recipe.denoiser is None else [plain, recipe]
    part = Part.whole(problem)
    fold_done = Counted(step, "Cross-validating", (len(recipes) + 1) * len(part.folds))
    *tried, visual_scores = (
        hold_out(problem, candidate, part, fold_done).scores for candidate in (*recipes, visual)
    )
    halves = split_into_halves(len(visual_scores), groups, problem.seed)
    scores, judges = np.empty_like(visual_scores), []
    for rows, others in zip(halves, reversed(halves), strict=True):
        best, truth = tried[0], Y[others]
        if truth.nnz:  # a half of few labelled photographs may carry none
            best = max(tried, key=lambda trial: mean_average_precision(truth, trial[others]))
        if naming is not None:
            best = naming.cross_fit_weights(X, Y, best, others)
        scores[rows] = best[rows]
        judges.append((rows, LabelCalibrator().fit(best[others], truth)))
    judged = count(len(scores), "tagged photograph")
    how = f"{len(part.folds)}-fold cross-validation on {judged}"
    if series := series_text(groups):
        how += f" ({series}, each series held out as a whole)"
    return _measured(how, Y, scores, visual_scores, judges, names)


def split_into_halves(
    n: int, groups: np.ndarray | None, random_state: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Two parts of n photographs, of about one size and at random, with no group in both."""
    codes = np.arange(n) if groups is None else groups
    order = np.random.default_rng(random_state).permutation(codes.max() + 1)
    rank = np.argsort(order)[codes]
    ended = np.cumsum(np.bincount(rank))  # photographs up to the end of each group
    first = rank <= np.abs(ended[:-1] - n / 2).argmin()
    return np.flatnonzero(first), np.flatnonzero(~first)


def held_out(
    Y: scipy.sparse.csr_array,
    scores: np.ndarray,
    visual_scores: np.ndarray | None,
    calibrator: LabelCalibrator,
    names: Sequence[str],
) -> Quality:
    """The quality of a model's scores (n×D) for photographs that it was not learned from."""
    how = f"{count(len(scores), 'tagged photograph')} that the model had not seen"
    return _measured(how, Y, scores, visual_scores, [(np.arange(len(scores)), calibrator)], names)


def _measured(
    how: str,
    truth: scipy.sparse.csr_array,
    scores: np.ndarray,
    visual_scores: np.ndarray | None,
    judges: list[tuple[np.ndarray, LabelCalibrator]],
    names: Sequence[str],
) -> Quality:
    """Figures of scores (n×D); each judge makes confidences of the rows that it is given."""
    if truth.nnz == 0:
        raise InvalidInput(
            "None of these photographs carries a tag that the model knows: there is nothing to "
            "compare suggestions with."
        )
    confidences = np.empty(scores.shape, dtype=np.float32)
    given = np.zeros((len(WANTED), *scores.shape), dtype=bool)
    for rows, judge in judges:
        confidences[rows] = judge.predict_proba(scores[rows])
        for k, wanted in enumerate(WANTED):
            given[k, rows] = scores[rows] >= judge.min_scores(wanted)
    return Quality(
        how,
        evaluate(truth, scores),
        {} if visual_scores is None else evaluate(truth, visual_scores),
        [_reached(wanted, truth, some) for wanted, some in zip(WANTED, given, strict=True)],
        label_report(truth, confidences, names=list(names), min_scores=0.5),
        truth,
        confidences,
    )


def _reached(wanted: float, truth: scipy.sparse.csr_array, given: np.ndarray) -> Reached:
    right, n = int(truth.multiply(given).sum()), int(given.sum())
    return Reached(
        wanted,
        right / n if n else float("nan"),
        right / truth.nnz,
        n,
        n / len(given),
        float((~given.any(axis=1)).mean()),
    )
