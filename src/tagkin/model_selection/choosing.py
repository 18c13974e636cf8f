"""Choosing parameters: the best setting of a grid by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone

from tagkin.arrays import Array, check_groups
from tagkin.arrays.labels import as_labels
from tagkin.errors import InvalidInput
from tagkin.model_selection.cross_validation import checked
from tagkin.model_selection.folds import make_folds
from tagkin.model_selection.measures import Measure, find_measure
from tagkin.model_selection.scoring import Told, runs
from tagkin.progress import Progress, with_progress

__all__ = ["GridSearchResult", "Trial", "grid_search"]


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
class GridSearchResult:
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


def grid_search(
    estimator: Any,
    X: Array,
    Y: Array,
    grid: Mapping[str, Sequence[Any]],
    *,
    measure: str | Measure = "MAP",
    cv: Any = 3,
    groups: Array | None = None,
    rejected: Array | None = None,
    refit_space: bool = True,
    random_state: int | None = 0,
    progress: bool | Progress = True,
) -> GridSearchResult:
    """The best setting of a grid by cross-validation.

    Finds what scikit-learn's `GridSearchCV` would, faster: the sums that spaces are solved from
    are taken once for all folds and all κ, and neighbours are searched once per fold, at the
    largest number asked for.

    Parameters
    ----------
    estimator : a method of `tagkin.transfer`, or a pipeline that ends in one
    X : array of shape (N, d)
        What the estimator is fitted on: features. A space belongs into the pipeline; embeddings
        in a space that was fitted on these images and their labels have seen the answers, and
        every figure found from them is too good.
    Y : array, sparse matrix or DataFrame of shape (N, D)
        The names of a DataFrame's columns are the `classes_` of what is returned.
    grid : dict of parameter to values
        Every combination is tried. In a pipeline, parameters are named as in scikit-learn:
        ``semanticspace__regularization``, ``neighborvoting__n_neighbors``.
    measure : str, or a function of (Y, S)
        What is to be large, by its name in what `evaluate` returns, at 5 labels per image.
    cv : int, scikit-learn splitter, or pairs of (known, held-out) indices, default 3
        A number of folds, drawn at random or, with `groups`, by scikit-learn's `GroupKFold`.
    groups : array of shape (N,), optional
        The group of each image, such as a burst or a day; `find_groups` finds near-duplicates.
        Images of a group are held out together, and do not count as each other's neighbours where
        a method learns from neighbours.
    rejected : array or sparse matrix of shape (N, D), optional
        Above 0 where a person said that an image does not show a label, for methods that take it.
    refit_space : bool, default True
        Learn the space of each fold from its known images. Otherwise, as in the paper, it is
        fitted once on all images, whose labels it has then seen: figures are too good, and the
        best setting may be the one that overfits most.
    random_state : int or None, default 0
        Seed of random folds.
    progress : bool or function, default True
        Show a progress bar on a terminal; or call a function with what is done, the number of
        runs done and the number of all.

    Returns
    -------
    result : GridSearchResult
        Of equal settings the first wins.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.model_selection import grid_search
    >>> from tagkin.transfer import NeighborVoting
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.random((300, 4)) < 0.3
    >>> Z = Y + rng.normal(size=(300, 4))
    >>> found = grid_search(NeighborVoting(), Z, Y, {"n_neighbors": [1, 30]}, progress=False)
    >>> found.parameters
    {'n_neighbors': 30}
    """
    given = X, Y  # what is fitted in the end takes the names of labels from a DataFrame
    X, Y = checked(X, Y)
    groups = None if groups is None else check_groups(groups, X.shape[0])
    measured = find_measure(measure)
    settings = _settings(estimator, grid)
    folds = make_folds(X.shape[0], Y, cv, groups, random_state)
    scores = np.empty((len(settings), len(folds)))
    told = Told(groups, None if rejected is None else as_labels(rejected, X.shape[0]))
    found = runs(estimator, X, Y, settings, folds, refit_space, told)
    for run in with_progress(found, scores.size, "Cross-validating", progress):
        value = measured(Y[folds[run.fold].held_out], run.scores)
        if np.isnan(value):
            raise InvalidInput(
                f"The measure is NaN for {settings[run.setting]} on fold {run.fold}."
            )
        scores[run.setting, run.fold] = value
    trials = [Trial(s, row) for s, row in zip(settings, scores, strict=True)]
    best = max(trials, key=lambda trial: trial.mean)
    fitted = told.fit(clone(estimator).set_params(**best.parameters), *given)
    return GridSearchResult(fitted, best.parameters, best.mean, trials)


def _settings(estimator: Any, grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the grid."""
    known = estimator.get_params()
    if not isinstance(grid, Mapping):
        raise InvalidInput(
            f"The grid is a dict of a parameter's name to a list of values; found {grid!r:.200}. "
            "Search several grids one by one."
        )
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
