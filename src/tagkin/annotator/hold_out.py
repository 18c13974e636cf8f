"""Score held-out images by models that have not seen them, and learn confidences from that."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.annotator.naming import score_names
from tagkin.annotator.part import Part
from tagkin.annotator.problem import SIZES, Problem, count_images
from tagkin.annotator.recipe import Recipe
from tagkin.arrays import Array
from tagkin.arrays.threads import run_tasks
from tagkin.calibration import CalibrationByKind
from tagkin.calibration.fitting import Calibrated, HeldOutScores, fit_calibration
from tagkin.calibration.from_examples import calibrate_from_examples
from tagkin.calibration.mixture import share_logits
from tagkin.model_selection import Fold
from tagkin.model_selection.kinds import Kind
from tagkin.space import SemanticSpace
from tagkin.space.parts import LeaveOutSpaces
from tagkin.tag_meanings import NameTable
from tagkin.transfer import NeighborTransfer
from tagkin.transfer.occasions import score_occasions

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
        self.sums: list[LeaveOutSpaces] = []
        """Those of each round."""
        if recipe.space is not None:
            n = len(part.folds) // part.n_rounds
            for first in range(0, len(part.folds), n):
                parts = [fold.held_out for fold in part.folds[first : first + n]]
                others = np.setdiff1d(np.arange(len(problem.X)), np.concatenate(parts))
                parts += [others] if len(others) else []
                self.sums.append(LeaveOutSpaces(recipe.space, problem.X, problem.Y, parts))
            self.n_landmarks = max(1, int(_FOLD_LANDMARKS * recipe.space.n_landmarks))

    def fit(self) -> tuple[SemanticSpace | None, NeighborTransfer]:
        """Fit the space and the method to all images."""
        if not self.sums:
            return None, fit_method(self.method, self.problem.X, self.problem)
        space = self.sums[0].whole()
        (embeddings,) = self.sums[0].embeddings(space, [slice(None)])
        return space, fit_method(self.method, embeddings, self.problem)

    def score_fold(self, number: int) -> tuple[np.ndarray, ...]:
        """Return the scores (n×C) of a fold's held-out images, by a model of its known images.

        The last ones are those of their occasions.
        """
        known, held_out = self._embed_fold(number)
        columns = slice(None) if self.part.is_whole else self.part.columns
        others = self.problem.take(self.part.folds[number].known, columns)
        scores = fit_method(self.method, known, others).model_.components(held_out)
        if self.method.scores_are_logits:
            rarer = self.levels - share_logits(others.Y)  # than among all images
            scores = tuple(logits + rarer for logits in scores)
        return (*scores, *self._score_occasions(self.part.folds[number], others.Y))

    def _score_occasions(
        self, fold: Fold, labels: scipy.sparse.csr_array
    ) -> tuple[np.ndarray, ...]:
        """Return scores (n×C) of a fold's images, given the labels of its known images."""
        occasions = self.problem.occasions
        if occasions is None:
            return ()
        return score_occasions(occasions.take(fold.known), occasions.take(fold.held_out), labels)

    def _embed_fold(self, number: int) -> tuple[Array, Array]:
        """Embed the known and the held-out images of a fold, in the space of the known images.

        Without a space, these are features; so they are if all known images have the same labels:
        no space can be learned, and whatever the embeddings, all images get the same scores.
        """
        rows, X = self.part.folds[number], self.problem.X
        n_with_label = count_images(self.problem.Y[rows.known])
        is_varied = ((n_with_label > 0) & (n_with_label < len(rows.known))).any()
        if not self.sums or not is_varied:
            return X[rows.known], X[rows.held_out]
        number_of_round, number = divmod(number, len(self.part.folds) // self.part.n_rounds)
        sums = self.sums[number_of_round]
        space = sums.without(number, self.n_landmarks)
        known, held_out = sums.embeddings(space, rows)
        return known, held_out


def fit_method(method: NeighborTransfer, embeddings: Array, problem: Problem) -> NeighborTransfer:
    """Fit a method on the embeddings (N×m) of a problem's images."""
    options = {}
    if problem.rejected is not None and method.takes_rejected:
        options["rejected"] = problem.rejected
    return clone(method).fit(embeddings, problem.Y, groups=problem.groups, **options)


class HeldOut(NamedTuple):
    """Held-out scores of n images, and the confidences that were learned from them."""

    scores: HeldOutScores
    """Of each image as a near one, if it was held out as such; else as another kind."""
    calibrated: Calibrated
    """Confidences of near images, and of all if nothing is known of occasions."""
    by_kind: CalibrationByKind | None
    """Confidences of other kinds."""
    names: NameTable | None
    """Meanings of all label names, if there is a prior."""
    testable: np.ndarray
    """Labels whose scores can be compared between images, bool, shape (C,). A model that has not
    seen a label scores all images alike, the label's own image among them. This says nothing about
    the scores of models that have seen the label."""
    entries: HeldOutScores
    """Of every entry of `Part.rows`."""


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
        for number, of_fold in enumerate(results):
            if not scores:
                shape = len(part.rows), len(part.columns)
                scores = tuple(np.empty(shape, dtype=np.float32) for _ in of_fold)
            rows = part.places(number)
            for whole, some in zip(scores, of_fold, strict=True):
                whole[rows] = some
            fold_done()
    return fitted, scores


def calibrate_held_out(problem: Problem, part: Part, learned: tuple[np.ndarray, ...]) -> HeldOut:
    """Learn confidences from held-out scores (R·n×C) of the complete images of a part.

    Each kind has its own. The log-odds of complete images come from weights that were learned
    without the image. Those of incomplete images come from the weights learned from all complete
    images.
    """
    table, by_name = None, None
    if problem.naming is not None:
        table = problem.naming.table
        X = problem.X if part.is_whole else problem.X[part.images]
        by_name = score_names(problem.naming.prior, X, table.some(part.columns))
        by_name = np.tile(by_name, (part.n_rounds, 1))
    n_learned = len(learned) - (0 if problem.occasions is None else len(problem.occasions.inputs))
    entries = HeldOutScores(learned[:n_learned], by_name, learned[n_learned:])
    complete, labels = problem.complete, part.labels(problem.Y)
    testable = np.all([count_images(labels[fold.known]) > 0 for fold in part.folds], axis=0)
    is_complete = np.ones(len(part.rows), bool) if complete is None else complete[part.rows]

    def calibrate(rows: np.ndarray) -> Calibrated:
        images = part.rows[rows]
        if problem.is_by_example:
            answers = problem.answers(images, part.columns)
            bias = None if problem.prior is None else problem.prior.bias
            return calibrate_from_examples(entries.take(rows), labels[images], answers, bias)
        return fit_calibration(
            entries.take(rows),
            labels[images],
            labels=labels if complete is None else labels[complete],
            groups=None if problem.groups is None else problem.groups[images],
            testable=testable,
            clusters=None if part.clusters is None else part.clusters[rows],
        )

    of_kinds: dict[Kind, tuple[np.ndarray, Calibrated]] = {}
    for kind in Kind:
        rows = np.flatnonzero(is_complete & (part.kinds == kind))
        if len(rows) >= SIZES.fewest or kind == Kind.NEAR:
            of_kinds[kind] = rows, calibrate(rows)
    rows, near = of_kinds[Kind.NEAR]
    by_kind = None
    if problem.occasions is not None:
        event = of_kinds.get(Kind.EVENT, of_kinds[Kind.NEAR])[1].calibration
        far = of_kinds[max(of_kinds)][1].calibration
        by_kind = CalibrationByKind(event, far)
    chosen = part.entries_as(Kind.NEAR)
    scores = _score_as_near(problem, part, entries.take(chosen), chosen)
    is_scored = np.isin(chosen, rows)
    if is_scored.all():
        log_odds = np.empty_like(near.log_odds, shape=(len(chosen), len(part.columns)))
    else:
        log_odds = near.calibration.mix(scores.all)
    log_odds[is_scored] = near.log_odds[np.searchsorted(rows, chosen[is_scored])]
    return HeldOut(scores, near._replace(log_odds=log_odds), by_kind, table, testable, entries)


def _score_as_near(
    problem: Problem, part: Part, scores: HeldOutScores, chosen: np.ndarray
) -> HeldOutScores:
    """Return the scores of images with those of occasions as near images have them.

    If there are many images, most were held out as another kind only. Their own occasion is left
    out, and no other.
    """
    others = np.flatnonzero(part.kinds[chosen] != Kind.NEAR)
    occasions = problem.occasions
    if occasions is None or not len(others):
        return scores
    images = part.images[others]
    near = score_occasions(
        occasions,
        occasions.take(images),
        part.labels(problem.Y),
        own=images,
        rejected=None if problem.rejected is None else part.labels(problem.rejected),
        complete=problem.complete,
    )
    for whole, some in zip(scores.occasions, near, strict=True):
        whole[others] = some
    return scores
