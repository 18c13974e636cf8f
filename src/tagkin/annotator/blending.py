"""What a recipe with `KinReadout` learns from held-out images.

κ of the space, the number of neighbours that vote and their temperature, and the mixture of votes
and read-out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.arrays import (
    begun,
    blas_threads,
    n_threads_for,
    results_of,
    row_blocks,
    to_numpy,
)
from tagkin.errors import InvalidInput
from tagkin.evaluation import mean_average_precision
from tagkin.model_selection.folds import Fold, random_folds
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.space.parts import SpaceParts
from tagkin.transfer.kin_readout import KinReadout
from tagkin.transfer.mixture import Mixture, fit_mixture

if TYPE_CHECKING:
    from tagkin.annotator.learning import Recipe

__all__ = [
    "NUMBERS",
    "REGULARIZATIONS",
    "TEMPERATURES",
    "Blended",
    "Votes",
    "beside",
    "blended",
    "climbed",
    "one_thread_beside",
    "outcomes",
]

T = TypeVar("T")

REGULARIZATIONS = (0.03, 0.1, 0.5, 2.0, 8.0, 30.0)
TEMPERATURES = (5.0, 10.0, 20.0)
NUMBERS = (1 / 4, 1 / 2)  # fewer neighbours, as shares of a method's `n_neighbors`
_MANY = 2000  # images: from here on one fold says enough about κ
_TRIED = 12_000  # images that a read-out is learned from to compare values of κ, at most
# Landmarks of a fold's space, as a share of those of the space of all images: it has two thirds of
# the images, and to solve for it takes less than half the time. Held-out images rank nearly as
# well, so that confidences are as good; with half of them those were a point too low.
_LANDMARKS = 0.75
# Fewer landmarks regularise by themselves: the larger of two values of κ loses so much of its
# precision beside the smaller one (.2 to .5 % with half of them, on COCO and Flickr8k).
_LOST = 0.0015
_GAINED = 0.002  # share of MAP by which other votes than the usual ones have to be better
_VOTES_TRIED = 6000  # held-out images by which votes are compared, at most
_SIDE_BY_SIDE = 20_000  # images, at most, of which folds are learned from at once: it takes memory
# Logits by which no vote at all lies below a label's share of the images, for the audit: far enough
# to say no, and not so far that it outvotes the read-out.
_FEWEST_VOTES = np.log(200)
_MIXED = 20_000  # images that a mixture is learned from, at most
_PARTS = 3  # in which held-out images are parted, where folds hold out some of all images alone


class Votes(NamedTuple):
    """How neighbours vote: the parameters of a `KinReadout` that say it."""

    n_neighbors: int
    temperature: float


class Blended(NamedTuple):
    """What was learned, and how the images that were held out scored."""

    regularization: float | None
    """κ of the space; None where there is none, or where it was not to be chosen."""
    votes: Votes
    mixture: Mixture
    whole: Callable[[], tuple[Any, Any, Any]]
    """Returns the space of all images, their embeddings (N×m) and the read-out of these, when they
    are learned. None for each, where no sums were taken of which the space could be solved, and no
    read-out where the space has other labels."""
    scores: np.ndarray
    """Logits (n×D) of every image that is held out, in their order, by models that had not seen
    it, the mixture's too."""
    even: np.ndarray
    """The same with equal weights for votes and read-out, for the audit."""


def blended(
    X: np.ndarray,
    Y: scipy.sparse.csr_array,
    recipe: Recipe,
    folds: Sequence[Fold],
    fold_done: Callable[[], None] = lambda: None,
    rejected: scipy.sparse.csr_array | None = None,
    space_labels: scipy.sparse.csr_array | None = None,
) -> Blended:
    """Hold out each fold of the images X (N×d) with labels Y (N×D) in turn.

    κ is climbed for by how well a read-out ranks; number and temperature of the votes by how well
    those do. All of it is one set of sums over the images, solved as often as it needs to be.
    Together the folds hold out n images, all or some of the N. The space is learned from
    `space_labels` (N×D'), where these are others than Y.
    """
    embeddings = _Embeddings(X, Y, recipe, folds, Y if space_labels is None else space_labels)
    held_out = np.sort(np.concatenate([fold.held_out for fold in folds]))
    truth = Y if len(held_out) == len(X) else Y[held_out]
    kappa = embeddings.best_kappa() if recipe.regularizations else None
    votes, readout = (np.empty(truth.shape, dtype=np.float32) for _ in range(2))

    def learned(number: int) -> _Learned:
        fold = folds[number]
        known, new, tried = embeddings.tried(number, kappa)
        own = None if rejected is None else rejected[fold.known]
        method: Any = clone(recipe.method)
        method.fit(known, Y[fold.known], rejected=own, readout=tried if own is None else None)
        level = _level(Y) - _level(Y[fold.known])
        read = to_numpy(method.readout_.decision_function(new)) + level
        return _Learned(method, _neighbors(method, new), read, level)

    def of_all_images() -> tuple[Any, Any, Any]:
        space, of_all = embeddings.whole(kappa)
        if space is None or space_labels is not None:  # then it has other labels than the method
            return space, of_all, None
        return space, of_all, recipe.method.new_readout().fit(of_all, Y, rejected=rejected)

    tasks: list[Callable[[], Any]] = [partial(learned, number) for number in range(len(folds))]
    tasks.append(of_all_images)
    results = outcomes(tasks, len(X))  # the first ones are looked at while others are at work
    best, seen = _own_votes(recipe.method), []
    if recipe.regularizations:
        first = folds if len(X) <= _SIDE_BY_SIDE else folds[:1]
        seen = [next(results) for _ in first]
        best = _best_votes(seen, [Y[fold.held_out] for fold in first], recipe)
    for fold in folds:
        one = seen.pop(0) if seen else next(results)
        rows = np.searchsorted(held_out, fold.held_out)
        readout[rows], votes[rows] = one.readout, one.votes(best)
        fold_done()
    parts = folds if truth is Y else random_folds(len(held_out), _PARTS)
    mixture, scores = _mixed(votes, readout, truth, parts)
    whole = cache(lambda: list(results)[-1])
    return Blended(kappa, best, mixture, whole, scores, _even(votes, readout, Y))


class _Learned(NamedTuple):
    """A method that learned from a fold's known images, and what it says of those held out."""

    method: Any
    found: Neighbors
    readout: np.ndarray
    """Logits (n×D) of the read-out."""
    level: np.ndarray
    """Logits (D,) by which labels are rarer among the known images than among all."""

    def votes(self, how: Votes, rows: Any = slice(None)) -> np.ndarray:
        """Logits (n×D) of the votes, or those of some images."""
        method = copy(self.method).set_params(**how._asdict())
        scores = to_numpy(method.score_neighbors(*(part[rows] for part in self.found)))
        return np.asarray(scores + self.level)


def _own_votes(method: KinReadout) -> Votes:
    return Votes(method.n_neighbors, method.temperature)


def _best_votes(
    learned: Sequence[_Learned], truth: Sequence[scipy.sparse.csr_array], recipe: Recipe
) -> Votes:
    """The votes that rank best held-out images of some folds, which have labels `truth`.

    The temperature with all neighbours, then how many of them; other than usual only where it is
    better by more than chance makes it. Votes are looked at without the read-out: beside it they
    differ too little for so many images to tell.
    """
    most = -(-_VOTES_TRIED // len(learned))
    some = [_spread(labels.shape[0], most) for labels in truth]
    right = scipy.sparse.vstack([labels[rows] for labels, rows in zip(truth, some, strict=True)])

    @cache
    def ranked(how: Votes) -> float:
        scores = [one.votes(how, rows) for one, rows in zip(learned, some, strict=True)]
        return float(mean_average_precision(right, np.concatenate(scores)))

    def best(tried: Sequence[Votes], usual: Votes) -> Votes:
        tasks = [partial(ranked, how) for how in tried]
        ranks = dict(zip(tried, outcomes(tasks, n_known), strict=True))
        ranks[usual] *= 1 + _GAINED
        return max(tried, key=lambda how: ranks[how])

    usual, n_known = _own_votes(recipe.method), learned[0].method.labels_.shape[0]
    temperatures = sorted({*TEMPERATURES, usual.temperature})
    sharp = best([usual._replace(temperature=t) for t in temperatures], usual)
    numbers = [max(1, round(share * usual.n_neighbors)) for share in NUMBERS]
    # where there are no more images than that, all of them vote, and all that may come
    few = [sharp._replace(n_neighbors=n) for n in numbers if n < n_known]
    return best([*few, sharp], sharp)


def _spread(n: int, most: int) -> np.ndarray:
    """So many of n rows at the most, evenly."""
    n_taken = min(n, most)
    return np.arange(n_taken) * n // max(n_taken, 1)


def _neighbors(method: Any, new: Any) -> Neighbors:
    """Neighbours of new images (n×m), up to rounding, which changes no vote by more than that."""
    index = method.index_
    if isinstance(index, ExactNeighbors):
        return index.kneighbors(new, min(method.n_neighbors, index.n_points_), by_pairs=False)
    return method.kneighbors(new)


def outcomes(tasks: Sequence[Callable[[], T]], n_images: int) -> Iterator[T]:
    """What each task returns, in their order; all at once, unless of so many images."""
    if n_images <= _SIDE_BY_SIDE:
        return results_of(tasks)
    return (task() for task in tasks)


def beside(task: Callable[[], T], n_images: int) -> Callable[[], T]:
    """Returns what a task does, when called; it begins at once, unless images are few or many.

    Work on few of them is Python's rather than NumPy's, and threads wait for each other.
    """
    return begun(task) if _MANY <= n_images <= _SIDE_BY_SIDE else cache(task)


def one_thread_beside(n_images: int) -> AbstractContextManager[None]:
    """One thread of BLAS for what goes on beside a task that was begun, also when that is done.

    Products are rounded by the number of threads: it must not depend on which is done first.
    """
    return blas_threads(1) if _MANY <= n_images <= _SIDE_BY_SIDE else nullcontext()


def climbed(
    values: Sequence[float],
    start: float,
    ranked: Callable[[Sequence[float]], Sequence[float]],
    lost: float = 0.0,
) -> float:
    """The best of ascending values, from the one nearest to `start` uphill as far as it goes.

    `ranked` says how good some of them are. A larger value is as good as a smaller one that is
    better by the share `lost`.
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
        if moved:
            break
    return values[at]


def _even(votes: np.ndarray, readout: np.ndarray, Y: scipy.sparse.csr_array) -> np.ndarray:
    """Logits (n×D) of votes and read-out, half and half; labels are those of all images (N×D).

    A mixture learned from labels of which some are wrong fits those, too, where nothing else
    speaks for a label. Of wrong labels on 10,000 COCO images, 1 in 20, it found 57.1 (average
    precision) and halves 58.0. On Flickr8k, of findings at 80 % half held without the floor for
    votes.
    """
    share = (np.bincount(Y.tocsr().indices, minlength=Y.shape[1]) + 0.5) / (Y.shape[0] + 1)
    floor = np.log(share / (1 - share)) - _FEWEST_VOTES
    even = np.empty_like(votes)
    for rows in row_blocks(len(votes), 32 * votes.shape[1]):
        even[rows] = (np.maximum(votes[rows], floor) + readout[rows]) / 2
    return even


def _mixed(
    votes: np.ndarray, readout: np.ndarray, Y: scipy.sparse.csr_array, folds: Sequence[Fold]
) -> tuple[Mixture, np.ndarray]:
    """The mixture of all images, and scores by mixtures that had not seen the image."""

    def learned(rows: np.ndarray, start: Mixture | None = None) -> Mixture:
        rows = _some(rows, _MIXED)
        return fit_mixture(votes[rows], readout[rows], Y[rows], start=start)

    scores, every = np.empty_like(votes), np.arange(len(votes))
    start = learned(every[::4]) if len(votes) >= _MANY else None  # near, for a quarter of the time
    of_all = learned(every, start)
    tasks = [partial(learned, fold.known, of_all) for fold in folds]
    of_folds = outcomes(tasks, len(votes))
    for (known, held_out), mixture in zip(folds, of_folds, strict=True):
        level = _level(Y) - _level(Y[known])
        for some in row_blocks(len(held_out), 48 * votes.shape[1]):
            rows = held_out[some]
            scores[rows] = mixture(votes[rows], readout[rows]) + level
    return of_all, scores


def _level(Y: scipy.sparse.csr_array) -> np.ndarray:
    """Logit of each label's share of the images, shape (D,).

    While an image of a rare label is held out, the label has fewer images than in other folds, and
    lower scores. Compared across folds, its own images would come last for that alone.
    """
    n, d = Y.shape
    share = (np.bincount(Y.indices, minlength=d) + 0.5) / (n + 1)
    return np.asarray(np.log(share) - np.log1p(-share), dtype=np.float32)


def _some(rows: np.ndarray, most: int) -> np.ndarray:
    """Rows at equal steps, so that they are not more than so many."""
    return rows[:: -(-len(rows) // most)]


class _Embeddings:
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
        self._of_chosen: tuple[float | None, dict[int, tuple[Any, Any, Any]]] = None, {}
        if recipe.space is None:
            return
        if recipe.denoiser is None:
            parts = [fold.held_out for fold in folds]
            rest = np.setdiff1d(np.arange(len(X)), np.concatenate(parts))
            parts += [rest] if len(rest) else []
            self.parts = recipe.space.by_parts(X, space_labels, parts)
        else:
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

        seen: dict[float, dict[int, tuple[Any, Any, Any]]] = {}
        ranks: dict[float, float] = {}

        def ranked(some: Sequence[float]) -> list[float]:
            asked = [(value, 0) for value in some]
            if ranks and len(some) == 1 and self._second_thread_is_idle():
                best = max(ranks, key=lambda value: ranks[value])  # as it will be, most likely
                number = next((n for n in range(len(self.folds)) if n not in seen[best]), None)
                asked += [] if number is None else [(best, number)]
            tasks = [partial(self._read_out_map, *one) for one in asked]
            for (value, number), (rank, learned) in zip(
                asked, outcomes(tasks, len(self.X)), strict=True
            ):
                seen.setdefault(value, {}).update(learned)
                if not number:
                    ranks[value] = rank
            return [ranks[value] for value in some]

        lost = _LOST if space.landmarks_pay(len(self.X)) else 0.0
        chosen = climbed(values, space.regularization, ranked, lost)
        self._of_chosen = chosen, seen[chosen]
        return chosen

    def _second_thread_is_idle(self) -> bool:
        """Whether another fold can be learned from, as a whole, beside a single value of κ."""
        n, n_known = len(self.X), max(len(fold.known) for fold in self.folds)
        return _MANY <= n <= _SIDE_BY_SIDE and n_known <= _TRIED and n_threads_for(n**3) == 2

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
            known, held_out = _some(fold.known, _TRIED), _some(fold.held_out, _TRIED // 2)
            old, new = self.of(number, kappa, known, held_out)
            readout = method.new_readout().fit(old, self.Y[known])
            if len(known) == len(fold.known) and len(held_out) == len(fold.held_out):
                seen[number] = old, new, readout
            if self.Y[held_out].nnz:
                scores = readout.decision_function(new)
                found.append(mean_average_precision(self.Y[held_out], scores))
        return float(np.mean(found)) if found else 0.0, seen

    def tried(self, number: int, kappa: float | None) -> tuple[Any, Any, Any]:
        """As `of`, and a read-out of the known images, where one was learned for this κ."""
        chosen, seen = self._of_chosen
        if kappa == chosen and number in seen:
            return seen.pop(number)
        return *self.of(number, kappa), None
