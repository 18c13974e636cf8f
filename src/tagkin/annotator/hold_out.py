"""Score held-out images by models that have not seen them, and learn confidences from that."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from tagkin.annotator.naming import score_names
from tagkin.annotator.problem import SIZES, Part, Problem, count_images
from tagkin.arrays import Array
from tagkin.arrays.threads import run_tasks
from tagkin.calibration.fitting import Calibrated, HeldOutScores, fit_calibration
from tagkin.calibration.mixture import share_logits
from tagkin.errors import InvalidInput
from tagkin.space import SemanticSpace
from tagkin.space.parts import LeaveOutSpaces
from tagkin.tag_meanings import NameTable
from tagkin.transfer import NeighborTransfer

__all__ = ["FoldSpaces", "HeldOut", "calibrate_held_out", "fit_method", "hold_out"]


class FoldSpaces:
    """The space of all images of a problem, and spaces without the held-out images of a fold.

    Without a `space`, all embeddings are features.
    """

    def __init__(self, problem: Problem, part: Part, space: SemanticSpace | None):
        self.problem, self.part = problem, part
        self.sums: LeaveOutSpaces | None = None
        if space is not None:
            parts = [fold.held_out for fold in part.folds]
            others = np.setdiff1d(np.arange(len(problem.X)), np.concatenate(parts))
            parts += [others] if len(others) else []
            self.sums = LeaveOutSpaces(space, problem.X, problem.Y, parts).compute_sums()

    def embed_fold(self, number: int) -> tuple[Array, Array]:
        """Embed the known and the held-out images of a fold, in the space of the known images.

        If there are too few labels for a space, these are features.
        """
        rows, X = self.part.folds[number], self.problem.X
        if self.sums is not None:
            try:
                known, held_out = self.sums.embeddings(self.sums.without(number, draft=True), rows)
            except InvalidInput:
                pass
            else:
                return known, held_out
        return X[rows.known], X[rows.held_out]

    def fit(self) -> tuple[SemanticSpace | None, Array]:
        """Fit the space of all images, and embed them."""
        if self.sums is None:
            return None, self.problem.X
        space = self.sums.whole()
        (embeddings,) = self.sums.embeddings(space, [slice(None)])
        return space, embeddings


class HeldOut(NamedTuple):
    """Held-out scores, and the confidences that were learned from them."""

    scores: HeldOutScores
    calibrated: Calibrated
    names: NameTable | None
    """Meanings of all label names, if there is a prior."""


def hold_out(
    spaces: FoldSpaces, method: NeighborTransfer, fold_done: Callable[[], None] = lambda: None
) -> tuple[np.ndarray, ...]:
    """Hold out each fold in turn, and score its images by a model of all other images.

    Returns
    -------
    scores : arrays of shape (n, C)
        The scores that a model mixes: one, or the logits of votes and read-out of a `KinReadout`.
    """
    problem, part = spaces.problem, spaces.part
    columns = slice(None) if part.is_whole else part.columns
    levels = share_logits(part.labels(problem.Y))

    def score_fold(number: int) -> tuple[np.ndarray, ...]:
        known, held_out = spaces.embed_fold(number)
        others = problem.take(part.folds[number].known, columns)
        scores = fit_method(method, known, others).model_.components(held_out)
        if not method.scores_are_logits:
            return scores
        rarer = levels - share_logits(others.Y)  # than among all images
        return tuple(logits + rarer for logits in scores)

    tasks = [partial(score_fold, number) for number in range(len(part.folds))]
    # in parallel if memory holds the models of all folds
    results = run_tasks(tasks) if len(problem.X) <= SIZES.huge else (task() for task in tasks)
    scores: tuple[np.ndarray, ...] = ()
    for fold, of_fold in zip(part.folds, results, strict=True):
        if not scores:
            shape = len(part.rows), len(part.columns)
            scores = tuple(np.empty(shape, dtype=np.float32) for _ in of_fold)
        rows = np.searchsorted(part.rows, fold.held_out)
        for whole, some in zip(scores, of_fold, strict=True):
            whole[rows] = some
        fold_done()
    return scores


def fit_method(method: NeighborTransfer, embeddings: Array, problem: Problem) -> NeighborTransfer:
    """Fit a method on the embeddings (N×m) of a problem's images."""
    options = {}
    if problem.rejected is not None and method.takes_rejected:
        options["rejected"] = problem.rejected
    return clone(method).fit(embeddings, problem.Y, groups=problem.groups, **options)


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
    calibrated = fit_calibration(
        scores.take(is_complete),
        part.truth(problem.Y)[is_complete],
        labels=labels if complete is None else labels[complete],
        groups=None if problem.groups is None else problem.groups[rows][is_complete],
        # A model that has not seen a label scores all images alike, the label's own image among
        # them. This says nothing about the scores of models that have seen the label.
        judged=np.all([count_images(labels[fold.known]) > 0 for fold in part.folds], axis=0),
    )
    if complete is not None:
        log_odds = calibrated.calibration.mix(scores.all)
        log_odds[is_complete] = calibrated.log_odds
        calibrated = calibrated._replace(log_odds=log_odds)
    return HeldOut(scores, calibrated, table)
