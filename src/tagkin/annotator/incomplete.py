"""Learn from images that are not completely labelled.

A label is right for an image, wrong, or unknown. On a complete image, an absent label counts as
wrong (people forget some: see `LogisticReadout`). On an incomplete image, only labels that it has
and labels that a person rejected are known.

First a model is learned from the complete images alone. It says which unknown labels to
expect on the incomplete images. Then the space, the votes and the read-out are
fitted to all images: the space to known and expected labels, the votes to known labels, and the
read-out to known labels and, with less weight, to expected ones.

A person answers the questions of a model, so answers are not a random sample. A model is also too
confident about labels that it expected itself. So confidences are learned from held-out complete
images: each is scored by a model that has seen neither the image nor any expectation from a model
that has. Incomplete images keep held-out scores of their unknown labels, too, and suggestions for
them come from these scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.annotator.hold_out import calibrate_held_out, hold_out
from tagkin.annotator.label_input import spread_rows
from tagkin.annotator.model import Model
from tagkin.annotator.part import choose_part
from tagkin.annotator.problem import Problem, count_images
from tagkin.annotator.recipe import Recipe
from tagkin.arrays import row_blocks
from tagkin.arrays.labels import count_known
from tagkin.calibration import UnannotatedLabels, fit_unannotated_labels
from tagkin.progress import Counted, Progress, silent

__all__ = ["add_incomplete", "known_logits"]


@dataclass(frozen=True)
class Expecting:
    """Numbers of the unknown labels that are expected on an image."""

    least: float = 0.003
    """Least probability that is used; the matrix stays sparse."""
    most: int = 20
    """Labels per image, at most."""


EXPECTING = Expecting()


def add_incomplete(
    model: Model, problem: Problem, recipe: Recipe, progress: Progress = silent
) -> Model:
    """Return a model of all images, given the model of the complete images of a problem.

    If memory does not hold a score of every label for every image, the model keeps the confidences
    learned from the complete images.
    """
    complete, source = problem.complete, problem.source
    assert complete is not None
    n, rows, others = len(complete), np.flatnonzero(complete), np.flatnonzero(~complete)
    part = choose_part(problem)
    folds = part.folds if part.is_whole else []
    fold_done = Counted(progress, "Learning from answers", len(folds) + 1)
    expected = _expect_labels(model, problem, others)
    everything = _fit_like(model, problem, recipe, np.arange(n), expected)
    added = replace(
        everything,
        belonging=spread_rows(model.belonging, rows, n),
        rejected=problem.labels.rejected,
        groups=np.arange(n) if problem.groups is None else problem.groups,
        tags=None if source is None else source.tags,
    )
    fold_done()
    if not folds:
        return added

    def score_fold(number: int) -> tuple[np.ndarray, ...]:
        return _score_fold(model, problem, recipe, *folds[number])

    held_out = calibrate_held_out(problem, part, hold_out(part, score_fold, fold_done))
    calibrated, scores = held_out.calibrated, held_out.calibrated.log_odds
    added = replace(added, calibration=calibrated.calibration, by_kind=held_out.by_kind)
    kinds = np.zeros(n, np.intp)
    kinds[others] = added.kinds(problem.ask(others)._replace(known=others), len(others))
    if added.by_kind is not None:
        scores[others] = added.mix(held_out.scores.take(others).all, kinds[others])
    P = added.calibrate(scores, kinds)
    added = replace(added, unannotated=refit_decisions(problem, P, model))
    likely = added.probabilities(scores[others], kinds=kinds[others])
    unknown = _take_likely(likely, problem, others)
    unknown.data = scores[others][unknown.nonzero()]
    return replace(added, unknown_scores=spread_rows(unknown, others, n))


def _score_fold(
    model: Model, problem: Problem, recipe: Recipe, known: np.ndarray, new: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return the scores (n×D) of new images, by a model of known images.

    They are the logits of votes and read-out, and the scores of occasions.
    """
    complete = problem.complete
    assert complete is not None
    alone = _fit_like(model, problem, recipe, known[complete[known]])
    expected = _expect_labels(alone, problem, known[~complete[known]])
    fold = _fit_like(model, problem, recipe, known, expected)
    rarer = known_logits(problem, np.arange(len(complete))) - known_logits(problem, known)
    n_occasions = 0 if fold.occasions is None else len(fold.occasions.inputs)
    scores = replace(fold, names=None).components(problem.X[new], None, problem.ask(new))
    n_learned = len(scores) - n_occasions
    return *(logits + rarer for logits in scores[:n_learned]), *scores[n_learned:]


def known_logits(problem: Problem, rows: np.ndarray) -> np.ndarray:
    """Return the logits (D,) of labels among the images `rows` for which they are known.

    Answers count, too. If only complete images counted, a fold without one of few complete images
    with a label would seem to lack more than it does.
    """
    complete, labels = problem.complete, problem.Y[rows]
    known = count_known(
        labels, problem.labels.rejected[rows], None if complete is None else complete[rows]
    )
    share = (count_images(labels) + 0.5) / (known + 1)
    return np.asarray(np.log(share) - np.log1p(-share), dtype=np.float32)


def _fit_like(
    model: Model,
    problem: Problem,
    recipe: Recipe,
    rows: np.ndarray,
    expected: scipy.sparse.csr_array | None = None,
) -> Model:
    """Fit a space and a method to the images `rows` (n,), with the calibration of the model.

    `expected` (N×D) are probabilities of unknown labels. Without them, the images are complete.
    """
    X, Y, complete = problem.X[rows], problem.Y[rows], problem.complete
    options: dict[str, scipy.sparse.csr_array | np.ndarray] = {
        "rejected": problem.labels.rejected[rows]
    }
    targets = Y
    if expected is not None and complete is not None:
        targets = scipy.sparse.csr_array(Y + expected[rows])
        options |= {"complete": complete[rows], "expected": expected[rows]}
    space = clone(recipe.space).fit(X, targets)
    method = clone(recipe.method).fit(space.transform(X), Y, **options)
    occasions = None if problem.occasions is None else problem.occasions.take(rows)
    return replace(model, space=space.space_, method=method.model_, occasions=occasions)


def _expect_labels(model: Model, problem: Problem, rows: np.ndarray) -> scipy.sparse.csr_array:
    """Return the probabilities (N×D) of the likely unknown labels of some images."""
    n, n_labels = problem.Y.shape
    parts = [scipy.sparse.csr_array((0, n_labels), dtype=np.float32)]
    for block in row_blocks(len(rows), 64 * n_labels):
        asked = problem.ask(rows[block])
        scores = model.score(problem.X[rows[block]], problem.prior, asked)
        P = model.probabilities(scores, kinds=model.kinds(asked, len(scores)))
        parts.append(_take_likely(P, problem, rows[block]))
    return spread_rows(scipy.sparse.vstack(parts, format="csr"), rows, n)


def _take_likely(P: np.ndarray, problem: Problem, rows: np.ndarray) -> scipy.sparse.csr_array:
    """Return the probabilities (n×D) of the likely unknown labels of images, given all (n×D)."""
    P = np.where(EXPECTING.least > P, 0, P).astype(np.float32)
    P[problem.labels.said[rows].nonzero()] = 0
    if P.shape[1] > EXPECTING.most:
        least = -np.partition(-P, EXPECTING.most - 1, axis=1)[:, EXPECTING.most - 1]
        P[least[:, None] > P] = 0
    return scipy.sparse.csr_array(P)


def refit_decisions(problem: Problem, P: np.ndarray, model: Model) -> UnannotatedLabels | None:
    """Estimate how often unannotated labels are right, from held-out probabilities P (N×D).

    Earlier models asked about the labels that they found most probable. Any other model estimates
    lower probabilities for these labels on average, as if labels had been forgotten. So on images
    that were not complete, the larger of two probabilities counts: P, and the probability by the
    `model` of the complete images.
    """
    accepted, rejected = problem.labels.accepted, problem.labels.rejected
    if not accepted.nnz or model.unannotated is None:
        return None
    was_complete = problem.labels.was_complete
    assert was_complete is not None
    rows = np.flatnonzero(np.diff(accepted.indptr) + np.diff(rejected.indptr))
    P, annotated = P[rows], was_complete[rows]
    if not annotated.all():
        asked = problem.ask(rows[~annotated])
        scores = model.score(problem.X[rows[~annotated]], problem.prior, asked)
        own = model.calibrate(scores, model.kinds(asked, len(scores)))
        P[~annotated] = np.maximum(P[~annotated], own)
    return fit_unannotated_labels(P, accepted[rows], rejected[rows], annotated=annotated)
