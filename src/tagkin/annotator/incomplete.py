"""Learn from images that are not completely labelled.

A label is right for an image, wrong, or unknown. On a complete image, an absent label counts as
wrong (people forget some: see `LogisticReadout`). On an incomplete image, only labels that it has
and labels that a person rejected are known.

First a model is learned from the complete images alone. It chooses all settings, and says which
unknown labels to expect on the incomplete images. Then the space, the votes and the read-out are
fitted to all images: the space to known and expected labels, the votes to known labels, and the
read-out to known labels and, with less weight, to expected ones.

A person answers what a model asks, so answers are no random sample, and a model is too sure of what
it expected itself. So confidences are learned from complete images that were held out: each is
scored by a model that has seen neither the image nor any expectation made with its help. Incomplete
images keep such scores of their unknown labels, too, and suggestions for them come from these.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.annotator.label_input import FEW_COMPLETE
from tagkin.annotator.model import Model
from tagkin.annotator.problem import Problem, n_folds
from tagkin.annotator.recipe import Recipe
from tagkin.arrays import row_blocks, to_numpy
from tagkin.arrays.records import Later
from tagkin.calibration import UnannotatedLabels, fit_calibration, fit_unannotated_labels
from tagkin.progress import Counted, Progress, silent
from tagkin.transfer import KinVotes

__all__ = ["add_incomplete"]

_LEAST = 0.003  # least expected probability of an unknown label that is used
_MOST_EXPECTED = 20  # unknown labels per image with an expectation


def add_incomplete(
    model: Model,
    problem: Problem,
    recipe: Recipe,
    *,
    can_score: bool,
    progress: Progress = silent,
) -> Model:
    """Return a model of all images, given the model of the complete images of a problem.

    `recipe` has the settings that were chosen for the complete images.

    `can_score` tells whether memory holds a score of every label for every image. If not, or with
    few complete images, confidences stay those of the complete images.
    """
    complete, labels = problem.complete, problem.labels
    assert complete is not None
    n, rows, others = len(complete), np.flatnonzero(complete), np.flatnonzero(~complete)
    folds = problem.split(n_folds(n)) if can_score and len(rows) >= FEW_COMPLETE else []
    fold_done = Counted(progress, "Learning from answers", len(folds) + 1)
    expected = _expect_labels(model, problem, others)
    everything = _fit_like(model, problem, recipe, np.arange(n), expected)
    added = replace(
        everything,
        held_out=Later.known(_spread_rows(model.held_out.get(), rows, n)),
        rejected=problem.rejections,
        groups=np.arange(n) if problem.groups is None else problem.groups,
        tags=None if labels is None else labels.tags,
    )
    fold_done()
    if not folds:
        return added
    scores = np.empty(problem.Y.shape, dtype=np.float32)
    for known, new in folds:
        scores[new] = _score_fold(model, problem, recipe, known, new)
        fold_done()
    calibrator = fit_calibration(scores[rows], problem.Y[rows])
    unannotated = _judge_decisions(model, problem, to_numpy(calibrator.predict_proba(scores)))
    added = replace(added, calibrator=calibrator, unannotated=unannotated)
    unknown = _take_likely(added.probabilities(scores[others]), problem, others)
    unknown.data = scores[others][unknown.nonzero()]
    return replace(added, unknown_scores=Later.known(_spread_rows(unknown, others, n)))


def _judge_decisions(model: Model, problem: Problem, P: np.ndarray) -> UnannotatedLabels | None:
    """Estimate how often unannotated labels are right, from held-out probabilities P (N×D).

    Models chose the questions, those with the highest probabilities by their own estimate. An
    estimate by another model is lower on average, as if labels had been forgotten. So the larger of
    two estimates counts: this one, and the one by the model of the complete images.
    """
    decisions = problem.decisions
    if model.unannotated is None or decisions is None:
        return None
    accepted, rejected = decisions.accepted, problem.rejections
    assert accepted is not None
    assert decisions.was_complete is not None
    rows = np.flatnonzero(np.diff(accepted.indptr) + np.diff(rejected.indptr))
    P, was_complete = P[rows], decisions.was_complete[rows]
    if not was_complete.all():
        scores = model.score(problem.X[rows[~was_complete]], _prior(problem))
        by_complete = to_numpy(model.calibrator.predict_proba(scores))
        P[~was_complete] = np.maximum(P[~was_complete], by_complete)
    return fit_unannotated_labels(P, accepted[rows], rejected[rows], said=was_complete)


def _score_fold(
    model: Model, problem: Problem, recipe: Recipe, known: np.ndarray, new: np.ndarray
) -> np.ndarray:
    """Score new images by a model of the known images, shape (n, D)."""
    complete = problem.complete
    assert complete is not None
    alone = _fit_like(model, problem, recipe, known[complete[known]])
    expected = _expect_labels(alone, problem, known[~complete[known]])
    fold = _fit_like(model, problem, recipe, known, expected)
    return fold.score(problem.X[new], _prior(problem))


def _fit_like(
    model: Model,
    problem: Problem,
    recipe: Recipe,
    rows: np.ndarray,
    expected: scipy.sparse.csr_array | None = None,
) -> Model:
    """Fit a space and a method to some images (n,); the mixture is that of the model.

    `expected` (N×D) are probabilities of unknown labels. Without them, the images are complete.
    """
    X, Y, complete = problem.X[rows], problem.Y[rows], problem.complete
    options: dict[str, Any] = {"rejected": problem.rejections[rows]}
    targets = Y
    if expected is not None and complete is not None:
        targets = scipy.sparse.csr_array(Y + expected[rows])
        options |= {"complete": complete[rows], "expected": expected[rows]}
    space = clone(recipe.space).fit(X, targets)
    method = clone(recipe.method).fit(space.transform(X), Y, **options)
    assert isinstance(model.method, KinVotes)
    votes = replace(method.model_, mixture=model.method.mixture)
    return replace(model, space=space.space_, method=votes)


def _expect_labels(model: Model, problem: Problem, rows: np.ndarray) -> scipy.sparse.csr_array:
    """Return the probabilities (N×D) of the likely unknown labels of some images."""
    n, n_labels = problem.Y.shape
    parts = [scipy.sparse.csr_array((0, n_labels), dtype=np.float32)]
    for block in row_blocks(len(rows), 64 * n_labels):
        P = model.probabilities(model.score(problem.X[rows[block]], _prior(problem)))
        parts.append(_take_likely(P, problem, rows[block]))
    return _spread_rows(scipy.sparse.vstack(parts, format="csr"), rows, n)


def _take_likely(P: np.ndarray, problem: Problem, rows: np.ndarray) -> scipy.sparse.csr_array:
    """Return the probabilities (n×D) of the likely unknown labels of images, given all (n×D)."""
    said = scipy.sparse.csr_array(problem.Y[rows] + problem.rejections[rows])
    P = np.where(P < _LEAST, 0, P).astype(np.float32)
    P[said.nonzero()] = 0
    if P.shape[1] > _MOST_EXPECTED:
        least = -np.partition(-P, _MOST_EXPECTED - 1, axis=1)[:, _MOST_EXPECTED - 1]
        P[least[:, None] > P] = 0
    return scipy.sparse.csr_array(P)


def _spread_rows(matrix: scipy.sparse.csr_array, rows: np.ndarray, n: int) -> Any:
    """Return a matrix (n×D) with these rows at the given places, and nothing elsewhere."""
    counts = np.zeros(n + 1, dtype=matrix.indptr.dtype)
    counts[rows + 1] = np.diff(matrix.indptr)
    shape = n, matrix.shape[1]
    return scipy.sparse.csr_array((matrix.data, matrix.indices, counts.cumsum()), shape=shape)


def _prior(problem: Problem) -> Any:
    return None if problem.naming is None else problem.naming.prior
