"""Learning: from a problem to a model. `learn` has all steps in order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.annotator.decided_labels import fit_decisions
from tagkin.annotator.extending import typical_scores
from tagkin.annotator.fold_spaces import fit_space
from tagkin.annotator.hold_out import HeldOut, Trial, calibrate_held_out, fit_method, hold_out
from tagkin.annotator.incomplete import add_incomplete
from tagkin.annotator.label_input import NamedLabels, spread_rows
from tagkin.annotator.model import Model
from tagkin.annotator.problem import Part, Problem, check_enough, choose_part, count_images
from tagkin.annotator.recipe import Recipe
from tagkin.arrays import row_blocks
from tagkin.arrays.threads import blas_threads_for
from tagkin.calibration import (
    LabelErrors,
    estimate_label_errors,
    frequency_levels,
    with_other_labels,
)
from tagkin.calibration.calibration import apply_link
from tagkin.calibration.mixture import share_logits
from tagkin.progress import Counted, Progress, silent
from tagkin.records.forms import Later
from tagkin.space import IndicatorView, Space
from tagkin.transfer import NeighborVotes

__all__ = ["learn"]


@dataclass(frozen=True)
class Judging:
    """Numbers of the audit of labels."""

    missing_kept: int = 10
    """Absent labels of each image whose probability is kept."""
    most_by_name: float = 1.25
    """Log-odds by which a name counts, at most: a classifier overlooks small objects. In ten clean
    collections of 400 photographs, names without a limit gave 12 false findings of wrong labels at
    80 %. With 10 % wrong labels, 34 of 44 were right. With this limit: none, and 5 of 12."""
    least: float = 1e-30
    """Least probability that is kept, because a sparse matrix drops 0. None that occurs is less."""


JUDGING = Judging()


def learn(
    problem: Problem, recipe: Recipe, *, part: Part | None = None, progress: Progress = silent
) -> Model:
    """Learn a space, a method and confidences from images and labels.

    `part` are the images and labels that have held-out scores. Default: as many as fit into memory.
    If some images are incomplete, all of this is learned from the others; see `add_incomplete`.
    """
    # Prepare: the complete images decide on everything.
    images = problem.take_complete()
    X, Y, groups = images.X, images.Y, images.groups
    check_enough(Y)
    with blas_threads_for(problem.largest_product):
        # Split the images into folds; if memory is short, only a part of them has scores.
        part = choose_part(images) if part is None else part

        # Choose the settings that rank held-out images best, and learn confidences from them.
        fold_done = Counted(progress, "Learning", len(part.folds) + 1)
        best = hold_out(images, limit_recipe(recipe, part), part, fold_done)
        held_out = calibrate_held_out(images, part, best)
        calibrated = held_out.calibrated

        # Judge the labels of the held-out images.
        scored_groups = None if groups is None else groups[part.rows]
        errors, judged = judge_labels(audit_logits(held_out), part.truth(Y), scored_groups)

        # Fit the space and the method on all complete images, with the chosen settings.
        space, method = fit_everything(images, best)
        source = images.source or NamedLabels(Y)
        model = Model(
            space,
            method,
            calibrated.calibration,
            errors,
            Later.known(judged),
            images.labels.rejected,
            np.arange(len(X)) if groups is None else groups,
            held_out.names,
            vocabulary=source.vocabulary,
            column_names=source.names,
            tags=source.tags,
        )
        model = expand(model, images, part)
        decisions = fit_decisions(problem, part, calibrated.log_odds, model)
        model = replace(model, unannotated=decisions)
        fold_done()
        if problem.complete is None:
            return model
        return add_incomplete(model, problem, best.recipe, progress)


def limit_recipe(recipe: Recipe, part: Part) -> Recipe:
    """Limit the dimensions of the space if memory does not hold all scores."""
    if part.is_whole:
        return recipe
    space = recipe.space
    if space is not None:
        view = IndicatorView() if space.text_view == "indicator" else space.text_view
        if isinstance(view, IndicatorView):
            view = IndicatorView(min(view.max_labels, part.n_dimensions))
            space = clone(space).set_params(text_view=view)
    return replace(recipe, space=space)


def fit_everything(problem: Problem, trial: Trial) -> tuple[Space, NeighborVotes]:
    """Return the records of a trial's space and method, for all images."""
    space, embeddings, readout = trial.whole
    if embeddings is None:
        space, embeddings = fit_space(problem, trial.recipe)
    method = fit_method(trial.recipe.method, embeddings, problem, readout)
    assert space is not None  # every recipe to learn by has one
    return space.space_, method.model_


def audit_logits(held_out: HeldOut) -> np.ndarray:
    """Return the held-out log-odds (n×C) that judge labels."""
    trial, calibrated = held_out.trial, held_out.calibrated
    even, log_odds = trial.even, calibrated.log_odds
    if even is None:
        # an audit is about these images, where rare labels are more frequent than on new images
        linked = apply_link(log_odds, calibrated.calibration.shrink)
        return np.asarray(linked - calibrated.levels, dtype=np.float32)
    if held_out.names is None:
        return even
    return np.clip(log_odds, even - JUDGING.most_by_name, even + JUDGING.most_by_name)


def judge_labels(
    logits: np.ndarray, Y: scipy.sparse.csr_array, groups: np.ndarray | None
) -> tuple[LabelErrors, scipy.sparse.csr_array]:
    """Estimate how many labels are wrong and missing, and the probabilities (n×C) that say which.

    Each label is also judged by the image's other labels.
    """
    logits = with_other_labels(logits, Y, groups)
    errors = estimate_label_errors(logits, Y)
    n, n_labels = logits.shape
    n_missing = min(JUDGING.missing_kept, n_labels)
    parts = []
    for rows in row_blocks(n, 64 * n_labels):
        P = errors.predict_proba(logits[rows])
        present = Y[rows].toarray() > 0
        absent = np.where(present, -1.0, P)
        best = np.argpartition(-absent, n_missing - 1, axis=1)[:, :n_missing]
        stored = present.copy()
        np.put_along_axis(stored, best, True, axis=1)
        probabilities = np.where(stored, np.maximum(P, JUDGING.least), 0).astype(np.float32)
        parts.append(scipy.sparse.csr_array(probabilities))
    return errors, scipy.sparse.vstack(parts, format="csr")


def expand(model: Model, problem: Problem, part: Part) -> Model:
    """Expand to N images and D labels; labels without scores get the common weights."""
    columns, (n, n_labels) = part.columns, problem.Y.shape
    calibrator = model.calibrator
    if len(columns) < n_labels:
        centers = typical_scores(model, problem.X, problem.Y, problem.prior)
        levels = share_logits(problem.Y) + frequency_levels(count_images(problem.Y), n)
        calibrator = calibrator.spread(columns, centers, levels)
    scored = model.held_out.get()
    entries = scored.data, columns[scored.indices], scored.indptr
    wide = scipy.sparse.csr_array(entries, shape=(len(part.rows), n_labels))
    return replace(
        model,
        calibrator=calibrator,
        errors=model.errors.spread(columns, n_labels),
        held_out=Later.known(spread_rows(wide, part.rows, n)),
    )
