"""The annotator for features: it learns from labelled images, and suggests labels for others."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from tagkin import storage
from tagkin.annotator.audit import findings
from tagkin.annotator.deciding import Decisions
from tagkin.annotator.feature_scores import FeatureScores
from tagkin.annotator.grouping import groups_of, holdable, series_text
from tagkin.annotator.label_input import (
    Labels,
    read_labels,
    rejections,
    without,
)
from tagkin.annotator.naming import LearnedNames, Naming
from tagkin.annotator.suggesting import rule_for, suggestions_of
from tagkin.annotator.suggestions import LabelFinding, LabelSuggestion
from tagkin.arrays import Array, check_features, check_integer, row_blocks, to_numpy
from tagkin.arrays.records import Later, storable
from tagkin.calibration import LabelCalibrator
from tagkin.errors import InvalidInput
from tagkin.labels import Vocabulary
from tagkin.progress import Progress, silent
from tagkin.space import SemanticSpace
from tagkin.tag_meanings import NamePrior
from tagkin.transfer import NeighborTransfer
from tagkin.wording import count, denoising_text

if TYPE_CHECKING:  # what learns and measures is imported where that is done
    from tagkin.annotator import quality
    from tagkin.annotator.problem import Problem
    from tagkin.annotator.recipe import Recipe

__all__ = ["FeatureAnnotator"]

_SUPPORT = 5


@storable
class FeatureAnnotator(FeatureScores):
    """Learns from features of labelled images and suggests labels for others, with confidences.

    `Annotator` is this estimator with a backbone in front. Labels, denoised as far as held-out
    labels say that it helps, make a semantic space; neighbours there pass on the labels that they
    carry. Confidences are learned on images that were held out.

    Parameters
    ----------
    space : SemanticSpace, optional
        Another space than the usual one.
    method : method by neighbours, optional
        One of `tagkin.transfer` with evidence. Usually `KinReadout`, whose number of neighbours (at
        most `n_neighbors`), temperature and weights are learned on held-out images, and with it κ
        of the usual space. Given a space and a method, both are taken as they are but for weights.
    denoise : bool, default True
        Whether labels may be smoothed over images that look alike, where that helps.
    tune : bool, default False
        Choose κ and the settings of the method by cross-validation, which takes some minutes.
    vocabulary : Vocabulary, optional
        How lists of tags become labels; ``Vocabulary(min_count=2)`` unless another is given. A
        label matrix needs none.
    random_state : int or None, default 0
        Seed of everything that is drawn.
    prior : NamePrior, optional
        Scores images by the names of labels; see `tagkin.tag_meanings.ClassPrior`. It counts as
        much as held-out images confirm it. A model is saved without it: set it again after
        loading.

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
        Probabilities that labels belong, by models that had not seen the image.
    errors_ : LabelErrors
        How often labels are wrong and missing, for `audit`.
    blend_ : float
        How much the labels were denoised for the space.
    rejected_ : CSR array of shape (N, D)
        Labels that were rejected for the images learned from.
    unsaid_ : UnannotatedLabels or None
        How often labels that nobody said are right, where a person accepted and rejected some.
    groups_ : int array of shape (N,)
        The group that each image was held out with, by number.
    names_ : LearnedNames or None
        What the names of the labels mean, and how much that counts.

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

    def __init__(
        self,
        space: SemanticSpace | None = None,
        method: NeighborTransfer | None = None,
        denoise: bool = True,
        tune: bool = False,
        vocabulary: Vocabulary | None = None,
        random_state: int | None = 0,
        prior: NamePrior | None = None,
    ):
        self.space = space
        self.method = method
        self.denoise = denoise
        self.tune = tune
        self.vocabulary = vocabulary
        self.random_state = random_state
        self.prior = prior

    # --- learning ------------------------------------------------------------------------

    def fit(
        self,
        X: Array,
        y: Any = None,
        *,
        groups: Array | None = None,
        rejected: Any = None,
        accepted: Any = None,
        rejected_alone: tuple[Array, Any] | None = None,
        said: Array | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from features X and labels y of N images.

        Parameters
        ----------
        X : array of shape (N, d)
        y : array, sparse matrix or DataFrame of shape (N, D), or list of N lists of tags
            1 where an image carries a label, else 0. An image without any label counts as one that
            carries none: leave out those that nobody has labelled.
        groups : array of shape (N,), optional
            Images of one group (a burst, an event) are held out together, and do not count as
            each other's neighbours where weights are learned. Without it, near-duplicates among
            the features are groups; ``np.arange(N)`` makes every image one of its own.
        rejected : labels of shape (N, D), or list of N lists of tags, optional
            What a person said that an image does not show. It is never suggested for the image
            again, and is a surer no than a label that nobody mentioned: people forget labels. Of
            a label that the image carries all the same it counts for nothing.
        accepted : labels of shape (N, D), or list of N lists of tags, optional
            Which of the labels a person accepted that nobody had said before. Together with what
            was rejected they tell how often an unsaid label is right after all, label by label;
            confidences count it. Without it unsaid labels count as often right as said ones.
        rejected_alone : (features of shape (M, d), labels or lists of tags), optional
            Further images, which nobody has labelled, and what a person said that they do not
            show. That counts in the same way; nothing else is learned from them.
        said : bool array of shape (N,), optional
            Which images carried labels before any was accepted; all, unless it is given.
        progress : function of (what, done, all), optional

        Notes
        -----
        If it fails, what was learned before stays.

        Weights and confidences are learned from scores of held-out images, one for every image and
        every label. Where memory does not hold so many, a part of the images is held out, with
        scores for the labels on most images. Rarer labels then have what is usual among those,
        nothing is denoised, and `audit` is about that part.
        """
        from tagkin.annotator.learning import learn
        from tagkin.annotator.problem import check_enough
        from tagkin.annotator.tuning import tune

        step, recipe = progress or silent, self._recipe()
        features, labels = self._read(X, y)
        check_enough(labels.Y)
        problem, found = self._problem(features, labels, groups, rejected)
        refused = problem.rejected
        if self.tune:
            recipe = tune(problem, recipe, step)
        decided = accepted, refused, rejected_alone, said
        decisions = self._decisions(*decided, labels, features.shape[1])
        learned = learn(replace(problem, decisions=decisions), recipe, progress=step)
        validate_data(self, X, skip_check_array=True, reset=True)
        self.space_, self.blend_, self.errors_ = learned.space, learned.blend, learned.errors
        self.groups_, self.unsaid_ = found, learned.unsaid
        if refused is None:
            refused = scipy.sparse.csr_array(labels.Y.shape, dtype=np.float32)
        kept = learned.method, learned.calibrator, learned.held_out, refused, learned.names
        return self._keep(labels, *kept)

    def partial_fit(
        self, X: Array, y: Any = None, *, known: Array | None = None, rejected: Any = None
    ) -> Self:
        """Add images, perhaps with new labels, and learn nothing anew.

        They are neighbours from now on, and new labels can be suggested at once. Confidences of
        new labels are learned from the images that bring them, and `audit` says nothing of new
        images until the next `fit`. Without a fit before, this is one.

        Parameters
        ----------
        X : array of shape (n, d)
        y : labels of shape (n, D), or n lists of tags
            As they were fitted. A matrix has all columns known so far, and those of new labels
            after them.
        known : int array of shape (n,), optional
            Which image learned from each is, −1 where it is new. Those that are known get these
            labels instead of those that they had.
        rejected : labels of shape (n, D), or n lists of tags, optional
            As in `fit`. Without it, images that are known keep what was rejected for them.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, rejected=rejected)
        from tagkin.annotator.extending import extended

        features = self._checked(X)
        numbers = self._known(known, features.shape[0])
        self._keep(*extended(self, features, y, numbers, rejected))
        if self.unsaid_ is not None:
            self.unsaid_ = self.unsaid_.extended(self.method_.n_labels_)
        n_more = self.method_.labels_.shape[0] - len(self.groups_)
        fresh = self.groups_.max() + 1 + np.arange(n_more)
        self.groups_ = np.concatenate([self.groups_, fresh])
        return self

    def _keep(
        self,
        labels: Labels,
        method: Any,
        calibrator: LabelCalibrator,
        held_out: scipy.sparse.csr_array,
        rejected: scipy.sparse.csr_array,
        names: LearnedNames | None,
    ) -> Self:
        """Replace what was learned, when all of it has succeeded."""
        self.names_ = names
        self.vocabulary_, self.tags_ = labels.vocabulary, labels.tags
        self.column_names_ = labels.names
        self.method_, self.calibrator_ = method, calibrator
        self._held_out = Later.known(held_out)
        self.rejected_ = rejected
        return self

    def _read(self, X: Array, y: Any) -> tuple[Any, Labels]:
        features = check_features(X, min_rows=2)
        vocabulary = Vocabulary(2) if self.vocabulary is None else clone(self.vocabulary)
        return features, read_labels(y, features.shape[0], vocabulary)

    def _problem(
        self, features: Any, labels: Labels, groups: Array | None, rejected: Any
    ) -> tuple[Problem, np.ndarray]:
        """What there is to learn from, and the group of each image (N,)."""
        from tagkin.annotator.problem import Problem, n_folds

        found = groups_of(features, groups, n_folds(features.shape[0]))
        refused, naming = self._rejected(rejected, labels), self._naming(labels)
        problem = Problem(
            features, labels.Y, holdable(found), refused, naming, seed=self.random_state
        )
        return problem, found

    def _rejected(self, rejected: Any, labels: Labels) -> scipy.sparse.csr_array | None:
        """What was rejected for the images (N×D), less what they carry; None where nothing was."""
        if rejected is None:
            return None
        found = without(rejections(rejected, labels.Y.shape[0], labels), labels.Y)
        return found if found.nnz else None

    @staticmethod
    def _decisions(
        accepted: Any,
        rejected: scipy.sparse.csr_array | None,
        alone: tuple[Array, Any] | None,
        said: Array | None,
        labels: Labels,
        n_features: int,
    ) -> Decisions | None:
        """What was decided; of what was accepted, labels that the images carry."""
        if accepted is None:
            return None
        yes = scipy.sparse.csr_array(
            rejections(accepted, labels.Y.shape[0], labels).multiply(labels.Y)
        )
        before = None if said is None else np.asarray(to_numpy(said), dtype=bool)
        if before is not None and before.shape != (labels.Y.shape[0],):
            raise InvalidInput(
                f"said has the shape {before.shape}; expected one value for each of the "
                f"{labels.Y.shape[0]} images."
            )
        if alone is None:
            return Decisions(yes, rejected, said=before)
        features = check_features(alone[0], name="rejected_alone")
        if features.shape[1] != n_features:
            raise InvalidInput(
                f"The images of rejected_alone have {features.shape[1]} features, and X has "
                f"{n_features}."
            )
        no = rejections(alone[1], features.shape[0], labels)
        return Decisions(yes, rejected, features, no, before)

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        self._recipe()

    def check_stored(self) -> None:
        """Raise `InvalidInput` if a stored model does not fit together."""
        if self.method_.index_ is None:
            raise InvalidInput("its method has no neighbours")
        if self.errors_.n_labels_ > self.method_.n_labels_:
            raise InvalidInput(f"it has rates of {self.errors_.n_labels_:,} labels, too many")

    def _naming(self, labels: Labels) -> Naming | None:
        """What the names of labels may mean; the numbers of columns are no names."""
        named = labels.vocabulary is not None or labels.names is not None
        return Naming.of(self.prior, labels.classes() if named else None)

    def _recipe(self) -> Recipe:
        from tagkin.annotator.recipe import usual_recipe

        return usual_recipe(self.space, self.method, self.denoise, self.random_state)

    # --- using ---------------------------------------------------------------------------

    def suggest(
        self,
        X: Array,
        n: int | None = None,
        threshold: float | None = None,
        precision: float | None = None,
        *,
        known: Array | None = None,
        carried: Any = None,
        rejected: Any = None,
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
        rejected : labels of shape (n, D), or n lists of tags, optional
            What a person said that the images do not show, besides what was rejected in `fit`: it
            is not suggested, either.
        n_support : int, default 5
            Images to name for each suggestion, at most.

        Returns
        -------
        suggestions : list of n lists of LabelSuggestion, the surest first
            A label that none of the neighbours carries is not suggested, unless its name speaks
            for it.
        """
        self._check_fitted()
        check_integer("n_support", n_support, 0)
        rule = rule_for(self.calibrator_, n, threshold, precision)
        features = self._checked(X)
        numbers = self._known(known, features.shape[0])
        unwanted = self._unwanted(carried, rejected, numbers)
        said = self._labelled(carried, numbers)
        result: list[list[LabelSuggestion]] = []
        per_image = 64 * (self.method_.n_labels_ + 256)
        for rows in row_blocks(features.shape[0], per_image, features):
            result += suggestions_of(
                self, features[rows], numbers[rows], unwanted[rows], said[rows], rule, n_support
            )
        return result

    # --- judging -------------------------------------------------------------------------

    def audit(
        self, n: int | None = None, kind: str | None = None, *, n_support: int = _SUPPORT
    ) -> list[LabelFinding]:
        """Labels that seem wrong or missing on the images learned from, the surest first.

        They are judged by models that had not seen the image. The confidence is the probability
        that a person who looks finds the label wrong, or missing: it rests on how many labels are
        wrong and missing here, as far as `errors_` could tell.

        Parameters
        ----------
        n : int, optional
            So many findings at most; without it, all with a confidence of .5 and more.
        kind : "wrong" or "missing", optional
        """
        self._check_fitted()
        names = self.classes_.tolist()
        return findings(
            self.held_out_, self.errors_, self.method_, names, n, kind, n_support, self.rejected_
        )

    def cross_validate(
        self,
        X: Array,
        y: Any,
        *,
        groups: Array | None = None,
        rejected: Any = None,
        progress: Progress | None = None,
    ) -> quality.Quality:
        """How good the suggestions of an estimator like this one are, on these images.

        Each fold is held out in turn; nothing of this estimator changes. Nothing is tuned, either.
        """
        from tagkin.annotator import quality

        features, labels = self._read(X, y)
        problem, _ = self._problem(features, labels, groups, rejected)
        names, step = list(labels.classes()), progress or silent
        return quality.cross_validate(problem, self._recipe(), names, step)

    def evaluate(self, X: Array, y: Any, *, visual_scores: Any = None) -> quality.Quality:
        """How good this estimator's suggestions are for labelled images that it has not seen.

        Parameters
        ----------
        X : array of shape (n, d)
        y : labels of shape (n, D), or n lists of tags
        visual_scores : array of shape (n, D), optional
            Scores of a baseline to be measured beside it: neighbours in visual feature space.
        """
        from tagkin.annotator import quality

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
        together = series_text(self.groups_, "image", "groups")
        return [
            f"Learned from {learned}. Denoised: {denoising_text(self.blend_)}.",
            *([f"Held out together: {together}."] if together else ()),
            *(() if self.vocabulary_ is None else self.vocabulary_.describe()[1:]),
            *self.space_.describe(),
            *self.method_.describe(),
            *(() if self.names_ is None else self.names_.describe()),
            *self.calibrator_.describe(),
            *(() if self.unsaid_ is None else self.unsaid_.describe()),
        ]
