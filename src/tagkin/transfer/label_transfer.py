"""The base class of all methods that transfer labels to new images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Annotated, ClassVar, Self, TypeGuard

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from tagkin.arrays import (
    Array,
    check_finite_features,
    check_integer,
    check_same_features,
    to_numpy,
)
from tagkin.arrays.labels import TakesLabelMatrix, as_labels, check_names
from tagkin.errors import InvalidInput
from tagkin.evaluation import mean_average_precision, top_labels
from tagkin.records.rules import Size, Texts
from tagkin.transfer.evidence import Suggestion
from tagkin.transfer.neighbor_lists import on_device_of

__all__ = ["LabelTransfer"]

_USUAL_NUMBER = 5  # labels per image by default, as studies on Corel5k assign


class LabelTransfer(TakesLabelMatrix, BaseEstimator, ABC):
    """Learns from labelled images to score labels of new images.

    Call `fit`, then `suggest` or `predict`. X (N×m) are embeddings in the semantic space, or any
    features. y (N×D) are labels, dense, sparse or a DataFrame whose columns name them: 1 if an
    image has a label, else 0.

    Attributes
    ----------
    n_labels_ : int
        D.
    classes_ : array of shape (D,)
        Names of the labels (columns of a DataFrame y), or column numbers.
    """

    takes_rejected: ClassVar[bool] = False
    """Whether `fit` takes ``rejected`` (N×D): labels that a person rejected for an image."""
    takes_incomplete: ClassVar[bool] = False
    """Whether `fit` takes ``complete`` (N,): which images have all of their labels."""
    scores_are_logits: ClassVar[bool] = False
    """Whether scores are log-odds, without a floor for unsupported labels."""

    n_labels_: Annotated[int, Size("D")]
    _label_names: Annotated[np.ndarray | None, Texts("D").or_none().or_absent()]
    n_features_in_: Annotated[int, Size("m").or_absent()]
    feature_names_in_: Annotated[np.ndarray, Texts("m").or_absent()]

    @abstractmethod
    def fit(self, X: Array, y: Array | None = None, *, groups: Array | None = None) -> Self:
        """Learn from embeddings X (N×m) and labels y (N×D).

        `groups` (N,) tells which images belong together, such as the shots of a burst. Methods
        that learn from an image's neighbours then use neighbours of other groups only.

        Parameters
        ----------
        X : array of shape (N, m)
            Embeddings of N images.
        y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        groups : array of shape (N,), optional
            Which images belong together, such as the shots of a burst.
        """

    @abstractmethod
    def decision_function(self, X: Array) -> Array:
        """Return the score of every label for every image, shape (n, D)."""

    @abstractmethod
    def describe(self) -> list[str]:
        """Return a few sentences that describe this model."""

    @property
    def classes_(self) -> np.ndarray:
        """The labels, shape (D,): columns of the fitted DataFrame, or column numbers."""
        self._check_fitted()
        names = self._known_names()
        return np.arange(self.n_labels_) if names is None else names

    # --- using ---------------------------------------------------------------------------

    def suggest(
        self, X: Array, n: int | None = None, *, min_score: float | Array | None = None
    ) -> list[list[Suggestion]]:
        """Suggest the best labels of each image, by decreasing score, then by column.

        Parameters
        ----------
        X : array of shape (n_images, m)
        n : int, optional
            Most labels to suggest per image. Default: 5, or all with `min_score`.
        min_score : float or array of shape (D,), optional
            Least score of a label, for all labels or per label.

        Returns
        -------
        suggestions : list of n_images lists of Suggestion
        """
        self._check_fitted()
        d, names = self.n_labels_, self.classes_.tolist()
        if n is None:
            n = _USUAL_NUMBER if min_score is None else d
        check_integer("n", n)
        least = _check_min_score(min_score, d)
        scores = to_numpy(self.decision_function(X))
        best = top_labels(np.where(scores >= least, scores, -np.inf), n).tolist()
        return [
            [Suggestion(t, float(row[t]), names[t]) for t in of_row if row[t] >= least[t]]
            for row, of_row in zip(scores, best, strict=True)
        ]

    def predict(self, X: Array, *, n: int | None = None) -> Array:
        """Return the suggested labels of each image as an indicator matrix.

        Parameters
        ----------
        X : array of shape (n_images, m)
        n : int, optional
            Labels per image.

        Returns
        -------
        labels : int array of shape (n_images, D)
            1 for a suggested label, else 0. Without `n`, labels with a probability of at least
            0.5; for a method without probabilities, the 5 best.
        """
        scores = self.decision_function(X)
        if n is None and self._has_probabilities():
            chosen = (to_numpy(self._probabilities(scores)) >= 0.5).astype(np.int64)
        else:
            best = top_labels(scores, _USUAL_NUMBER if n is None else n)
            chosen = np.zeros(tuple(scores.shape), dtype=np.int64)
            np.put_along_axis(chosen, best, 1, axis=1)
        return on_device_of(chosen, X)

    @available_if(lambda self: self._has_probabilities())  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Array) -> Array:
        """Return the probability of every label for every image, shape (n, D).

        Labels do not exclude each other, so rows need not add up to 1.
        """
        return self._probabilities(self.decision_function(X))

    def score(self, X: Array, y: Array) -> float:
        """Return the mean average precision (MAP) of the scores for X (n×m) and labels y (n×D).

        The mean is over labels that are on at least one of these images.

        Parameters
        ----------
        X : array of shape (n, m)
            Embeddings of new images.
        y : array or sparse matrix of shape (n, D)
            Their labels.
        """
        scores = self.decision_function(X)
        check_names(self._known_names(), y, self.n_labels_)
        return mean_average_precision(y, scores)

    # --- for authors of methods ----------------------------------------------------------

    def _has_probabilities(self) -> bool:
        """Whether `_probabilities` is implemented."""
        return False

    def _probabilities(self, scores: Array) -> Array:
        """Return probabilities from scores (n×D); each increases with its score."""
        raise InvalidInput(
            f"{type(self).__name__} has no probabilities. LabelCalibrator learns them from scores."
        )

    def _known_names(self) -> np.ndarray | None:
        return getattr(self, "_label_names", None)  # not set by `RidgeTransfer.of_space`

    def check_fit_input(self, X: Array, y: Array | None) -> tuple[Array, scipy.sparse.csr_array]:
        """Return checked embeddings (N×m), and a sparse copy of the labels (N×D).

        Parameters
        ----------
        X : array of shape (N, m)
        y : array or sparse matrix of shape (N, D)
        """
        embeddings = check_finite_features(X)
        return embeddings, self._as_labels(y, embeddings.shape[0])

    def _as_labels(self, y: Array | None, n_rows: int) -> scipy.sparse.csr_array:
        return as_labels(y, n_rows)

    def check_queries(self, X: Array) -> Array:
        """Return checked embeddings (n×m) of new images."""
        self._check_fitted()
        embeddings = check_finite_features(X)
        check_same_features(self, X)
        return embeddings

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted yet. Call fit(X, y) first."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_labels_")


def _check_min_score(value: float | Array | None, n_labels: int) -> np.ndarray:
    """Return the least score of each label, shape (D,); −∞ by default."""
    numbers = np.asarray(-np.inf if value is None else to_numpy(value), dtype=float)
    if numbers.shape not in ((), (n_labels,)) or np.isnan(numbers).any():
        raise InvalidInput(
            f"min_score must be a number, or a number for each of the {n_labels} labels; found "
            f"shape {numbers.shape}{', with NaN' if np.isnan(numbers).any() else ''}."
        )
    return np.broadcast_to(numbers, (n_labels,))


def count_rows(X: ArrayLike | Array) -> int:
    """Return the number of rows of an array or a list, before it is checked."""
    return int(np.shape(X)[0]) if np.ndim(X) else 0


def _is_number(value: object) -> TypeGuard[Real]:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_share(name: str, value: object) -> None:
    """Reject a parameter that is not a number from 0 to below 1."""
    if not (_is_number(value) and 0 <= float(value) < 1):
        raise InvalidInput(f"{name} must be a number from 0 to below 1; found {value!r}.")
