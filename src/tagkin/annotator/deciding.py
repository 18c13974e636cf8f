"""What a person's decisions on suggestions say of how often they are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.annotator.naming import LearnedNames, Naming
from tagkin.arrays import row_blocks, to_numpy
from tagkin.calibration import LabelCalibrator, UnannotatedLabels

__all__ = ["Decisions"]


@dataclass(frozen=True)
class Decisions:
    """What was accepted and rejected of labels that nobody had said.

    Of N images learned from, and of M others that carry no label: what was rejected for those is
    all that is known of them.
    """

    accepted: scipy.sparse.csr_array | None = None
    """Of shape (N, D)."""
    rejected: scipy.sparse.csr_array | None = None
    """Of shape (N, D)."""
    features: Any = None
    """Of the others, shape (M, d); None where there are none."""
    alone: scipy.sparse.csr_array | None = None
    """What was rejected for the others, shape (M, D)."""
    said: np.ndarray | None = None
    """Which of the N images carried labels before anything was accepted; without it, all."""
    columns: np.ndarray | None = None
    """Which of the labels that are learned the D of these are; without it, all."""

    def taken(self, rows: np.ndarray, columns: np.ndarray) -> Decisions:
        """Those of some images learned from (n,) and of some labels (C,)."""
        yes, no = (
            None if one is None else one[rows][:, columns] for one in (self.accepted, self.rejected)
        )
        alone = None if self.alone is None else self.alone[:, columns]
        said = None if self.said is None else self.said[rows]
        return Decisions(yes, no, self.features, alone, said, columns)

    def unsaid(
        self,
        calibrator: LabelCalibrator,
        scores: np.ndarray,
        space: Any,
        method: Any,
        naming: Naming | None,
        names: LearnedNames | None,
    ) -> UnannotatedLabels | None:
        """How often unsaid labels are right, by held-out scores (N×D) of the images learned from.

        Those of the others are the fitted method's own, which has not seen them. None unless some
        labels were accepted and others rejected: one alone is no review.
        """
        n_rejected = sum(one.nnz for one in (self.rejected, self.alone) if one is not None)
        if self.accepted is None or not self.accepted.nnz or not n_rejected:
            return None
        no = self.rejected
        if no is None:
            no = scipy.sparse.csr_array(self.accepted.shape, dtype=np.float32)
        some = np.flatnonzero(np.diff(self.accepted.indptr) + np.diff(no.indptr))
        P, yes, no = to_numpy(calibrator.predict_proba(scores[some])), self.accepted[some], no[some]
        said = np.ones(len(some), dtype=bool) if self.said is None else self.said[some]
        if self.features is not None and self.alone is not None:
            # no more of them than images learned from, whose scores there is memory for
            step = max(1, -(-self.alone.shape[0] // len(scores)))
            features, alone = self.features[::step], self.alone[::step]
            others = self._scores(features, space, method, naming, names)
            P = np.concatenate([P, to_numpy(calibrator.predict_proba(others))])
            nothing = scipy.sparse.csr_array(alone.shape, dtype=np.float32)
            yes = scipy.sparse.vstack([yes, nothing], format="csr")
            no = scipy.sparse.vstack([no, alone], format="csr")
            said = np.append(said, np.zeros(len(others), dtype=bool))
        return UnannotatedLabels().fit(P, yes, no, said=said)

    def _scores(
        self,
        features: Any,
        space: Any,
        method: Any,
        naming: Naming | None,
        names: LearnedNames | None,
    ) -> np.ndarray:
        """Scores (M×D) of the others; of some labels block by block, since all may be very many."""

        def scores_of(features: Any) -> np.ndarray:
            scores = to_numpy(method.decision_function(_embedded(space, features)))
            if names is None or naming is None:
                return scores
            return names.combined(naming.prior, features, scores)

        if self.columns is None:
            return scores_of(features)
        blocks = row_blocks(len(features), 64 * method.n_labels_)
        return np.concatenate([scores_of(features[rows])[:, self.columns] for rows in blocks])


def _embedded(space: Any, features: Any) -> Any:
    return features if space is None else space.transform(features)
