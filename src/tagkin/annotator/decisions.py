"""A person's decisions on suggestions, which tell how often unannotated labels are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.arrays import to_numpy
from tagkin.calibration import Calibration, UnannotatedLabels, fit_unannotated_labels

__all__ = ["Decisions"]

_MOST_SCORES = 2**25  # of images with decisions, unless more images are learned from


@dataclass(frozen=True)
class Decisions:
    """Accepted and rejected labels that the user had not given.

    They are of N images learned from, and of M incomplete images, which the model has not seen.
    """

    accepted: scipy.sparse.csr_array | None = None
    """Accepted labels, shape (N, D)."""
    rejected: scipy.sparse.csr_array | None = None
    """Rejected labels, shape (N, D)."""
    was_complete: np.ndarray | None = None
    """Which of the N images a person had labelled completely, shape (N,). Default: all."""
    incomplete: Any = None
    """Features of the incomplete images, shape (M, d)."""
    accepted_incomplete: scipy.sparse.csr_array | None = None
    rejected_incomplete: scipy.sparse.csr_array | None = None
    """Labels that were accepted and rejected for the incomplete images, shape (M, D)."""

    def split(self, complete: np.ndarray, X: Any) -> Decisions:
        """Set the incomplete images apart, given which are complete (N,) and features (N×d)."""
        (accepted, others), (rejected, not_others) = (
            (None, None) if matrix is None else (matrix[complete], matrix[~complete])
            for matrix in (self.accepted, self.rejected)
        )
        was_complete = None if self.was_complete is None else self.was_complete[complete]
        return Decisions(accepted, rejected, was_complete, X[~complete], others, not_others)

    def select(self, rows: np.ndarray, columns: np.ndarray) -> Decisions:
        """Return the decisions on some images learned from (n,) and some labels (C,)."""
        accepted, rejected = (
            None if matrix is None else matrix[rows][:, columns]
            for matrix in (self.accepted, self.rejected)
        )
        others = (
            None if matrix is None else matrix[:, columns]
            for matrix in (self.accepted_incomplete, self.rejected_incomplete)
        )
        was_complete = None if self.was_complete is None else self.was_complete[rows]
        return Decisions(accepted, rejected, was_complete, self.incomplete, *others)

    def fit_unannotated(
        self,
        calibrator: Calibration,
        scores: np.ndarray,
        score: Callable[[Any], np.ndarray],
    ) -> UnannotatedLabels | None:
        """Estimate how often unannotated labels are right.

        Returns None unless some labels were accepted and others rejected: neither alone is a
        review.

        Parameters
        ----------
        calibrator : Calibration
        scores : array of shape (N, D)
            Held-out scores of the images learned from.
        score : function
            Returns scores of these D labels for features (M×d). The incomplete images are new to
            the model, so they need not be held out.
        """
        n, n_labels = scores.shape
        was_complete = np.ones(n, bool) if self.was_complete is None else self.was_complete
        asked = [(self.accepted, self.rejected, lambda rows: scores[rows], was_complete)]
        if self.incomplete is not None:
            X, none = self.incomplete, np.zeros(self.incomplete.shape[0], dtype=bool)
            others = self.accepted_incomplete, self.rejected_incomplete
            asked.append((*others, lambda rows: score(X[rows]), none))
        parts = []
        for accepted, rejected, score_rows, complete in asked:
            shape = len(complete), n_labels
            yes, no = (_or_empty(matrix, shape) for matrix in (accepted, rejected))
            rows = np.flatnonzero(np.diff(yes.indptr) + np.diff(no.indptr))
            n_most = max(n, _MOST_SCORES // n_labels)
            rows = rows[:: max(1, -(-len(rows) // n_most))]
            if len(rows):
                P = to_numpy(calibrator.predict_proba(score_rows(rows)))
                parts.append((P, yes[rows], no[rows], complete[rows]))
        if not parts:
            return None
        all_P, all_yes, all_no, all_complete = zip(*parts, strict=True)
        yes, no = (scipy.sparse.vstack(part, format="csr") for part in (all_yes, all_no))
        if not yes.nnz or not no.nnz:
            return None
        was_complete = np.concatenate(all_complete)
        return fit_unannotated_labels(np.concatenate(all_P), yes, no, said=was_complete)


def _or_empty(matrix: scipy.sparse.csr_array | None, shape: tuple[int, int]) -> Any:
    return scipy.sparse.csr_array(shape, dtype=np.float32) if matrix is None else matrix
