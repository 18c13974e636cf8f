"""Cross-validation: how good a method is on images it has not seen, and which setting is best.

An estimator is a method of `tagkin.transfer`, or a scikit-learn pipeline of a `SemanticSpace` (or
any transformers) and such a method. What costs most is done once: a space is fitted once for
each of its own settings, and neighbours are searched once, at the largest number asked for;
smaller numbers are slices of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from tqdm.auto import tqdm

from tagkin.arrays import Array, check_features, check_integer, check_label_matrix, to_numpy
from tagkin.errors import InvalidInput
from tagkin.evaluation.metrics import (
    evaluate,
    mean_average_precision,
    mean_image_average_precision,
    n_plus,
    precision_recall_at,
)
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.transfer import NeighborTransfer, TagProp, TwoPassKNN

__all__ = ["Choice", "Trial", "choose", "cross_validate", "held_out_scores"]

Measure = Callable[[Array, Array], float]

MEASURES: dict[str, Measure] = {
    "MAP": mean_average_precision,
    "MiAP": mean_image_average_precision,
    "image_precision": lambda Y, S: evaluate(Y, S)["image_precision"],
    "image_recall": lambda Y, S: evaluate(Y, S)["image_recall"],
    "hit_rate": lambda Y, S: evaluate(Y, S)["hit_rate"],
    "macro_precision": lambda Y, S: precision_recall_at(Y, S)[0],
    "macro_recall": lambda Y, S: precision_recall_at(Y, S)[1],
    "n_plus": n_plus,
}

# Parameters of a method that say what a neighbour is; with all others the same lists serve.
_SEARCH = ("metric", "index", "metric_learning", "random_state")


@dataclass(frozen=True)
class Trial:
    """One setting and what it reached."""

    parameters: dict[str, Any]
    scores: np.ndarray
    """The measure on each fold, shape (n_folds,)."""

    @property
    def mean(self) -> float:
        """Mean over the folds."""
        return float(self.scores.mean())


@dataclass(frozen=True)
class Choice:
    """The best setting, and all that were tried."""

    estimator: Any
    """With the best setting, fitted on all images."""
    parameters: dict[str, Any]
    score: float
    """Mean of the measure over the folds, at the best setting."""
    trials: list[Trial]
    """In the order of the grid."""

    def __str__(self) -> str:
        """A table of all trials, the best marked."""
        names = list(self.parameters)
        rows = [[*names, "mean", "folds"]]
        for trial in self.trials:
            folds = " ".join(f"{score:.4f}" for score in trial.scores)
            mark = "  <- best" if trial.parameters == self.parameters else ""
            values = [str(trial.parameters[name]) for name in names]
            rows.append([*values, f"{trial.mean:.4f}", folds + mark])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False))
            + "  "
            + row[-1]
            for row in rows
        )


def choose(
    estimator: Any,
    X: Array,
    Y: Array,
    grid: Mapping[str, Sequence[Any]],
    *,
    measure: str | Measure = "MAP",
    n_folds: int = 3,
    refit_space: bool = False,
    random_state: int | None = 0,
    progress: bool | Callable[[int, int], None] = True,
) -> Choice:
    """The best setting of a grid by cross-validation on the images given.

    Parameters
    ----------
    estimator : a method of `tagkin.transfer`, or a pipeline that ends in one
    X : array of shape (N, d)
        What the estimator is fitted on: places, or with a space in the pipeline, features.
    Y : array or sparse matrix of shape (N, D)
    grid : dict of parameter to values
        Every combination is tried. In a pipeline, parameters are named as scikit-learn does:
        ``semanticspace__regularization``, ``neighborvoting__n_neighbors``.
    measure : str, or a function of (Y, S)
        What is to be large, by its name in what `evaluate` returns, at 5 labels per image.
    n_folds : int, default 3
    refit_space : bool, default False
        Fit the space on the training part of each fold: slower and cleaner. Otherwise, as the
        paper does, it is fitted once on all images, and folds are of the method alone.
    random_state : int or None
        Seed of the folds.
    progress : bool or function, default True
        Show a progress bar where there is a terminal; or a function that is told how many of how
        many runs are done.

    Returns
    -------
    choice : Choice
        Of equal settings the first wins.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.model_selection import choose
    >>> from tagkin.transfer import NeighborVoting
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.random((300, 4)) < 0.3
    >>> Z = Y + rng.normal(size=(300, 4))
    >>> found = choose(NeighborVoting(), Z, Y, {"n_neighbors": [1, 30]}, progress=False)
    >>> found.parameters
    {'n_neighbors': 30}
    """
    X, Y = _checked(X, Y)
    measured = _measure(measure)
    settings = _settings(estimator, grid)
    folds = _folds(X.shape[0], n_folds, random_state)
    scores = np.empty((len(settings), len(folds)))
    told = progress if callable(progress) else lambda done, total: None
    shown = bool(progress) and not callable(progress)
    with tqdm(total=scores.size, desc="Cross-validating", **_shown(shown)) as bar:
        for done, result in enumerate(_runs(estimator, X, Y, settings, folds, refit_space), 1):
            value = measured(Y[folds[result.fold]], result.scores)
            if np.isnan(value):
                raise InvalidInput(
                    f"The measure is NaN for {settings[result.setting]} on fold {result.fold}."
                )
            scores[result.setting, result.fold] = value
            bar.update()
            told(done, scores.size)
    trials = [Trial(s, row) for s, row in zip(settings, scores, strict=True)]
    best = max(trials, key=lambda trial: trial.mean)
    fitted = clone(estimator).set_params(**best.parameters).fit(X, Y)
    return Choice(fitted, best.parameters, best.mean, trials)


def cross_validate(
    estimator: Any,
    X: Array,
    Y: Array,
    *,
    measure: str | Measure = "MAP",
    n_folds: int = 3,
    refit_space: bool = False,
    random_state: int | None = 0,
    progress: bool = True,
) -> np.ndarray:
    """The measure of an estimator as it is, on each fold, shape (n_folds,).

    Parameters are those of `choose`.
    """
    X, Y = _checked(X, Y)
    measured = _measure(measure)
    folds = _folds(X.shape[0], n_folds, random_state)
    runs = _runs(estimator, X, Y, [{}], folds, refit_space)
    shown = tqdm(runs, total=len(folds), desc="Cross-validating", **_shown(progress))
    return np.array([measured(Y[folds[run.fold]], run.scores) for run in shown])


def held_out_scores(
    estimator: Any,
    X: Array,
    Y: Array,
    *,
    n_folds: int = 3,
    refit_space: bool = False,
    random_state: int | None = 0,
    progress: bool = True,
) -> np.ndarray:
    """Scores (N×D) of every image from a method that was fitted without it.

    They are what `LabelCalibrator` learns probabilities and thresholds from. Parameters are those
    of `choose`. A space in a pipeline has seen the image unless ``refit_space=True``, and so has
    one that X was projected into beforehand: the scores are then too good, and probabilities
    learned from them too high.
    """
    X, Y = _checked(X, Y)
    folds = _folds(X.shape[0], n_folds, random_state)
    runs = _runs(estimator, X, Y, [{}], folds, refit_space)
    scores = None
    for run in tqdm(runs, total=len(folds), desc="Scoring", **_shown(progress)):
        if scores is None:
            scores = np.empty((X.shape[0], run.scores.shape[1]), dtype=run.scores.dtype)
        scores[folds[run.fold]] = run.scores
    assert scores is not None
    return scores


# --- settings and folds ------------------------------------------------------------------


def _checked(X: Array, Y: Array) -> tuple[Array, Array]:
    X = check_features(X, min_rows=2)
    return X, check_label_matrix(Y, X.shape[0])


def _measure(measure: str | Measure) -> Measure:
    if callable(measure):
        return measure
    if measure not in MEASURES:
        raise InvalidInput(
            f"measure must be one of {', '.join(MEASURES)}, or a function of (Y, S); found "
            f"{measure!r}."
        )
    return MEASURES[measure]


def _settings(estimator: Any, grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the grid."""
    known = estimator.get_params()
    for name, values in grid.items():
        if name not in known:
            raise InvalidInput(
                f"{type(estimator).__name__} has no parameter {name!r}. It has "
                f"{', '.join(sorted(known))}."
            )
        if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
            raise InvalidInput(f"The grid needs a list of values for {name}; found {values!r}.")
        if not len(values):
            raise InvalidInput(f"The grid has no value for {name}.")
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def _folds(n_images: int, n_folds: int, random_state: int | None) -> list[np.ndarray]:
    """Held-out images of each fold, ascending."""
    check_integer("n_folds", n_folds, 2)
    if n_images < 2 * n_folds:
        raise InvalidInput(
            f"Found {n_images} images for {n_folds} folds; there must be at least two a fold."
        )
    order = np.random.default_rng(random_state).permutation(n_images)
    return [np.sort(part) for part in np.array_split(order, n_folds)]


def _shown(progress: bool) -> dict[str, Any]:
    return {"disable": None if progress else True, "leave": False}  # None: only on a terminal


# --- running -----------------------------------------------------------------------------


class _Run(NamedTuple):
    setting: int
    fold: int
    scores: np.ndarray


def _runs(
    estimator: Any,
    X: Array,
    Y: Array,
    settings: list[dict[str, Any]],
    folds: list[np.ndarray],
    refit_space: bool,
) -> Iterator[_Run]:
    """Scores of the held-out images of every fold under every setting."""
    for group in _grouped(settings, _is_of_space(estimator)):
        space, _ = _parts(clone(estimator).set_params(**settings[group[0]]))
        places = None if space is None or refit_space else space.fit(X, Y).transform(X)
        for fold, held_out in enumerate(folds):
            known = np.setdiff1d(np.arange(X.shape[0]), held_out, assume_unique=True)
            if space is None:
                old, new = X[known], X[held_out]
            elif places is not None:
                old, new = places[known], places[held_out]
            else:
                space.fit(X[known], Y[known])
                old, new = space.transform(X[known]), space.transform(X[held_out])
            methods = [_parts(clone(estimator).set_params(**settings[i]))[1] for i in group]
            for i, scores in zip(group, _scored(methods, old, Y[known], new), strict=True):
                yield _Run(i, fold, to_numpy(scores))


def _parts(estimator: Any) -> tuple[Any, Any]:
    """The transformers before the method, as one (or None), and the method."""
    if not isinstance(estimator, Pipeline):
        return None, estimator
    if len(estimator.steps) == 1:
        return None, estimator.steps[-1][1]
    return estimator[:-1], estimator.steps[-1][1]


def _is_of_space(estimator: Any) -> Callable[[str], bool]:
    """Whether a parameter belongs to what comes before the method."""
    if not isinstance(estimator, Pipeline):
        return lambda name: False
    last = estimator.steps[-1][0]
    return lambda name: name != last and not name.startswith(last + "__")


def _grouped(
    settings: Sequence[Mapping[str, Any]], shared: Callable[[str], bool]
) -> list[list[int]]:
    """Numbers of the settings, grouped by the values of the parameters that are `shared`."""
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
    """Scores of new images by each method; those that search alike share one search."""
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
    for group in _grouped(parameters, lambda name: name in _SEARCH):
        lists = _Lists([methods[i] for i in group], old, Y, new)
        for i in group:
            scores[i] = partial(lists.scored, methods[i])
    for score in scores:
        yield score()


class _Lists:
    """Neighbours for methods that search alike, at the largest number that any asks for."""

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
