"""What an annotator says of features: scores and probabilities of labels, and their evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from tagkin.annotator.label_input import Labels, indicator_of, rejections, rows_of
from tagkin.annotator.naming import LearnedNames
from tagkin.annotator.suggesting import similar_to, without_itself
from tagkin.annotator.suggestions import LabelSuggestion, SimilarImage
from tagkin.arrays import Array, check_features, check_integer, check_same_features, to_numpy
from tagkin.arrays.labels import TakesLabelMatrix
from tagkin.arrays.records import Axes, Later
from tagkin.arrays.rules import Indices, Number, Size, Sparse, TextLists, Texts
from tagkin.calibration import LabelCalibrator, LabelErrors, UnannotatedLabels
from tagkin.errors import InvalidInput
from tagkin.evaluation import mean_average_precision
from tagkin.labels import Vocabulary
from tagkin.space import SemanticSpace
from tagkin.tag_meanings import NamePrior
from tagkin.transfer import Evidence, NeighborTransfer
from tagkin.transfer.evidence import label_lists

__all__ = ["FeatureScores"]


class FeatureScores(TakesLabelMatrix, BaseEstimator):
    """The part of a `FeatureAnnotator` that uses what was learned, one image at a time."""

    # it was learned before the labels that came later
    space_: Annotated[SemanticSpace, Axes(D="first")]
    method_: NeighborTransfer
    calibrator_: LabelCalibrator
    # labels that came later have no rates
    errors_: Annotated[LabelErrors, Axes(D="judged")]
    _held_out: Annotated[Later[scipy.sparse.csr_array], Sparse("N", "D", high=1, within="judged")]
    rejected_: Annotated[scipy.sparse.csr_array, Sparse("N", "D")]
    names_: LearnedNames | None
    unsaid_: UnannotatedLabels | None
    vocabulary_: Vocabulary | None
    column_names_: Annotated[np.ndarray | None, Texts("D")]
    tags_: Annotated[list[list[str]] | None, TextLists("N")]
    groups_: Annotated[np.ndarray, Indices("N")]
    blend_: Annotated[float, Number(low=0, high=1)]
    n_features_in_: Annotated[int, Size("d").or_absent()]
    feature_names_in_: Annotated[np.ndarray, Texts("d").or_absent()]
    prior: NamePrior | None

    @property
    def held_out_(self) -> scipy.sparse.csr_array:
        """Probabilities of labels of the images learned from, by models that have not seen them."""
        return self._held_out.get()

    @property
    def classes_(self) -> np.ndarray:
        """The labels, shape (D,): tags, columns of the DataFrame, or the columns' numbers."""
        self._check_fitted()
        return self._learned().classes()

    def _learned(self) -> Labels:
        """The labels that were learned from, and what they are called."""
        return Labels(self.method_.labels_, self.column_names_, self.vocabulary_)

    def decision_function(self, X: Array) -> np.ndarray:
        """Score of every label for every image, shape (n, D); `predict_proba` is calibrated."""
        features = self._checked(X)
        scores = to_numpy(self.method_.decision_function(self.space_.transform(features)))
        names = self.names_
        return scores if names is None else names.combined(self.prior, features, scores)

    def predict_proba(self, X: Array) -> np.ndarray:
        """Probability of every label for every image, shape (n, D).

        Labels do not exclude each other: rows need not add up to 1. The images are taken as ones
        that nobody has labelled yet.
        """
        return self.probabilities(self.decision_function(X))

    def probabilities(self, scores: np.ndarray, said: np.ndarray | None = None) -> np.ndarray:
        """Probability (n, D) that labels with these scores (n×D) are right.

        `said` (n,) is true for images that somebody has labelled: none of them, unless it is
        given. It matters where a person has accepted and rejected labels that nobody had said.
        """
        P = to_numpy(self.calibrator_.predict_proba(scores))
        if self.unsaid_ is None:
            return P
        return self.unsaid_.predict_proba(P, np.zeros(len(P), dtype=bool) if said is None else said)

    def predict(self, X: Array, threshold: float | Array = 0.5) -> np.ndarray:
        """1 where a label's probability reaches the threshold, else 0; int array (n, D).

        The threshold is a probability, or one for each label (D,).
        """
        least = np.asarray(to_numpy(threshold), dtype=float)
        if least.ndim > 1 or not ((least >= 0) & (least <= 1)).all():
            raise InvalidInput(f"threshold is a probability, from 0 to 1; found {threshold!r}.")
        return (self.predict_proba(X) >= least).astype(np.int64)

    def score(self, X: Array, y: Any) -> float:
        """Mean average precision (MAP) of the scores for X (n×d), given the labels y.

        The mean is over the labels that some of these images carry.
        """
        scores = self.decision_function(X)
        Y = self._labels_of(y, len(scores))
        if not Y.nnz:
            learned = self.classes_.tolist()
            raise InvalidInput(
                f"None of the {len(scores)} images carries a label that was learned, so there is "
                f"nothing to score. Learned: {', '.join(map(str, learned[:5]))}"
                f"{', …' if len(learned) > 5 else ''}."
            )
        return mean_average_precision(Y, scores)

    def explain(self, X: Array, labels: Any, *, known: Array | None = None) -> list[list[Evidence]]:
        """Which images support each label, and how much of its score each one gives.

        Parameters
        ----------
        X : array of shape (n, d)
        labels : one list of labels for all images, or a list for each
            Names of `classes_`, columns of the label matrix, or what `suggest` returned.
        known : int array of shape (n,), optional
            As in `suggest`.

        Returns
        -------
        evidence : for each image, one `tagkin.transfer.Evidence` per label
        """
        embeddings = self._embedded(X)
        n, names = embeddings.shape[0], self.classes_.tolist()
        columns = label_lists(_columns_of(labels), n, names)
        found = without_itself(self.method_.kneighbors(embeddings), self._known(known, n))
        return [
            [replace(e, name=names[e.label]) for e in of_image]
            for of_image in self.method_.explain_neighbors(*found, columns, embeddings)
        ]

    def similar(
        self, X: Array, n: int = 10, *, known: Array | None = None
    ) -> list[list[SimilarImage]]:
        """The images learned from that are nearest to each image, itself left out."""
        check_integer("n", n, 1)
        embeddings = self._embedded(X)
        return similar_to(self.method_, embeddings, self._known(known, embeddings.shape[0]), n)

    # --- what is asked about ---------------------------------------------------------------

    def _embedded(self, X: Array) -> Array:
        features = self._checked(X)
        return self.space_.transform(features)

    def _checked(self, X: Array) -> Array:
        """New images' features as an array, as many to an image as were fitted."""
        self._check_fitted()
        features = check_features(X)
        check_same_features(self, X)
        return features

    def _known(self, known: Array | None, n: int) -> np.ndarray:
        if known is None:
            return np.full(n, -1)
        numbers, n_learned = np.asarray(to_numpy(known)), self.method_.labels_.shape[0]
        fine = numbers.shape == (n,) and numbers.dtype.kind in "iu"
        if not fine or (n and not -1 <= numbers.min() <= numbers.max() < n_learned):
            raise InvalidInput(
                f"known has the number of an image learned from, 0 to {n_learned - 1}, or -1 for "
                f"each of the {n} images; found {known!r}."
            )
        return numbers.astype(np.int64)

    def _unwanted(self, carried: Any, rejected: Any, known: np.ndarray) -> scipy.sparse.csr_array:
        """Labels (n×D) that are not suggested for images: what they carry, what was rejected."""
        n = len(known)
        if carried is None:
            own = rows_of(self.method_.labels_, known)
        else:
            own = indicator_of(carried, n, self._learned())
        refused = rows_of(self.rejected_, known)
        if rejected is not None:
            refused = refused + rejections(rejected, n, self._learned())
        return scipy.sparse.csr_array(own + refused)

    def _labelled(self, carried: Any, known: np.ndarray) -> np.ndarray:
        """Which images (n,) somebody has labelled: those learned from, and those that carry any."""
        if carried is None:
            return known >= 0
        own = indicator_of(carried, len(known), self._learned())
        return (known >= 0) | (np.diff(own.indptr) > 0)

    def _labels_of(self, y: Any, n: int) -> scipy.sparse.csr_array:
        """Labels (n×D) of further images, by the names that were learned."""
        return indicator_of(y, n, self._learned())

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("This FeatureAnnotator is not fitted yet. Call fit(X, y) first.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "method_")


def _columns_of(labels: Any) -> Any:
    """The columns of suggestions; other labels as they are."""
    if isinstance(labels, (list, tuple)) and not isinstance(labels, LabelSuggestion):
        return [_columns_of(one) for one in labels]
    return labels.label if isinstance(labels, LabelSuggestion) else labels
