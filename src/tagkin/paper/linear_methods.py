"""Linear methods: least squares for all labels at once."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Protocol, Self

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from tagkin.arrays import Array, as_block, like, namespace, on_accelerator, row_blocks, to_numpy
from tagkin.arrays.checks import check_positive
from tagkin.arrays.labels import label_names
from tagkin.arrays.linalg import cholesky, eigh, matmul, solve_triangular
from tagkin.records.forms import storable
from tagkin.records.rules import Floats
from tagkin.transfer.label_transfer import LabelTransfer
from tagkin.wording import count

__all__ = ["LinearSVM", "RidgeTransfer"]


class SolvedSpace(Protocol):
    """A fitted `SemanticSpace`, as far as a regression is read off it."""

    regularization: float
    text_view_: object

    @property
    def readout_(self) -> Array:
        """Coefficients of text features from embeddings, shape (m, q)."""

    @property
    def text_mean_(self) -> Array:
        """Mean of the text features, shape (q,)."""


class LinearTransfer(LabelTransfer):
    """Scores that are linear in X: f(I, t) = bₜ + ⟨wₜ, z⟩."""

    coef_: Annotated[np.ndarray, Floats("m", "D")]
    intercept_: Annotated[np.ndarray, Floats("D")]

    def fit(self, X: Array, y: Array | None = None, *, groups: Array | None = None) -> Self:
        """Learn from embeddings X (N×m) and labels y (N×D); groups have no effect here.

        Parameters
        ----------
        X : array of shape (N, m)
            Embeddings of N images.
        y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        groups : ignored
        """
        self.check_parameters()
        embeddings, labels = self.check_fit_input(X, y)
        coef, intercept = self._learn(embeddings, labels)
        names = label_names(y)
        validate_data(self, X, skip_check_array=True, reset=True)
        self._label_names = names
        self.coef_, self.intercept_ = coef, intercept
        self.n_labels_ = coef.shape[1]
        return self

    @abstractmethod
    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""

    @abstractmethod
    def _learn(
        self, embeddings: Array, labels: scipy.sparse.csr_array
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (m×D) and intercepts (D,)."""

    def decision_function(self, X: Array) -> Array:
        """Return the score of every label for every image, shape (n, D)."""
        embeddings = self.check_queries(X)
        xp = namespace(embeddings)
        first_row = as_block(embeddings[:1], finite=False)
        coef, intercept = (like(part, first_row) for part in (self.coef_, self.intercept_))
        scores = xp.empty(
            (embeddings.shape[0], coef.shape[1]), dtype=first_row.dtype, device=first_row.device
        )
        for rows in row_blocks(
            embeddings.shape[0], 8 * (embeddings.shape[1] + coef.shape[1]), embeddings
        ):
            scores[rows] = matmul(as_block(embeddings[rows], finite=False), coef) + intercept
        return scores

    def describe(self) -> list[str]:
        """Return a few sentences that describe this model."""
        m, d = self.coef_.shape
        return [f"Linear scores of {count(d, 'label')} from {count(m, 'dimension')}."]


@storable
class RidgeTransfer(LinearTransfer):
    """Ridge regression of the labels: Ŷ = mean + (z − z̄) W, W = (ZᵀZ + κI)⁻¹ ZᵀY, centred.

    A fitted semantic space contains this regression already: `of_space` reads it off at no cost.

    Parameters
    ----------
    regularization : float, default 0.5
        κ > 0. Embeddings of `SemanticSpace` have about unit variance, so good values for them are
        of the order of N/3.

    Attributes
    ----------
    coef_ : array of shape (m, D)
        W.
    intercept_ : array of shape (D,)
        mean − z̄ W.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.paper import RidgeTransfer
    >>> Z = np.array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])  # embeddings
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])  # labels
    >>> model = RidgeTransfer().fit(Z, Y)
    >>> model.suggest(np.array([[1.0, 0.2]]), n=1)[0][0].label
    0
    """

    def __init__(self, regularization: float = 0.5):
        self.regularization = regularization

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        check_positive("regularization", self.regularization)

    def _learn(
        self, embeddings: Array, labels: scipy.sparse.csr_array
    ) -> tuple[np.ndarray, np.ndarray]:
        return _fit_least_squares(embeddings, labels, self.regularization)

    @classmethod
    def of_space(cls, space: SolvedSpace) -> Self:
        """Return the kernel ridge regression that a fitted `SemanticSpace` contains.

        Its labels are the space's labels, or its text features if the textual view is not the
        indicator. If the space keeps all its dimensions, the scores for ``space.transform(X)``
        are the regression's own, K^V (K^V + κI)⁻¹ Y plus the mean. Labels too rare for the space
        (`IndicatorView`) score 0.
        """
        model = cls(float(space.regularization))
        coef, intercept = to_numpy(space.readout_), to_numpy(space.text_mean_)
        columns = getattr(space.text_view_, "kept_", None)
        n_labels = getattr(space.text_view_, "n_labels_", None)
        if columns is not None and n_labels is not None:  # the space has not learned all labels
            coef, intercept = (
                _expand(coef, columns, n_labels),
                _expand(intercept, columns, n_labels),
            )
        model.coef_, model.intercept_ = np.array(coef), np.array(intercept)
        model.n_features_in_, model.n_labels_ = coef.shape
        return model


def _expand(values: np.ndarray, columns: np.ndarray, n_labels: int) -> np.ndarray:
    """Expand values of some columns to all D labels; 0 elsewhere."""
    wide = np.zeros((*values.shape[:-1], n_labels), dtype=values.dtype)
    wide[..., columns] = values
    return wide


@storable
class LinearSVM(LinearTransfer):
    """One linear classifier per label, the least-squares SVM of the paper: f(I, t) = bₜ + ⟨wₜ, z⟩.

    It minimises ‖w‖²/2 + C Σ (1 − yᵢ (b + ⟨w, zᵢ⟩))²/2, y = ±1, in closed form for all labels.

    Parameters
    ----------
    C : float, default 0.001
        Weight of the loss. Choose it by cross-validation. Embeddings of `SemanticSpace` have about
        unit variance, so good values are of the order of 1/N. On 3,000 images of Flickr8k, .001
        has a MAP of 32.0, and 1 has 30.9.

    Attributes
    ----------
    coef_ : array of shape (m, D)
        wₜ in columns.
    intercept_ : array of shape (D,)
        bₜ, not regularised.

    Notes
    -----
    A label on no image has a margin of −1 everywhere, and a label on all images a margin of 1.
    Margins rank the images of a label; they do not compare between labels. `LabelCalibrator` turns
    them into probabilities that do.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.paper import LinearSVM
    >>> Z = np.array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])  # embeddings
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])  # labels
    >>> model = LinearSVM().fit(Z, Y)
    >>> model.suggest(np.array([[1.0, 0.2]]), n=1)[0][0].label
    0
    """

    def __init__(self, C: float = 0.001):
        self.C = C

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        check_positive("C", self.C)

    def _learn(
        self, embeddings: Array, labels: scipy.sparse.csr_array
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (m×D) and intercepts (D,) of the margins."""
        coef, intercept = _fit_least_squares(embeddings, labels, 1 / self.C)
        return 2 * coef, 2 * intercept - 1  # from 0 and 1 to −1 and 1


def _fit_least_squares(
    embeddings: Array, labels: scipy.sparse.csr_array, regularization: float
) -> tuple[np.ndarray, np.ndarray]:
    """Fit coefficients (m×D) and intercepts (D,) of ridge regression, in blocks, in float64."""
    n, m = embeddings.shape
    xp = namespace(embeddings)
    sample = as_block(embeddings[:: -(-n // 256)], double=True, finite=False)
    shift = xp.mean(sample, axis=0)  # near the mean, to limit cancellation below
    gram, cross, total = np.zeros((m, m)), np.zeros((m, labels.shape[1])), np.zeros(m)
    on_device = on_accelerator(embeddings)
    for rows in row_blocks(n, 24 * m + (8 * labels.shape[1] if on_device else 0), embeddings):
        shifted = as_block(embeddings[rows], double=True, finite=False) - shift
        gram += to_numpy(matmul(shifted.T, shifted))
        if on_device:  # moving labels is cheaper than moving embeddings
            total += to_numpy(xp.sum(shifted, axis=0))
            cross += to_numpy(matmul(shifted.T, like(labels[rows], shifted)))
            continue
        block = to_numpy(shifted)
        total += block.sum(axis=0)
        cross += (labels[rows].T @ block).T
    mean, label_mean = total / n, labels.sum(axis=0, dtype=np.float64) / n
    gram -= n * np.outer(mean, mean)
    cross -= n * np.outer(mean, label_mean)
    coef = _solve_ridge(gram, cross, regularization)
    return coef, label_mean - (mean + to_numpy(shift)) @ coef


def _solve_ridge(gram: np.ndarray, cross: np.ndarray, regularization: float) -> Array:
    """Return (G + κI)⁻¹ B for G without negative eigenvalues, up to rounding."""
    regularized = gram + regularization * np.eye(len(gram))
    factor = cholesky(regularized)
    if factor is not None:
        half = solve_triangular(factor, cross)
        return solve_triangular(factor, half, transposed=True)
    # κ is lost in the rounding of G
    values, vectors = eigh(gram)
    return matmul(
        vectors, matmul(vectors.T, cross) / (np.maximum(values, 0) + regularization)[:, None]
    )
