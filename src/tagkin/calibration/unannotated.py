"""How often unannotated labels are correct, learned from accepted and rejected suggestions.

A calibrated probability p tells how often images have a label. People forget labels, some far more
often than others: a dog is nearly always mentioned, a chair hardly ever. On an annotated image, a
label that was not given is correct with probability

    r = σ(logit p + δₜ),

and on an image without any annotation with q = p + (1 − p) r. p does not determine δ; a person's
decisions on suggestions do. Unless they show forgotten labels (μ ≥ −1.5, two standard errors of μ
considered), q = p.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, expit, logit, to_numpy
from tagkin.arrays.labels import as_labels, check_scores
from tagkin.errors import InvalidInput
from tagkin.records.forms import storable
from tagkin.records.rules import Floats, Number, Whole
from tagkin.wording import count

__all__ = ["UnannotatedLabels", "fit_unannotated_labels"]


@dataclass(frozen=True)
class AnswerNumbers:
    """Numbers of what is learned from a person's answers."""

    forgotten: float = -1.5
    """Least offset μ at which labels count as forgotten. A model chose the questions and some
    answers are wrong, which looks like a few forgotten labels. On development draws of COCO and
    Flickr8k, whose images have all labels, μ was −2.1 to −5.3; with the nouns of one caption it was
    −.7 to 0."""
    errors: float = 2.0
    """Standard errors that μ must lie above that. Without them, 240 answers about one label (μ of
    −.8 and −1.3, error .75) raised confidences on images of `photos` that say .58 to 41 % right."""


ANSWERS = AnswerNumbers()


@storable
@dataclass(frozen=True)
class UnannotatedLabels:
    """Log-odds δₜ by which labels that were not given are correct more often than p says.

    `fit_unannotated_labels` learns it.
    """

    offset: float
    """μ."""
    error: Annotated[float, Number(above=0)]
    """Standard error of μ."""
    offsets: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """δ, shape (D,)."""
    n_accepted: Annotated[int, Whole()]
    """Number of accepted labels."""
    n_rejected: Annotated[int, Whole()]
    """Number of rejected labels."""

    def predict_proba(self, P: Array, annotated: np.ndarray) -> np.ndarray:
        """Return the probability (n, D) that each label is correct, from P (n×D).

        `annotated` (n,) tells which images are annotated: their absent labels were not given.

        Parameters
        ----------
        P : array of shape (n, D)
            Probabilities that a person would give the label.
        annotated : array of shape (n,) of bool
            Which images are annotated.
        """
        p = np.asarray(to_numpy(check_scores(P)), dtype=np.float64)
        if p.shape[1] != len(self.offsets):
            raise InvalidInput(f"Found {p.shape[1]} labels, but {len(self.offsets)} were fitted.")
        r = expit(_finite_logit(p) + self.offsets)
        is_forgotten = self.offset - ANSWERS.errors * self.error >= ANSWERS.forgotten
        q = p + (1 - p) * r if is_forgotten else p
        return np.where(annotated[:, None], r, q)

    def spread(self, columns: np.ndarray, n_labels: int) -> UnannotatedLabels:
        """Expand to D labels. There are no decisions on the others.

        Parameters
        ----------
        columns : int array of shape (K,)
            The labels that were fitted, ascending.
        n_labels : int
            D.
        """
        offsets = np.full(n_labels, self.offset)
        offsets[columns] = self.offsets
        return replace(self, offsets=offsets)

    def describe(self) -> list[str]:
        """Return a sentence that describes the decisions."""
        return [
            f"Probabilities count what a person decided: {count(self.n_accepted, 'label')} "
            f"accepted and {self.n_rejected:,} rejected."
        ]


def fit_unannotated_labels(
    P: Array, accepted: Array, rejected: Array, *, annotated: np.ndarray | None = None
) -> UnannotatedLabels:
    """Learn from held-out probabilities P (n×D) and decisions.

    δₜ = μ + dₜ maximises the likelihood of the decisions, with a standard normal prior on dₜ and μ.
    A label with few decisions stays near μ. Expected decisions change little: accepting all
    suggestions with a confidence of 95 % adds hardly any information.

    Parameters
    ----------
    P : array of shape (n, D)
    accepted, rejected : arrays or sparse matrices of shape (n, D)
        Above 0 if a person accepted or rejected a suggested label that was not annotated.
    annotated : bool array of shape (n,), optional
        Which images were annotated before. Default: all. On other images, an accepted label is
        correct with probability q, and a rejected label is wrong with probability
        1 − q = (1 − p)(1 − r).

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.calibration import fit_unannotated_labels
    >>> P = np.full((400, 2), 0.5)
    >>> accepted = np.zeros((400, 2))
    >>> accepted[:360, 0] = accepted[:40, 1] = 1
    >>> unannotated = fit_unannotated_labels(P, accepted, 1 - accepted)
    >>> unannotated.predict_proba([[0.5, 0.5]], annotated=np.array([True])).round(1)
    array([[0.9, 0.1]])
    """
    P = check_scores(P)
    yes, no = (as_labels(matrix, P.shape[0]) for matrix in (accepted, rejected))
    if not yes.shape == no.shape == tuple(P.shape):
        raise InvalidInput(
            f"Found probabilities of shape {tuple(P.shape)}, accepted of {yes.shape} and "
            f"rejected of {no.shape}. All three must have the same shape."
        )
    label, z, right, by_r = _list_decisions(P, yes, no, annotated)
    offset, error, own = _fit_offsets(label, z, right, by_r, P.shape[1])
    n_accepted = int(right.sum())
    return UnannotatedLabels(offset, error, offset + own, n_accepted, len(right) - n_accepted)


def _list_decisions(
    P: Array, yes: scipy.sparse.csr_array, no: scipy.sparse.csr_array, annotated: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return each decision's label, log-odds, whether it was accepted, and whether r applies.

    r applies unless a label was accepted on an image without annotation, where q applies.
    """
    p, labels, log_odds, by_r = np.asarray(to_numpy(P), dtype=np.float64), [], [], []
    for matrix in (yes, no):
        rows, columns = matrix.nonzero()
        labels.append(columns)
        log_odds.append(_finite_logit(p[rows, columns]))
        plain = np.ones(len(rows), dtype=bool)
        by_r.append(plain if annotated is None or matrix is no else np.asarray(annotated)[rows])
    right = np.repeat([1.0, 0.0], [len(log_odds[0]), len(log_odds[1])])
    return np.concatenate(labels), np.concatenate(log_odds), right, np.concatenate(by_r)


def _finite_logit(p: np.ndarray) -> np.ndarray:
    """Return the logit of probabilities of the precision of float32, some of which are 0 or 1."""
    least = np.finfo(np.float32).eps
    return np.asarray(logit(np.clip(p, least, 1 - least)))


def _fit_offsets(
    label: np.ndarray, z: np.ndarray, right: np.ndarray, by_r: np.ndarray, n_labels: int
) -> tuple[float, float, np.ndarray]:
    """Return μ, its standard error, and d (D,), which minimise −Σ log-likelihood + (μ² + Σ d²)/2.

    A decision has probability σ(±(z + μ + d)), except labels accepted on images without
    annotation (not `by_r`). These have probability q, and count with the probability (1 − p) r/q
    that the label would not have been annotated: d log q = (1 − p) r/q · d log r.
    """
    from scipy.optimize import minimize  # only learning needs it, and it takes a while

    p = expit(z)

    def decide(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return r, the probability of accepting, and the weight of each decision."""
        r = expit(z + theta[0] + theta[1:][label])
        accepted = np.where(by_r, r, p + (1 - p) * r)
        return r, accepted, np.where(by_r, 1, (1 - p) * r / accepted)

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        r, accepted, weight = decide(theta)
        slopes = np.bincount(label, weight * (r - right), n_labels)
        # −log(1 − r) is finite even if r rounds to 1
        against = np.logaddexp(0, z + theta[0] + theta[1:][label])
        surprise = np.where(right > 0, -np.log(accepted), against).sum()
        return surprise + theta @ theta / 2, np.append(slopes.sum(), slopes) + theta

    options = {"ftol": 0, "gtol": 1e-9, "maxiter": 1000}
    theta = minimize(loss, np.zeros(n_labels + 1), jac=True, options=options, method="L-BFGS-B").x
    r, _, weight = decide(theta)
    bends = np.bincount(label, weight * r * (1 - r), n_labels)
    information = bends.sum() + 1 - (bends**2 / (bends + 1)).sum()
    return float(theta[0]), float(information**-0.5), theta[1:]
