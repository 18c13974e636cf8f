"""How often labels that nobody said are right all the same: from what a person accepted, rejected.

A calibrated probability p says how often images carry a label. People forget labels, some far more
often than others: a dog is nearly always mentioned, a chair hardly ever. Where nobody said the
label it is right with probability

    r = σ(logit p + δₜ),

and where nobody said anything at all with q = p + (1 − p) r. Of p alone δ cannot be known; the
decisions of a person who goes through suggestions tell it.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import Array, expit, logit, to_numpy
from tagkin.arrays.labels import as_labels
from tagkin.arrays.scores import check_scores
from tagkin.calibration.pooling import positions_among
from tagkin.errors import InvalidInput
from tagkin.wording import count

__all__ = ["UnsaidLabels"]

_ROUNDS = 100
_MOVED = 1e-8
_LARGEST = 1.0  # of a step
_LEAST = 1e-6  # probability: log-odds are no lower


class UnsaidLabels(BaseEstimator):
    """Log-odds δₜ by which labels that nobody said are right more, or less, often than said.

    δₜ = μ + dₜ is where the decisions are most likely, with a standard normal prior on dₜ and on μ:
    a label with few decisions keeps to μ. Decisions that were to be expected move little: who
    takes all that is 95 % sure has said hardly anything new.

    Attributes
    ----------
    n_labels_ : int
        D.
    offset_ : float
        μ.
    offsets_ : array of shape (D,)
        δ.
    n_accepted_, n_rejected_ : int
        Decisions that it was learned from.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.calibration import UnsaidLabels
    >>> P = np.full((400, 2), 0.5)
    >>> accepted = np.zeros((400, 2))
    >>> accepted[:360, 0] = accepted[:40, 1] = 1
    >>> unsaid = UnsaidLabels().fit(P, accepted, 1 - accepted)
    >>> unsaid.predict_proba([[0.5, 0.5]], said=np.array([True])).round(1)
    array([[0.9, 0.1]])
    """

    def fit(
        self, P: Array, accepted: Array, rejected: Array, *, said: np.ndarray | None = None
    ) -> Self:
        """Learn from probabilities P (n×D) of models that had not seen the image, and decisions.

        `accepted` and `rejected` (n×D, dense or sparse) are above 0 where a label that nobody had
        said was suggested, and a person took it or refused it. `said` (n,) is true where somebody
        had labelled the image before, as all were unless it is given. Where nobody had, a label
        that was taken is right with q, and one that was refused is wrong with 1 − q, that is
        (1 − p)(1 − r).
        """
        P = check_scores(P)
        yes, no = (as_labels(one, P.shape[0]) for one in (accepted, rejected))
        if not yes.shape == no.shape == tuple(P.shape):
            raise InvalidInput(
                f"Found probabilities of shape {tuple(P.shape)}, accepted of {yes.shape} and "
                f"rejected of {no.shape}; all three have one shape."
            )
        label, z, right, asked = _decisions(P, yes, no, said)
        self.n_labels_ = P.shape[1]
        self.offset_, own = _most_likely(label, z, right, asked, P.shape[1])
        self.offsets_ = self.offset_ + own
        self.n_accepted_, self.n_rejected_ = int(right.sum()), int((1 - right).sum())
        return self

    def predict_proba(self, P: Array, said: np.ndarray) -> np.ndarray:
        """Probability (n, D) that each label is right, from that it is said, P (n×D).

        `said` (n,) is true where somebody has labelled the image: of a label that it does not
        carry it is known then that nobody said it.
        """
        check_is_fitted(self)
        p = np.asarray(to_numpy(check_scores(P)), dtype=np.float64)
        if p.shape[1] != self.n_labels_:
            raise InvalidInput(f"Found {p.shape[1]} labels where {self.n_labels_} were fitted.")
        r = expit(logit(np.clip(p, _LEAST, 1 - _LEAST)) + self.offsets_)
        return np.where(said[:, None], r, p + (1 - p) * r)

    def extended(self, n_labels: int) -> UnsaidLabels:
        """The same with further labels, to D = `n_labels`, of which nothing was decided yet."""
        check_is_fitted(self)
        new = UnsaidLabels()
        new.n_labels_, new.offset_ = n_labels, self.offset_
        fresh = np.full(n_labels - self.n_labels_, self.offset_)
        new.offsets_ = np.append(self.offsets_, fresh)
        new.n_accepted_, new.n_rejected_ = self.n_accepted_, self.n_rejected_
        return new

    def spread(self, columns: np.ndarray, n_labels: int) -> UnsaidLabels:
        """One of D = `n_labels` labels, of which these columns, ascending, were fitted."""
        new = self.extended(n_labels)
        new.offsets_ = new.offsets_[positions_among(columns, n_labels)]
        return new

    def describe(self) -> list[str]:
        """What was learned, in a sentence."""
        check_is_fitted(self)
        return [
            f"Probabilities count what a person decided: {count(self.n_accepted_, 'label')} "
            f"accepted and {self.n_rejected_:,} rejected."
        ]


def _decisions(
    P: Array, yes: scipy.sparse.csr_array, no: scipy.sparse.csr_array, said: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of each decision the label, the log-odds, whether it was accepted, and whether r alone says.

    The last is so unless it was accepted where nobody had said anything.
    """
    p, labels, found, asked = np.asarray(to_numpy(P), dtype=np.float64), [], [], []
    for matrix in (yes, no):
        rows, columns = matrix.nonzero()
        labels.append(columns)
        found.append(logit(np.clip(p[rows, columns], _LEAST, 1 - _LEAST)))
        plain = np.ones(len(rows), dtype=bool)
        asked.append(plain if said is None or matrix is no else np.asarray(said)[rows])
    right = np.repeat([1.0, 0.0], [len(found[0]), len(found[1])])
    return np.concatenate(labels), np.concatenate(found), right, np.concatenate(asked)


def _most_likely(
    label: np.ndarray, z: np.ndarray, right: np.ndarray, asked: np.ndarray, n_labels: int
) -> tuple[float, np.ndarray]:
    """μ and d (D,) that minimise −Σ log-likelihood + (μ² + Σ d²)/2, by Newton's steps.

    A decision is σ(±(z + μ + d)) likely. One that was not `asked` of an unsaid label, but accepted
    where nobody had said anything, is q likely, and counts with the probability (1 − p) r/q that
    it would have stayed unsaid: d log q = (1 − p) r/q · d log r.
    """
    common, own = 0.0, np.zeros(n_labels)
    known = expit(z)
    for _ in range(_ROUNDS):
        p = expit(z + common + own[label])
        weight = np.where(asked, 1.0, (1 - known) * p / (known + (1 - known) * p))
        slopes = np.bincount(label, weight * (p - right), n_labels)
        bends = np.bincount(label, weight * p * (1 - p), n_labels)
        slope, curve = slopes + own, bends + 1
        # the Hessian is an arrow: labels meet in μ alone
        step = slopes.sum() + common - (bends * slope / curve).sum()
        step /= bends.sum() + 1 - (bends**2 / curve).sum()
        steps = (slope - bends * step) / curve
        longest = max(abs(step), np.abs(steps).max(initial=0))
        scale = min(1.0, _LARGEST / max(longest, 1e-12))
        common, own = common - scale * step, own - scale * steps
        if longest < _MOVED:
            break
    return float(common), own
