"""Linear methods: least squares for all labels at once, squared hinge, ridge."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Protocol, Self

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from tagkin.arrays import Array, as_block, like, namespace, on_accelerator, row_blocks, to_numpy
from tagkin.arrays.labels import label_names
from tagkin.arrays.linalg import cholesky, eigh, matmul, solve_triangular
from tagkin.errors import InvalidInput
from tagkin.records.forms import storable
from tagkin.records.rules import Floats
from tagkin.transfer._comparable import Linear, as_log_odds
from tagkin.transfer.label_transfer import LabelTransfer, check_positive
from tagkin.wording import count

__all__ = ["LinearSVM", "RidgeTransfer"]

LOSSES = ("least-squares", "squared-hinge")


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

    comparable: bool
    coef_: Annotated[np.ndarray, Floats("m", "D")]
    intercept_: Annotated[np.ndarray, Floats("D")]

    def fit(self, X: Array, y: Array | None = None, *, groups: Array | None = None) -> Self:
        """Learn from embeddings X (N×m) and labels y (N×D); see `LabelTransfer.fit` for groups.

        Parameters
        ----------
        X : array of shape (N, m)
            Embeddings of N images.
        y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        groups : array of shape (N,), optional
            Which images belong together, such as the shots of a burst.
        """
        self.check_parameters()
        embeddings, labels = self._check_fit_input(X, y)
        coef, intercept = self._learn(embeddings, labels)
        if self.comparable:
            learned = coef, intercept
            coef, intercept = as_log_odds(learned, embeddings, labels, groups, self._learn)
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
    def _learn(self, embeddings: Array, labels: scipy.sparse.csr_array) -> Linear:
        """Return coefficients (m×D) and intercepts (D,)."""

    def decision_function(self, X: Array) -> Array:
        """Return the score of every label for every image, shape (n, D)."""
        embeddings = self._check_queries(X)
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
    comparable : bool, default True
        Scale the scores of each label to log-odds, learned with images held out in three parts.
        This makes the labels of an image comparable and keeps the order of images under a label.
        With fewer than 12 images, or groups of them, scores are not scaled. False: the
        regression's own values.

    Attributes
    ----------
    coef_ : array of shape (m, D)
        W, scaled.
    intercept_ : array of shape (D,)
        mean − z̄ W, scaled.
    n_labels_ : int
        D.
    classes_ : array of shape (D,)
        Names of the labels (columns of a DataFrame y), or column numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin import RidgeTransfer
    >>> Z = np.array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])  # embeddings
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])  # labels
    >>> model = RidgeTransfer().fit(Z, Y)
    >>> model.suggest(np.array([[1.0, 0.2]]), n=1)[0][0].label
    0
    """

    def __init__(self, regularization: float = 0.5, comparable: bool = True):
        self.regularization = regularization
        self.comparable = comparable

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        check_positive("regularization", self.regularization)

    def _learn(self, embeddings: Array, labels: scipy.sparse.csr_array) -> Linear:
        return _fit_least_squares(embeddings, labels, self.regularization)

    @classmethod
    def of_space(cls, space: SolvedSpace) -> Self:
        """Return the kernel ridge regression that a fitted `SemanticSpace` contains.

        Its labels are the space's labels, or its text features if the textual view is not the
        indicator. If the space keeps all its dimensions, the scores for ``space.transform(X)``
        are the regression's own, K^V (K^V + κI)⁻¹ Y plus the mean. Labels too rare for the space
        (`IndicatorView`) score 0.
        """
        model = cls(float(space.regularization), comparable=False)
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
    """One linear classifier per label: f(I, t) = bₜ + ⟨wₜ, z⟩.

    It minimises ‖w‖²/2 + C Σ loss(yᵢ (b + ⟨w, zᵢ⟩)), y = ±1.

    Parameters
    ----------
    C : float, default 0.001
        Weight of the loss. Choose it by cross-validation. Embeddings of `SemanticSpace` have about
        unit variance, so good values are of the order of 1/N. On 3,000 images of Flickr8k, .001
        has a MAP of 32.0, and 1 has 30.9.
    loss : "least-squares" or "squared-hinge"
        (1 − m)²/2 as in the paper, solved for all labels at once; or max(0, 1 − m)², solved by
        liblinear for each label.
    comparable : bool, default True
        Scale the scores of each label to log-odds, learned with images held out in three parts.
        This makes the labels of an image comparable and keeps the order of images under a label.
        With fewer than 12 images, or groups of them, scores are not scaled. False: the margins,
        as in the paper.

    Attributes
    ----------
    coef_ : array of shape (m, D)
        wₜ in columns, scaled.
    intercept_ : array of shape (D,)
        bₜ, scaled. It is not regularised, or hardly with the squared hinge.
    n_labels_ : int
        D.
    classes_ : array of shape (D,)
        Names of the labels (columns of a DataFrame y), or column numbers.

    Notes
    -----
    A label on no image has a margin of −1 everywhere, and a label on all images a margin of 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin import LinearSVM
    >>> Z = np.array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])  # embeddings
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])  # labels
    >>> model = LinearSVM().fit(Z, Y)
    >>> model.suggest(np.array([[1.0, 0.2]]), n=1)[0][0].label
    0
    """

    def __init__(self, C: float = 0.001, loss: str = "least-squares", *, comparable: bool = True):
        self.C = C
        self.loss = loss
        self.comparable = comparable

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        check_positive("C", self.C)
        if not isinstance(self.loss, str) or self.loss not in LOSSES:
            raise InvalidInput(f"loss must be one of {', '.join(LOSSES)}; found {self.loss!r}.")

    def _learn(self, embeddings: Array, labels: scipy.sparse.csr_array) -> Linear:
        """Return coefficients (m×D) and intercepts (D,) of the margins."""
        if self.loss == "squared-hinge":
            return self._fit_squared_hinge(embeddings, labels)
        coef, intercept = _fit_least_squares(embeddings, labels, 1 / self.C)
        return 2 * coef, 2 * intercept - 1  # from 0 and 1 to −1 and 1

    def _fit_squared_hinge(self, embeddings: Array, labels: scipy.sparse.csr_array) -> Linear:
        from sklearn.svm import LinearSVC  # here, because importing it is slow

        rows = to_numpy(as_block(embeddings, double=True, finite=False))
        mean = rows.mean(axis=0)
        rows = rows - mean  # centred, so intercepts are small and hardly regularised
        by_label = labels.tocsc()
        d = labels.shape[1]
        counts = np.diff(by_label.indptr)
        coef, intercept = np.zeros((rows.shape[1], d)), np.where(counts == len(rows), 1.0, -1.0)
        for t in np.flatnonzero((counts > 0) & (counts < len(rows))):
            has_label = np.zeros(len(rows), dtype=int)
            has_label[by_label.indices[by_label.indptr[t] : by_label.indptr[t + 1]]] = 1
            # a large scale, because liblinear regularises the intercept by its inverse
            classifier = LinearSVC(
                C=self.C, dual=False, intercept_scaling=100, tol=1e-7, random_state=0
            )
            classifier.fit(rows, has_label)
            coef[:, t] = classifier.coef_[0]
            intercept[t] = classifier.intercept_[0] - mean @ classifier.coef_[0]
        return coef, intercept


def _fit_least_squares(
    embeddings: Array, labels: scipy.sparse.csr_array, regularization: float
) -> Linear:
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
