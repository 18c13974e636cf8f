"""How often unannotated labels are correct, learned from accepted and rejected suggestions.

A calibrated probability p tells how often images have a label. People forget labels, some far more
often than others: a dog is nearly always mentioned, a chair hardly ever. On an annotated image, a
label that was not given is correct with probability

    r = σ(logit p + δₜ),

and on an image without any annotation with q = p + (1 − p) r. p does not determine δ; a person's
decisions on suggestions do.
"""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import Array, expit, logit, to_numpy
from tagkin.arrays.labels import as_labels
from tagkin.arrays.records import storable
from tagkin.arrays.rules import Floats, Size, Whole
from tagkin.arrays.scores import check_scores
from tagkin.calibration.pooling import positions_among
from tagkin.errors import InvalidInput
from tagkin.wording import count

__all__ = ["UnannotatedLabels"]

_ROUNDS = 100
_MOVED = 1e-8
_LARGEST = 1.0  # of a step
_LEAST = 1e-6  # probability: log-odds are no lower


@storable
class UnannotatedLabels(BaseEstimator):
    """Log-odds δₜ by which unannotated labels are correct more often than annotated.

    δₜ = μ + dₜ maximises the likelihood of the decisions, with a standard normal prior on dₜ and μ.
    A label with few decisions stays near μ. Expected decisions change little: accepting all
    suggestions with a confidence of 95 % adds hardly any information.

    Attributes
    ----------
    n_labels_ : int
        D.
    offset_ : float
        μ.
    offsets_ : array of shape (D,)
        δ.
    n_accepted_, n_rejected_ : int
        Number of accepted and rejected labels.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.calibration import UnannotatedLabels
    >>> P = np.full((400, 2), 0.5)
    >>> accepted = np.zeros((400, 2))
    >>> accepted[:360, 0] = accepted[:40, 1] = 1
    >>> unsaid = UnannotatedLabels().fit(P, accepted, 1 - accepted)
    >>> unsaid.predict_proba([[0.5, 0.5]], said=np.array([True])).round(1)
    array([[0.9, 0.1]])
    """

    n_labels_: Annotated[int, Size("D")]
    offset_: float
    offsets_: Annotated[np.ndarray, Floats("D")]
    n_accepted_: Annotated[int, Whole()]
    n_rejected_: Annotated[int, Whole()]

    def fit(
        self, P: Array, accepted: Array, rejected: Array, *, said: np.ndarray | None = None
    ) -> Self:
        """Learn from held-out probabilities P (n×D) and decisions.

        `accepted` and `rejected` (n×D, dense or sparse) are above 0 if a person accepted or
        rejected a suggested label that was not annotated. `said` (n,) tells which images were
        annotated before; by default all. On other images, an accepted label is correct with
        probability q, and a rejected label is wrong with probability 1 − q = (1 − p)(1 − r).
        """
        P = check_scores(P)
        yes, no = (as_labels(matrix, P.shape[0]) for matrix in (accepted, rejected))
        if not yes.shape == no.shape == tuple(P.shape):
            raise InvalidInput(
                f"Found probabilities of shape {tuple(P.shape)}, accepted of {yes.shape} and "
                f"rejected of {no.shape}. All three must have the same shape."
            )
        label, z, right, by_r = _list_decisions(P, yes, no, said)
        self.n_labels_ = P.shape[1]
        self.offset_, own = _fit_offsets(label, z, right, by_r, P.shape[1])
        self.offsets_ = self.offset_ + own
        self.n_accepted_, self.n_rejected_ = int(right.sum()), int((1 - right).sum())
        return self

    def predict_proba(self, P: Array, said: np.ndarray) -> np.ndarray:
        """Return the probability (n, D) that each label is correct, from P (n×D).

        `said` (n,) tells which images are annotated: their absent labels were not given.
        """
        check_is_fitted(self)
        p = np.asarray(to_numpy(check_scores(P)), dtype=np.float64)
        if p.shape[1] != self.n_labels_:
            raise InvalidInput(f"Found {p.shape[1]} labels, but {self.n_labels_} were fitted.")
        r = expit(logit(np.clip(p, _LEAST, 1 - _LEAST)) + self.offsets_)
        return np.where(said[:, None], r, p + (1 - p) * r)

    def extended(self, n_labels: int) -> UnannotatedLabels:
        """Return a copy with D = `n_labels` labels; there are no decisions on the new labels."""
        check_is_fitted(self)
        new = UnannotatedLabels()
        new.n_labels_, new.offset_ = n_labels, self.offset_
        fresh = np.full(n_labels - self.n_labels_, self.offset_)
        new.offsets_ = np.append(self.offsets_, fresh)
        new.n_accepted_, new.n_rejected_ = self.n_accepted_, self.n_rejected_
        return new

    def spread(self, columns: np.ndarray, n_labels: int) -> UnannotatedLabels:
        """Expand to D = `n_labels` labels; these `columns`, ascending, were fitted."""
        new = self.extended(n_labels)
        new.offsets_ = new.offsets_[positions_among(columns, n_labels)]
        return new

    def describe(self) -> list[str]:
        """Return a sentence that describes the decisions."""
        check_is_fitted(self)
        return [
            f"Probabilities count what a person decided: {count(self.n_accepted_, 'label')} "
            f"accepted and {self.n_rejected_:,} rejected."
        ]


def _list_decisions(
    P: Array, yes: scipy.sparse.csr_array, no: scipy.sparse.csr_array, said: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return each decision's label, log-odds, whether it was accepted, and whether r applies.

    r applies unless a label was accepted on an image without annotation, where q applies.
    """
    p, labels, log_odds, by_r = np.asarray(to_numpy(P), dtype=np.float64), [], [], []
    for matrix in (yes, no):
        rows, columns = matrix.nonzero()
        labels.append(columns)
        log_odds.append(logit(np.clip(p[rows, columns], _LEAST, 1 - _LEAST)))
        plain = np.ones(len(rows), dtype=bool)
        by_r.append(plain if said is None or matrix is no else np.asarray(said)[rows])
    right = np.repeat([1.0, 0.0], [len(log_odds[0]), len(log_odds[1])])
    return np.concatenate(labels), np.concatenate(log_odds), right, np.concatenate(by_r)


def _fit_offsets(
    label: np.ndarray, z: np.ndarray, right: np.ndarray, by_r: np.ndarray, n_labels: int
) -> tuple[float, np.ndarray]:
    """Return μ and d (D,) that minimise −Σ log-likelihood + (μ² + Σ d²)/2, by Newton's steps.

    A decision has probability σ(±(z + μ + d)), except labels accepted on images without
    annotation (not `by_r`). These have probability q, and count with the probability (1 − p) r/q
    that the label would not have been annotated: d log q = (1 − p) r/q · d log r.
    """
    common, own = 0.0, np.zeros(n_labels)
    known = expit(z)
    for _ in range(_ROUNDS):
        p = expit(z + common + own[label])
        weight = np.where(by_r, 1.0, (1 - known) * p / (known + (1 - known) * p))
        slopes = np.bincount(label, weight * (p - right), n_labels)
        bends = np.bincount(label, weight * p * (1 - p), n_labels)
        slope, curve = slopes + own, bends + 1
        # the Hessian is an arrow matrix, because labels share only μ
        step = slopes.sum() + common - (bends * slope / curve).sum()
        step /= bends.sum() + 1 - (bends**2 / curve).sum()
        steps = (slope - bends * step) / curve
        longest = max(abs(step), np.abs(steps).max(initial=0))
        scale = min(1.0, _LARGEST / max(longest, 1e-12))
        common, own = common - scale * step, own - scale * steps
        if longest < _MOVED:
            break
    return float(common), own
