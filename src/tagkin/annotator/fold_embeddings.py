"""Embeddings of each fold, in spaces solved from one set of sums, and the κ that serves best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.annotator.side_by_side import one_thread_beside, outcomes, pay_beside
from tagkin.arrays import n_threads_for
from tagkin.errors import InvalidInput
from tagkin.evaluation import mean_average_precision
from tagkin.model_selection.folds import Fold
from tagkin.space.parts import SpaceParts

if TYPE_CHECKING:
    from tagkin.annotator.learning import Recipe

__all__ = ["REGULARIZATIONS", "FoldEmbeddings", "climbed", "some_of"]

REGULARIZATIONS = (0.03, 0.1, 0.5, 2.0, 8.0, 30.0)
_MANY = 2000  # images: from here on one fold says enough about κ
_TRIED = 12_000  # images that a read-out is learned from to compare values of κ, at most
# Landmarks of a fold's space, as a share of those of the space of all images: it has two thirds of
# the images, and to solve for it takes less than half the time. Held-out images rank nearly as
# well, so that confidences are as good; with half of them those were a point too low.
_LANDMARKS = 0.75
# Fewer landmarks regularise by themselves: the larger of two values of κ loses so much of its
# precision beside the smaller one (.2 to .5 % with half of them, on COCO and Flickr8k).
_LOST = 0.0015
# Around the usual κ precision bends down by 4 % and more from a value to the next (COCO, Flickr8k,
# 3,000 to 10,000 images): where the larger of the first two is below the smaller by less than
# `_LEVEL`, no smaller one is better; by more than `_STEEP`, the best is likely beyond the next.
_LEVEL, _STEEP = 0.015, 0.02


class FoldEmbeddings:
    """Embeddings of the known and of the held-out images of each fold."""

    def __init__(
        self,
        X: np.ndarray,
        Y: scipy.sparse.csr_array,
        recipe: Recipe,
        folds: Sequence[Fold],
        space_labels: scipy.sparse.csr_array,
    ):
        self.X, self.Y, self.recipe, self.folds = X, Y, recipe, folds
        self.parts: SpaceParts | None = None
        self.denoised: list[Any] = []
        self._labels: dict[int, tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]] = {}
        self._of_chosen: tuple[float | None, dict[int, tuple[Any, Any, Any]]] = None, {}
        if recipe.space is not None and recipe.denoiser is None:
            parts = [fold.held_out for fold in folds]
            rest = np.setdiff1d(np.arange(len(X)), np.concatenate(parts))
            parts += [rest] if len(rest) else []
            with one_thread_beside(len(X)) if recipe.meanwhile else nullcontext():
                self.parts = recipe.space.by_parts(X, space_labels, parts)
        recipe.wait_for_others()  # sums take all threads
        if self.parts is not None:
            self.parts.sum_up()
        elif recipe.space is not None:
            self.denoised = [
                clone(recipe.denoiser).fit_transform(X[fold.known], Y[fold.known]) for fold in folds
            ]

    def of(
        self,
        number: int,
        kappa: float | None,
        known: np.ndarray | None = None,
        held_out: np.ndarray | None = None,
    ) -> tuple[Any, Any]:
        """Of a fold's images, or some of them, in a space with this κ that knows its known ones.

        Features, where too few labels allow a space.
        """
        learned = self.folds[number].known
        known = learned if known is None else known
        held_out = self.folds[number].held_out if held_out is None else held_out
        space = self.recipe.space
        if space is None:
            return self.X[known], self.X[held_out]
        wanted = {} if kappa is None else {"regularization": kappa}
        try:
            if self.parts is not None:
                n_landmarks = max(1, int(_LANDMARKS * space.n_landmarks))
                fitted = self.parts.without(number, n_landmarks, **wanted)
                old, new = self.parts.embeddings(fitted, (known, held_out))
                return old, new
            fitted = clone(space).set_params(**wanted)
            fitted.fit(self.X[learned], self.denoised[number])
            return fitted.transform(self.X[known]), fitted.transform(self.X[held_out])
        except InvalidInput:
            return self.X[known], self.X[held_out]

    def whole(self, kappa: float | None) -> tuple[Any, Any]:
        """The space of all images and their embeddings, where there are sums; else None."""
        parts, space = self.parts, None
        if parts is not None:
            space = parts.whole(**({} if kappa is None else {"regularization": kappa}))
        if space is None or parts is None:
            return None, None
        (embeddings,) = parts.embeddings(space, [slice(None)])
        return space, embeddings

    def best_kappa(self) -> float | None:
        """The κ of a recipe's whose read-out ranks best; None where there is no space."""
        space, values = self.recipe.space, self.recipe.regularizations
        if space is None:
            return None
        if len(values) == 1:  # nothing to compare
            return values[0]

        seen: dict[float, dict[int, tuple[Any, Any, Any]]] = {}
        ranks: dict[float, float] = {}

        def ranked(some: Sequence[float]) -> list[float]:
            asked = [(value, 0) for value in some if value not in ranks]
            if ranks and len(asked) == 1 and self._second_thread_is_idle():
                asked += _guessed(values, asked[0][0], ranks, seen, len(self.folds))
            tasks = [partial(self._read_out_map, *one) for one in asked]
            for (value, number), (rank, learned) in zip(
                asked, outcomes(tasks, len(self.X)), strict=True
            ):
                seen.setdefault(value, {}).update(learned)
                if not number:
                    ranks[value] = rank
            return [ranks[value] for value in some]

        n = len(self.X)
        lost = _LOST if space.landmarks_pay(n) else 0.0
        level = _LEVEL if n >= _MANY else 0.0
        chosen = climbed(values, space.regularization, ranked, lost, level)
        self._of_chosen = chosen, seen[chosen]
        return chosen

    def learned_from(self, number: int) -> bool:
        """Whether `tried` has all of a fold at hand, for the κ that was chosen."""
        return number in self._of_chosen[1]

    def _second_thread_is_idle(self) -> bool:
        """Whether another fold can be learned from, as a whole, beside a single value of κ."""
        n, n_known = len(self.X), max(len(fold.known) for fold in self.folds)
        return pay_beside(n) and n_known <= _TRIED and n_threads_for(n**3) == 2

    def _read_out_map(
        self, kappa: float, first: int = 0
    ) -> tuple[float, dict[int, tuple[Any, Any, Any]]]:
        """Mean average precision of a read-out on held-out images, and what it was learned from.

        Of all folds where images are few, else of one.
        """
        method = self.recipe.method
        found, seen = [], {}
        for number in range(len(self.folds)) if len(self.X) < _MANY else [first]:
            fold = self.folds[number]
            known, held_out = some_of(fold.known, _TRIED), some_of(fold.held_out, _TRIED // 2)
            old, new = self.of(number, kappa, known, held_out)
            if number not in self._labels:  # once for all values of κ
                self._labels[number] = self.Y[known], self.Y[held_out]
            labels, truth = self._labels[number]
            readout = method.new_readout().fit(old, labels)
            if len(known) == len(fold.known) and len(held_out) == len(fold.held_out):
                seen[number] = old, new, readout
            if truth.nnz:
                scores = readout.decision_function(new)
                found.append(mean_average_precision(truth, scores))
        return float(np.mean(found)) if found else 0.0, seen

    def tried(self, number: int, kappa: float | None) -> tuple[Any, Any, Any]:
        """As `of`, and a read-out of the known images, where one was learned for this κ."""
        chosen, seen = self._of_chosen
        if kappa == chosen and number in seen:
            return seen.pop(number)
        return *self.of(number, kappa), None


def _guessed(
    values: Sequence[float],
    asked: float,
    ranks: dict[float, float],
    seen: dict[float, dict[int, Any]],
    n_folds: int,
) -> list[tuple[float, int]]:
    """What will be asked for next, most likely, once a value is tried: a value of κ and a fold.

    Where ranks fall steeply from the best one to its other neighbour, that is the value beyond;
    else the best one stays, and the next fold of it is to be learned from.
    """
    best = max(ranks, key=lambda value: ranks[value])
    step = values.index(asked) - values.index(best)
    beyond, behind = values.index(asked) + step, values.index(best) - step
    if min(beyond, behind) >= 0 and max(beyond, behind) < len(values):
        other = ranks.get(values[behind], np.inf)
        if other < (1 - _STEEP) * ranks[best] and values[beyond] not in ranks:
            return [(values[beyond], 0)]
    number = next((n for n in range(n_folds) if n not in seen[best]), None)
    return [] if number is None else [(best, number)]


def climbed(
    values: Sequence[float],
    start: float,
    ranked: Callable[[Sequence[float]], Sequence[float]],
    lost: float = 0.0,
    level: float = 0.0,
) -> float:
    """The best of ascending values, from the one nearest to `start` uphill as far as it goes.

    `ranked` says how good some of them are. A larger value is as good as a smaller one that is
    better by the share `lost`. Smaller values than the first are left alone where the next larger
    one is worse by less than the share `level`: the top is between the two.
    """
    at = 0
    if len(values) > 1:
        at = int(np.argmin(np.abs(np.log(values) - np.log(start))))
    known = dict(enumerate(ranked(values[at : at + 2]), at))  # both are always asked for
    best = known[at]
    for direction in (1, -1):
        moved = False
        while 0 <= (there := at + direction) < len(values):
            if there not in known:
                (known[there],) = ranked([values[there]])
            if known[there] <= best * (1 - direction * lost):
                break
            at, best, moved = there, max(best, known[there]), True
        if moved or known.get(at + 1, -np.inf) > best * (1 - level):
            break
    return values[at]


def some_of(rows: np.ndarray, most: int) -> np.ndarray:
    """Rows at equal steps, so that they are not more than so many."""
    return rows[:: -(-len(rows) // most)]
