"""Scores of many settings on many folds, with what costs most done once.

An estimator is a method of `tagkin.transfer`, or a scikit-learn pipeline of a `SemanticSpace` (or
any transformers) and such a method. The sums that a space is solved from are taken once for all
folds and all κ, and neighbours are searched once, at the largest number asked for; smaller numbers
are slices of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from tagkin.arrays import Array, to_numpy
from tagkin.arrays.pipelines import is_pipeline
from tagkin.model_selection.folds import Fold
from tagkin.neighbors import ExactNeighbors, Neighbors, neighbors_outside
from tagkin.space import SemanticSpace
from tagkin.space.parts import SOLVING
from tagkin.transfer import NeighborTransfer, TwoPassKNN

__all__ = ["Run", "Told", "runs"]

# Parameters of a method that decide what its neighbours are; all others share the same lists.
_SEARCH_PARAMETERS = ("metric", "index", "metric_learning", "random_state")


class Run(NamedTuple):
    """Scores of one setting on one fold."""

    setting: int
    fold: int
    scores: np.ndarray
    """Of the held-out images, shape (n, D)."""


class Told(NamedTuple):
    """What an estimator is told of N images beside their labels."""

    groups: np.ndarray | None = None
    """The group of each image (N,): where methods learn from the neighbours of known images, they
    leave out those of the image's own group."""
    rejected: Any = None
    """Labels (N×D) that a person said the images do not show."""

    def of(self, images: np.ndarray) -> Told:
        """What is told of some of the images."""
        return Told(*(None if part is None else part[images] for part in self))

    def fit(self, estimator: Any, X: Array, Y: Array) -> Any:
        """The estimator, fitted; told as far as it, or the last of a pipeline, takes it."""
        last = estimator.steps[-1][1] if is_pipeline(estimator) else estimator
        start = f"{estimator.steps[-1][0]}__" if last is not estimator else ""
        given = {
            start + name: value
            for name, value in self._asdict().items()
            if value is not None and has_fit_parameter(last, name)
        }
        return estimator.fit(X, Y, **given)


def runs(
    estimator: Any,
    X: Array,
    Y: Array,
    settings: list[dict[str, Any]],
    folds: list[Fold],
    refit_space: bool,
    told: Told | None = None,
) -> Iterator[Run]:
    """Scores of the held-out images of every fold under every setting.

    Methods are `told` of groups and rejections as far as they take them.
    """
    told = told or Told()
    belongs = _belongs_to_space(estimator)
    for alike in _grouped(settings, lambda name: belongs(name) and not _is_solving(name)):
        candidates = [clone(estimator).set_params(**settings[i]) for i in alike]
        spaces = [_parts(one)[0] for one in candidates]
        embeddings = _FoldEmbeddings(spaces, X, Y, folds, refit_space)
        for members in _grouped([settings[i] for i in alike], belongs):
            group = [alike[k] for k in members]
            for number, fold in enumerate(folds):
                old, new = embeddings.of(spaces[members[0]], number)
                methods = [_parts(clone(candidates[k]))[1] for k in members]
                scored = _scored(methods, old, Y[fold.known], new, told.of(fold.known))
                for i, scores in zip(group, scored, strict=True):
                    yield Run(i, number, to_numpy(scores))


class _FoldEmbeddings:
    """What a method gets of the known and of the held-out images of each fold.

    Parameters
    ----------
    spaces : list of pipelines, or of None
        What comes before the method; they differ in nothing but how a space is solved.
    X, Y : arrays of shape (N, d) and (N, D)
    folds : list of Fold
    refit_space : bool
        Whether a space is learned without the held-out images.
    """

    def __init__(self, spaces: list[Any], X: Array, Y: Array, folds: list[Fold], refit_space: bool):
        self.X, self.Y, self.folds, self.refit_space = X, Y, folds, refit_space
        self.fitted: Any = None
        self.embeddings: Any = None
        self.parts: Any = None
        alone = spaces[0] is not None and len(spaces[0]) == 1
        if refit_space and alone and isinstance(spaces[0][0], SemanticSpace) and _partition(folds):
            # the smallest κ needs the most digits
            base = min((space[0] for space in spaces), key=lambda one: one.regularization)
            self.parts = base.by_parts(X, Y, [fold.held_out for fold in folds])

    def of(self, space: Any, number: int) -> tuple[Array, Array]:
        """Embeddings of the known and of the held-out images of a fold."""
        known, held_out = self.folds[number]
        if space is None:
            return self.X[known], self.X[held_out]
        if not self.refit_space:
            if self.fitted is not space:
                self.fitted, self.embeddings = space, space.fit(self.X, self.Y).transform(self.X)
            return self.embeddings[known], self.embeddings[held_out]
        if self.parts is None:
            space.fit(self.X[known], self.Y[known])
            return space.transform(self.X[known]), space.transform(self.X[held_out])
        wanted = {name: getattr(space[0], name) for name in SOLVING}
        old, new = self.parts.embeddings(self.parts.without(number, **wanted), (known, held_out))
        return old, new


def _is_solving(name: str) -> bool:
    return name.split("__")[-1] in SOLVING


def _partition(folds: list[Fold]) -> bool:
    """Whether each image is held out once, and known in all other folds."""
    n = sum(len(fold.held_out) for fold in folds)
    everything = np.sort(np.concatenate([fold.held_out for fold in folds]))
    return np.array_equal(everything, np.arange(n)) and all(
        len(fold.known) + len(fold.held_out) == n for fold in folds
    )


def _parts(estimator: Any) -> tuple[Any, Any]:
    """The transformers before the method, as one (or None), and the method."""
    if not is_pipeline(estimator):
        return None, estimator
    if len(estimator.steps) == 1:
        return None, estimator.steps[-1][1]
    return estimator[:-1], estimator.steps[-1][1]


def _belongs_to_space(estimator: Any) -> Callable[[str], bool]:
    """Whether a parameter belongs to what comes before the method."""
    if not is_pipeline(estimator):
        return lambda name: False
    last = estimator.steps[-1][0]
    return lambda name: name != last and not name.startswith(last + "__")


def _grouped(
    settings: Sequence[Mapping[str, Any]], shared: Callable[[str], bool]
) -> list[list[int]]:
    """Indices of the settings, grouped by the values of the parameters that are `shared`."""
    groups: list[tuple[list[Any], list[int]]] = []
    for i, setting in enumerate(settings):
        key = [(name, value) for name, value in setting.items() if shared(name)]
        for other, members in groups:
            if len(other) == len(key) and all(map(_same, other, key)):
                members.append(i)
                break
        else:
            groups.append((key, [i]))
    return [members for _, members in groups]


def _same(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    """Whether two parameters are the same; values that cannot be compared are not."""
    if one[0] != other[0] or type(one[1]) is not type(other[1]):
        return False
    return one[1] is other[1] or (not hasattr(one[1], "shape") and bool(one[1] == other[1]))


def _scored(
    methods: list[BaseEstimator], old: Array, Y: Array, new: Array, told: Told
) -> Iterator[Any]:
    """Scores of new images by each method; methods with the same neighbours share one search."""
    simple = all(isinstance(m, NeighborTransfer) and not m.needs_embeddings for m in methods)
    if not simple:
        for method in methods:
            yield told.fit(method, old, Y).decision_function(new)
        return
    parameters = [m.get_params(deep=False) for m in methods]
    scores: list[Any] = [None] * len(methods)
    for group in _grouped(parameters, lambda name: name in _SEARCH_PARAMETERS):
        shared = _SharedNeighbors([methods[i] for i in group], old, Y, new, told.groups)
        for i in group:
            scores[i] = partial(shared.scored, methods[i])
    for score in scores:
        yield score()


class _SharedNeighbors:
    """Neighbours for methods that need the same ones, at the largest number that any asks for."""

    def __init__(
        self, methods: list[Any], old: Array, Y: Array, new: Array, groups: np.ndarray | None
    ):
        self.Y, n = Y, old.shape[0]
        # methods that only count learn nothing from the neighbours of known images
        self.of_old = Neighbors(np.zeros((n, 1), dtype=np.int64), np.zeros((n, 1)))
        if isinstance(methods[0], TwoPassKNN):
            widest = max(methods, key=lambda m: m.n_per_label)
            self.of_new = widest.fit(old, Y).kneighbors(new)
            return
        most = max(m.n_neighbors for m in methods)
        first = methods[0]
        index = ExactNeighbors(first.metric) if first.index is None else clone(first.index)
        self.of_new = index.fit(old).kneighbors(new, min(most, n))
        if any(m.learns_from_neighbors for m in methods):
            self.of_old = neighbors_outside(index, old, min(most, n - 1), groups)

    def scored(self, method: Any) -> Any:
        """Scores of the new images by one of the methods."""
        return method.fit_neighbors(*self.of_old, self.Y).score_neighbors(*self.of_new)
