"""What it costs to be honest, and what it costs not to be: spaces that have seen the answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from experiments.problem import Problem
from tagkin import LabelCalibrator, SemanticSpace
from tagkin.evaluation import mean_average_precision
from tagkin.model_selection import random_folds
from tagkin.paper import NeighborVoting

__all__ = ["choice_rows", "precision_rows"]

WANTED = (0.5, 0.8, 0.9)
KAPPAS = (0.1, 0.5, 2.0, 8.0)
N_FOLDS = 3
WAYS = {"fitted once on all": False, "fitted in each fold": True}  # whether to refit the space

Row = dict[str, Any]


def _pipeline(n_landmarks: int) -> Any:
    space = SemanticSpace(n_landmarks=n_landmarks)
    return make_pipeline(space, NeighborVoting(n_neighbors=50))


def _held_out_scores(pipeline: Any, problem: Problem, *, refit_space: bool) -> np.ndarray:
    """Held-out scores of the known images, by spaces fitted in each fold or one fitted on all."""
    X, learner = problem.known, pipeline
    if not refit_space:
        space, learner = clone(pipeline)
        X = space.fit_transform(X, problem.Y)
    folds = random_folds(len(X), N_FOLDS)
    labels = problem.Y.toarray()  # scikit-learn would not split sparse labels
    return cross_val_predict(learner, X, labels, cv=folds, method="decision_function")


def precision_rows(problem: Problem, n_landmarks: int = 2048) -> list[Row]:
    """Precision asked for and reached on new images, for each way."""
    pipeline = _pipeline(n_landmarks)
    fitted = clone(pipeline).fit(problem.known, problem.Y)
    scores, truth = fitted.decision_function(problem.new), problem.truth.toarray() > 0
    rows = []
    for name, refit_space in WAYS.items():
        held_out = _held_out_scores(pipeline, problem, refit_space=refit_space)
        row: Row = {"space": name}
        calibrator = LabelCalibrator().fit(held_out, problem.Y)
        P = calibrator.predict_proba(scores)
        for wanted in WANTED:
            given = calibrator.threshold(wanted) <= P
            row[f"asked {wanted}"] = float(truth[given].mean()) if given.any() else float("nan")
        rows.append(row)
    return rows


def choice_rows(problem: Problem, n_landmarks: int = 1024) -> list[Row]:
    """MAP that cross-validation says of each κ, and MAP on new images."""
    rows: list[Row] = []
    folds = random_folds(len(problem.known), N_FOLDS)
    for kappa in KAPPAS:
        pipeline = _pipeline(n_landmarks).set_params(semanticspace__regularization=kappa)
        row: Row = {"κ": kappa}
        for name, refit_space in WAYS.items():
            held_out = _held_out_scores(pipeline, problem, refit_space=refit_space)
            by_fold = [mean_average_precision(problem.Y[new], held_out[new]) for _, new in folds]
            row[name] = float(np.mean(by_fold))
        scores = pipeline.fit(problem.known, problem.Y).decision_function(problem.new)
        rows.append(row | {"MAP on new images": mean_average_precision(problem.truth, scores)})
    return rows
