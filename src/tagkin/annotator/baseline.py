"""The baseline of an annotator: neighbours in visual feature space."""

from __future__ import annotations

from typing import Any

import numpy as np

from tagkin.annotator.hold_out import fit_method
from tagkin.annotator.problem import Problem
from tagkin.arrays import to_numpy

__all__ = ["visual_scores"]

_MOST = 0.99  # of the photographs learned from, for a baseline that is no weaker than it should be


def visual_scores(method: Any, rows: np.ndarray, known: Any, features: Any) -> np.ndarray | None:
    """Scores (n×D) of new images by a method in visual feature space.

    Parameters
    ----------
    method : fitted method by neighbours
        The one that is measured; its labels (N×D) are those of the images learned from.
    rows : int array of shape (k,)
        Which image learned from each of the images that could be read is, −1 for none.
    known : array of shape (k, d)
        Features of the images that could be read.
    features : array of shape (n, d)
        Features of the new images.

    Returns
    -------
    scores : array, or None if too few of the images learned from could be read
    """
    there = np.flatnonzero(rows >= 0)
    if len(there) < _MOST * method.labels_.shape[0]:
        return None
    problem = Problem(known[there], method.labels_[rows[there]])
    return to_numpy(fit_method(method, problem.X, problem).decision_function(features))
