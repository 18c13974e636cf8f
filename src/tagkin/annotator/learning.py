"""Learning: from a problem to a space, a method and honest confidences.

`learn` does it in this order: choose what has held-out scores, choose how to denoise, hold images
out (`hold_out`), choose the best trial, weigh names, calibrate, judge labels, fit on everything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.annotator.fold_spaces import fit_space
from tagkin.annotator.hold_out import Trial, fit_method, hold_out
from tagkin.annotator.naming import LearnedNames
from tagkin.annotator.problem import Part, Problem, check_enough, choose_part
from tagkin.annotator.recipe import Recipe
from tagkin.arrays import row_blocks
from tagkin.arrays.threads import blas_threads_for
from tagkin.calibration import LabelCalibrator, LabelErrors, UnannotatedLabels, with_other_labels
from tagkin.evaluation import mean_average_precision
from tagkin.progress import Counted, Progress, silent
from tagkin.space import IndicatorView, SemanticSpace
from tagkin.transfer import NeighborTransfer

__all__ = ["Learned", "learn"]

_MISSING_KEPT = 10  # absent labels of each image whose probability is kept for the audit
_LEAST = 1e-30  # least probability that is kept; no probability that occurs is below


@dataclass(frozen=True)
class Learned:
    """The result of learning from N images with D labels."""

    space: SemanticSpace
    method: NeighborTransfer
    calibrator: LabelCalibrator
    blend: float
    """Share of propagated tags in the labels that the space was learned from."""
    errors: LabelErrors
    """How often labels are wrong, and how often missing."""
    held_out: scipy.sparse.csr_array
    """Probability (N×D) that the labels of an image belong there, and the most probable of its
    absent labels, from models that had not seen it."""
    names: LearnedNames | None = None
    """How much the names of the labels count, if a prior was given."""
    unsaid: UnannotatedLabels | None = None
    """How often unsaid labels are right, if a person accepted and rejected some."""


def learn(
    problem: Problem, recipe: Recipe, *, part: Part | None = None, progress: Progress = silent
) -> Learned:
    """Learn a space, a method and confidences.

    `part` are the images and labels that have held-out scores. Default: as many as fit into memory.
    """
    check_enough(problem.Y)
    part = choose_part(problem) if part is None else part
    with blas_threads_for(problem.largest_product):
        recipes = choose_denoising(problem, fit_recipe(recipe, part), part)
        fold_done = Counted(progress, "Learning", len(recipes) * len(part.folds) + 1)
        trials = [hold_out(problem, candidate, part, fold_done) for candidate in recipes]
        truth = part.truth(problem.Y)
        best = trials[0]
        if len(trials) > 1:
            best = max(trials, key=lambda trial: mean_average_precision(truth, trial.scores))
        scores, names = best.scores, None
        if problem.naming is not None:
            rows = None if part.columns is None else part.rows
            names, scores = problem.naming.fit_weights(
                problem.X, problem.Y, scores, rows, part.columns
            )
        calibrator = LabelCalibrator().fit(scores, truth)
        logits = audit_logits(best, scores, calibrator, named=names is not None)
        errors, held_out = judge_labels(logits, truth, part.groups(problem.groups))
        space, method = fit_everything(problem, best, part)
        unsaid = None
        if problem.decisions is not None:
            decisions = problem.decisions
            if part.columns is not None:
                decisions = decisions.taken(part.rows, part.columns)
            unsaid = decisions.unsaid(calibrator, scores, space, method, problem.naming, names)
        fold_done()
    denoiser = best.recipe.denoiser
    blend = 0.0 if denoiser is None else float(denoiser.blend)
    learned = Learned(space, method, calibrator, blend, errors, held_out, names, unsaid)
    return learned if part.columns is None else expand(learned, part, problem.Y.shape)


def fit_recipe(recipe: Recipe, part: Part) -> Recipe:
    """Leave out denoising, and limit the dimensions of the space, if memory does not hold all."""
    if part.columns is None:
        return recipe
    space: Any = recipe.space
    if space is not None:
        view = IndicatorView() if space.text_view == "indicator" else space.text_view
        if isinstance(view, IndicatorView):
            view = IndicatorView(min(view.max_labels, part.n_dimensions))
            space = clone(space).set_params(text_view=view)
    return replace(recipe, space=space, denoiser=None)


def choose_denoising(problem: Problem, recipe: Recipe, part: Part) -> list[Recipe]:
    """The recipe without denoising, and with what the denoiser chooses for these images, if any."""
    plain = replace(recipe, denoiser=None)
    if recipe.space is None or recipe.denoiser is None:
        return [plain]
    chosen = clone(recipe.denoiser).fit(problem.X, problem.Y, groups=problem.groups)
    if chosen.blend_ == 0:
        return [plain]
    # the view stays as it is: χ² costs many times as much, for no gain with these methods
    denoiser = clone(recipe.denoiser).set_params(
        blend=chosen.blend_, n_neighbors=chosen.n_neighbors_, scale=chosen.scale_
    )
    return [plain, replace(recipe, denoiser=denoiser)]


def fit_everything(problem: Problem, trial: Trial, part: Part) -> tuple[Any, Any]:
    """Fit the space (None without one) and the method of a trial on all images."""
    space, embeddings, readout = trial.whole
    if embeddings is None:
        space, embeddings = fit_space(problem, trial.recipe)
    method = fit_method(trial.recipe.method, embeddings, problem, readout)
    if trial.mixture is None:
        return space, method
    mixture = trial.mixture
    if part.columns is not None:
        mixture = mixture.spread(part.columns, problem.Y.shape[1])
    return space, method.set_mixture(mixture)


def audit_logits(
    trial: Trial, scores: np.ndarray, calibrator: LabelCalibrator, *, named: bool
) -> np.ndarray:
    """Held-out log-odds (n×C) by which labels are judged; `named` scores count names."""
    if named:
        return scores
    if trial.even is not None:
        return trial.even
    is_logit = trial.recipe.method.scores_are_logits
    return scores if is_logit else calibrator.log_odds(scores)


def judge_labels(
    logits: np.ndarray, Y: scipy.sparse.csr_array, groups: np.ndarray | None
) -> tuple[LabelErrors, scipy.sparse.csr_array]:
    """Estimate how many labels are wrong and missing, and the probabilities (n×C) that say which.

    Each label is also judged by the image's other labels.
    """
    logits = with_other_labels(logits, Y, groups)
    errors = LabelErrors().fit(logits, Y)
    n, n_labels = logits.shape
    kept = min(_MISSING_KEPT, n_labels)
    parts = []
    for rows in row_blocks(n, 64 * n_labels):
        P = errors.predict_proba(logits[rows])
        there = Y[rows].toarray() > 0
        absent = np.where(there, -1.0, P)
        best = np.argpartition(-absent, kept - 1, axis=1)[:, :kept]
        noted = there.copy()
        np.put_along_axis(noted, best, True, axis=1)
        # a probability of zero would not be stored
        probabilities = np.where(noted, np.maximum(P, _LEAST), 0).astype(np.float32)
        parts.append(scipy.sparse.csr_array(probabilities))
    return errors, scipy.sparse.vstack(parts, format="csr")


def expand(learned: Learned, part: Part, shape: tuple[int, int]) -> Learned:
    """Expand to N images and D labels; a label without scores gets what is usual of the others."""
    columns, n_labels = part.columns, shape[1]
    assert columns is not None
    n_noted = np.zeros(shape[0], dtype=learned.held_out.indptr.dtype)
    n_noted[part.rows] = np.diff(learned.held_out.indptr)
    ends = np.append(0, np.cumsum(n_noted))
    noted = learned.held_out.data, columns[learned.held_out.indices], ends
    return replace(
        learned,
        calibrator=learned.calibrator.spread(columns, n_labels),
        errors=learned.errors.spread(columns, n_labels),
        held_out=scipy.sparse.csr_array(noted, shape=shape),
        unsaid=None if learned.unsaid is None else learned.unsaid.spread(columns, n_labels),
    )
