"""Learning: from a problem to a model. `learn` has all steps in order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.annotator.hold_out import FoldModels, HeldOut, calibrate_held_out, fit_and_hold_out
from tagkin.annotator.incomplete import EXPECTING, add_incomplete
from tagkin.annotator.label_input import NamedLabels, spread_rows
from tagkin.annotator.model import Model
from tagkin.annotator.naming import score_names
from tagkin.annotator.part import Part, choose_part
from tagkin.annotator.problem import Problem, check_enough, count_images
from tagkin.annotator.recipe import Recipe
from tagkin.arrays import row_blocks
from tagkin.arrays.threads import blas_threads_for
from tagkin.calibration import (
    LabelErrors,
    UnannotatedLabels,
    estimate_label_errors,
    fit_unannotated_labels,
    frequency_levels,
    with_other_labels,
)
from tagkin.calibration.calibration import apply_link
from tagkin.calibration.fitting import Calibrated
from tagkin.calibration.mixture import MOST_SCORES, share_logits
from tagkin.progress import Counted, Progress, silent
from tagkin.space import IndicatorView

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


JUDGING = Judging()
_SAMPLE = 1000  # images that tell how high the scores of a name are


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
    source = images.source or NamedLabels(Y)
    check_enough(Y, source.tags is not None)
    with blas_threads_for(problem.largest_product):
        # Split the images into folds; if memory is short, only a part of them has scores.
        if part is None:
            # an event with examples is not held out as a whole: nothing is learned from it
            part = choose_part(replace(images, occasions=None) if images.is_by_example else images)

        # Fit the space and the method on all complete images, and beside it score each fold by a
        # model of the others. Learn confidences from these scores.
        fold_done = Counted(progress, "Learning", len(part.folds) + 1)
        recipe = limit_recipe(recipe, part)
        models = FoldModels(images, part, recipe)
        (space, method), scores = fit_and_hold_out(models.fit, part, models.score_fold, fold_done)
        del models  # its sums take up to a gigabyte and more
        assert space is not None  # every recipe to learn by has one
        held_out = calibrate_held_out(images, part, scores)
        calibrated = held_out.calibrated

        # Judge the labels of the held-out images.
        scored_groups = None if groups is None else groups[part.images]
        logits = audit_logits(held_out, part.labels(Y))
        errors, belonging = judge_labels(logits, part.truth(Y), scored_groups)

        # Keep what new images and the audit need.
        model = Model(
            space=space.space_,
            method=method.model_,
            calibration=calibrated.calibration,
            errors=errors,
            belonging=belonging,
            rejected=images.labels.rejected,
            groups=np.arange(len(X)) if groups is None else groups,
            names=held_out.names,
            vocabulary=source.vocabulary,
            column_names=source.names,
            tags=source.tags,
            occasions=images.occasions,
            by_kind=held_out.by_kind,
        )
        model = expand(model, images, part)
        if problem.is_by_example:
            model = keep_open(model, problem, part, calibrated)
        else:
            decisions = fit_decisions(problem, part, calibrated.log_odds, model)
            model = replace(model, unannotated=decisions)
        fold_done()
        if problem.complete is None:
            return model
        return add_incomplete(model, problem, recipe, progress)


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


def audit_logits(held_out: HeldOut, labels: scipy.sparse.csr_array) -> np.ndarray:
    """Return the held-out log-odds (n×C) that judge labels, given those of all images (N×C)."""
    calibrated, learned = held_out.calibrated, held_out.scores.learned
    log_odds = calibrated.log_odds
    if len(learned) < 2:
        # an audit is about these images, where rare labels are more frequent than on new images
        linked = apply_link(log_odds, calibrated.calibration.shrink)
        return np.asarray(linked - calibrated.levels, dtype=np.float32)
    votes, readout = learned
    even = mix_evenly(votes, readout, labels)
    common = calibrated.calibration.mixture.common[len(learned) :]
    for weight, score in zip(common, held_out.scores.occasions, strict=False):  # names come last
        even += np.float32(weight) * score
    if held_out.names is None:
        return even
    return np.clip(log_odds, even - JUDGING.most_by_name, even + JUDGING.most_by_name)


def mix_evenly(
    votes: np.ndarray, readout: np.ndarray, labels: scipy.sparse.csr_array
) -> np.ndarray:
    """Mix logits (n×C) of votes and read-out half and half, given the labels of all images (N×C).

    A mixture learned from labels fits wrong labels, too, if nothing else supports them. On 10,000
    COCO images with 1 wrong label in 20, its average precision in finding them was 57.1; that of
    halves was 58.0.

    If no neighbour votes for a label, that is evidence against it, limited by its m images: even if
    all of them have votes, about one in m new images has none. So votes lie below the label's share
    of the images by log(1 + m) at most. In 48 draws of 400 and 1,200 images (COCO, Flickr8k; 5 and
    10 % wrong labels), 1,534 labels seemed wrong at 50 %, and 74 % of them were. A lower limit for
    rare labels, log(1 + m²/(m + 50)), gave 951 and 76 %.
    """
    level = share_logits(labels)
    floor = level - np.log1p(count_images(labels)).astype(level.dtype)
    even = np.empty_like(votes)
    for rows in row_blocks(len(votes), 32 * votes.shape[1]):
        even[rows] = (np.maximum(votes[rows], floor) + readout[rows]) / 2
    return even


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
        least = np.finfo(np.float32).tiny  # a sparse matrix drops 0
        probabilities = np.where(stored, np.maximum(P, least), 0).astype(np.float32)
        parts.append(scipy.sparse.csr_array(probabilities))
    return errors, scipy.sparse.vstack(parts, format="csr")


def expand(model: Model, problem: Problem, part: Part) -> Model:
    """Expand to N images and D labels; labels without scores get the common weights."""
    columns, (n, n_labels) = part.columns, problem.Y.shape
    calibration, by_kind = model.calibration, model.by_kind
    if len(columns) < n_labels:
        centers = typical_scores(model, problem)
        levels = share_logits(problem.Y) + frequency_levels(count_images(problem.Y), n)
        calibration = calibration.spread(columns, centers, levels)
        by_kind = None if by_kind is None else by_kind.spread(columns, centers, levels)
    scored = model.belonging
    entries = scored.data, columns[scored.indices], scored.indptr
    wide = scipy.sparse.csr_array(entries, shape=(len(part.images), n_labels))
    return replace(
        model,
        calibration=calibration,
        by_kind=by_kind,
        errors=model.errors.spread(columns, n_labels),
        belonging=spread_rows(wide, part.images, n),
    )


def keep_open(model: Model, problem: Problem, part: Part, calibrated: Calibrated) -> Model:
    """Keep held-out scores of all images that are not complete: their absent labels are open.

    What lacks a label may be as right as what has it, so only complete images are audited.
    """
    complete = problem.labels.complete
    assert complete is not None
    n, n_labels = problem.Y.shape
    is_audited = scipy.sparse.diags_array(complete.astype(np.float32), format="csr")
    others = np.flatnonzero(~complete[part.images])
    P = calibrated.calibration.probabilities(calibrated.log_odds[others])
    rows, columns = np.nonzero(EXPECTING.least <= P)
    scores = calibrated.log_odds[others][rows, columns]
    entries = scores, (part.images[others][rows], part.columns[columns])
    return replace(
        model,
        belonging=scipy.sparse.csr_array(is_audited @ model.belonging),
        unknown_scores=scipy.sparse.csr_array(entries, shape=(n, n_labels)),
    )


def typical_scores(model: Model, problem: Problem) -> np.ndarray:
    """Return scores (D×k) that say nothing about an image.

    Logits of votes and read-out say nothing at that of the label's share of the images, those of
    occasions at 0, and names at their mean over some images. Scores of other methods are as for
    the median label.
    """
    centers = np.tile(np.median(model.calibration.mixture.centers, axis=0), (problem.Y.shape[1], 1))
    n_occasions = 0 if model.occasions is None else len(model.occasions.inputs)
    n_learned = centers.shape[1] - (model.names is not None) - n_occasions
    if n_learned > 1:
        centers[:, :n_learned] = share_logits(problem.Y)[:, None]
    if model.names is not None:
        some = problem.X[:: max(1, -(-problem.X.shape[0] // _SAMPLE))]
        scores = score_names(problem.prior, some, model.names)
        centers[:, -1] = scores.mean(axis=0, dtype=np.float64)
    return centers


def fit_decisions(
    problem: Problem, part: Part, scores: np.ndarray, model: Model
) -> UnannotatedLabels | None:
    """Estimate how often unannotated labels of a part are right.

    Returns None unless some labels were accepted and others rejected: neither alone is a review.

    Parameters
    ----------
    problem : Problem
        All images.
    part : Part
        Images and labels with scores, among the complete images.
    scores : array of shape (n, C)
        Their held-out log-odds.
    model : Model
        Model of the complete images. Incomplete images are new to it, so they need not be held out.
    """
    labels = problem.labels
    if not labels.accepted.nnz:
        return None
    n, n_labels = scores.shape
    complete = np.ones(len(problem.X), bool) if problem.complete is None else problem.complete
    yes, no = labels.accepted[:, part.columns], labels.rejected[:, part.columns]
    is_decided = np.diff(yes.indptr) + np.diff(no.indptr) > 0
    most, scored = max(n, MOST_SCORES // n_labels), np.flatnonzero(complete)[part.images]
    places = _evenly_spaced(np.flatnonzero(is_decided[scored]), most)
    others = _evenly_spaced(np.flatnonzero(is_decided & ~complete), most)
    parts = [model.calibration.probabilities(scores[places])]
    for block in row_blocks(len(others), 64 * problem.Y.shape[1]):
        asked = problem.ask(others[block])
        scores = model.score(problem.X[others[block]], problem.prior, asked)
        P = model.calibrate(scores, model.kinds(asked, len(scores)))
        parts.append(P[:, part.columns])
    rows = np.append(scored[places], others)
    if not yes[rows].nnz or not no[rows].nnz:
        return None
    P = np.concatenate(parts)
    annotated = None if labels.was_complete is None else labels.was_complete[rows]
    unannotated = fit_unannotated_labels(P, yes[rows], no[rows], annotated=annotated)
    return unannotated.spread(part.columns, problem.Y.shape[1])


def _evenly_spaced(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` evenly spaced rows."""
    return rows[:: max(1, -(-len(rows) // most))]
