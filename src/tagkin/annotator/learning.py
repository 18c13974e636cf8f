"""From features and labels to a space, a method and honest confidences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, clone

from tagkin.annotator.blending import Blended, blended
from tagkin.annotator.deciding import Decisions
from tagkin.annotator.fold_embeddings import REGULARIZATIONS
from tagkin.annotator.label_input import without
from tagkin.annotator.naming import LearnedNames, Naming
from tagkin.annotator.side_by_side import beside, one_thread_beside
from tagkin.arrays import blas_threads_for, row_blocks, to_numpy
from tagkin.calibration import LabelCalibrator, LabelErrors, UnsaidLabels, with_other_labels
from tagkin.denoising import TagDenoiser
from tagkin.errors import InvalidInput, Parameter
from tagkin.evaluation import mean_average_precision
from tagkin.model_selection import held_out_scores
from tagkin.model_selection.folds import Fold, make_folds
from tagkin.progress import Counted, Progress
from tagkin.space import SemanticSpace
from tagkin.transfer import KinReadout, NeighborTransfer
from tagkin.transfer.mixture import Mixture

__all__ = [
    "FEWEST",
    "Learned",
    "Recipe",
    "best_of",
    "check_enough",
    "judged",
    "largest_product",
    "learn",
    "n_folds",
    "resolved_by_fold",
    "resolved_with",
    "scores_by_fold",
    "scores_of_fold",
    "usual_recipe",
]

FEWEST = 6  # images: with fewer nothing could be held out to learn confidences from
_MISSING_KEPT = 10  # absent labels of each image whose probability is kept for the audit
_LEAST = 1e-30  # probability that is kept: none that occurs is below, so that none are tied
_MANY = 2000  # from here on three folds leave enough to learn from
_HELD = 2**24  # scores by name that are kept while all else is learned, at most
_TRIAL_LANDMARKS = 1024  # of the spaces in which amounts of denoising are tried


@dataclass(frozen=True)
class Recipe:
    """How a space and a method are learned from features X (N×d) and labels Y (N×D).

    Without a space, neighbours are found in visual feature space.
    """

    space: SemanticSpace | None
    method: Any
    denoiser: TagDenoiser | None = None
    regularizations: tuple[float, ...] = ()
    """Values of κ to choose from, by held-out images, and with it how the neighbours of a
    `KinReadout` vote; without any, space and method are as they are."""
    mixture: Mixture | None = None
    """What votes and read-out of `KinReadout` count for, where it is known."""
    whole: Callable[[], tuple[Any, Any, Any]] | None = None
    """Returns the space of all images, their embeddings (N×m) and the read-out of a `KinReadout`,
    or None for each, where choosing the rest may have learned them already."""
    even_logits: np.ndarray | None = None
    """Held-out logits (n×D) of a `KinReadout` with equal weights, where they are known."""
    meanwhile: tuple[Callable[[], Any], ...] = ()
    """Work that was begun beside; to call it is to wait for it."""

    def wait_for_others(self) -> None:
        """Wait for what was begun beside, before all threads are used.

        Products are rounded by the threads that they get: it must not depend on which is done
        first.
        """
        for task in self.meanwhile:
            task()

    def fit(
        self,
        X: np.ndarray,
        Y: scipy.sparse.csr_array,
        rejected: scipy.sparse.csr_array | None = None,
        groups: np.ndarray | None = None,
    ) -> tuple[Any, Any]:
        """A fitted space (or None) and a fitted method; `groups` (N,) as `NeighborTransfer.fit`.

        Denoised labels make the space, less those that were rejected (N×D). Neighbours pass on
        the labels that they carry, so that no suggestion rests on a label that a person cannot see
        there. What else was rejected is learned by methods that take it.
        """
        if self.space is None:
            return None, self._fitted_method(X, Y, rejected, groups)
        space, embeddings, readout = (None, None, None) if self.whole is None else self.whole()
        if space is not None:
            return space, self._fitted_method(embeddings, Y, rejected, groups, readout)
        space = clone(self.space)
        labels = Y
        if self.denoiser is not None:
            labels = clone(self.denoiser).fit_transform(X, Y, groups=groups)
            labels = without(labels, rejected)
        space.fit(X, labels)
        return space, self._fitted_method(space.transform(X), Y, rejected, groups)

    def _fitted_method(
        self,
        Z: Any,
        Y: scipy.sparse.csr_array,
        rejected: scipy.sparse.csr_array | None,
        groups: np.ndarray | None,
        readout: Any = None,
    ) -> Any:
        method: Any = clone(self.method)
        known = {} if rejected is None or not method.takes_rejected else {"rejected": rejected}
        if readout is not None:
            known["readout"] = readout
        method.fit(Z, Y, groups=groups, **known)
        return method if self.mixture is None else method.set_mixture(self.mixture)

    def candidates(
        self, X: np.ndarray, Y: scipy.sparse.csr_array, groups: np.ndarray | None = None
    ) -> Iterator[Recipe]:
        """The recipe without denoising, then with what the denoiser chooses for these images."""
        plain, denoiser = replace(self, denoiser=None), self.denoiser
        if self.space is None or denoiser is None:
            yield plain
            return

        def choose() -> TagDenoiser | None:
            chosen = clone(denoiser).fit(X, Y, groups=groups)
            if chosen.blend_ == 0:
                return None
            # the view stays as it is: χ² costs many times as much, for no gain with these methods
            return clone(denoiser).set_params(
                blend=chosen.blend_, n_neighbors=chosen.n_neighbors_, scale=chosen.scale_
            )

        chosen = beside(choose, X.shape[0])
        yield replace(plain, meanwhile=(*self.meanwhile, chosen))
        if (fixed := chosen()) is not None:
            yield replace(self, denoiser=fixed, meanwhile=())


def usual_recipe(
    space: SemanticSpace | None,
    method: NeighborTransfer | None,
    denoise: bool,
    random_state: int | None,
) -> Recipe:
    """What is usual where nothing else is asked for."""
    values: tuple[float, ...] = ()
    if not isinstance(space, SemanticSpace | None):
        raise InvalidInput(f"space must be a SemanticSpace; found {space!r}.")
    if space is None:
        space = SemanticSpace(random_state=random_state)
        values = REGULARIZATIONS if method is None or isinstance(method, KinReadout) else ()
    elif method is None:
        values = (space.regularization,)
    if method is None:
        # votes and a read-out err differently: together they rank best on small and large
        # collections alike (docs/results)
        method = KinReadout(random_state=random_state)
    if not isinstance(method, NeighborTransfer):
        raise InvalidInput(
            "method must be one by neighbours, which can say which images support a label; "
            f"found {type(method).__name__}."
        )
    if not denoise:
        return Recipe(space, method, None, values)
    trial_space = SemanticSpace(n_landmarks=_TRIAL_LANDMARKS)
    denoiser = TagDenoiser(space=trial_space, random_state=random_state, passed_on="raw")
    return Recipe(space, method, denoiser, values)


@dataclass(frozen=True)
class Learned:
    """What was learned from N images with D labels."""

    space: SemanticSpace
    method: NeighborTransfer
    calibrator: LabelCalibrator
    blend: float
    """Share of propagated tags in what the space was learned from."""
    errors: LabelErrors
    """How often labels are wrong, and how often missing."""
    held_out: scipy.sparse.csr_array
    """Probability (N×D) that the labels which an image carries belong there, and the most
    probable of those that it does not carry, from models that had not seen it."""
    names: LearnedNames | None = None
    """How much the names of the labels count, where a prior was given."""
    unsaid: UnsaidLabels | None = None
    """How often labels that nobody said are right, where a person accepted and rejected some."""


def learn(
    X: np.ndarray,
    Y: scipy.sparse.csr_array,
    recipe: Recipe,
    random_state: int | None,
    step: Progress,
    groups: np.ndarray | None = None,
    rejected: scipy.sparse.csr_array | None = None,
    naming: Naming | None = None,
    decisions: Decisions | None = None,
    memory: int | None = None,
) -> Learned:
    """Learn from features X (N×d) and labels Y (N×D); `step` is told how far it is.

    Images of one of the `groups` (N,) are held out together, and are no neighbours of each other
    where weights are learned. What was `rejected` (N×D) is a no for the calibrator as an unsaid
    label is, not more: counted twice, it made confidences too low, by .05 on Flickr8k where the
    best three suggestions per image had been reviewed. `decisions` tell how often unsaid labels
    are right.

    Where `memory`, in bytes, does not hold all held-out scores (without it: what this process may
    have), those of some images and labels are learned from; see `annotator.sampling`.
    """
    from tagkin.annotator import sampling  # which is built on this

    check_enough(Y)
    if part := sampling.part_of(Y, memory):
        known = groups, rejected, naming, decisions
        return sampling.learn_by_part(X, Y, recipe, random_state, step, *known, part)
    with blas_threads_for(largest_product(X, Y)):
        fold_done = Counted(step, "Learning", n_folds(X.shape[0]) + 1)
        by_name: Callable[[], Any] | None = None
        if naming is not None:
            look_up = partial(naming.looked_up, X, Y)
            held = math.prod(Y.shape) <= _HELD
            by_name = beside(look_up, X.shape[0]) if held else look_up
            recipe = replace(recipe, meanwhile=(by_name,) if held else ())
        candidates = _counted_in(recipe.candidates(X, Y, groups), fold_done, n_folds(X.shape[0]))
        best, scores = best_of(candidates, X, Y, random_state, fold_done, groups, rejected)
        fit = beside(partial(best.fit, X, Y, rejected, groups), X.shape[0])
        names = None
        with one_thread_beside(X.shape[0]):
            if naming is not None and by_name is not None:
                names, scores = naming.weighed(Y, scores, *by_name())
            calibrate = beside(partial(LabelCalibrator().fit, scores, Y), X.shape[0])
            errors, held_out = judged(best, scores, names is not None, calibrate, Y, groups)
        (space, method), calibrator, unsaid = fit(), calibrate(), None
        if decisions is not None:
            unsaid = decisions.unsaid(calibrator, scores, space, method, naming, names)
        fold_done()
    blend = 0.0 if best.denoiser is None else float(best.denoiser.blend)
    return Learned(space, method, calibrator, blend, errors, held_out, names, unsaid)


def _counted_in(recipes: Iterable[Recipe], fold_done: Counted, n: int) -> Iterator[Recipe]:
    """Recipes as they come; each after the first has so many folds more to do."""
    for number, recipe in enumerate(recipes):
        fold_done.total += n if number else 0
        yield recipe


def largest_product(X: np.ndarray, Y: scipy.sparse.csr_array) -> int:
    """Multiplications in any product while learning, at most: few images need one thread.

    Also where libraries multiply that know nothing of how long a product takes.
    """
    (n, d), n_labels = X.shape, Y.shape[1]
    return n * max(n, n_labels) * max(n, d, n_labels)


def check_enough(
    Y: scipy.sparse.csr_array, images: str = "labelled images", label: str = "label"
) -> None:
    """Refuse what nothing can be learned from; `images` and `label` are what to call them."""
    n, n_labels = Y.shape
    if n_labels == 0:
        raise InvalidInput(
            f"No {label} is on enough images to be learned. Pass more {images}, or lower ",
            Parameter("min_count"),
            ".",
        )
    if n < FEWEST:
        raise InvalidInput(
            f"Found {n} {images}; at least {FEWEST} are needed to learn from. Pass more {images}."
        )
    if Y.nnz == 0:
        raise InvalidInput(f"None of the {n} images carries a {label}. Pass {images}.")
    if Y.nnz == n * n_labels:
        raise InvalidInput(
            f"All {n} {images} carry the same {label}s, so that nothing tells where a {label} "
            f"does not belong. Pass {images} of something else, too, or lower ",
            Parameter("min_count"),
            ".",
        )


def best_of(
    recipes: Iterable[Recipe],
    X: np.ndarray,
    Y: scipy.sparse.csr_array,
    random_state: int | None,
    fold_done: Callable[[], None] = lambda: None,
    groups: np.ndarray | None = None,
    rejected: scipy.sparse.csr_array | None = None,
) -> tuple[Recipe, np.ndarray]:
    """The recipe whose held-out scores rank best (MAP), and those scores (N×D).

    It has what these images taught: κ, the votes and the mixture of a `KinReadout`.
    """
    tried: list[tuple[Recipe, np.ndarray]] = []
    for recipe in recipes:
        if tried and (whole := tried[-1][0].whole) is not None:
            whole()  # what it is learned from takes memory that the next one needs
        tried.append(resolved_by_fold(X, Y, recipe, random_state, fold_done, groups, rejected))
    if len(tried) == 1:
        return tried[0]
    return max(tried, key=lambda one: mean_average_precision(Y, one[1]))


def scores_by_fold(
    X: np.ndarray,
    Y: scipy.sparse.csr_array,
    recipe: Recipe,
    random_state: int | None,
    fold_done: Callable[[], None] = lambda: None,
    groups: np.ndarray | None = None,
    rejected: scipy.sparse.csr_array | None = None,
) -> np.ndarray:
    """Scores (N×D) of every image, by a space and a method that were learned without it."""
    return resolved_by_fold(X, Y, recipe, random_state, fold_done, groups, rejected)[1]


def resolved_by_fold(
    X: np.ndarray,
    Y: scipy.sparse.csr_array,
    recipe: Recipe,
    random_state: int | None,
    fold_done: Callable[[], None] = lambda: None,
    groups: np.ndarray | None = None,
    rejected: scipy.sparse.csr_array | None = None,
) -> tuple[Recipe, np.ndarray]:
    """As `scores_by_fold`, with the recipe that these scores resolve."""
    cv = n_folds(X.shape[0])
    if isinstance(recipe.method, KinReadout):
        folds = make_folds(X.shape[0], Y, cv, groups, random_state)
        found = blended(X, Y, recipe, folds, fold_done, rejected)
        return resolved_with(recipe, found), found.scores
    recipe.wait_for_others()
    # what was rejected goes with the labels of the same images, in further columns
    known = Y if rejected is None else scipy.sparse.hstack([Y, rejected], format="csr")
    scores = held_out_scores(
        _RecipeEstimator(recipe, Y.shape[1]),
        X,
        known,
        cv=cv,
        groups=groups,
        random_state=random_state,
        progress=lambda *_: fold_done(),
    )
    return recipe, scores.astype(np.float32, copy=False)


def resolved_with(recipe: Recipe, found: Blended) -> Recipe:
    """A recipe with κ, votes and mixture that were found for it."""
    method = clone(recipe.method).set_params(**found.votes._asdict())
    space = recipe.space
    if found.regularization is not None:
        space = clone(space).set_params(regularization=found.regularization)
    return replace(
        recipe,
        space=space,
        method=method,
        regularizations=(),
        mixture=found.mixture,
        whole=found.whole,
        even_logits=found.even,
    )


def scores_of_fold(
    X: np.ndarray,
    Y: scipy.sparse.csr_array,
    recipe: Recipe,
    fold: Fold,
    rejected: scipy.sparse.csr_array | None,
) -> np.ndarray:
    """Scores (n×D) of a fold's held-out images, by a space and a method of its known ones."""
    known = Y if rejected is None else scipy.sparse.hstack([Y, rejected], format="csr")
    estimator = _RecipeEstimator(recipe, Y.shape[1]).fit(X[fold.known], known[fold.known])
    return estimator.decision_function(X[fold.held_out]).astype(np.float32, copy=False)


class _RecipeEstimator(BaseEstimator):
    """A recipe with the methods of an estimator; without a space where too few labels allow one."""

    def __init__(self, recipe: Recipe, n_labels: int):
        self.recipe = recipe
        self.n_labels = n_labels

    def fit(
        self, X: np.ndarray, Y: scipy.sparse.csr_array, groups: np.ndarray | None = None
    ) -> Self:
        """Learn a space and a method; columns of Y after those of the labels are rejections."""
        labels = Y[:, : self.n_labels]
        rejected = Y[:, self.n_labels :] if Y.shape[1] > self.n_labels else None
        try:
            self.space_, self.method_ = self.recipe.fit(X, labels, rejected, groups)
        except InvalidInput:
            plain = Recipe(None, self.recipe.method)
            self.space_, self.method_ = plain.fit(X, labels, rejected, groups)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Scores (n×D) of new images (n×d)."""
        Z = X if self.space_ is None else self.space_.transform(X)
        return to_numpy(self.method_.decision_function(Z))


def n_folds(n_images: int) -> int:
    """Parts that the images are held out in."""
    return 3 if n_images >= _MANY else min(5, n_images // 2)


def judged(
    recipe: Recipe,
    scores: np.ndarray,
    named: bool,
    calibrator: Callable[[], LabelCalibrator],
    Y: scipy.sparse.csr_array,
    groups: np.ndarray | None,
) -> tuple[LabelErrors, scipy.sparse.csr_array]:
    """How many labels are wrong and missing, and the held-out probabilities that say which.

    `named` are scores, then logits, in which names count. What is said of a label counts what the
    image's other labels say. `calibrator` returns that of the scores, where they are no logits.
    """
    if named:
        Z = scores
    elif recipe.even_logits is not None:
        Z = recipe.even_logits
    else:
        Z = scores if recipe.method.scores_are_logits else calibrator().log_odds(scores)
    Z = with_other_labels(Z, Y, groups)
    errors = LabelErrors().fit(Z, Y)
    return errors, _noted(errors, Z, Y)


def _noted(errors: LabelErrors, Z: np.ndarray, Y: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Probabilities of labels that are there, and of the best of those that are not.

    Z (N×D) are held-out log-odds.
    """
    n, n_labels = Z.shape
    kept = min(_MISSING_KEPT, n_labels)
    parts = []
    for rows in row_blocks(n, 64 * n_labels):
        P = errors.predict_proba(Z[rows])
        there = Y[rows].toarray() > 0
        absent = np.where(there, -1.0, P)
        best = np.argpartition(-absent, kept - 1, axis=1)[:, :kept]
        noted = there.copy()
        np.put_along_axis(noted, best, True, axis=1)
        # a probability of zero would not be stored
        found = np.where(noted, np.maximum(P, _LEAST), 0).astype(np.float32)
        parts.append(scipy.sparse.csr_array(found))
    return scipy.sparse.vstack(parts, format="csr")
