"""Choose settings by 3-fold cross-validation on training images, with shared neighbour lists.

In each fold the space is learned again from the images that are not held out. (The paper learns it
once from all training images, so that the labels of held-out images influence their embeddings.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.config import Config
from experiments.embeddings import embed
from experiments.methods import NeighborLists, Setting, grid, score
from experiments.problem import Problem, sample
from tagkin.evaluation import mean_average_precision
from tagkin.model_selection import random_folds

__all__ = ["N_FOLDS", "best_setting", "cross_validated", "folds", "neighbor_lists"]

N_FOLDS = 3


def folds(n: int, seed: int) -> list[np.ndarray]:
    """Held-out images of each fold."""
    return [fold.held_out for fold in random_folds(n, N_FOLDS, seed)]


def neighbor_lists(known: np.ndarray, new: np.ndarray, Y: Any, config: Config) -> NeighborLists:
    """Neighbour lists long enough for every setting of the grid."""
    most = max(config.neighbors)
    return NeighborLists(
        known, new, Y, most, min(config.max_learned_neighbors, most), max(config.per_label)
    )


def cross_validated(
    problem: Problem,
    recipe: str,
    config: Config,
    methods: Sequence[str],
    regularization: float | None = None,
) -> dict[str, np.ndarray]:
    """MAP of every setting in every fold: method to an array (settings, folds).

    For a linear space, "kernel ridge" holds the MAP of its own regression.
    """
    rows = sample(len(problem.known), config.cv_images, config.seed + 1)
    found: dict[str, list[list[float]]] = {method: [] for method in methods}
    for held_out in folds(len(rows), config.seed):
        known = np.setdiff1d(np.arange(len(rows)), held_out, assume_unique=True)
        part = problem.part(rows[known], rows[held_out])
        there = embed(part, recipe, config, regularization=regularization)
        lists = neighbor_lists(there.known, there.new, part.Y, config)
        for method in methods:
            scores = (score(method, setting, lists) for setting in grid(method, config))
            found[method].append([mean_average_precision(part.truth, s) for s in scores])
        if there.ridge is not None:
            value = mean_average_precision(part.truth, there.ridge)
            found.setdefault("kernel ridge", []).append([value])
    return {method: np.array(values).T for method, values in found.items()}


def best_setting(method: str, trials: np.ndarray, config: Config) -> Setting:
    """The setting with the highest mean MAP; the first of ties.

    MAP does not compare labels on the same image: a strongly regularised SVM ranks images as well
    as others do, yet gives every image the same frequent labels. So of the values of C within half
    a point of the best, the largest is chosen.
    """
    means = trials.mean(axis=1)
    settings = grid(method, config)
    if method != "SVM":
        return settings[int(means.argmax())]
    as_good = [one for one, mean in zip(settings, means, strict=True) if mean >= means.max() - 5e-3]
    return max(as_good, key=lambda setting: setting["C"])
