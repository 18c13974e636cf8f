"""Spaces of each fold, solved from one set of sums, and the choice of κ."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from sklearn.base import clone

from tagkin.annotator.problem import SIZES, Part, Problem
from tagkin.annotator.recipe import CHOOSING, Recipe
from tagkin.arrays import Array
from tagkin.arrays.blocks import evenly_spaced
from tagkin.arrays.threads import run_tasks
from tagkin.errors import InvalidInput
from tagkin.evaluation import mean_average_precision
from tagkin.space.parts import LeaveOutSpaces
from tagkin.space.semantic_space import SemanticSpace, uses_landmarks
from tagkin.transfer.readout import Readout

__all__ = ["FoldFit", "FoldSpaces", "fit_space", "hill_climb", "run_folds"]

T = TypeVar("T")


def run_folds(tasks: Sequence[Callable[[], T]], n_images: int) -> Generator[T]:
    """Yield task results in order, in parallel when that is faster and memory holds them all."""
    return run_tasks(tasks) if n_images <= SIZES.huge else (task() for task in tasks)


def fit_space(problem: Problem, recipe: Recipe) -> tuple[SemanticSpace | None, Array]:
    """Fit a space on all images, and embed them; None and the features without a space."""
    if recipe.space is None:
        return None, problem.X
    space = clone(recipe.space).fit(problem.X, problem.Y)
    return space, space.transform(problem.X)


class FoldFit(NamedTuple):
    """Embeddings of a fold, and the read-out of its known images, if one was fitted."""

    known: Array
    held_out: Array
    readout: Readout | None = None


class FoldSpaces:
    """Spaces that have not seen the held-out images of a fold."""

    def __init__(self, problem: Problem, recipe: Recipe, part: Part):
        self.problem, self.recipe, self.folds = problem, recipe, part.folds
        self.labels = part.labels(problem.Y)
        self.sums: LeaveOutSpaces | None = None
        X, space = problem.X, recipe.space
        if space is not None:
            parts = [fold.held_out for fold in self.folds]
            others = np.setdiff1d(np.arange(len(X)), np.concatenate(parts))
            parts += [others] if len(others) else []
            self.sums = LeaveOutSpaces(space, X, problem.Y, parts).compute_sums()

    def embed(self, number: int, kappa: float | None, most: int | None = None) -> FoldFit:
        """Embed a fold's images in the space fitted on its known images with this κ.

        With `most`, at most `most` known images and some held-out images are embedded. If there
        are too few labels for a space, features are returned instead of embeddings.
        """
        known, held_out = self.rows(number, most)
        X, space = self.problem.X, self.recipe.space
        if space is None or self.sums is None:
            return FoldFit(X[known], X[held_out])
        options = {} if kappa is None else {"regularization": kappa}
        try:
            n_landmarks = max(1, int(CHOOSING.landmarks * space.n_landmarks))
            fitted = self.sums.without(number, n_landmarks, **options)
            old, new = self.sums.embeddings(fitted, (known, held_out))
            return FoldFit(old, new)
        except InvalidInput:
            return FoldFit(X[known], X[held_out])

    def embed_everything(self, kappa: float | None) -> tuple[SemanticSpace | None, Array | None]:
        """Return the space of all images and their embeddings; None for both without sums."""
        if self.sums is None:
            return None, None
        space = self.sums.whole(**({} if kappa is None else {"regularization": kappa}))
        if space is None:
            return None, None
        (embeddings,) = self.sums.embeddings(space, [slice(None)])
        return space, embeddings

    def choose_kappa(self) -> tuple[float | None, dict[int, FoldFit]]:
        """Choose the κ with the best read-out MAP; None without a space, or without a choice.

        Also return the folds that were fitted as a whole with this κ, by number.
        """
        space, values = self.recipe.space, self.recipe.regularizations
        if space is None or not values:
            return None, {}
        if len(values) == 1:  # nothing to compare
            return values[0], {}
        fits: dict[float, dict[int, FoldFit]] = {}

        def rank(candidates: Sequence[float]) -> list[float]:
            tasks = [partial(self._rank_readout, kappa) for kappa in candidates]
            ranks = []
            for kappa, (value, fitted) in zip(
                candidates, run_folds(tasks, len(self.problem.X)), strict=True
            ):
                fits[kappa] = fitted
                ranks.append(value)
            return ranks

        n = len(self.problem.X)
        lost = CHOOSING.lost if uses_landmarks(space, n) else 0.0
        level = CHOOSING.level if n >= SIZES.many else 0.0
        kappa = hill_climb(values, space.regularization, rank, lost, level)
        return kappa, fits[kappa]

    def _rank_readout(self, kappa: float) -> tuple[float, dict[int, FoldFit]]:
        """Return the MAP of a read-out on held-out images, and the folds fitted as a whole.

        It tries all folds if images are few, else the first.
        """
        precisions, fits = [], {}
        for number in range(len(self.folds)) if len(self.problem.X) < SIZES.many else [0]:
            known, held_out = self.rows(number, CHOOSING.most_known)
            fit = self.embed(number, kappa, CHOOSING.most_known)
            method = self.recipe.method.new_readout().fit(fit.known, self.labels[known])
            readout = method.readout_
            if len(known) + len(held_out) == sum(map(len, self.folds[number])):
                fits[number] = fit._replace(readout=readout)
            truth = self.labels[held_out]
            if truth.nnz:
                scores = readout.decision_function(fit.held_out)
                precisions.append(mean_average_precision(truth, scores))
        return float(np.mean(precisions)) if precisions else 0.0, fits

    def rows(self, number: int, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return known and held-out images of a fold, evenly spaced if more than `most`."""
        known, held_out = self.folds[number]
        if most is None:
            return known, held_out
        return evenly_spaced(known, most), evenly_spaced(held_out, CHOOSING.most_held_out)


def hill_climb(
    values: Sequence[float],
    start: float,
    rank: Callable[[Sequence[float]], Sequence[float]],
    lost: float = 0.0,
    level: float = 0.0,
) -> float:
    """Return the best of ascending values, climbing from the one nearest to `start`.

    `rank` returns the quality of values. A larger value counts as equal to a smaller one that is
    better by the share `lost`. Values smaller than the first are not tried if the next larger one
    is worse by less than the share `level`: the top is between the two.
    """
    at = 0
    if len(values) > 1:
        at = int(np.argmin(np.abs(np.log(values) - np.log(start))))
    known = dict(enumerate(rank(values[at : at + 2]), at))  # both are always needed
    best = known[at]
    for direction in (1, -1):
        moved = False
        while 0 <= (next_ := at + direction) < len(values):
            if next_ not in known:
                (known[next_],) = rank([values[next_]])
            if known[next_] <= best * (1 - direction * lost):
                break
            at, best, moved = next_, max(best, known[next_]), True
        if moved or known.get(at + 1, -np.inf) > best * (1 - level):
            break
    return values[at]
