"""The annotator for features: it learns from labelled images, and suggests labels for others."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from tagkin import storage
from tagkin.annotator import quality
from tagkin.annotator.audit import findings
from tagkin.annotator.extending import extended
from tagkin.annotator.label_input import Labels, indicator_of, read_labels
from tagkin.annotator.learning import Recipe, check_enough, learn, tuned, usual_recipe
from tagkin.annotator.progress import Progress, silent
from tagkin.annotator.suggesting import rule_for, similar_to, suggestions_of, without_itself
from tagkin.annotator.suggestions import LabelFinding, LabelSuggestion, SimilarImage
from tagkin.arrays import Array, check_features, check_integer, row_blocks, to_numpy
from tagkin.arrays.labels import checked_names
from tagkin.calibration import LabelCalibrator
from tagkin.errors import InvalidInput
from tagkin.evaluation import mean_average_precision
from tagkin.labels import Vocabulary
from tagkin.space import SemanticSpace
from tagkin.transfer import Evidence, NeighborTransfer
from tagkin.transfer.evidence import label_lists
from tagkin.wording import count, denoising_text

__all__ = ["FeatureAnnotator"]

_SUPPORT = 5


class FeatureAnnotator(BaseEstimator):
    """Learns from features of labelled images and suggests labels for others, with confidences.

    `Annotator` is this estimator with a backbone in front. Labels, denoised as far as held-out
    labels say that it helps, make a semantic space; neighbours there pass on the labels that they
    carry. Confidences are learned on images that were held out.

    Parameters
    ----------
    space : SemanticSpace, optional
        Another space than the usual one.
    method : method by neighbours, optional
        One of `tagkin.transfer` with evidence. Usually TagProp with weights by distance.
    denoise : bool, default True
        Whether labels may be smoothed over images that look alike, where that helps.
    tune : bool, default False
        Choose κ and the number of neighbours by cross-validation, which takes some minutes.
    vocabulary : Vocabulary, optional
        How lists of tags become labels; ``Vocabulary(min_count=2)`` unless another is given. A
        label matrix needs none.
    random_state : int or None, default 0
        Seed of everything that is drawn.

    Attributes
    ----------
    classes_ : array of shape (D,)
        The labels: tags, the columns of a DataFrame, or the columns' numbers.
    vocabulary_ : Vocabulary or None
        Fitted on lists of tags; None where a label matrix was given.
    tags_ : list of N lists of str, or None
        These lists.
    column_names_ : array of shape (D,) or None
        The columns of the DataFrame that was given.
    space_ : SemanticSpace
    method_ : method by neighbours
        Its ``labels_`` (N×D) are those of the images learned from.
    calibrator_ : LabelCalibrator
    held_out_ : CSR array of shape (N, D)
        Probabilities of labels by models that had not seen the image.
    blend_ : float
        How much the labels were denoised for the space.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin import FeatureAnnotator
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.random((120, 3)) < 0.4
    >>> X = Y @ rng.random((3, 8)) + 0.1 * rng.random((120, 8))
    >>> tags = [[name for name, there in zip(["sea", "sky", "snow"], row) if there] for row in Y]
    >>> annotator = FeatureAnnotator().fit(X[:100], tags[:100])
    >>> annotator.predict_proba(X[100:]).shape
    (20, 3)
    >>> [s.name for s in annotator.suggest(X[100:101], precision=0.9)[0]] == tags[100]
    True
    """

    method_: Any
    space_: Any
    calibrator_: LabelCalibrator
    held_out_: scipy.sparse.csr_array
    vocabulary_: Any
    tags_: list[list[str]] | None
    column_names_: np.ndarray | None
    blend_: float

    def __init__(
        self,
        space: SemanticSpace | None = None,
        method: NeighborTransfer | None = None,
        denoise: bool = True,
        tune: bool = False,
        vocabulary: Vocabulary | None = None,
        random_state: int | None = 0,
    ):
        self.space = space
        self.method = method
        self.denoise = denoise
        self.tune = tune
        self.vocabulary = vocabulary
        self.random_state = random_state

    # --- learning ------------------------------------------------------------------------

    def fit(
        self,
        X: Array,
        y: Any = None,
        *,
        groups: Array | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from features X and labels y of N images.

        Parameters
        ----------
        X : array of shape (N, d)
        y : array, sparse matrix or DataFrame of shape (N, D), or list of N lists of tags
            Above 0 where an image carries a label. An image without any label counts as one that
            carries none: leave out those that nobody has labelled.
        groups : array of shape (N,), optional
            Images of one group (a burst, an event) are held out together.
        progress : function of (what, done, all), optional

        Notes
        -----
        If it fails, what was learned before stays.
        """
        step, recipe = progress or silent, self._recipe()
        features, labels = self._read(X, y)
        check_enough(labels.Y)
        if self.tune:
            recipe = tuned(features, labels.Y, recipe, self.random_state, step, groups)
        learned = learn(features, labels.Y, recipe, self.random_state, step, groups)
        validate_data(self, X, skip_check_array=True, reset=True)
        self.space_, self.blend_ = learned.space, learned.blend
        return self._keep(labels, learned.method, learned.calibrator, learned.held_out)

    def partial_fit(self, X: Array, y: Any = None, *, known: Array | None = None) -> Self:
        """Add images, perhaps with new labels, and learn nothing anew.

        They are neighbours from now on, and new labels can be suggested at once. Confidences of
        new labels are those that hold for the others, and `audit` says nothing of new images,
        until the next `fit`. Without a fit before, this is one.

        Parameters
        ----------
        X : array of shape (n, d)
        y : labels of shape (n, D), or n lists of tags
            As they were fitted. A matrix has all columns known so far, and those of new labels
            after them.
        known : int array of shape (n,), optional
            Which image learned from each is, −1 where it is new. Those that are known get these
            labels instead of those that they had.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        features = self._checked(X)
        numbers = self._known(known, features.shape[0])
        return self._keep(*extended(self, features, y, numbers))

    def _keep(
        self,
        labels: Labels,
        method: Any,
        calibrator: LabelCalibrator,
        held_out: scipy.sparse.csr_array,
    ) -> Self:
        """Replace what was learned, when all of it has succeeded."""
        self.vocabulary_, self.tags_ = labels.vocabulary, labels.tags
        self.column_names_ = labels.names
        self.method_, self.calibrator_, self.held_out_ = method, calibrator, held_out
        return self

    def _read(self, X: Array, y: Any) -> tuple[Array, Labels]:
        features = check_features(X, min_rows=2)
        vocabulary = Vocabulary(2) if self.vocabulary is None else clone(self.vocabulary)
        return features, read_labels(y, features.shape[0], vocabulary)

    def check_parameters(self) -> None:
        """Refuse parameters that no fit could use."""
        self._recipe()

    def _recipe(self) -> Recipe:
        return usual_recipe(self.space, self.method, self.denoise, self.random_state)

    # --- using ---------------------------------------------------------------------------

    @property
    def classes_(self) -> np.ndarray:
        """The labels, shape (D,): tags, columns of the DataFrame, or the columns' numbers."""
        self._check_fitted()
        names = getattr(self, "column_names_", None)  # not in models that had no such estimator
        return Labels(self.method_.labels_, names, self.vocabulary_).classes()

    def decision_function(self, X: Array) -> np.ndarray:
        """Score of every label for every image, shape (n, D); `predict_proba` is calibrated."""
        embeddings = self._embedded(X)
        return to_numpy(self.method_.decision_function(embeddings))

    def predict_proba(self, X: Array) -> np.ndarray:
        """Probability of every label for every image, shape (n, D).

        Labels do not exclude each other: rows need not add up to 1.
        """
        scores = self.decision_function(X)
        return to_numpy(self.calibrator_.predict_proba(scores))

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
        return mean_average_precision(self._labels_of(y, len(scores)), scores)

    def suggest(
        self,
        X: Array,
        n: int | None = None,
        threshold: float | None = None,
        precision: float | None = None,
        *,
        known: Array | None = None,
        carried: Any = None,
        n_support: int = _SUPPORT,
    ) -> list[list[LabelSuggestion]]:
        """Labels for images, with confidences and the images that support them.

        Parameters
        ----------
        X : array of shape (n, d)
        n : int, optional
            At most so many labels per image; alone, so many whatever their confidence.
        threshold : float, optional
            The confidence that a label must reach; .5 unless something else is asked for.
        precision : float, optional
            The share of suggestions that are to be right, label by label and all of a label
            together: single ones may be less sure. A label that cannot reach it is not suggested.
        known : int array of shape (n,), optional
            Which image learned from each is, −1 where it is new. It does not support its own
            labels.
        carried : labels of shape (n, D), or n lists of tags, optional
            What the images carry already: it is not suggested again. Of images that are known it
            is what was learned, unless it is given.
        n_support : int, default 5
            Images to name for each suggestion, at most.

        Returns
        -------
        suggestions : list of n lists of LabelSuggestion, the surest first
            A label that none of the neighbours carries is not suggested.
        """
        self._check_fitted()
        check_integer("n_support", n_support, 0)
        rule = rule_for(self.calibrator_, n, threshold, precision)
        features = self._checked(X)
        numbers = self._known(known, features.shape[0])
        unwanted = self._carried(carried, numbers)
        result: list[list[LabelSuggestion]] = []
        per_image = 64 * (self.method_.n_labels_ + 256)
        for rows in row_blocks(features.shape[0], per_image, features):
            embeddings = self.space_.transform(features[rows])
            result += suggestions_of(
                self, embeddings, numbers[rows], unwanted[rows], rule, n_support
            )
        return result

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
            for of_image in self.method_.explain_neighbors(*found, columns)
        ]

    def similar(
        self, X: Array, n: int = 10, *, known: Array | None = None
    ) -> list[list[SimilarImage]]:
        """The images learned from that are nearest to each image, itself left out."""
        check_integer("n", n, 1)
        embeddings = self._embedded(X)
        return similar_to(self.method_, embeddings, self._known(known, embeddings.shape[0]), n)

    # --- judging -------------------------------------------------------------------------

    def audit(
        self, n: int | None = None, kind: str | None = None, *, n_support: int = _SUPPORT
    ) -> list[LabelFinding]:
        """Labels that seem wrong or missing on the images learned from, the surest first.

        They are judged by models that had not seen the image; see `tagkin.annotator.audit` for
        what the confidence means.

        Parameters
        ----------
        n : int, optional
            So many findings at most; without it, all with a confidence of .5 and more.
        kind : "wrong" or "missing", optional
        """
        self._check_fitted()
        names = self.classes_.tolist()
        return findings(self.held_out_, self.method_, names, n, kind, n_support)

    def cross_validate(
        self,
        X: Array,
        y: Any,
        *,
        groups: Array | None = None,
        progress: Progress | None = None,
    ) -> quality.Quality:
        """How good the suggestions of an estimator like this one are, on these images.

        Each fold is held out in turn; nothing of this estimator changes. Nothing is tuned, either.
        """
        features, labels = self._read(X, y)
        names, step = list(labels.classes()), progress or silent
        return quality.cross_validated(
            features, labels.Y, names, self._recipe(), self.random_state, step, groups
        )

    def evaluate(self, X: Array, y: Any, *, visual_scores: Array | None = None) -> quality.Quality:
        """How good this estimator's suggestions are for labelled images that it has not seen.

        Parameters
        ----------
        X : array of shape (n, d)
        y : labels of shape (n, D), or n lists of tags
        visual_scores : array of shape (n, D), optional
            Scores of a baseline to be measured beside it: neighbours in visual feature space.
        """
        scores = self.decision_function(X)
        Y = self._labels_of(y, len(scores))
        return quality.held_out(Y, scores, visual_scores, self.calibrator_, list(self.classes_))

    # --- keeping -------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write it to a folder, all of it or nothing; `tagkin.load` reads it again."""
        self._check_fitted()
        return storage.save(self, folder, overwrite=overwrite)

    def describe(self) -> list[str]:
        """What this estimator is, in a few sentences."""
        self._check_fitted()
        n, n_labels = self.method_.labels_.shape
        learned = f"{count(n, 'labelled image')} and {count(n_labels, 'label')}"
        return [
            f"Learned from {learned}. Denoised: {denoising_text(self.blend_)}.",
            *(() if self.vocabulary_ is None else self.vocabulary_.describe()[1:]),
            *self.space_.describe(),
            *self.method_.describe(),
            *self.calibrator_.describe(),
        ]

    # --- small things --------------------------------------------------------------------

    def _embedded(self, X: Array) -> Array:
        features = self._checked(X)
        return self.space_.transform(features)

    def _checked(self, X: Array) -> Array:
        """New images' features as an array, as many to an image as were fitted."""
        self._check_fitted()
        features = check_features(X)
        validate_data(self, X, skip_check_array=True, reset=False)
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

    def _carried(self, carried: Any, known: np.ndarray) -> scipy.sparse.csr_array:
        """Labels (n×D) that images carry: those given, or those that were learned."""
        n, labels = len(known), self.method_.labels_
        if carried is not None:
            return indicator_of(carried, n, labels.shape[1], self.vocabulary_)
        seen = scipy.sparse.csr_array(
            ((known >= 0).astype(np.float32), (np.arange(n), np.maximum(known, 0))),
            shape=(n, labels.shape[0]),
        )
        return (seen @ labels).tocsr()

    def _labels_of(self, y: Any, n: int) -> scipy.sparse.csr_array:
        """Labels (n×D) of further images, by the names that were learned."""
        if self.vocabulary_ is None:
            checked_names(self.column_names_, y, self.method_.n_labels_)
        return indicator_of(y, n, self.method_.n_labels_, self.vocabulary_)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("This FeatureAnnotator is not fitted yet. Call fit(X, y) first.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "method_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def _columns_of(labels: Any) -> Any:
    """The columns of suggestions; other labels as they are."""
    if isinstance(labels, (list, tuple)) and not isinstance(labels, LabelSuggestion):
        return [_columns_of(one) for one in labels]
    return labels.label if isinstance(labels, LabelSuggestion) else labels
