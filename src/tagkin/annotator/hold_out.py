"""Score held-out images by models that have not seen them.

For a `KinReadout`, held-out scores choose κ of the space, the number of voting neighbours and their
temperature. `calibrate_held_out` learns confidences from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.annotator.fold_spaces import FoldSpaces, fit_space, run_folds
from tagkin.annotator.naming import score_names
from tagkin.annotator.problem import SIZES, Part, Problem, count_images
from tagkin.annotator.recipe import CHOOSING, Recipe
from tagkin.arrays import Array, row_blocks, to_numpy
from tagkin.calibration.fitting import Calibrated, HeldOutScores, fit_calibration
from tagkin.calibration.mixture import share_logits
from tagkin.errors import InvalidInput
from tagkin.evaluation import mean_average_precision
from tagkin.neighbors import Neighbors
from tagkin.space import SemanticSpace
from tagkin.tag_meanings import NameTable
from tagkin.transfer import KinReadout, NeighborTransfer
from tagkin.transfer.kin_votes import KinVotes
from tagkin.transfer.readout import Readout

__all__ = [
    "HeldOut",
    "Trial",
    "Voting",
    "calibrate_held_out",
    "find_comparable",
    "fit_method",
    "hold_out",
]


Whole = tuple[SemanticSpace | None, Array | None, Readout | None]


class Trial(NamedTuple):
    """Held-out scores of a recipe, and the settings they chose."""

    recipe: Recipe
    """The recipe with the chosen κ and votes."""
    scores: tuple[np.ndarray, ...]
    """Scores (n×C) of the held-out images, by models that had not seen them: one, or the logits of
    votes and read-out of a `KinReadout`."""
    judged: np.ndarray | None = None
    """Labels (C,) whose scores can be compared between images; None for all."""
    even: np.ndarray | None = None
    """Logits (n×C) with equal weights for votes and read-out, for the audit."""
    whole: Whole = (None, None, None)
    """The space of all images, their embeddings (N×m) and their read-out; None if not fitted."""


class HeldOut(NamedTuple):
    """Held-out scores, and the confidences that were learned from them."""

    trial: Trial
    scores: HeldOutScores
    calibrated: Calibrated
    names: NameTable | None
    """Meanings of all label names, if there is a prior."""


def calibrate_held_out(problem: Problem, part: Part, trial: Trial) -> HeldOut:
    """Learn confidences from held-out scores of the complete images of a part.

    The log-odds of complete images come from weights that were learned without the image. Those of
    incomplete images come from the weights learned from all complete images.
    """
    table, by_name = None, None
    if problem.naming is not None:
        table = problem.naming.table
        X = problem.X if part.is_whole else problem.X[part.rows]
        by_name = score_names(problem.naming.prior, X, table.some(part.columns))
    scores = HeldOutScores(trial.scores, by_name)
    complete, rows = problem.complete, part.rows
    is_complete: np.ndarray | slice = slice(None) if complete is None else complete[rows]
    calibrated = fit_calibration(
        scores.take(is_complete),
        part.truth(problem.Y)[is_complete],
        labels=part.labels(problem.Y)[slice(None) if complete is None else complete],
        groups=None if problem.groups is None else problem.groups[rows][is_complete],
        judged=trial.judged,
    )
    if complete is not None:
        log_odds = calibrated.calibration.mix(scores.all)
        log_odds[is_complete] = calibrated.log_odds
        calibrated = calibrated._replace(log_odds=log_odds)
    return HeldOut(trial, scores, calibrated, table)


def hold_out(
    problem: Problem, recipe: Recipe, part: Part, fold_done: Callable[[], None] = lambda: None
) -> Trial:
    """Hold out each fold in turn, and score its images by a model of all other images."""
    if isinstance(recipe.method, KinReadout):
        return _hold_out_readout(problem, recipe, part, fold_done)
    scores = np.empty((len(part.rows), len(part.columns)), dtype=np.float32)
    for fold in part.folds:
        rows = np.searchsorted(part.rows, fold.held_out)
        known = problem.take(fold.known, part.columns)
        scores[rows] = _score_fold(known, recipe, problem.X[fold.held_out])
        fold_done()
    return Trial(recipe, (scores,))


def _score_fold(known: Problem, recipe: Recipe, new: Array) -> np.ndarray:
    """Score new images (n×d), without a space if there are too few labels for it."""
    try:
        space, embeddings = fit_space(known, recipe)
        method = fit_method(recipe.method, embeddings, known)
    except InvalidInput:
        space, method = None, fit_method(recipe.method, known.X, known)
    return to_numpy(method.decision_function(new if space is None else space.transform(new)))


def fit_method(
    method: NeighborTransfer, embeddings: Array, problem: Problem, readout: Readout | None = None
) -> NeighborTransfer:
    """Fit a method on embeddings (N×m); a `readout` that was fitted on them is used."""
    method, options = clone(method), {}
    if problem.rejected is not None and method.takes_rejected:
        options["rejected"] = problem.rejected
    if readout is not None:
        return method.fit_votes(embeddings, problem.Y, readout, **options)
    return method.fit(embeddings, problem.Y, groups=problem.groups, **options)


def _hold_out_readout(
    problem: Problem, recipe: Recipe, part: Part, fold_done: Callable[[], None]
) -> Trial:
    """Choose κ by the MAP of a read-out, then votes by their own MAP.

    All spaces come from one set of sums over the images.
    """
    n, labels, truth = len(problem.X), part.labels(problem.Y), part.truth(problem.Y)
    rejected = None if problem.rejected is None else part.labels(problem.rejected)
    spaces = FoldSpaces(problem, recipe, part)
    kappa, fits = spaces.choose_kappa()

    def fit_fold(number: int) -> _VoteFit:
        known = part.folds[number].known
        fit = fits.pop(number, None) or spaces.embed(number, kappa)
        own = None if rejected is None else rejected[known]
        readout = fit.readout if rejected is None else None
        method = clone(recipe.method)
        if readout is None:
            method.fit(fit.known, labels[known], rejected=own)
        else:
            method.fit_votes(fit.known, labels[known], readout)
        level = share_logits(labels) - share_logits(labels[known])
        logits = to_numpy(method.readout_.decision_function(fit.held_out)) + level
        neighbors = method.model_.kneighbors(fit.held_out)
        return _VoteFit(method.model_, neighbors, logits, level)

    def fit_all() -> Whole:
        space, embeddings = spaces.embed_everything(kappa)
        if space is None or not part.is_whole:  # the method has other labels
            return space, embeddings, None
        readout = recipe.method.new_readout()
        readout.fit(embeddings, problem.Y, rejected=problem.rejected)
        return space, embeddings, readout.readout_

    # folds without a fit come first; everything comes last, because nothing waits for it
    order = sorted(range(len(part.folds)), key=fits.__contains__)
    # of any type, because the last task returns another one than the folds
    tasks: list[Callable[[], Any]] = [*(partial(fit_fold, number) for number in order), fit_all]
    votes, readout = (np.empty(truth.shape, dtype=np.float32) for _ in range(2))
    voting, first = Voting.of(recipe.method), []
    with closing(run_folds(tasks, n)) as results:
        if recipe.regularizations:
            compared = order if n <= SIZES.huge else order[:1]
            first = [next(results) for _ in compared]
            held_out = [labels[part.folds[number].held_out] for number in compared]
            voting = _choose_voting(first, held_out, voting)
        for number in order:
            fold_fit = first.pop(0) if first else next(results)
            rows = np.searchsorted(part.rows, part.folds[number].held_out)
            readout[rows], votes[rows] = fold_fit.readout, fold_fit.votes(voting)
            fold_done()
        whole = next(results)
    method = clone(recipe.method).set_params(**voting._asdict())
    space = recipe.space
    if kappa is not None:
        space = clone(space).set_params(regularization=kappa)
    chosen = replace(recipe, space=space, method=method, regularizations=())
    even = _mix_evenly(votes, readout, labels)
    return Trial(chosen, (votes, readout), find_comparable(labels, part), even, whole)


def find_comparable(labels: scipy.sparse.csr_array, part: Part) -> np.ndarray:
    """Return the labels (C,) that the model of every fold has seen, given the labels (N×C).

    A model that has not seen a label scores all images alike, the label's own image among them. Its
    scores say nothing about the scores of models that have seen the label.
    """
    return np.all([count_images(labels[fold.known]) > 0 for fold in part.folds], axis=0)


class Voting(NamedTuple):
    """Parameters of a `KinReadout` that say how neighbours vote."""

    n_neighbors: int
    temperature: float

    @classmethod
    def of(cls, method: KinReadout) -> Voting:
        """Return the parameters of a method."""
        return cls(method.n_neighbors, method.temperature)


class _VoteFit(NamedTuple):
    """Votes of a fold's known images, and the neighbours and read-out of the others."""

    method: KinVotes
    neighbors: Neighbors
    readout: np.ndarray
    """Logits (n×C) of the read-out."""
    level: np.ndarray
    """Logits (C,) by which labels are rarer among known images than among all."""

    def votes(self, voting: Voting, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return the logits (n×C) of the votes for all held-out images, or for some rows."""
        method = replace(self.method, **voting._asdict())
        neighbors = Neighbors(*(to_numpy(part)[rows] for part in self.neighbors))
        scores = to_numpy(method.score_neighbors(neighbors))
        return np.asarray(scores + self.level)


def _choose_voting(
    fits: Sequence[_VoteFit], truth: Sequence[scipy.sparse.csr_array], usual: Voting
) -> Voting:
    """Choose the votes that rank the held-out images of some folds best.

    First choose the temperature with all neighbours, then the number of neighbours. The usual
    values stay unless others gain more than chance. Votes are compared without the read-out: with
    it they differ too little to measure.
    """
    most = -(-CHOOSING.most_held_out // len(fits))
    images = [np.arange(k := min(y.shape[0], most)) * y.shape[0] // max(k, 1) for y in truth]
    labels = scipy.sparse.vstack([y[rows] for y, rows in zip(truth, images, strict=True)])
    n_known = fits[0].method.n_images

    @cache
    def rank(voting: Voting) -> float:
        scores = [fit.votes(voting, rows) for fit, rows in zip(fits, images, strict=True)]
        return float(mean_average_precision(labels, np.concatenate(scores)))

    def choose(candidates: Sequence[Voting], usual: Voting) -> Voting:
        tasks = [partial(rank, voting) for voting in candidates]
        ranks = dict(zip(candidates, run_folds(tasks, n_known), strict=True))
        ranks[usual] *= 1 + CHOOSING.gained
        return max(candidates, key=lambda voting: ranks[voting])

    temperatures = sorted({*CHOOSING.temperatures, usual.temperature})
    sharp = choose([usual._replace(temperature=t) for t in temperatures], usual)
    numbers = [max(1, round(share * usual.n_neighbors)) for share in CHOOSING.neighbors]
    # a number above that of the images would let all vote, and all images added later
    fewer = [sharp._replace(n_neighbors=n) for n in numbers if n < n_known]
    return choose([*fewer, sharp], sharp)


def _mix_evenly(votes: np.ndarray, readout: np.ndarray, Y: scipy.sparse.csr_array) -> np.ndarray:
    """Mix logits (n×C) of votes and read-out half and half; Y (N×C) are the labels of all images.

    A mixture learned from labels fits wrong labels, too, if nothing else supports them. On 10,000
    COCO images with 1 wrong label in 20, its average precision in finding them was 57.1; that of
    halves was 58.0.

    If no neighbour votes for a label, that is evidence against it, limited by its m images: even if
    all of them have votes, about one in m new images has none. So votes lie below the label's share
    of the images by log(1 + m) at most. In 48 draws of 400 and 1,200 images (COCO, Flickr8k; 5 and
    10 % wrong labels), 1,534 labels seemed wrong at 50 %, and 74 % of them were. A lower limit for
    rare labels, log(1 + m²/(m + 50)), gave 951 and 76 %.
    """
    level = share_logits(Y)
    floor = level - np.log1p(count_images(Y)).astype(level.dtype)
    even = np.empty_like(votes)
    for rows in row_blocks(len(votes), 32 * votes.shape[1]):
        even[rows] = (np.maximum(votes[rows], floor) + readout[rows]) / 2
    return even
