"""Scores of many settings on many folds, with what costs most done once.

An estimator is a method of `tagkin.transfer`, or a scikit-learn pipeline of a `SemanticSpace` (or
any transformers) and such a method. A space is fitted once for each of its own settings, and
neighbours are searched once, at the largest number asked for; smaller numbers are slices of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from tagkin.arrays import Array, to_numpy
from tagkin.model_selection.folds import Fold
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.transfer import NeighborTransfer, TagProp, TwoPassKNN

__all__ = ["Run", "runs"]

# Parameters of a method that decide what its neighbours are; all others share the same lists.
_SEARCH_PARAMETERS = ("metric", "index", "metric_learning", "random_state")


class Run(NamedTuple):
    """Scores of one setting on one fold."""

    setting: int
    fold: int
    scores: np.ndarray
    """Of the held-out images, shape (n, D)."""


def runs(
    estimator: Any,
    X: Array,
    Y: Array,
    settings: list[dict[str, Any]],
    folds: list[Fold],
    refit_space: bool,
) -> Iterator[Run]:
    """Scores of the held-out images of every fold under every setting."""
    for group in _grouped(settings, _belongs_to_space(estimator)):
        space, _ = _parts(clone(estimator).set_params(**settings[group[0]]))
        embeddings = None if space is None or refit_space else space.fit(X, Y).transform(X)
        for number, (known, held_out) in enumerate(folds):
            if space is None:
                old, new = X[known], X[held_out]
            elif embeddings is not None:
                old, new = embeddings[known], embeddings[held_out]
            else:
                space.fit(X[known], Y[known])
                old, new = space.transform(X[known]), space.transform(X[held_out])
            methods = [_parts(clone(estimator).set_params(**settings[i]))[1] for i in group]
            for i, scores in zip(group, _scored(methods, old, Y[known], new), strict=True):
                yield Run(i, number, to_numpy(scores))


def _parts(estimator: Any) -> tuple[Any, Any]:
    """The transformers before the method, as one (or None), and the method."""
    if not isinstance(estimator, Pipeline):
        return None, estimator
    if len(estimator.steps) == 1:
        return None, estimator.steps[-1][1]
    return estimator[:-1], estimator.steps[-1][1]


def _belongs_to_space(estimator: Any) -> Callable[[str], bool]:
    """Whether a parameter belongs to what comes before the method."""
    if not isinstance(estimator, Pipeline):
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


def _scored(methods: list[BaseEstimator], old: Array, Y: Array, new: Array) -> Iterator[Any]:
    """Scores of new images by each method; methods with the same neighbours share one search."""
    simple = all(
        isinstance(m, NeighborTransfer) and not getattr(m, "metric_learning", False)
        for m in methods
    )
    if not simple:
        for method in methods:
            yield method.fit(old, Y).decision_function(new)
        return
    parameters = [m.get_params(deep=False) for m in methods]
    scores: list[Any] = [None] * len(methods)
    for group in _grouped(parameters, lambda name: name in _SEARCH_PARAMETERS):
        shared = _SharedNeighbors([methods[i] for i in group], old, Y, new)
        for i in group:
            scores[i] = partial(shared.scored, methods[i])
    for score in scores:
        yield score()


class _SharedNeighbors:
    """Neighbours for methods that need the same ones, at the largest number that any asks for."""

    def __init__(self, methods: list[Any], old: Array, Y: Array, new: Array):
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
        if any(isinstance(m, TagProp) for m in methods):
            self.of_old = index.kneighbors(old, min(most, n - 1), exclude=np.arange(n))

    def scored(self, method: Any) -> Any:
        """Scores of the new images by one of the methods."""
        return method.fit_neighbors(*self.of_old, self.Y).score_neighbors(*self.of_new)
