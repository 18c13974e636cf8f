"""Learn the weights of label names on held-out images."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from tagkin.annotator.naming import LearnedNames, score_names
from tagkin.annotator.problem import Part, Problem
from tagkin.arrays import expit, logit
from tagkin.arrays.labels import positions_among
from tagkin.evaluation import average_precision
from tagkin.records.forms import take
from tagkin.tag_meanings import fit_name_weights
from tagkin.tag_meanings.meanings import UNKNOWN

__all__ = ["fit_names"]

_ENOUGH_LABELS = 6  # for a standard error of the gain by names
# Standard errors by which names must help. On other draws of 8, 20 and 50 photographs, wrong names
# counted in 1 of 96 draws with 2, and in 10 with 1; right names in 188 and 191 of 192.
_ERRORS = 2.0


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
    combined, level = np.empty_like(scores), _mean_log_odds(weights.combine(scores, by_name))
    for known, held_out in part.score_folds():
        own = fit_name_weights(scores[known], by_name[known], Y[known], scored.kinds)
        rarer = level - _mean_log_odds(own.combine(scores[known], by_name[known]))
        combined[held_out] = own.combine(scores[held_out], by_name[held_out]) + rarer
    if not _names_help(scores, combined, by_name, Y, scored.kinds):
        return None, scores
    others = np.setdiff1d(np.arange(len(table)), part.columns)
    positions = positions_among(part.columns, len(table))
    weights = take(weights.extend(table.kinds[others]), "D", positions)
    return LearnedNames(table, weights), combined


def _mean_log_odds(log_odds: np.ndarray) -> np.ndarray:
    """Return the log-odds (D,) of the mean probability of each label."""
    return np.asarray(logit(np.clip(np.mean(expit(log_odds), axis=0), 1e-6, 1 - 1e-6)))


def _names_help(
    scores: np.ndarray,
    combined: np.ndarray,
    by_name: np.ndarray,
    Y: scipy.sparse.csr_array,
    kinds: np.ndarray,
) -> bool:
    """Tell whether names raise the average precision of their labels by more than chance.

    Nothing was learned about a label on one image while the image was held out. There, the name
    alone is compared with chance, the mean of 1/rank. If few labels can tell, names need only not
    lower the precision, because they are rarely misleading.
    """
    n, n_images = Y.shape[0], np.bincount(Y.indices, minlength=Y.shape[1])
    has_name = (kinds != UNKNOWN) & (n_images < n)
    labels, single = (np.flatnonzero(has_name & which) for which in (n_images > 1, n_images == 1))
    gain = _average_precision(Y, combined, labels) - _average_precision(Y, scores, labels)
    chance = np.mean(1 / np.arange(1, n + 1))
    gain = np.append(gain, _average_precision(Y, by_name, single) - chance)
    if len(gain) < _ENOUGH_LABELS:
        return not len(gain) or bool(gain.mean() >= 0)
    return bool(gain.mean() > _ERRORS * gain.std() / np.sqrt(len(gain)))


def _average_precision(
    Y: scipy.sparse.csr_array, scores: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Return the average precision of some labels (k,)."""
    if not len(labels):
        return np.zeros(0)
    return average_precision(Y[:, labels], scores[:, labels])
