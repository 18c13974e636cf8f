"""What a recipe with `KinReadout` learns from held-out images.

κ of the space, the number of neighbours that vote and their temperature, and the mixture of votes
and read-out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.annotator.fold_embeddings import FoldEmbeddings, some_of
from tagkin.annotator.side_by_side import fit_at_once, outcomes
from tagkin.arrays import row_blocks, to_numpy
from tagkin.evaluation import mean_average_precision
from tagkin.model_selection.folds import Fold, random_folds
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.transfer.kin_readout import KinReadout
from tagkin.transfer.mixture import Mixture, fit_mixture

if TYPE_CHECKING:
    from tagkin.annotator.learning import Recipe

__all__ = ["NUMBERS", "TEMPERATURES", "Blended", "Votes", "blended"]

TEMPERATURES = (5.0, 10.0, 20.0)
NUMBERS = (1 / 4, 1 / 2)  # fewer neighbours, as shares of a method's `n_neighbors`
_GAINED = 0.002  # share of MAP by which other votes than the usual ones have to be better
_VOTES_TRIED = 6000  # held-out images by which votes are compared, at most
_RARE = 50  # images of a label that say half of what they could of those without any vote
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
    embeddings = FoldEmbeddings(X, Y, recipe, folds, Y if space_labels is None else space_labels)
    held_out = np.sort(np.concatenate([fold.held_out for fold in folds]))
    truth = Y if len(held_out) == len(X) else Y[held_out]
    kappa = embeddings.best_kappa() if recipe.regularizations else None
    votes, readout = (np.empty(truth.shape, dtype=np.float32) for _ in range(2))

    def learned(number: int) -> _Learned:
        fold = folds[number]
        known, new, tried = embeddings.tried(number, kappa)
        own = None if rejected is None else rejected[fold.known]
        method: Any = clone(recipe.method)
        labels = Y[fold.known]
        method.fit(known, labels, rejected=own, readout=tried if own is None else None)
        level = _level(Y) - _level(labels)
        read = to_numpy(method.readout_.decision_function(new)) + level
        return _Learned(method, _neighbors(method, new), read, level)

    def of_all_images() -> tuple[Any, Any, Any]:
        space, of_all = embeddings.whole(kappa)
        if space is None or space_labels is not None:  # then it has other labels than the method
            return space, of_all, None
        return space, of_all, recipe.method.new_readout().fit(of_all, Y, rejected=rejected)

    # those first that nothing is at hand of; all images last, which nothing else waits for
    order = sorted(range(len(folds)), key=embeddings.learned_from)
    tasks: list[Callable[[], Any]] = [partial(learned, number) for number in order]
    tasks.append(of_all_images)
    results = outcomes(tasks, len(X))  # the first ones are looked at while others are at work
    best, seen = _own_votes(recipe.method), []
    if recipe.regularizations:
        first = order if fit_at_once(len(X)) else order[:1]
        seen = [next(results) for _ in first]
        best = _best_votes(seen, [Y[folds[number].held_out] for number in first], recipe)
    for number in order:
        one = seen.pop(0) if seen else next(results)
        rows = np.searchsorted(held_out, folds[number].held_out)
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


def _even(votes: np.ndarray, readout: np.ndarray, Y: scipy.sparse.csr_array) -> np.ndarray:
    """Logits (n×D) of votes and read-out, half and half; labels are those of all images (N×D).

    A mixture learned from labels of which some are wrong fits those, too, where nothing else
    speaks for a label. Of wrong labels on 10,000 COCO images, 1 in 20, it found 57.1 (average
    precision) and halves 58.0.

    That no neighbour votes for a label says as much against it as the m images with it can show:
    were none of them without a vote, the next one still would be in about one of m cases. Votes
    lie below the label's share of the images by log(1 + m²/(m + 50)) at most. With a floor that is
    the same for all labels, those on few images look wrong wherever no neighbour has them.
    """
    level, m = _level(Y), np.bincount(Y.indices, minlength=Y.shape[1])
    floor = level - np.log1p(m * m / (m + _RARE)).astype(level.dtype)
    even = np.empty_like(votes)
    for rows in row_blocks(len(votes), 32 * votes.shape[1]):
        even[rows] = (np.maximum(votes[rows], floor) + readout[rows]) / 2
    return even


def _mixed(
    votes: np.ndarray, readout: np.ndarray, Y: scipy.sparse.csr_array, folds: Sequence[Fold]
) -> tuple[Mixture, np.ndarray]:
    """The mixture of all images, and scores by mixtures that had not seen the image."""
    by_label = [np.ascontiguousarray(part.T) for part in (votes, readout)]  # as a mixture wants it

    def learned(rows: np.ndarray, start: Mixture | None = None) -> Mixture:
        rows = some_of(rows, _MIXED)
        u, v = (part[:, rows].T for part in by_label)
        return fit_mixture(u, v, Y[rows], start=start)

    scores, every = np.empty_like(votes), np.arange(len(votes))
    of_all = learned(every)
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
