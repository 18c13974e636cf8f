"""Choose the best parameters of a grid by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from sklearn.base import BaseEstimator, clone

from tagkin.arrays import Array
from tagkin.errors import InvalidInput
from tagkin.model_selection.cross_validation import Measure, check_inputs, find_measure
from tagkin.model_selection.folds import Splits, make_folds
from tagkin.model_selection.scoring import score_settings
from tagkin.progress import Progress, with_progress

__all__ = ["GridSearchResult", "Trial", "grid_search"]


@dataclass(frozen=True)
class Trial:
    """A setting and its scores."""

    parameters: dict[str, object]
    scores: np.ndarray
    """The measure on each fold, shape (n_folds,)."""

    @property
    def mean(self) -> float:
        """Mean over the folds."""
        return float(self.scores.mean())


@dataclass(frozen=True)
class GridSearchResult:
    """The best setting, and all trials."""

    estimator: BaseEstimator
    """The estimator with the best setting, fitted on all images."""
    parameters: dict[str, object]
    score: float
    """Mean of the measure over the folds, at the best setting."""
    trials: list[Trial]
    """All trials, in the order of the grid."""

    def __str__(self) -> str:
        """Return a table of all trials, with the best marked."""
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
    estimator: BaseEstimator,
    X: Array,
    Y: Array,
    grid: Mapping[str, Sequence[object]],
    *,
    measure: str | Measure = "MAP",
    cv: int | Splits = 3,
    groups: Array | None = None,
    refit_space: bool = True,
    random_state: int | None = 0,
    progress: bool | Progress = True,
) -> GridSearchResult:
    """Return the best setting of a grid by cross-validation.

    The result is that of scikit-learn's `GridSearchCV`, but faster: the sums for solving spaces
    are computed once for all folds and all κ, and neighbours are searched once per fold, for the
    largest number.

    Parameters
    ----------
    estimator : a method of tagkin.transfer, or a pipeline that ends in one
    X : array of shape (N, d)
        Features. Put a space into the pipeline: embeddings in a space that was fitted on these
        images already know their labels, and all scores would be too high.
    Y : array, sparse matrix or DataFrame of shape (N, D)
        The columns of a DataFrame become the `classes_` of the fitted estimator.
    grid : dict of parameter to values
        Every combination is tried. In a pipeline, parameters are named as in scikit-learn:
        ``semanticspace__regularization``, ``neighborvoting__n_neighbors``.
    measure : str, or a function of (Y, S)
        Measure to maximise: a key of the result of `evaluate`, at 5 labels per image.
    cv : int, scikit-learn splitter, or pairs of (known, held-out) indices, default 3
        A number of folds, drawn at random or, with `groups`, by scikit-learn's `GroupKFold`.
    groups : array of shape (N,), optional
        The group of each image, such as a burst or a day; `find_groups` finds near-duplicates.
        Images of a group are held out together, and methods that learn from neighbours do not
        count them as each other's neighbours.
    refit_space : bool, default True
        Learn the space of each fold from its known images. Otherwise, as in the paper, fit it once
        on all images. It then knows the held-out labels, so scores are too high, and the best
        setting may be the one that overfits most.
    random_state : int or None, default 0
        Seed of random folds.
    progress : bool or function, default True
        Show a progress bar on a terminal; or call a function with the name of the task, the
        number of finished runs and the number of all runs.

    Returns
    -------
    result : GridSearchResult
        The first of several best settings wins.

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
    images = check_inputs(estimator, X, Y, groups)
    score = find_measure(measure)
    settings = _settings(estimator, grid)
    folds = make_folds(len(images.X), images.Y, cv, images.groups, random_state)
    scores = np.empty((len(settings), len(folds)))
    runs = score_settings(estimator, images, settings, folds, refit_space)
    for run in with_progress(runs, scores.size, "Cross-validating", progress):
        value = score(images.Y[folds[run.fold].held_out], run.scores)
        if np.isnan(value):
            raise InvalidInput(
                f"The measure is NaN for {settings[run.setting]} on fold {run.fold}."
            )
        scores[run.setting, run.fold] = value
    trials = [Trial(s, row) for s, row in zip(settings, scores, strict=True)]
    best = max(trials, key=lambda trial: trial.mean)
    named = images._replace(X=X, Y=Y)  # the names of features and labels, if they are DataFrames
    fitted = named.fit(clone(estimator).set_params(**best.parameters))
    return GridSearchResult(fitted, best.parameters, best.mean, trials)


def _settings(
    estimator: BaseEstimator, grid: Mapping[str, Sequence[object]]
) -> list[dict[str, object]]:
    """Return every combination of the grid."""
    known = estimator.get_params()
    if not isinstance(grid, Mapping):
        raise InvalidInput(
            f"grid must be a dict from parameter names to lists of values; found {grid!r:.200}. "
            "Search several grids separately."
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
