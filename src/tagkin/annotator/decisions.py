"""A person's decisions on suggestions, which tell how often unannotated labels are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.arrays import to_numpy
from tagkin.calibration import LabelCalibrator, UnannotatedLabels

__all__ = ["Decisions"]


@dataclass(frozen=True)
class Decisions:
    """Accepted and rejected labels that the user had not given.

    They are of N images learned from, and of M unlabelled images, which have only rejections.
    """

    accepted: scipy.sparse.csr_array | None = None
    """Accepted labels, shape (N, D)."""
    rejected: scipy.sparse.csr_array | None = None
    """Rejected labels, shape (N, D)."""
    unlabelled: Any = None
    """Features of the unlabelled images, shape (M, d)."""
    rejected_unlabelled: scipy.sparse.csr_array | None = None
    """Labels that were rejected for the unlabelled images, shape (M, D)."""
    was_labelled: np.ndarray | None = None
    """Which of the N images had labels before any was accepted, shape (N,). Default: all."""

    def select(self, rows: np.ndarray, columns: np.ndarray) -> Decisions:
        """Return the decisions on some images learned from (n,) and some labels (C,)."""
        accepted, rejected = (
            None if matrix is None else matrix[rows][:, columns]
            for matrix in (self.accepted, self.rejected)
        )
        of_unlabelled = self.rejected_unlabelled
        if of_unlabelled is not None:
            of_unlabelled = of_unlabelled[:, columns]
        was_labelled = None if self.was_labelled is None else self.was_labelled[rows]
        return Decisions(accepted, rejected, self.unlabelled, of_unlabelled, was_labelled)

    def fit_unannotated(
        self,
        calibrator: LabelCalibrator,
        scores: np.ndarray,
        score: Callable[[Any], np.ndarray],
    ) -> UnannotatedLabels | None:
        """Estimate how often unannotated labels are right.

        Returns None unless some labels were accepted and others rejected: neither alone is a
        review.

        Parameters
        ----------
        calibrator : LabelCalibrator
        scores : array of shape (N, D)
            Held-out scores of the images learned from.
        score : function
            Returns scores of these D labels for features (M×d). The unlabelled images are new to
            the model, so they need not be held out.
        """
        decided = (self.rejected, self.rejected_unlabelled)
        n_rejected = sum(matrix.nnz for matrix in decided if matrix is not None)
        if self.accepted is None or not self.accepted.nnz or not n_rejected:
            return None
        accepted, rejected = self.accepted, self.rejected
        if rejected is None:
            rejected = scipy.sparse.csr_array(accepted.shape, dtype=np.float32)
        rows = np.flatnonzero(np.diff(accepted.indptr) + np.diff(rejected.indptr))
        accepted, rejected = accepted[rows], rejected[rows]
        P, was_labelled = to_numpy(calibrator.predict_proba(scores[rows])), np.ones(len(rows), bool)
        if self.was_labelled is not None:
            was_labelled = self.was_labelled[rows]
        if self.unlabelled is not None and self.rejected_unlabelled is not None:
            # at most as many as images learned from, because their scores fit into memory
            step = max(1, -(-self.rejected_unlabelled.shape[0] // len(scores)))
            of_unlabelled = self.rejected_unlabelled[::step]
            others = calibrator.predict_proba(score(self.unlabelled[::step]))
            P = np.concatenate([P, to_numpy(others)])
            nothing = scipy.sparse.csr_array(of_unlabelled.shape, dtype=np.float32)
            accepted = scipy.sparse.vstack([accepted, nothing], format="csr")
            rejected = scipy.sparse.vstack([rejected, of_unlabelled], format="csr")
            was_labelled = np.append(was_labelled, np.zeros(len(others), dtype=bool))
        return UnannotatedLabels().fit(P, accepted, rejected, said=was_labelled)
