"""Cross-validation of an estimator on held-out images."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.base import BaseEstimator

from tagkin.arrays import Array, check_features, check_groups, check_label_matrix
from tagkin.errors import InvalidInput
from tagkin.evaluation import evaluate, mean_average_precision, mean_image_average_precision
from tagkin.model_selection.folds import Splits, make_folds
from tagkin.model_selection.scoring import Images, score_settings
from tagkin.progress import Progress, with_progress

__all__ = ["MEASURES", "Measure", "evaluate_folds", "find_measure", "held_out_scores"]

Measure = Callable[[Array, Array], float]

# to compare settings by, named like the metrics of `tagkin.evaluate`
MEASURES: dict[str, Measure] = {
    "MAP": mean_average_precision,
    "MiAP": mean_image_average_precision,
    "image_precision": lambda Y, S: evaluate(Y, S)["image_precision"],
    "image_recall": lambda Y, S: evaluate(Y, S)["image_recall"],
    "hit_rate": lambda Y, S: evaluate(Y, S)["hit_rate"],
    "macro_precision": lambda Y, S: evaluate(Y, S)["macro_precision"],
    "macro_recall": lambda Y, S: evaluate(Y, S)["macro_recall"],
    "n_plus": lambda Y, S: evaluate(Y, S)["n_plus"],
}


def find_measure(measure: str | Measure) -> Measure:
    """Return a measure by its name, or the function itself."""
    if callable(measure):
        return measure
    if measure not in MEASURES:
        raise InvalidInput(
            f"measure must be one of {', '.join(MEASURES)}, or a function of (Y, S); found "
            f"{measure!r}."
        )
    return MEASURES[measure]


def evaluate_folds(
    estimator: BaseEstimator,
    X: Array,
    Y: Array,
    *,
    measure: str | Measure = "MAP",
    cv: int | Splits = 3,
    groups: Array | None = None,
    refit_space: bool = True,
    random_state: int | None = 0,
    progress: bool | Progress = True,
) -> np.ndarray:
    """Return the measure of an estimator on each fold, shape (n_folds,).

    Parameters are those of `grid_search`.

    Parameters
    ----------
    estimator : estimator
        A method, or a pipeline of a space and a method; it is not changed.
    X : array of shape (N, d)
        Features of N images.
    Y : array or sparse matrix of shape (N, D)
        Labels: 0 if absent.
    measure : str or callable, default "MAP"
        What to measure, a name in `MEASURES`.
    cv : int or splitter, default 3
        Number of folds, or a splitter of scikit-learn.
    groups : array of shape (N,), optional
        Which images belong together, such as the shots of a burst.
    refit_space : bool, default True
        Fit the space without the held-out images; False is the way of the paper.
    random_state : int or None, default 0
        Seed of the split.
    progress : bool or callable, default True
        Whether to show progress, or a function to call.
    """
    images = check_inputs(estimator, X, Y, groups)
    score = find_measure(measure)
    folds = make_folds(len(images.X), images.Y, cv, images.groups, random_state)
    runs = score_settings(estimator, images, [{}], folds, refit_space)
    shown_runs = with_progress(runs, len(folds), "Cross-validating", progress)
    return np.array([score(images.Y[folds[run.fold].held_out], run.scores) for run in shown_runs])


def held_out_scores(
    estimator: BaseEstimator,
    X: Array,
    Y: Array,
    *,
    cv: int | Splits = 3,
    groups: Array | None = None,
    refit_space: bool = True,
    random_state: int | None = 0,
    progress: bool | Progress = True,
) -> np.ndarray:
    """Return the scores (N×D) of every image from an estimator fitted without it.

    `LabelCalibrator` learns probabilities and thresholds from them. Parameters are those of
    `grid_search`; folds must hold out every image once. X are features, and the space is a part of
    the estimator (``make_pipeline(space, method)``). Embeddings in a space that was fitted on
    these images know the images' labels. Scores from such embeddings, and probabilities learned
    from them, are too high; the same applies to ``refit_space=False``.

    Parameters
    ----------
    estimator : estimator
        A method, or a pipeline of a space and a method; it is not changed.
    X : array of shape (N, d)
        Features of N images.
    Y : array or sparse matrix of shape (N, D)
        Labels: 0 if absent.
    cv : int or splitter, default 3
        Number of folds, or a splitter of scikit-learn.
    groups : array of shape (N,), optional
        Which images belong together, such as the shots of a burst.
    refit_space : bool, default True
        Fit the space without the held-out images; False is the way of the paper.
    random_state : int or None, default 0
        Seed of the split.
    progress : bool or callable, default True
        Whether to show progress, or a function to call.
    """
    images = check_inputs(estimator, X, Y, groups)
    n = len(images.X)
    folds = make_folds(n, images.Y, cv, images.groups, random_state)
    held_out = np.concatenate([fold.held_out for fold in folds])
    if len(held_out) != n or len(np.unique(held_out)) != n:
        raise InvalidInput(
            f"cv={cv!r} does not hold every image out once. Pass a number of folds, or a splitter "
            "such as KFold or GroupKFold."
        )
    runs = score_settings(estimator, images, [{}], folds, refit_space)
    scores = None
    for run in with_progress(runs, len(folds), "Scoring", progress):
        if scores is None:
            scores = np.empty((n, run.scores.shape[1]), dtype=run.scores.dtype)
        scores[folds[run.fold].held_out] = run.scores
    assert scores is not None
    return scores


def check_inputs(estimator: BaseEstimator, X: Array, Y: Array, groups: Array | None) -> Images:
    """Check an estimator, and features (N×d), labels (N×D) and groups (N,) of its images."""
    if not hasattr(estimator, "decision_function"):
        raise InvalidInput(
            "estimator must score labels: a method of tagkin.transfer, or a pipeline that ends in "
            f"one; found {estimator!r:.200}."
        )
    features = check_features(X, min_rows=2)
    n = features.shape[0]
    labels = check_label_matrix(Y, n)
    return Images(features, labels, None if groups is None else check_groups(groups, n))
