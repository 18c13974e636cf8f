"""What an annotator is measured beside: neighbours in visual feature space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tagkin.annotator.hold_out import fit_method
from tagkin.annotator.photographs import subset
from tagkin.annotator.problem import Problem
from tagkin.arrays import to_numpy
from tagkin.progress import Progress

if TYPE_CHECKING:
    from tagkin.annotator.annotator import Annotator

__all__ = ["visual_scores"]

_MOST = 0.99  # of the photographs learned from, for a baseline that is no weaker than it should be


def visual_scores(annotator: Annotator, features: np.ndarray, progress: Progress | None) -> Any:
    """Scores (n×D) by the annotator's method in visual feature space; None without photographs."""
    known = annotator.look(list(annotator.paths_), progress=progress)
    rows = annotator._rows_of(known.digests)
    if np.count_nonzero(rows >= 0) < _MOST * len(annotator.files_):
        return None
    seen, there = subset(known, np.flatnonzero(rows >= 0)), rows[rows >= 0]
    labels = annotator.method_.labels_[there]
    method = fit_method(annotator.method_, seen.features, Problem(seen.features, labels))
    return to_numpy(method.decision_function(features))
