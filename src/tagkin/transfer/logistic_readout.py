"""Kernel logistic regression of labels on embeddings."""

from __future__ import annotations

import math
from typing import Annotated, Self

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from tagkin.arrays import Array, as_block, check_integer, expit, namespace
from tagkin.arrays.checks import check_positive
from tagkin.arrays.labels import check_complete, check_rejections, count_known, label_names
from tagkin.arrays.linalg import cholesky
from tagkin.arrays.namespaces import LabelMatrix, Seed
from tagkin.errors import InvalidInput
from tagkin.records.forms import storable
from tagkin.records.rules import Whole
from tagkin.transfer.label_transfer import LabelTransfer, check_share
from tagkin.transfer.logistic import Targets, Unknown, fit_logistic
from tagkin.transfer.logistic_features import Basis, orthogonal_basis
from tagkin.transfer.readout import MOST_LABELS, KernelColumns, Readout

__all__ = ["LogisticReadout"]

_UNKNOWN_WEIGHT = 0.3  # of an expected label; a known label has weight 1
_SAMPLE = 2  # images per landmark in the sample that directions are estimated from
# Directions are left out if the features' sum of squares over the images is below this times
# `tol` λ. With the default tol that is λ. In such directions the penalty outweighs the loss, whose
# curvature is at most a quarter of the sum of squares, for labels on half of the images.
_WEAKEST = 50.0


@storable
class LogisticReadout(LabelTransfer):
    """Logistic regression of each label on the embeddings, under a kernel.

    f(I, t) = bₜ + Σₛ αₛₜ k(a(z), a(zₛ)) over landmarks s, with the arc-cosine kernel of order 2
    and a(z) = (z/ℓ, 1), ℓ the mean length. The direction of an embedding counts most, and its
    length counts too. It minimises the logistic loss + λ/2 Σ ‖fₜ‖², with the kernel's norm.

    People forget labels. With a share e `forgotten`, an absent label may still be right: its loss
    is −log(1 − (1 − e) σ(f)), which lets f be high. A rejected label is certainly wrong, with the
    loss −log(1 − σ(f)).

    Parameters
    ----------
    regularization : float, default 0.25
        λ > 0.
    n_landmarks : int, default 2048
        Most images that express the kernel. Small collections use an eighth of their images, but
        at least 256.
    tol : float, default 0.02
        A label is learned when its gradient has fallen to this share of the first gradient.
        Feature directions in which the penalty outweighs the images are left out; a smaller `tol`
        leaves out fewer.
    random_state : int, RandomState or None, default 0
        Seed for choosing landmarks.
    forgotten : float, default 0.0
        e, from 0 to below 1: the share of images without the label among those that show it.

    Attributes
    ----------
    readout_ : Readout
        Landmarks, coefficients and intercepts. It learns the 4,096 most frequent labels that are on
        some but not all images; other labels score the logit of their share.

    Notes
    -----
    Scores are logits of having the label, or of showing it if `forgotten` is above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.transfer import LogisticReadout
    >>> X = np.array([[1, 0], [2, 0.5], [0, 1], [0.3, 2]])
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> LogisticReadout().fit(X, Y).predict([[3.0, 0.1]])
    array([[1, 0]])
    """

    takes_rejected = takes_incomplete = True
    scores_are_logits = True

    readout_: Readout
    n_iter_: Annotated[int, Whole()]

    def __init__(
        self,
        regularization: float = 0.25,
        n_landmarks: int = 2048,
        *,
        tol: float = 0.02,
        random_state: Seed = 0,
        forgotten: float = 0.0,
    ):
        self.regularization = regularization
        self.n_landmarks = n_landmarks
        self.tol = tol
        self.random_state = random_state
        self.forgotten = forgotten

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        check_positive("regularization", self.regularization)
        check_integer("n_landmarks", self.n_landmarks, 1)
        check_positive("tol", self.tol)
        check_share("forgotten", self.forgotten)

    def fit(
        self,
        X: Array,
        y: Array | None = None,
        *,
        groups: Array | None = None,
        rejected: Array | None = None,
        complete: Array | None = None,
        expected: Array | None = None,
    ) -> Self:
        """Learn from embeddings X (N×m) and labels y (N×D); groups have no effect here.

        Parameters
        ----------
        X : array of shape (N, m)
        y : array of shape (N, D)
        rejected : array of shape (N, D), optional
            Above 0 if a person rejected a label for an image. With `forgotten` above 0, a rejection
            is stronger evidence than an absent label.
        complete : array of N bool, optional
            Whether an image has all of its labels. A label that is absent from another image is
            unknown, and counts only if it is expected. Default: all images.
        expected : sparse matrix of shape (N, D), optional
            Probabilities of unknown labels. They count with a weight of 0.3.
        """
        self.check_parameters()
        embeddings, labels = self.check_fit_input(X, y)
        names = label_names(y)
        checked = None if rejected is None else check_rejections(rejected, labels, names)
        mask = check_complete(complete, labels.shape[0])
        n_present = np.bincount(labels.indices, minlength=labels.shape[1])
        n_known = count_known(labels, checked, mask)
        learned = _learnable_labels(n_present, n_known)
        landmarks, length = self._choose_landmarks(embeddings)
        columns = KernelColumns(embeddings, landmarks, length)
        coef = np.zeros((landmarks.shape[0], 0), dtype=np.float32)
        intercept, n_steps = _logit_of_share(n_present, n_known), 0
        unknown = None if mask is None else _unknown_labels(labels, mask, expected)
        targets = Targets(labels, checked, unknown)
        if len(learned):
            result = fit_logistic(
                columns,
                self._find_basis(columns),
                targets if len(learned) == labels.shape[1] else targets.of_labels(learned),
                self.regularization,
                forgotten=self.forgotten,
                tolerance=self.tol,
            )
            coef, n_steps = result.coef.astype(np.float32), result.n_steps
            intercept[learned] = result.intercept
        validate_data(self, X, skip_check_array=True, reset=True)
        self._label_names, self.n_labels_, self.n_iter_ = names, labels.shape[1], n_steps
        penalty = float(self.regularization)
        self.readout_ = Readout(landmarks, length, intercept, learned, coef, penalty)
        return self

    def _find_basis(self, columns: KernelColumns) -> Basis:
        """Return directions in which the landmarks' features are uncorrelated."""
        xp = namespace(columns.points)
        gram = xp.astype(columns.between_landmarks(), xp.float64)
        identity = xp.eye(gram.shape[0], dtype=xp.float64, device=gram.device)
        jitter, factor = 1e-6, None  # on a diagonal of 1; about float32 precision
        while factor is None:  # float32 values of many landmarks may need more jitter
            factor = cholesky((gram + gram.T) / 2 + jitter * identity)
            jitter *= 10
        step = max(1, columns.n_images // (_SAMPLE * gram.shape[0]))
        sample = columns.compute(columns.embeddings[::step])
        least = min(1.0, _WEAKEST * self.tol) * self.regularization
        return orthogonal_basis(sample, factor, columns.n_images, least)

    def _choose_landmarks(self, embeddings: Array) -> tuple[Array, float]:
        """Choose landmarks; return their embeddings (r×m) and mean length."""
        n = embeddings.shape[0]
        r = min(n, self.n_landmarks, max(256, n // 8))
        rows = np.arange(n)
        rng = check_random_state(self.random_state)
        if r < n:
            rows = np.sort(rng.choice(n, size=r, replace=False))
        # an array on a device cannot be indexed by an array on the host
        index = namespace(embeddings).asarray(rows, device=embeddings.device)
        landmarks = as_block(embeddings[rows if index is rows else index], finite=False)
        return landmarks, _mean_length(landmarks)

    def decision_function(self, X: Array) -> Array:
        """Return the logit of every label for every image, shape (n, D)."""
        embeddings = self.check_queries(X)
        return self.readout_.decision_function(embeddings)

    def describe(self) -> list[str]:
        """Return a few sentences that describe this model."""
        self._check_fitted()
        return self.readout_.describe()

    def _has_probabilities(self) -> bool:
        return True

    def _probabilities(self, scores: Array) -> Array:
        return expit(scores)


def _unknown_labels(
    labels: scipy.sparse.csr_array, complete: np.ndarray, expected: LabelMatrix | None
) -> Unknown:
    """Return the weights (N,) and the expected labels (N×D) of incomplete images."""
    weights = np.where(complete, 1.0, 0.0)
    probabilities = scipy.sparse.csr_array(labels.shape, dtype=np.float32)
    if expected is not None:
        probabilities = scipy.sparse.csr_array(expected, dtype=np.float32)
        if probabilities.shape != labels.shape:
            raise InvalidInput(
                f"expected has shape {probabilities.shape}, but the labels have {labels.shape}."
            )
        values = probabilities.data
        if len(values) and not (values.min() >= 0 and values.max() <= 1):
            raise InvalidInput("expected must hold probabilities from 0 to 1.")
        weights[~complete & (np.diff(probabilities.indptr) > 0)] = _UNKNOWN_WEIGHT
    return Unknown(weights, probabilities)


def _learnable_labels(n_present: np.ndarray, n_known: np.ndarray) -> np.ndarray:
    """Return the labels that can be learned, at most the 4,096 most frequent."""
    possible = np.flatnonzero((n_present > 0) & (n_present < n_known))
    order = np.argsort(-n_present[possible], kind="stable")
    return np.sort(possible[order[:MOST_LABELS]])


def _logit_of_share(n_present: np.ndarray, n_known: np.ndarray) -> np.ndarray:
    share = (n_present + 0.5) / (n_known + 1)
    return np.log(share) - np.log1p(-share)


def _mean_length(embeddings: Array) -> float:
    """Return the mean length of embeddings (n×m), or 1 if all are zero."""
    xp = namespace(embeddings)
    largest = float(xp.max(xp.abs(embeddings)))
    if largest == 0:
        return 1.0
    # squares may overflow or vanish; dividing by a power of two is exact
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    scaled = embeddings / unit
    return unit * float(xp.mean(xp.sqrt(xp.sum(scaled * scaled, axis=1))))
