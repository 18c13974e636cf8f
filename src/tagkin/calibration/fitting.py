"""Learn a calibration from scores of held-out images."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, check_groups, logit
from tagkin.calibration.calibration import LINKING, Calibration, fit_cuts, fit_shrink, tally_pairs
from tagkin.calibration.mixture import MIXING, ScoreColumns, fit_mixture, share_logits

__all__ = ["MIXING", "Calibrated", "HeldOutScores", "fit_calibration", "frequency_levels"]


_ROUNDS = 5  # of `frequency_levels`; few, so the shares of labels stay spread out


class HeldOutScores(NamedTuple):
    """Scores of n held-out images for D labels."""

    learned: tuple[np.ndarray, ...]
    """Logits of votes and of a read-out, or one score of any scale, or nothing; shape (n, D)."""
    name: np.ndarray | None = None
    """Score of each label's name, shape (n, D); a label without a usable name has a constant."""
    occasions: tuple[np.ndarray, ...] = ()
    """Scores of time, place and folder, as far as they are known, shape (n, D); 0 says nothing."""

    @property
    def all(self) -> tuple[np.ndarray, ...]:
        """All scores."""
        others = () if self.name is None else (self.name,)
        return *self.learned, *self.occasions, *others

    def take(self, rows: np.ndarray | slice) -> HeldOutScores:
        """Return the scores of some images: their numbers, a mask (n,) or a slice."""
        name = None if self.name is None else self.name[rows]
        learned, occasions = (
            tuple(part[rows] for part in parts) for parts in (self.learned, self.occasions)
        )
        return HeldOutScores(learned, name, occasions)


class Calibrated(NamedTuple):
    """A calibration, and how it judges the images that it was learned from."""

    calibration: Calibration
    log_odds: np.ndarray
    """z (n×D) by weights that were learned without the image."""
    levels: np.ndarray
    """How much rarer labels are expected on new images, as log-odds (D,), at most 0."""


def fit_calibration(
    scores: HeldOutScores,
    Y: scipy.sparse.csr_array,
    *,
    labels: scipy.sparse.csr_array | None = None,
    groups: Array | None = None,
    testable: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
) -> Calibrated:
    """Learn probabilities of labels from scores of held-out images.

    Each label has a mixture of its scores, pulled to common weights (`fit_mixture`). One link
    turns the log-odds of all labels into probabilities, and one cut holds for all of them
    (`fit_shrink`, `fit_cuts`). Images of one group count as one image for both. A label on
    few images is rarer on new ones (`frequency_levels`), so its images count less.

    Parameters
    ----------
    scores : HeldOutScores
        Scores of training images would be too high.
    Y : CSR array of shape (n, D)
    labels : CSR array of shape (N, D), optional
        Labels of all images, if only n of them were held out.
    groups : int array of shape (n,), optional
    testable : bool array of shape (D,), optional
        Labels whose scores can be compared between images. Default: all.
    clusters : int array of shape (n,), optional
        Images that were held out together, such as those of an event. Their errors are alike, so
        link and cut count m of them as √m.
    """
    n, n_labels = Y.shape
    everything = Y if labels is None else labels
    counts, shares = np.bincount(everything.indices, minlength=n_labels), share_logits(everything)
    levels = frequency_levels(counts, everything.shape[0])
    positive_weights = np.exp(levels)
    present = np.bincount(Y.indices, minlength=n_labels)
    can_judge = (present > 0) & (present < n)
    if testable is not None:
        can_judge &= testable
    columns = _standardize(scores, shares)
    mixture, log_odds = fit_mixture(columns, Y, shares + levels, positive_weights, can_judge)
    codes = np.arange(n) if groups is None else check_groups(groups, n)  # from 0
    image_weights = 1.0 / np.bincount(codes)[codes]
    if clusters is not None:
        codes = np.unique(clusters, return_inverse=True)[1]
        image_weights /= np.sqrt(np.bincount(codes)[codes])
    tally = tally_pairs(log_odds, Y, positive_weights, image_weights)
    shrink = fit_shrink(tally)
    calibration = Calibration(n, mixture, shrink, fit_cuts(tally, shrink))
    return Calibrated(calibration, log_odds, levels)


def _standardize(scores: HeldOutScores, shares: np.ndarray) -> ScoreColumns:
    """Return the columns of a regression.

    Two logits are centred at that of the label's share of the images (D,). Scores of occasions are
    log-odds above that. One score of any scale is centred for each label, and so is the score of
    its name, in units of their standard deviation over all labels.
    """
    centers: list[np.ndarray] = []
    scales: list[float] = []
    start: list[float] = []
    start_pull: list[float] = []
    pull: list[float] = []
    if len(scores.learned) > 1:
        centers += [shares] * len(scores.learned)
        scales += [1.0] * len(scores.learned)
        start += MIXING.start
        start_pull += [MIXING.start_pull] * len(scores.learned)
        pull += [MIXING.pull] * len(scores.learned)
    elif scores.learned:
        centers.append(scores.learned[0].mean(axis=0, dtype=np.float64))
        scales.append(_spread(scores.learned[0], centers[-1]))
        start.append(1.0)
        start_pull.append(MIXING.loose_pull)
        pull.append(MIXING.name_pull)
    for _ in scores.occasions:
        centers.append(np.zeros(len(shares)))
        scales.append(1.0)
        start.append(MIXING.occasion_start)
        start_pull.append(MIXING.start_pull)
        pull.append(MIXING.name_pull)
    if scores.name is not None:
        centers.append(scores.name.mean(axis=0, dtype=np.float64))
        scales.append(_spread(scores.name, centers[-1]))
        start.append(MIXING.name_start)
        start_pull.append(MIXING.loose_pull)
        pull.append(MIXING.name_pull)
    start_pull.append(MIXING.start_pull)
    pull.append(MIXING.intercept_pull)
    return ScoreColumns(
        scores.all,
        np.stack(centers, axis=1).astype(np.float64),
        scales=np.array(scales),
        start=np.array(start),
        start_pull=np.array(start_pull),
        pull=np.array(pull),
        learned=np.arange(len(scores.all)) < len(scores.learned) + len(scores.occasions),
    )


def _spread(scores: np.ndarray, centers: np.ndarray) -> float:
    """Return the standard deviation of centred scores over all labels that have any; else 1."""
    squares = np.einsum("ij,ij->j", scores, scores, dtype=np.float64)
    variances = squares / max(1, len(scores)) - centers**2
    is_used = variances > 1e-9 * max(float(variances.max(initial=0)), 1e-30)
    return float(np.sqrt(variances[is_used].mean())) if is_used.any() else 1.0


def frequency_levels(counts: np.ndarray, n: int) -> np.ndarray:
    """Return how much less frequent labels are in new images, as log-odds (D,), at most 0.

    Chance decides which of many rare labels are on some of n images. On other images they are
    rarer: labels on 2 to 4 of 20 photographs of COCO were half as frequent on 800 others. How many
    labels are on 1, 2, 3 … images tells by how much (empirical Bayes),

        lₜ = min(0, logit E[p | rₜ] − logit(rₜ / n)),

    where rₜ is the number of images with label t, binomial with n and p, given that it is not 0.
    The distribution of p over all labels starts out uniform in log p, and a few rounds of
    expectation maximisation fit it to the counts. No label is expected more often than it was seen.

    Parameters
    ----------
    counts : int array of shape (D,)
        Number of images with each label. A label on no image or all images has a level of 0.
    n : int
        Number of images.
    """
    counts = np.asarray(counts)
    levels, seen = np.zeros(len(counts)), (counts > 0) & (counts < n)
    if not seen.any():
        return levels
    r, place, n_labels = np.unique(counts[seen], return_inverse=True, return_counts=True)
    low, high = np.log(0.1 / n), np.log(1 - 0.5 / n)
    p = np.exp(np.linspace(low, high, int((high - low) / LINKING.step) + 2))
    log_likelihood = r[:, None] * np.log(p) + (n - r)[:, None] * np.log1p(-p)
    log_likelihood -= np.log(-np.expm1(n * np.log1p(-p)))  # given that the count is not 0
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    weights = np.full(len(p), 1 / len(p))
    for _ in range(_ROUNDS):
        weights = n_labels @ _posterior(likelihood, weights) / n_labels.sum()
    expected = _posterior(likelihood, weights) @ p
    level = np.minimum(logit(expected) - logit(r / n), 0)
    levels[seen] = level[place]
    return levels


def _posterior(likelihood: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the probability of each share, given a count; rows sum to 1."""
    joint = likelihood * weights
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))
