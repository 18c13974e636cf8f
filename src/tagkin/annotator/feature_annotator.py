"""The annotator for features: it learns from labelled images and suggests labels for others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from tagkin import storage
from tagkin.annotator.audit import find_errors
from tagkin.annotator.fit_input import Given, read_problem
from tagkin.annotator.label_input import (
    InputLabels,
    KnownLabels,
    check_tag_lists,
    holds_tags,
    label_matrix,
)
from tagkin.annotator.model import Model, describe_model
from tagkin.annotator.naming import check_prior
from tagkin.annotator.suggesting import (
    check_known,
    find_similar,
    make_images,
    make_rule,
    suggest_labels,
)
from tagkin.annotator.suggestions import LabelFinding, LabelSuggestion, SimilarImage
from tagkin.arrays import Array, check_finite_features, check_integer, check_same_features
from tagkin.arrays.checks import not_fitted
from tagkin.arrays.labels import TakesLabelMatrix
from tagkin.errors import InvalidInput
from tagkin.evaluation import mean_average_precision
from tagkin.labels import Vocabulary
from tagkin.progress import Progress, silent
from tagkin.records.forms import storable
from tagkin.records.rules import Size, Texts
from tagkin.space import SemanticSpace
from tagkin.tag_meanings import NamePrior
from tagkin.transfer import NeighborTransfer
from tagkin.transfer.occasions import Asked, Occasions

if TYPE_CHECKING:  # imported when needed, because suggesting uses none of them
    from tagkin.annotator.quality import Quality

__all__ = ["FeatureAnnotator"]


@storable
class FeatureAnnotator(TakesLabelMatrix, BaseEstimator):
    """Learns from features of labelled images and suggests labels for others, with confidences.

    Labels make a semantic space. Neighbours there pass on their labels. Confidences are learned on
    held-out images. `Annotator` has the same methods for photographs.

    Parameters
    ----------
    space : SemanticSpace, optional
        Default: ``SemanticSpace(2.0)``. A space of your own has κ = 0.5 unless you pass another.
    method : method by neighbours, optional
        Method of `tagkin.transfer` with evidence. Default: `KinReadout`, whose weights are learned
        on held-out images.
    vocabulary : Vocabulary, optional
        Turns lists of tags into labels. Default: ``Vocabulary()``.
    random_state : int or None, default 0
        Random seed.
    prior : NamePrior, optional
        Scores images by the names of labels; see `tagkin.tag_meanings.NamePrior`. Its weight is
        learned on held-out images. A model is saved without it: set it again after loading.

    Attributes
    ----------
    model_ : Model
        The record of everything learned. The attributes below are fields of it.
    classes_ : array of shape (D,)
        The labels: tags, the columns of a DataFrame, or the columns' numbers.
    vocabulary_, tags_
        The fitted vocabulary and the N lists of tags; both None after a fit of a matrix.
    space_, method_, calibration_
        `method_.labels` (N×D) are the labels of the images learned from.
    belonging_ : CSR array of shape (N, D)
        Probabilities that labels belong, by models that had not seen the image.
    errors_ : LabelErrors
        How often labels are wrong and missing, for `audit`.
    names_ : NameTable, or None without a prior
        Meanings of the label names. `classes_` has the names themselves.

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
    >>> [s.name for s in annotator.suggest(X[100:101], threshold=0.5)[0]], tags[100]
    (['snow'], ['snow'])
    """

    model_: Model
    n_features_in_: Annotated[int, Size("d").or_absent()]
    feature_names_in_: Annotated[np.ndarray, Texts("d").or_absent()]

    vocabulary_ = property(attrgetter("model_.vocabulary"))
    tags_ = property(attrgetter("model_.tags"))
    space_ = property(attrgetter("model_.space"))
    method_ = property(attrgetter("model_.method"))
    calibration_ = property(attrgetter("model_.calibration"))
    belonging_ = property(attrgetter("model_.belonging"))
    errors_ = property(attrgetter("model_.errors"))
    names_ = property(attrgetter("model_.names"))

    @property
    def classes_(self) -> np.ndarray:
        """The labels, shape (D,): tags, columns of the DataFrame, or the columns' numbers."""
        return self.model_.labels.classes()

    def __init__(
        self,
        space: SemanticSpace | None = None,
        method: NeighborTransfer | None = None,
        *,
        vocabulary: Vocabulary | None = None,
        random_state: int | None = 0,
        prior: NamePrior | None = None,
    ):
        self.space = space
        self.method = method
        self.vocabulary = vocabulary
        self.random_state = random_state
        self.prior = prior

    def fit(
        self,
        X: Array,
        y: InputLabels | None,
        *,
        groups: Array | None = None,
        rejected: InputLabels | None = None,
        accepted: InputLabels | None = None,
        complete: Array | None = None,
        times: Array | None = None,
        places: Array | None = None,
        folders: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from images and their labels. If it fails, the old model stays.

        If memory does not hold the held-out scores of all images and labels, some are left out;
        see `tagkin.annotator.part.Part`.

        Parameters
        ----------
        X : array of shape (N, d)
            Features of the images.
        y : labels of shape (N, D), or list of N lists of tags
            1 if an image has a label, else 0.
        groups : array of shape (N,), optional
            Images of one group (a burst, an event) are held out together, and are not neighbours
            of each other while weights are learned. Default: near-duplicates among the features.
            ``np.arange(N)`` puts every image into a separate group.
        rejected : labels of shape (N, D), or list of N lists of tags, optional
            Labels that a person rejected for an image. They are never suggested for it again, and
            are stronger evidence than absent labels. A rejection of a present label is ignored.
        accepted : labels of shape (N, D), or list of N lists of tags, optional
            The labels that a person accepted as suggestions. With the rejected labels they tell how
            often an unannotated label is right.
        complete : bool array of shape (N,), optional
            Which images have all of their labels. On other images, labels that are neither present
            nor rejected are unknown. Confidences are learned from the complete images. With fewer
            than 50 of them, all images with labels count as complete. If only examples of labels
            are known, images without labels are what they differ from. Default: all images.
        times : array of shape (N,), optional
            When the images were taken: seconds from any origin, or datetime64; NaN or NaT if
            unknown. Images that were taken together share labels that no picture shows; see
            `tagkin.transfer.occasions.score_occasions`.
        places : array of shape (N, 2), optional
            Latitude and longitude in degrees; NaN if unknown.
        folders : sequence of N str, optional
            Folders of the images, as paths with slashes; empty if unknown.
        progress : function of (what, done, all), optional
        """
        from tagkin.annotator.learning import learn
        from tagkin.annotator.recipe import usual_recipe

        recipe = usual_recipe(self.space, self.method, self.random_state)
        given = Given(groups, rejected, accepted, complete, times, places, folders)
        problem = read_problem(self, X, y, given)
        problem = replace(problem, takes_incomplete=recipe.method.takes_incomplete)
        model = learn(problem, recipe, progress=progress or silent)
        validate_data(self, X, skip_check_array=True, reset=True)
        self.model_ = model
        return self

    def partial_fit(
        self,
        X: Array,
        y: InputLabels | None = None,
        *,
        known: Array | None = None,
        rejected: InputLabels | None = None,
        complete: Array | None = None,
        times: Array | None = None,
        places: Array | None = None,
        folders: Sequence[str] | None = None,
    ) -> Self:
        """Add images, and change the labels of known ones, without a new fit.

        `audit` does not report on new images until the next `fit`, which also learns new labels. If
        nothing was fitted before, this is `fit`.

        Parameters
        ----------
        X : array of shape (n, d)
        y : labels of shape (n, D), or n lists of tags
            As in `fit`, with the labels that were learned.
        known : int array of shape (n,), optional
            Number of the image among those learned from, or −1 for a new image. The labels of
            known images are replaced. Default: all are new.
        rejected : labels of shape (n, D), or n lists of tags, optional
            As in `fit`. By default, known images keep their rejected labels.
        complete : bool array of shape (n,), optional
            As in `fit`. Default: new images are complete, and nothing changes for known images.
        times, places, folders : optional
            As in `fit`; those of known images stay.
        """
        if not self.__sklearn_is_fitted__():
            fit = partial(self.fit, X, y, rejected=rejected, complete=complete)
            return fit(times=times, places=places, folders=folders)
        from tagkin.annotator.extending import AddedImages, extend

        features = self._check_features(X)
        numbers = check_known(known, features.shape[0], self.model_)
        vocabulary = self.vocabulary_
        if vocabulary is not None:
            if not holds_tags(y):
                raise InvalidInput("Tags were fitted. Pass one list of tags per image.")
            vocabulary.transform(check_tag_lists(y, features.shape[0]))
            if new := ", ".join(map(repr, vocabulary.unknown_)):
                raise InvalidInput(f"New tags wait for the next fit: {new:.200}. Leave them out.")
        occasions = Occasions.read(times, places, folders, features.shape[0])
        images = AddedImages(features, y, numbers, rejected, complete, occasions)
        self.model_ = extend(self.model_, images)
        return self

    def check_parameters(self) -> None:
        """Reject parameters that no fit can use."""
        from tagkin.annotator.recipe import check_settings

        check_settings(self.space, self.method)
        check_prior(self.prior)
        if not isinstance(self.vocabulary, Vocabulary | None):
            raise InvalidInput(
                f"vocabulary must be a Vocabulary; found {self.vocabulary!r}. To name the columns "
                "of a label matrix, pass it as a DataFrame."
            )

    def decision_function(
        self,
        X: Array,
        *,
        times: Array | None = None,
        places: Array | None = None,
        folders: Sequence[str] | None = None,
    ) -> np.ndarray:
        """Return the score of every label for every image, shape (n, D).

        Parameters
        ----------
        X : array of shape (n, d)
        times, places, folders : optional
            As in `fit`, for these images.
        """
        features = self._check_features(X)
        asked = Asked.read(times, places, folders, features.shape[0])
        return self.model_.score(features, self.prior, asked)

    def predict_proba(
        self,
        X: Array,
        *,
        times: Array | None = None,
        places: Array | None = None,
        folders: Sequence[str] | None = None,
    ) -> np.ndarray:
        """Return the probability of every label for every image, shape (n, D).

        Rows need not add up to 1. The images count as unlabelled.

        Parameters
        ----------
        X : array of shape (n, d)
        times, places, folders : optional
            As in `fit`, for these images.
        """
        features = self._check_features(X)
        asked = Asked.read(times, places, folders, features.shape[0])
        scores = self.model_.score(features, self.prior, asked)
        return self.model_.probabilities(scores, kinds=self.model_.kinds(asked, len(scores)))

    def predict(self, X: Array, threshold: float = 0.5) -> np.ndarray:
        """Return 1 if a label's probability reaches the threshold, else 0; int array (n, D).

        Parameters
        ----------
        X : array of shape (n, d)
        threshold : float, default 0.5
        """
        least = make_rule(None, None, threshold, None).threshold
        return (self.predict_proba(X) >= least).astype(np.int64)

    def score(self, X: Array, y: InputLabels) -> float:
        """Return the mean average precision (MAP) of the scores, over the labels of these images.

        Parameters
        ----------
        X : array of shape (n, d)
        y : labels of shape (n, D), or n lists of tags
        """
        scores = self.decision_function(X)
        Y = label_matrix(y, len(scores), self.model_.labels)
        if not Y.nnz:
            raise InvalidInput("None of the images has a label that was learned.")
        return mean_average_precision(Y, scores)

    def suggest(
        self,
        X: Array,
        *,
        n: int | None = None,
        threshold: float | None = None,
        precision: float | None = None,
        n_kin: int = 5,
        rejected: InputLabels | None = None,
        known: Array | None = None,
        present: InputLabels | None = None,
        complete: Array | None = None,
        offered: InputLabels | None = None,
        times: Array | None = None,
        places: Array | None = None,
        folders: Sequence[str] | None = None,
    ) -> list[list[LabelSuggestion]]:
        """Suggest labels for images, with confidences and the images that support them.

        Parameters
        ----------
        X : array of shape (n_images, d)
        n : int, optional
            Most labels per image.
        threshold : float, optional
            Least confidence. Default: .5, unless `n` or `precision` is passed.
        precision : float, optional
            Suggest as many labels as possible with this share of all suggestions correct. Labels
            that the images have already do not count.
        n_kin : int, default 5
            Most supporting images to return for each suggestion.
        rejected : labels of shape (n_images, D), or lists of tags, optional
            Labels not to suggest, because a person rejected them, besides those passed to `fit`.
        known : int array of shape (n_images,), optional
            Number of the image among those learned from, or −1 for a new image. An image does not
            support its own labels. Default: all are new.
        present : labels of shape (n_images, D), or lists of tags, optional
            Labels not to suggest, because the images have them. Default: those of known images.
        complete : bool array of shape (n_images,), optional
            Which images a person has labelled completely: there, an absent label is less likely.
            Default: known images as they were fitted, and new images with labels.
        offered : labels of shape (n_images, D), or lists of tags, optional
            Labels that an earlier model suggested and nobody has answered. They are suggested down
            to a confidence of .003.
        times, places, folders : optional
            As in `fit`, for these images.

        Returns
        -------
        suggestions : list of n_images lists of LabelSuggestion, most confident first
        """
        self._check_fitted()
        check_integer("n_kin", n_kin, 0)
        model = self.model_
        rule = make_rule(model, n, threshold, precision)
        features = self._check_features(X)
        numbers = check_known(known, features.shape[0], model)
        labels = KnownLabels(present, rejected, complete, offered)
        asked = Asked.read(times, places, folders, len(numbers))._replace(known=numbers)
        images = make_images(model, features, asked, labels)
        return suggest_labels(model, images, rule, n_kin, self.prior)

    def similar(
        self, X: Array, n: int = 10, *, known: Array | None = None
    ) -> list[list[SimilarImage]]:
        """Return the n training images nearest to each image, without the image itself.

        Parameters
        ----------
        X : array of shape (n_images, d)
        n : int, default 10
        known : int array of shape (n_images,), optional
            Numbers among the images learned from, −1 for new images. Default: all are new.
        """
        check_integer("n", n, 1)
        features = self._check_features(X)
        numbers = check_known(known, features.shape[0], self.model_)
        return find_similar(self.model_, features, numbers, n)

    def audit(
        self, n: int | None = None, *, kind: str | None = None, n_kin: int = 5
    ) -> list[LabelFinding]:
        """Find labels that seem wrong or missing on the images learned from.

        Models that had not seen the image judge its labels. The confidence is the probability that
        a person who looks agrees; `errors_` estimates how many labels are wrong and missing.

        Parameters
        ----------
        n : int, optional
            Most findings, most confident first. Default: all with a confidence of .5 and more.
        kind : "wrong" or "missing", default both
        n_kin : int, default 5
            Most supporting images of a finding.
        """
        self._check_fitted()
        return find_errors(self.model_, n, kind, n_kin)

    def cross_validate(
        self,
        X: Array,
        y: InputLabels,
        *,
        groups: Array | None = None,
        rejected: InputLabels | None = None,
        times: Array | None = None,
        places: Array | None = None,
        folders: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> Quality:
        """Measure how good suggestions are on these images, by holding out each fold in turn.

        This estimator does not change.

        Parameters
        ----------
        X : array of shape (n, d)
        y : labels of shape (n, D), or n lists of tags
        groups : array of shape (n,), optional
            Images of one group are held out together. Default: near-duplicates.
        rejected : labels of shape (n, D), or n lists of tags, optional
            Labels that a person rejected for the images.
        times, places, folders : optional
            As in `fit`. Then the images of an event are held out together.
        progress : function of (what, done, all), optional
        """
        from tagkin.annotator.quality import cross_validate
        from tagkin.annotator.recipe import usual_recipe

        given = Given(groups, rejected, times=times, places=places, folders=folders)
        problem = read_problem(self, X, y, given)
        recipe = usual_recipe(self.space, self.method, self.random_state)
        return cross_validate(problem, recipe, progress or silent)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the estimator to a folder, completely or not at all; `tagkin.load` reads it.

        Parameters
        ----------
        folder : path
        overwrite : bool, default False
        """
        self._check_fitted()
        return storage.save(self, folder, overwrite=overwrite)

    def describe(self) -> list[str]:
        """Return a few sentences that describe this estimator."""
        self._check_fitted()
        return describe_model(self.model_)

    def _check_features(self, X: Array) -> Array:
        """Return features of new images as an array; reject features unlike the fitted ones."""
        self._check_fitted()
        check_prior(self.prior)
        features = check_finite_features(X)
        check_same_features(self, X)
        return features

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise not_fitted("This FeatureAnnotator is not fitted yet. Call fit(X, y) first.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")
