"""Score held-out images by models that have not seen them, and learn confidences from that."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import clone

from tagkin.annotator.naming import score_names
from tagkin.annotator.problem import SIZES, Part, Problem, count_images
from tagkin.annotator.recipe import Recipe
from tagkin.arrays import Array
from tagkin.arrays.threads import run_tasks
from tagkin.calibration.fitting import Calibrated, HeldOutScores, fit_calibration
from tagkin.calibration.mixture import share_logits
from tagkin.space import SemanticSpace
from tagkin.space.parts import LeaveOutSpaces
from tagkin.tag_meanings import NameTable
from tagkin.transfer import NeighborTransfer

__all__ = [
    "FoldModels",
    "HeldOut",
    "calibrate_held_out",
    "fit_and_hold_out",
    "fit_method",
    "hold_out",
]

Fitted = TypeVar("Fitted")


# Landmarks of a fold's space, as a share of those of the whole space. A fold has two thirds of the
# images or more, and its solution takes less than half the time. Confidences are as good; with a
# share of one half they were a point too low.
_FOLD_LANDMARKS = 0.75


class FoldModels:
    """A space and a method of all images of a problem, and others without the images of a fold."""

    def __init__(self, problem: Problem, part: Part, recipe: Recipe):
        self.problem, self.part, self.method = problem, part, recipe.method
        self.levels = share_logits(part.labels(problem.Y))
        self.sums: LeaveOutSpaces | None = None
        if recipe.space is not None:
            parts = [fold.held_out for fold in part.folds]
            others = np.setdiff1d(np.arange(len(problem.X)), np.concatenate(parts))
            parts += [others] if len(others) else []
            self.sums = LeaveOutSpaces(recipe.space, problem.X, problem.Y, parts)
            self.n_landmarks = max(1, int(_FOLD_LANDMARKS * recipe.space.n_landmarks))

    def fit(self) -> tuple[SemanticSpace | None, NeighborTransfer]:
        """Fit the space and the method to all images."""
        if self.sums is None:
            return None, fit_method(self.method, self.problem.X, self.problem)
        space = self.sums.whole()
        (embeddings,) = self.sums.embeddings(space, [slice(None)])
        return space, fit_method(self.method, embeddings, self.problem)

    def score_fold(self, number: int) -> tuple[np.ndarray, ...]:
        """Return the scores (n×C) of a fold's held-out images, by a model of its known images."""
        known, held_out = self._embed_fold(number)
        columns = slice(None) if self.part.is_whole else self.part.columns
        others = self.problem.take(self.part.folds[number].known, columns)
        scores = fit_method(self.method, known, others).model_.components(held_out)
        if not self.method.scores_are_logits:
            return scores
        rarer = self.levels - share_logits(others.Y)  # than among all images
        return tuple(logits + rarer for logits in scores)

    def _embed_fold(self, number: int) -> tuple[Array, Array]:
        """Embed the known and the held-out images of a fold, in the space of the known images.

        Without a space, these are features; so they are if all known images have the same labels:
        no space can be learned, and whatever the embeddings, all images get the same scores.
        """
        rows, X = self.part.folds[number], self.problem.X
        n_with_label = count_images(self.problem.Y[rows.known])
        is_varied = ((n_with_label > 0) & (n_with_label < len(rows.known))).any()
        if self.sums is None or not is_varied:
            return X[rows.known], X[rows.held_out]
        space = self.sums.without(number, self.n_landmarks)
        known, held_out = self.sums.embeddings(space, rows)
        return known, held_out


def fit_method(method: NeighborTransfer, embeddings: Array, problem: Problem) -> NeighborTransfer:
    """Fit a method on the embeddings (N×m) of a problem's images."""
    options = {}
    if problem.rejected is not None and method.takes_rejected:
        options["rejected"] = problem.rejected
    return clone(method).fit(embeddings, problem.Y, groups=problem.groups, **options)


class HeldOut(NamedTuple):
    """Held-out scores, and the confidences that were learned from them."""

    scores: HeldOutScores
    calibrated: Calibrated
    names: NameTable | None
    """Meanings of all label names, if there is a prior."""
    judged: np.ndarray
    """Labels whose scores can be compared between images, bool, shape (C,). A model that has not
    seen a label scores all images alike, the label's own image among them. This says nothing about
    the scores of models that have seen the label."""


def hold_out(
    part: Part,
    score_fold: Callable[[int], tuple[np.ndarray, ...]],
    fold_done: Callable[[], None] = lambda: None,
) -> tuple[np.ndarray, ...]:
    """Return the scores (n×C) of all held-out images of a part, given those of a fold by number.

    There is one array for each kind of score: one, or the logits of votes and read-out.
    """
    return fit_and_hold_out(lambda: None, part, score_fold, fold_done)[1]


def fit_and_hold_out(
    fit: Callable[[], Fitted],
    part: Part,
    score_fold: Callable[[int], tuple[np.ndarray, ...]],
    fold_done: Callable[[], None] = lambda: None,
) -> tuple[Fitted, tuple[np.ndarray, ...]]:
    """Return what `fit` returns, which takes as long as a fold or longer, and held-out scores."""
    tasks: list[Callable[[], Any]] = [fit]  # the longest comes first
    tasks += [partial(score_fold, number) for number in range(len(part.folds))]
    # in parallel if memory holds the models of all folds
    n = sum(map(len, part.folds[0]))
    results = run_tasks(tasks) if n <= SIZES.huge else (task() for task in tasks)
    scores: tuple[np.ndarray, ...] = ()
    with closing(results):  # an interrupted fit gives the threads back at once
        fitted: Fitted = next(results)
        for fold, of_fold in zip(part.folds, results, strict=True):
            if not scores:
                shape = len(part.rows), len(part.columns)
                scores = tuple(np.empty(shape, dtype=np.float32) for _ in of_fold)
            rows = np.searchsorted(part.rows, fold.held_out)
            for whole, some in zip(scores, of_fold, strict=True):
                whole[rows] = some
            fold_done()
    return fitted, scores


def calibrate_held_out(problem: Problem, part: Part, learned: tuple[np.ndarray, ...]) -> HeldOut:
    """Learn confidences from held-out scores (n×C) of the complete images of a part.

    The log-odds of complete images come from weights that were learned without the image. Those of
    incomplete images come from the weights learned from all complete images.
    """
    table, by_name = None, None
    if problem.naming is not None:
        table = problem.naming.table
        X = problem.X if part.is_whole else problem.X[part.rows]
        by_name = score_names(problem.naming.prior, X, table.some(part.columns))
    scores = HeldOutScores(learned, by_name)
    complete, rows, labels = problem.complete, part.rows, part.labels(problem.Y)
    is_complete: np.ndarray | slice = slice(None) if complete is None else complete[rows]
    judged = np.all([count_images(labels[fold.known]) > 0 for fold in part.folds], axis=0)
    calibrated = fit_calibration(
        scores.take(is_complete),
        part.truth(problem.Y)[is_complete],
        labels=labels if complete is None else labels[complete],
        groups=None if problem.groups is None else problem.groups[rows][is_complete],
        judged=judged,
    )
    if complete is not None:
        log_odds = calibrated.calibration.mix(scores.all)
        log_odds[is_complete] = calibrated.log_odds
        calibrated = calibrated._replace(log_odds=log_odds)
    return HeldOut(scores, calibrated, table, judged)
