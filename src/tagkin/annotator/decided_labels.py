"""Learn from a person's decisions how often unannotated labels are right."""

from __future__ import annotations

import numpy as np

from tagkin.annotator.model import Model
from tagkin.annotator.problem import Part, Problem
from tagkin.arrays import row_blocks
from tagkin.arrays.blocks import evenly_spaced
from tagkin.calibration import UnannotatedLabels, fit_unannotated_labels
from tagkin.calibration.mixture import MOST_SCORES

__all__ = ["fit_decisions", "refit_decisions"]


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
    most, scored = max(n, MOST_SCORES // n_labels), np.flatnonzero(complete)[part.rows]
    places = evenly_spaced(np.flatnonzero(is_decided[scored]), most)
    others = evenly_spaced(np.flatnonzero(is_decided & ~complete), most)
    parts = [scores[places]]
    for block in row_blocks(len(others), 64 * problem.Y.shape[1]):
        parts.append(model.score(problem.X[others[block]], problem.prior)[:, part.columns])
    rows = np.append(scored[places], others)
    if not yes[rows].nnz or not no[rows].nnz:
        return None
    P = model.calibrator.probabilities(np.concatenate(parts))
    annotated = None if labels.was_complete is None else labels.was_complete[rows]
    unannotated = fit_unannotated_labels(P, yes[rows], no[rows], annotated=annotated)
    return unannotated.spread(part.columns, problem.Y.shape[1])


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
        scores = model.score(problem.X[rows[~annotated]], problem.prior)
        P[~annotated] = np.maximum(P[~annotated], model.calibrator.probabilities(scores))
    return fit_unannotated_labels(P, accepted[rows], rejected[rows], annotated=annotated)
