"""What it costs to be honest, and what it costs not to be: spaces that have seen the answers."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from experiments.problem import Problem
from tagkin import LabelCalibrator, NeighborVoting, SemanticSpace
from tagkin.evaluation import mean_average_precision
from tagkin.model_selection import grid_search, held_out_scores

__all__ = ["choice_rows", "precision_rows"]

WANTED = (0.5, 0.8, 0.9)
KAPPAS = (0.1, 0.5, 2.0, 8.0)

Row = dict[str, Any]


def _pipeline(n_landmarks: int) -> Any:
    space = SemanticSpace(n_landmarks=n_landmarks)
    return make_pipeline(space, NeighborVoting(n_neighbors=50))


def _ways(n_landmarks: int) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Pipelines, and what `held_out_scores` is told, by what they are called in the tables."""
    space, method = (step for _, step in _pipeline(n_landmarks).steps)
    return {
        "fitted once on all (refit_space=False)": (
            _pipeline(n_landmarks),
            {"refit_space": False},
        ),
        "sums without the fold (the default)": (_pipeline(n_landmarks), {}),
        # behind another step a space is fitted anew
        "fitted in each fold": (make_pipeline("passthrough", space, method), {}),
    }


def precision_rows(problem: Problem, n_landmarks: int = 2048) -> list[Row]:
    """Precision asked for and reached on new images, and processor seconds, for each way."""
    fitted = _pipeline(n_landmarks).fit(problem.known, problem.Y)
    scores, truth = fitted.decision_function(problem.new), problem.truth.toarray() > 0
    rows = []
    for name, (pipeline, told) in _ways(n_landmarks).items():
        before = time.process_time()
        held_out = held_out_scores(pipeline, problem.known, problem.Y, progress=False, **told)
        row: Row = {"space": name, "CPU seconds": time.process_time() - before}
        calibrator = LabelCalibrator().fit(held_out, problem.Y)
        P = calibrator.predict_proba(scores)
        for wanted in WANTED:
            given = calibrator.threshold(wanted) <= P
            row[f"asked {wanted}"] = float(truth[given].mean()) if given.any() else float("nan")
        rows.append(row)
    return rows


def choice_rows(problem: Problem, n_landmarks: int = 1024) -> list[Row]:
    """MAP that `grid_search` says of each κ, and MAP on new images."""
    pipeline = _pipeline(n_landmarks)
    grid = {"semanticspace__regularization": list(KAPPAS)}
    told: dict[bool, np.ndarray] = {}
    seconds: dict[bool, float] = {}
    for refit in (False, True):
        before = time.process_time()
        found = grid_search(
            pipeline, problem.known, problem.Y, grid, refit_space=refit, progress=False
        )
        told[refit] = np.array([trial.mean for trial in found.trials])
        seconds[refit] = time.process_time() - before
    rows: list[Row] = []
    for i, kappa in enumerate(KAPPAS):
        one = clone(pipeline).set_params(semanticspace__regularization=kappa)
        scores = one.fit(problem.known, problem.Y).decision_function(problem.new)
        rows.append(
            {
                "κ": kappa,
                "with refit_space=False": told[False][i],
                "with the default": told[True][i],
                "MAP on new images": mean_average_precision(problem.truth, scores),
            }
        )
    rows.append(
        {
            "κ": "CPU seconds",
            "with refit_space=False": seconds[False],
            "with the default": seconds[True],
            "MAP on new images": None,
        }
    )
    return rows
