"""Learn the weights of label names on held-out images."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from tagkin.annotator.naming import LearnedNames, score_names
from tagkin.annotator.problem import Part, Problem
from tagkin.arrays import expit, logit
from tagkin.arrays.labels import positions_among
from tagkin.arrays.records import take
from tagkin.evaluation import average_precision
from tagkin.tag_meanings import fit_name_weights
from tagkin.tag_meanings.meanings import UNKNOWN

__all__ = ["fit_names"]

_ENOUGH_LABELS = 6  # for a standard error of the gain by names


def fit_names(
    problem: Problem, scores: np.ndarray, part: Part
) -> tuple[LearnedNames | None, np.ndarray]:
    """Fit name weights on the held-out scores (n×C) of a part, and combine both.

    The images of each fold are combined with weights of the other folds, so confidences can be
    learned from the result. Without names, or if they do not help on these images, return None and
    the scores. Names of labels without scores get the weights expected of their kinds.
    """
    if problem.naming is None:
        return None, scores
    table = problem.naming.look_up_meanings(problem.X, problem.Y)
    scored, Y = table.some(part.columns), part.truth(problem.Y)
    X = problem.X if part.is_whole else problem.X[part.rows]
    by_name = score_names(problem.naming.prior, X, scored)
    weights = fit_name_weights(scores, by_name, Y, scored.kinds)
    combined, level = np.empty_like(scores), _level(weights.combine(scores, by_name))
    for known, held_out in part.score_folds():
        own = fit_name_weights(scores[known], by_name[known], Y[known], scored.kinds)
        rarer = level - _level(own.combine(scores[known], by_name[known]))
        combined[held_out] = own.combine(scores[held_out], by_name[held_out]) + rarer
    if not _names_help(scores, combined, Y, scored.kinds):
        return None, scores
    others = np.setdiff1d(np.arange(len(table)), part.columns)
    positions = positions_among(part.columns, len(table))
    weights = take(weights.extend(table.kinds[others]), "D", positions)
    return LearnedNames(table, weights), combined


def _level(log_odds: np.ndarray) -> np.ndarray:
    """Return the log-odds (D,) of the mean probability of each label."""
    return np.asarray(logit(np.clip(np.mean(expit(log_odds), axis=0), 1e-6, 1 - 1e-6)))


def _names_help(
    scores: np.ndarray, combined: np.ndarray, Y: scipy.sparse.csr_array, kinds: np.ndarray
) -> bool:
    """Tell whether names raise the average precision of their labels by more than chance.

    Labels on one image say nothing, because nothing was learned about them when it was held out.
    If few labels can tell, names need only not lower it, because they are rarely misleading.
    """
    n_images = np.bincount(Y.indices, minlength=Y.shape[1])
    labels = np.flatnonzero((n_images > 1) & (n_images < Y.shape[0]) & (kinds != UNKNOWN))
    if not len(labels):
        return True
    with_names, without = (
        average_precision(Y[:, labels], S[:, labels]) for S in (combined, scores)
    )
    gain = with_names - without
    if len(gain) < _ENOUGH_LABELS:
        return bool(gain.mean() >= 0)
    return bool(gain.mean() > gain.std() / np.sqrt(len(gain)))
