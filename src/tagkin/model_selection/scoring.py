"""Scores of many settings on many folds, with expensive work shared.

An estimator is a method of `tagkin.transfer`, or a scikit-learn pipeline of a `SemanticSpace` (or
any transformers) and such a method. The sums for solving a space are computed once for all folds
and all κ. Neighbours are searched once, for the largest number; smaller numbers use slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from tagkin.arrays import Array, to_numpy
from tagkin.arrays.checks import is_pipeline
from tagkin.model_selection.folds import Fold
from tagkin.neighbors import ExactNeighbors, Neighbors, neighbors_outside
from tagkin.space import SemanticSpace
from tagkin.space.parts import LeaveOutSpaces
from tagkin.space.solution import Solving
from tagkin.transfer import NeighborTransfer, TwoPassKNN

__all__ = ["Images", "Run", "score_settings"]

# Parameters of a method that decide what its neighbours are; all others share the same lists.
_SEARCH_PARAMETERS = ("metric", "index")


class Run(NamedTuple):
    """Scores of a setting on a fold."""

    setting: int
    fold: int
    scores: np.ndarray
    """Scores of the held-out images, shape (n, D)."""


class Images(NamedTuple):
    """N images to learn from, or to hold out."""

    X: Array
    """Features or embeddings, shape (N, d)."""
    Y: Array
    """Labels, shape (N, D)."""
    groups: np.ndarray | None = None
    """The group of each image (N,). Methods that learn from neighbours of known images ignore
    neighbours in the image's own group."""

    def take(self, rows: np.ndarray) -> Images:
        """Return some of the images."""
        parts = [None if part is None else part[rows] for part in self]
        return Images(*parts)

    def fit(self, estimator: BaseEstimator) -> BaseEstimator:
        """Fit an estimator, with groups if it, or a pipeline's last step, can."""
        last = estimator.steps[-1][1] if is_pipeline(estimator) else estimator
        if self.groups is None or not has_fit_parameter(last, "groups"):
            return estimator.fit(self.X, self.Y)
        prefix = f"{estimator.steps[-1][0]}__" if last is not estimator else ""
        return estimator.fit(self.X, self.Y, **{f"{prefix}groups": self.groups})


def score_settings(
    estimator: BaseEstimator,
    images: Images,
    settings: list[dict[str, object]],
    folds: list[Fold],
    refit_space: bool,
) -> Iterator[Run]:
    """Yield the scores of every fold's held-out images for every setting."""
    in_space = _space_parameters(estimator)
    for alike in _group_settings(
        settings, lambda name: in_space(name) and name.split("__")[-1] not in Solving._fields
    ):
        candidates = [clone(estimator).set_params(**settings[i]) for i in alike]
        spaces = [_split(candidate)[0] for candidate in candidates]
        embeddings = _FoldEmbeddings(spaces, images, folds, refit_space)
        for members in _group_settings([settings[i] for i in alike], in_space):
            group = [alike[k] for k in members]
            for number, fold in enumerate(folds):
                old, new = embeddings.of(spaces[members[0]], number)
                methods = [_split(clone(candidates[k]))[1] for k in members]
                known = images.take(fold.known)._replace(X=old)
                all_scores = _score_methods(methods, known, new)
                for i, scores in zip(group, all_scores, strict=True):
                    yield Run(i, number, to_numpy(scores))


class _FoldEmbeddings:
    """Embeddings of the known and the held-out images of each fold.

    `spaces` are the steps before the method, as pipelines, or None; they differ only in how a
    space is solved. With `refit_space`, spaces are learned without the held-out images.
    """

    def __init__(
        self,
        spaces: list[BaseEstimator | None],
        images: Images,
        folds: list[Fold],
        refit_space: bool,
    ):
        self.X, self.Y, self.folds, self.refit_space = images.X, images.Y, folds, refit_space
        self.fitted: BaseEstimator | None = None
        self.embeddings: Array | None = None
        self.parts: LeaveOutSpaces | None = None
        alone = [space[0] for space in spaces if space is not None and len(space) == 1]
        if refit_space and alone and isinstance(alone[0], SemanticSpace) and _partition(folds):
            # the smallest κ needs the most precision
            base = min(alone, key=lambda space: space.regularization)
            parts = [fold.held_out for fold in folds]
            self.parts = LeaveOutSpaces(base, images.X, images.Y, parts)

    def of(self, space: BaseEstimator | None, number: int) -> tuple[Array, Array]:
        """Return the embeddings of the known and the held-out images of a fold."""
        known, held_out = self.folds[number]
        if space is None:
            return self.X[known], self.X[held_out]
        if not self.refit_space:
            if self.fitted is not space:
                self.fitted, self.embeddings = space, space.fit(self.X, self.Y).transform(self.X)
            assert self.embeddings is not None
            return self.embeddings[known], self.embeddings[held_out]
        if self.parts is None:
            space.fit(self.X[known], self.Y[known])
            return space.transform(self.X[known]), space.transform(self.X[held_out])
        parameters = {name: getattr(space[0], name) for name in Solving._fields}
        old, new = self.parts.embeddings(
            self.parts.without(number, **parameters), (known, held_out)
        )
        return old, new


def _partition(folds: list[Fold]) -> bool:
    """Whether each image is held out once, and known in all other folds."""
    n = sum(len(fold.held_out) for fold in folds)
    everything = np.sort(np.concatenate([fold.held_out for fold in folds]))
    return np.array_equal(everything, np.arange(n)) and all(
        len(fold.known) + len(fold.held_out) == n for fold in folds
    )


def _split(estimator: BaseEstimator) -> tuple[BaseEstimator | None, BaseEstimator]:
    """Return the transformers before the method, as a pipeline or None, and the method."""
    if not is_pipeline(estimator):
        return None, estimator
    if len(estimator.steps) == 1:
        return None, estimator.steps[-1][1]
    return estimator[:-1], estimator.steps[-1][1]


def _space_parameters(estimator: BaseEstimator) -> Callable[[str], bool]:
    """Return a function that tells whether a parameter belongs to a step before the method."""
    if not is_pipeline(estimator):
        return lambda name: False
    last = estimator.steps[-1][0]
    return lambda name: name != last and not name.startswith(last + "__")


def _group_settings(
    settings: Sequence[Mapping[str, object]], shared: Callable[[str], bool]
) -> list[list[int]]:
    """Group the indices of settings by the values of `shared` parameters."""
    groups: list[tuple[list[tuple[str, object]], list[int]]] = []
    for i, setting in enumerate(settings):
        key = [(name, value) for name, value in setting.items() if shared(name)]
        for known_key, members in groups:
            if len(known_key) == len(key) and all(map(_same, known_key, key)):
                members.append(i)
                break
        else:
            groups.append((key, [i]))
    return [members for _, members in groups]


def _same(first: tuple[str, object], second: tuple[str, object]) -> bool:
    """Whether two parameters are equal; False if values cannot be compared."""
    if first[0] != second[0] or type(first[1]) is not type(second[1]):
        return False
    return first[1] is second[1] or (not hasattr(first[1], "shape") and bool(first[1] == second[1]))


def _score_methods(methods: list[BaseEstimator], known: Images, new: Array) -> Iterator[Array]:
    """Yield the scores of new images by each method; methods share searches if they can."""
    by_neighbors = all(isinstance(m, NeighborTransfer) and not m.needs_embeddings for m in methods)
    if not by_neighbors:
        for method in methods:
            yield known.fit(method).decision_function(new)
        return
    parameters = [m.get_params(deep=False) for m in methods]
    scores: dict[int, Callable[[], Array]] = {}
    for group in _group_settings(parameters, lambda name: name in _SEARCH_PARAMETERS):
        shared = _SharedNeighbors([methods[i] for i in group], known, new)
        for i in group:
            scores[i] = partial(shared.score, methods[i])
    for i in range(len(methods)):
        yield scores[i]()


class _SharedNeighbors:
    """Neighbours shared by several methods, with the largest number that any of them needs."""

    def __init__(self, methods: list[NeighborTransfer], known: Images, new: Array):
        old, self.Y, n = known.X, known.Y, known.X.shape[0]
        # placeholder for methods that do not learn from neighbours of known images
        self.of_old = Neighbors(np.zeros((n, 1), dtype=np.int64), np.zeros((n, 1)))
        if isinstance(methods[0], TwoPassKNN):
            widest = max(methods, key=lambda m: m.n_per_label)
            self.of_new = widest.fit(old, known.Y).kneighbors(new)
            return
        most = max(m.n_neighbors for m in methods)
        first = methods[0]
        index = ExactNeighbors(first.metric) if first.index is None else copy(first.index)
        self.of_new = index.fit(old).kneighbors(new, min(most, n))
        if any(m.learns_from_neighbors for m in methods):
            self.of_old = neighbors_outside(index, old, min(most, n - 1), known.groups)

    def score(self, method: NeighborTransfer) -> Array:
        """Return the scores of the new images by a method."""
        return method.fit_neighbors(*self.of_old, self.Y).score_neighbors(*self.of_new)
