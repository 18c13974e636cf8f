"""Calibrated probabilities of labels: a mixture of scores, one link, one cut for a precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Annotated

import numpy as np
import scipy.sparse

from tagkin.arrays import expit, row_blocks
from tagkin.calibration.mixture import Mixture
from tagkin.errors import InvalidInput
from tagkin.records.forms import Axes, storable
from tagkin.records.rules import Floats, Whole
from tagkin.wording import count

__all__ = [
    "FARTHEST",
    "LINKING",
    "Calibration",
    "CalibrationByKind",
    "Cuts",
    "Linking",
    "Tally",
    "apply_link",
    "check_precision",
    "fit_cuts",
    "fit_shrink",
    "tally_pairs",
]


@dataclass(frozen=True)
class Linking:
    """Numbers of link and cut, chosen on draws of COCO, Flickr8k and photos (20 to 1,500 images).

    With 20, 50 and 100 images of other draws, an asked .8 reached .78, .83 and .84 (photos), .82,
    .80 and .85 (Flickr8k), and .69, .67 and .80 (words of captions).
    """

    step: float = 0.05
    """Width of the groups of log-odds, and of the grid of labels' shares. With .25, cuts are
    coarser and find 4 % fewer."""
    knee: float = -1.0
    """Log-odds above which a label is less likely than its log-odds say. With −2 or −.5, the
    calibration error changed by at most .01."""
    shrink: float = 0.15
    """γ before any held-out image. With 0, the calibration error of 20 to 100 images was up to .01
    higher (words of captions, Flickr8k), and an asked .8 reached .55 and .76 with 20, not .69 and
    .82. With .2 and without names, too little is said between 50 and 90 %, .05 on Flickr8k."""
    shrink_pull: float = 100.0
    """Pull of γ to this, about the information of some hundred likely pairs. With a fixed γ, the
    calibration error was .014 higher with 250 images (traveller), and .008 with 400 (photos)."""
    prior_pairs: float = 10.0
    """Pairs that the probability counts for at a cut. With none, nothing is suggested with 20
    images. With 20 pairs, an asked .8 reached .61 for words of captions with 20 images, and .70
    with 10 pairs, which find 10 % fewer with 20 and 50 images and as many with more."""
    error: float = 0.3
    """δ: probability that a cut is too low, for a single cut. With .4 and 50 images,
    5 % more are found, and .81 is reached instead of .82 if .8 is asked. With .1 and 20 images, an
    asked .8 reached .84 instead of .79 (photos), but .64 instead of .70 (Flickr8k), where the few
    that are left are no better, and half as many are found; from 50 on, .8 is reached with .3."""


LINKING = Linking()
FARTHEST = float(-np.log(np.finfo(np.float32).eps))
"""Log-odds from which on a probability is next to 1, and that of minus this next to 0."""


@storable
@dataclass(frozen=True)
class Cuts:
    """Least probabilities, and the precision that all suggestions reach with them."""

    probabilities: Annotated[np.ndarray, Floats("c").kept_on_host()]
    """Shape (c,), from the highest."""
    precision: Annotated[np.ndarray, Floats("c").kept_on_host()]
    """Shape (c,): greatest lower bound of the precision at this cut and all lower ones."""

    def threshold(self, precision: float) -> float:
        """Return the lowest probability at which a precision is reached, or ∞."""
        reached = np.count_nonzero(self.precision >= precision)
        return float(self.probabilities[reached - 1]) if reached else np.inf


def check_precision(precision: object) -> float:
    """Return a share of right suggestions that can be asked for."""
    is_number = isinstance(precision, Real) and not isinstance(precision, bool)
    share = float(precision) if is_number else np.nan  # type: ignore[arg-type]
    if not 0 < share <= 1:
        raise InvalidInput(f"precision must be above 0 and at most 1; found {precision!r}.")
    return share


@storable
@dataclass(frozen=True, eq=False)
class Calibration:
    """Probabilities of D labels from k scores of each, P = σ(g(z)); `fit_calibration` learns it.

    z are the log-odds of a mixture of the scores, with weights of each label. Likely labels are
    less likely than z says, because labels with a large z are often those with a large error. So

        g(z) = z − γ max(0, z + 1)

    with one γ for all labels, and probabilities rank like z.
    """

    n_images: Annotated[int, Whole()]
    """Number of held-out images."""
    mixture: Mixture
    shrink: float
    """γ."""
    cuts: Cuts

    @property
    def n_labels(self) -> int:
        """Number of labels, D."""
        return self.mixture.n_labels

    def mix(self, scores: Sequence[np.ndarray]) -> np.ndarray:
        """Return log-odds z (n×D) from k scores (n×D)."""
        if len(scores) != self.mixture.weights.shape[1] or scores[0].shape[1] != self.n_labels:
            raise InvalidInput(
                f"Found {len(scores)} scores of {scores[0].shape[1]} labels, but "
                f"{self.mixture.weights.shape[1]} of {self.n_labels} labels were fitted. Pass the "
                "same labels in the same order, or fit again."
            )
        return self.mixture(scores)

    def probabilities(self, z: np.ndarray) -> np.ndarray:
        """Return probabilities (n×D), float32, above 0 and below 1, of log-odds z (n×D)."""
        P = np.empty(z.shape, dtype=np.float32)
        for rows in row_blocks(len(z), 32 * z.shape[1]):
            P[rows] = expit(apply_link(z[rows], self.shrink))
        return np.minimum(P, np.nextafter(np.float32(1), np.float32(0)), out=P)

    def threshold(self, precision: float) -> float:
        """Return the probability from which on suggestions reach a precision, all labels together.

        It is ∞ if the held-out images do not show that any suggestions reach it.
        """
        return self.cuts.threshold(check_precision(precision))

    def spread(self, columns: np.ndarray, centers: np.ndarray, levels: np.ndarray) -> Calibration:
        """Expand to the D labels of `levels`; see `Mixture.spread`.

        Parameters
        ----------
        columns : array of shape (K,) of int
            The labels that were fitted, ascending.
        centers : array of shape (D, k)
            Where each score of a label says nothing.
        levels : array of shape (D,)
            Levels of all labels.
        """
        return replace(self, mixture=self.mixture.spread(columns, centers, levels))

    def describe(self) -> list[str]:
        """Return a few sentences that describe this calibration."""
        half = self.threshold(0.5)
        if half > 1:
            right = "At no confidence are half of the suggestions right."
        else:
            right = f"Half of the suggestions with a confidence of {half:.2f} or more are right."
        return [
            f"Probabilities of {count(self.n_labels, 'label')}, learned from the scores of "
            f"{count(self.n_images, 'held-out image')}.",
            right,
        ]


@storable
@dataclass(frozen=True, eq=False)
class CalibrationByKind:
    """Calibrations of images without a near learned one; see `tagkin.model_selection.kinds`."""

    event: Annotated[Calibration, Axes(c="event cuts")]
    """Of images of another event."""
    far: Annotated[Calibration, Axes(c="far cuts")]
    """Of images of another trip."""

    def spread(
        self, columns: np.ndarray, centers: np.ndarray, levels: np.ndarray
    ) -> CalibrationByKind:
        """Expand to the D labels of `levels`; see `Calibration.spread`.

        Parameters
        ----------
        columns : array of shape (K,) of int
        centers : array of shape (D, k)
        levels : array of shape (D,)
        """
        return CalibrationByKind(
            self.event.spread(columns, centers, levels), self.far.spread(columns, centers, levels)
        )


@dataclass(frozen=True)
class Tally:
    """Pairs of an image and a label in groups by log-odds, ascending."""

    log_odds: np.ndarray
    """Middle of each group."""
    count: np.ndarray
    """Weight of the pairs."""
    positives: np.ndarray
    """Weight of the pairs in which the image has the label."""


def tally_pairs(
    z: np.ndarray,
    Y: scipy.sparse.csr_array,
    positive_weights: np.ndarray,
    image_weights: np.ndarray,
) -> Tally:
    """Count pairs of images and labels by their log-odds z (n×D).

    `positive_weights` (D,) are the weights of images with a label, `image_weights` (n,) those of
    all pairs of an image.
    """
    half = round(FARTHEST / LINKING.step)
    count, positives = np.zeros((2, 2 * half + 1))
    for rows in row_blocks(len(z), 32 * z.shape[1]):
        group = np.clip(np.rint(z[rows] / LINKING.step), -half, half).astype(np.int32) + half
        weights = np.broadcast_to(image_weights[rows, None], group.shape)
        count += np.bincount(group.ravel(), weights.ravel(), len(count))
        image, label = Y[rows].nonzero()
        places, own = group[image, label], weights[image, label]
        present = own * positive_weights[label]
        positives += np.bincount(places, present, len(count))
        count += np.bincount(places, present - own, len(count))
    used = np.flatnonzero(count > 0)
    kept = slice(used[0], used[-1] + 1)
    grid = LINKING.step * np.arange(-half, half + 1)
    return Tally(grid[kept], np.maximum(count[kept], 0), positives[kept])


def apply_link(z: np.ndarray, shrink: float) -> np.ndarray:
    """Return g(z) = z − γ max(0, z + 1) with γ = `shrink`."""
    return np.asarray(z - shrink * np.maximum(z - LINKING.knee, 0))


def fit_shrink(tally: Tally) -> float:
    """Return the γ of `apply_link` that makes the labels most likely, pulled to its usual value."""
    from scipy.optimize import minimize_scalar  # only learning needs it, and it takes a while

    def loss(shrink: float) -> float:
        log_odds = apply_link(tally.log_odds, shrink)
        surprise = tally.count * np.logaddexp(0, log_odds) - tally.positives * log_odds
        return float(surprise.sum() + LINKING.shrink_pull / 2 * (shrink - LINKING.shrink) ** 2)

    # below 1, probabilities rank like z
    return float(minimize_scalar(loss, bounds=(0, 1), method="bounded").x)


def fit_cuts(tally: Tally, shrink: float) -> Cuts:
    """Find which precision each cut reaches, from the highest probability down.

    The precision of all pairs above a cut has the lower bound of Clopper and Pearson with error δ,
    in which a few more pairs are as often right as their probabilities say.
    """
    from scipy.special import betaincinv  # only learning needs it

    p = expit(apply_link(tally.log_odds, shrink))
    count, right, expected = (
        np.cumsum(part[::-1]) for part in (tally.count, tally.positives, tally.count * p)
    )
    mean = expected / np.maximum(count, 1e-12)
    right = right + LINKING.prior_pairs * mean
    wrong = np.maximum(count + LINKING.prior_pairs - right, 0)
    bound = betaincinv(right, wrong + 1, LINKING.error)
    bound = np.maximum.accumulate(bound[::-1])[::-1]
    edges = expit(apply_link(tally.log_odds - LINKING.step / 2, shrink))[::-1]
    return Cuts(np.asarray(edges), np.asarray(bound))
