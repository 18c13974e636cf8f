"""Mix several scores of each label into one log-odds, with weights pulled to common ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse

from tagkin.arrays import expit, row_blocks
from tagkin.arrays.blocks import cached_rows
from tagkin.records.forms import storable
from tagkin.records.rules import Floats

__all__ = [
    "MIXING",
    "MOST_SCORES",
    "Mixing",
    "Mixture",
    "ScoreColumns",
    "fit_mixture",
    "share_logits",
]


@dataclass(frozen=True)
class Mixing:
    """Numbers of the mixture, chosen on draws of COCO, Flickr8k and photos (20 to 1,500 images).

    If the weights of a label are the common ones, .2 MAP and .4 MiAP are lost from 400 images on.
    """

    start: tuple[float, float] = (1 / 3, 1.0)
    """Weights of votes and read-out before any held-out image. With a read-out of ⅔, MAP of 20
    images was .3 lower."""
    name_start: float = 0.2
    """Weight of a label's name, in units of the names' standard deviation. If labels have the names
    of persons, places and cameras, names cost 2.8 MAP with 8 images and .5 with 20; with .6 they
    cost .8 and .4 more, and right names gain .3 more with 8 images and the same with 20."""
    occasion_start: float = 0.3
    """The same for the scores of time, place and folder. With .1 and 1, MAP changes by .3."""
    start_pull: float = 30.0
    """Pull of the common weights to these, about the information of some hundred pairs. With 300,
    MAP of 20 images was 3 lower, and above 100 images nothing changed."""
    loose_pull: float = 3.0
    """Pull of the common weight of names to that, and of a single score of any scale, of which
    nothing is known before. With 10 and a start of .1, right names gain 2 MAP less with 8
    images."""
    pull: float = 90.0
    """Pull of a label's weights to the common ones. With 30, MAP changes by .05."""
    name_pull: float = 30.0
    """The same for the weight of its name, and for a single score."""
    intercept_pull: float = 5.0
    """The same for its intercept. Without own intercepts, MiAP is .3 to .5 lower from 250 images on
    (traveller, photos), and up to .2 lower or higher with fewer."""
    least: float = 0.02
    """Least weight, as a share of the common weight: a label's images keep their order. It also
    holds for the common weight, as a share of its start. With .5, MAP of 20 images was 1.1 to 1.6
    lower (photos, Flickr8k, words of captions), that of 50 .4 to .6, and that of 100 .2 or less;
    with .2, .1 to .3 and 0 to .1. If names of persons and places say nothing, .5 costs .4, too."""
    most_pairs: int = 2**22
    """Pairs of images and labels that the common weights are fitted to, at most."""
    moved: float = 1e-3
    """A smaller step ends the iteration."""


MIXING = Mixing()
MOST_SCORES = 2**25
"""Held-out scores to learn from where a sample of the images will do."""


@storable
@dataclass(frozen=True, eq=False)
class Mixture:
    """z = dₜ + Σⱼ aₜⱼ (xⱼ − x̄ₜⱼ) for k scores x of each of D labels; `fit_mixture` learns it."""

    weights: Annotated[np.ndarray, Floats("D", "k").kept_on_host()]
    """a, shape (D, k), not below 0."""
    centers: Annotated[np.ndarray, Floats("D", "k").kept_on_host()]
    """x̄, shape (D, k): scores that say nothing about an image."""
    intercepts: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """d, shape (D,)."""
    common: Annotated[np.ndarray, Floats("k").kept_on_host()]
    """Common weights of all labels, shape (k,), for labels without their own."""
    common_intercept: float
    """Common part of d, added to the log-odds of a label's share of the images."""

    @property
    def n_labels(self) -> int:
        """Number of labels, D."""
        return len(self.intercepts)

    def __call__(self, scores: Sequence[np.ndarray]) -> np.ndarray:
        """Return log-odds z (n×D), float32, from k scores (n×D)."""
        n, n_labels = scores[0].shape
        z = np.empty((n, n_labels), dtype=np.float32)
        offset = self.intercepts - (self.weights * self.centers).sum(axis=1)
        for rows in row_blocks(n, 32 * n_labels):
            total = np.tile(offset, (len(z[rows]), 1))
            for weights, part in zip(self.weights.T, scores, strict=True):
                total += weights * part[rows]
            z[rows] = total
        return z

    def shares(self, scores: Sequence[np.ndarray]) -> np.ndarray:
        """Return the share (k, n, D) of each score in the evidence for a label.

        Shares are in proportion to aₜⱼ (xⱼ − x̄ₜⱼ), and 0 if that is negative. They add up to 1. If
        there is no evidence for a label, the first score has all.
        """
        parts = zip(self.weights.T, self.centers.T, scores, strict=True)
        lifts = np.stack([np.maximum(w * (x - c), 0) for w, c, x in parts])
        total = lifts.sum(axis=0)
        shares = lifts / np.where(total > 0, total, 1)
        shares[0][total <= 0] = 1
        return shares

    def spread(self, columns: np.ndarray, centers: np.ndarray, levels: np.ndarray) -> Mixture:
        """Expand to the D labels of `levels`; these `columns`, ascending, were fitted.

        The others get the common weights and their own `centers` (D×k).
        """
        weights, centers = np.tile(self.common, (len(levels), 1)), np.array(centers)
        intercepts = self.common_intercept + np.asarray(levels, dtype=np.float64)
        weights[columns], centers[columns] = self.weights, self.centers
        intercepts[columns] = self.intercepts
        return replace(self, weights=weights, centers=centers, intercepts=intercepts)


class ScoreColumns(NamedTuple):
    """Scores of n held-out images to mix, and how to standardise them."""

    scores: Sequence[np.ndarray]
    """k arrays of shape (n, D)."""
    centers: np.ndarray
    """Scores that say nothing, shape (D, k)."""
    scales: np.ndarray
    """Units of the scores, shape (k,)."""
    start: np.ndarray
    """Weights before any held-out image, in these units, shape (k,)."""
    start_pull: np.ndarray
    """Pull of the common weights to these, and of the common intercept to 0, shape (k + 1,)."""
    pull: np.ndarray
    """Pull of each label's weights and intercept to the common ones, shape (k + 1,)."""
    learned: np.ndarray
    """Whether folds taught a score, bool, shape (k,); they did not teach the score of a name."""

    def block(self, labels: slice, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return standardised scores of some labels and a 1, shape (labels, k + 1, images)."""
        parts = [part[rows, labels].T for part in self.scores]
        x = np.ones((parts[0].shape[0], len(parts) + 1, parts[0].shape[1]), dtype=np.float32)
        for j, part in enumerate(parts):
            x[:, j] = (part - self.centers[labels, j, None]) / self.scales[j]
        return x


def fit_mixture(
    columns: ScoreColumns,
    Y: scipy.sparse.csr_array,
    levels: np.ndarray,
    positive_weights: np.ndarray,
    testable: np.ndarray,
) -> tuple[Mixture, np.ndarray]:
    """Fit weights of scores, and return them with log-odds (n×D) of the same images.

    Each label has a logistic regression on its scores and a 1 with the parameters θₜ = (aₜ, dₜ),
    aₜ > 0, and the prior N(θ₀ + (0, ℓₜ), Λ⁻¹). Its loss is

        Σᵢ wᵢₜ log(1 + exp(∓zᵢₜ)) + ½ (θₜ − θ₀ − (0, ℓₜ))ᵀ Λ (θₜ − θ₀ − (0, ℓₜ)),

    and θ₀ minimises the sum of these losses with θₜ = θ₀ + (0, ℓₜ), itself pulled to the usual
    weights. So a label on few images has the common weights, and a few images leave these where
    they usually are.

    The log-odds of an image are those of a fit without it, to first order: the change is
    h w (p − y)/(1 − h w p (1 − p)) with h = xᵀ H⁻¹ x. Without that, an asked precision of .8
    reached .77 with 50 and 100 images, and .82 with it.

    Parameters
    ----------
    columns : ScoreColumns
        Held-out scores.
    Y : CSR array of shape (n, D)
    levels : array of shape (D,)
        ℓ, log-odds of each label's expected share of new images.
    positive_weights : array of shape (D,)
        Weight of an image with the label; one without it has weight 1.
    testable : bool array of shape (D,)
        Labels to learn from; the others get the common weights. If some scores are not learned
        ones, the others teach the common weights of these: their learned scores count as 0.
    """
    by_label = scipy.sparse.csc_array(Y)
    n, n_labels = Y.shape
    common = _fit_common(columns, by_label, levels, positive_weights, testable)
    pull = columns.pull
    low = np.append(MIXING.least * common[:-1], -np.inf)
    prior = np.tile(common, (n_labels, 1))
    prior[:, -1] += levels
    theta, log_odds = prior.copy(), np.empty((n, n_labels), dtype=np.float32)
    for labels in _label_blocks(n_labels, n * (len(pull) + 2)):
        x, weights = columns.block(labels), positive_weights[labels, None]
        present = by_label[:, labels].toarray().T > 0
        learned = testable[labels]
        inverse = np.zeros((len(x), len(pull), len(pull)))
        if learned.any():
            some = _Pairs(x[learned], present[learned], weights[learned])
            start = prior[labels][learned]
            fitted, hessian = minimize(start, partial(some.penalized, start, pull), low)
            theta[np.arange(n_labels)[labels][learned]] = fitted
            inverse[learned] = np.linalg.inv(hessian)
        own = theta[labels].astype(np.float32)
        z = (own[:, None] @ x)[:, 0]
        log_odds[:, labels] = _leave_one_out(z, x, present, weights, inverse).T
    own, scales = theta[:, :-1], columns.scales
    mixture = Mixture(
        own / scales, columns.centers, theta[:, -1], common[:-1] / scales, float(common[-1])
    )
    return mixture, log_odds


def share_logits(Y: scipy.sparse.csr_array) -> np.ndarray:
    """Return the logit of each label's share of the images, shape (D,).

    While an image of a rare label is held out, the label has fewer images than in other folds, and
    lower scores. Without this correction, its own images would rank last across folds.
    """
    share = (np.bincount(Y.indices, minlength=Y.shape[1]) + 0.5) / (Y.shape[0] + 1)
    return np.asarray(np.log(share) - np.log1p(-share), dtype=np.float32)


Derivatives = tuple[np.ndarray, np.ndarray]


class _Pairs(NamedTuple):
    """Scores x (B×k×n) of images, whether they have the labels (B×n), and weights (B×1)."""

    x: np.ndarray
    present: np.ndarray
    weights: np.ndarray

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        """Return the gradient (B×k) and the Hessian (B×k×k) of the losses at theta (B×k)."""
        x, y, weights = self
        p = np.asarray(expit((theta.astype(np.float32)[:, None] @ x)[:, 0]))
        w = np.where(y, weights.astype(np.float32), np.float32(1))
        gradient = (x @ (w * (p - y))[..., None])[..., 0]
        hessian = (x * (w * p * (1 - p))[:, None]) @ x.transpose(0, 2, 1)
        return gradient.astype(np.float64), hessian.astype(np.float64)

    def penalized(self, mean: np.ndarray, pull: np.ndarray, theta: np.ndarray) -> Derivatives:
        """Return the derivatives with the prior N(mean, diag(pull)⁻¹), mean (B×k), pull (k,)."""
        gradient, hessian = self.derivatives(theta)
        return gradient + pull * (theta - mean), hessian + np.diag(pull)


def minimize(
    theta: np.ndarray, derivatives: Callable[[np.ndarray], Derivatives], low: np.ndarray
) -> Derivatives:
    """Minimise B convex losses of theta (B×k) by Newton's method, with theta ≥ low (k,).

    Returns theta and the Hessians (B×k×k), whose last parameter is an intercept.
    """
    for _ in range(40):  # about five suffice
        gradient, hessian = derivatives(theta)
        is_free = (theta > low) | (gradient < 0)
        held = hessian * is_free[:, :, None] * is_free[:, None] + np.eye(len(low)) * (
            ~is_free[:, None]
        )
        step = -np.linalg.solve(held, (gradient * is_free)[..., None])[..., 0]
        bend = np.maximum(hessian[:, -1, -1], np.finfo(np.float32).tiny)
        squared = np.einsum("ta,tab,tb->t", step, hessian, step) / bend
        # at most one unit of log-odds, root mean square: the loss is a parabola nearby
        step /= np.maximum(np.sqrt(np.maximum(squared, 0)), 1)[:, None]
        new = np.maximum(theta + step, low)
        moved, theta = np.abs(new - theta).max(initial=0), new
        if moved < MIXING.moved:
            break
    return theta, derivatives(theta)[1]


def _fit_common(
    columns: ScoreColumns,
    by_label: scipy.sparse.csc_array,
    levels: np.ndarray,
    positive_weights: np.ndarray,
    testable: np.ndarray,
) -> np.ndarray:
    """Return θ₀, shape (k + 1,): the weights that make all labels together most likely."""
    n, n_labels = by_label.shape
    counts = np.diff(by_label.indptr)
    # a name says the same in every fold, so labels that cannot be tested tell its worth, too
    taught = testable if columns.learned.all() else (counts > 0) & (counts < n)
    rows = np.arange(n)[:: max(1, -(-n * n_labels // MIXING.most_pairs))]
    start = np.append(columns.start, 0.0)
    start_pull = columns.start_pull
    blocks = []
    for labels in _label_blocks(n_labels, len(rows) * (len(start) + 2)):
        some = np.arange(n_labels)[labels][taught[labels]]
        if len(some):
            x = columns.block(labels, rows)[taught[labels]]
            x[np.ix_(~testable[some], np.append(columns.learned, False))] = 0
            present = by_label[:, some][rows].toarray().T > 0
            blocks.append((_Pairs(x, present, positive_weights[some, None]), levels[some]))

    def derivatives(theta: np.ndarray) -> Derivatives:
        gradient, hessian = start_pull * (theta - start), np.diag(start_pull)[None]
        for pairs, level in blocks:
            own = np.tile(theta, (len(level), 1))
            own[:, -1] += level
            first, second = pairs.derivatives(own)
            gradient, hessian = gradient + first.sum(axis=0), hessian + second.sum(axis=0)
        return gradient, hessian

    low = np.append(MIXING.least * columns.start, -np.inf)
    return minimize(start[None], derivatives, low)[0][0]


def _leave_one_out(
    z: np.ndarray, x: np.ndarray, present: np.ndarray, weights: np.ndarray, inverse: np.ndarray
) -> np.ndarray:
    """Return the log-odds (B×n) of fits without the image, to first order."""
    p = expit(z)
    h = np.einsum("bkn,bkn->bn", inverse.astype(np.float32) @ x, x)
    w = np.where(present, weights, 1)
    return np.asarray(z + h * w * (p - present) / (1 - h * w * p * (1 - p)))


def _label_blocks(n_labels: int, numbers_per_label: int) -> list[slice]:
    step = cached_rows(4 * numbers_per_label)
    return [slice(start, min(start + step, n_labels)) for start in range(0, n_labels, step)]
