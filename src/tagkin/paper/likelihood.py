"""TagProp's likelihood and its maximum, without an N×K×D array.

Arrays over pairs of an image and a label stay with the neighbours, on the host or on an
accelerator. Weights and sigmoids, a few numbers, are fitted on the host.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy  # it imports its submodules at first use

from tagkin.arrays import Array, expit, like, namespace
from tagkin.paper.pairs import Pairs
from tagkin.transfer.neighbor_lists import beyond_nearest, distance_weights

__all__ = [
    "Sigmoids",
    "distance_loss",
    "fit_distance_weights",
    "fit_label_sigmoids",
    "fit_rank_weights",
    "likelihood_loss",
    "rank_loss",
    "rank_weights",
    "smooth",
]

EPSILON = 1e-3  # predictions lie in [ε/2, 1 − ε/2]: a wrong prediction has a finite loss
_SLOPE = 100  # standard deviation of the prior of slopes: 1 % of the weight moves log-odds by 1
_TOLERANCE = 1e-9  # of the loss, which is about 1
_OPTIONS = {"ftol": _TOLERANCE, "gtol": 0, "maxiter": 1000, "maxcor": 20}


class Sigmoids(NamedTuple):
    """P = σ(aₜ p + bₜ), one for each label."""

    slope: np.ndarray
    """a, shape (D,)."""
    offset: np.ndarray
    """b, shape (D,)."""


def likelihood_loss(p: Array, pairs: Pairs, sigmoids: Sigmoids | None) -> tuple[float, Array]:
    """Return −Σ c log P over the whole matrix for votes p (P,), and its derivative by p (P,).

    P = σ(aₜ p + bₜ) with sigmoids, else ε/2 + (1 − ε) p; for an absent label 1 − P.
    """
    xp = namespace(p)
    if sigmoids is None:
        slope = (1 - EPSILON) * pairs.sign
        right = 0.5 + slope * (p - 0.5)
        unsupported = -math.log(EPSILON / 2) * pairs.unsupported_present.sum()
        unsupported -= math.log1p(-EPSILON / 2) * pairs.unsupported_absent.sum()
        return float(unsupported - xp.log(right) @ pairs.cost), -pairs.cost * slope / right
    unsupported = np.logaddexp(0, -sigmoids.offset) @ pairs.unsupported_present
    unsupported += np.logaddexp(0, sigmoids.offset) @ pairs.unsupported_absent
    slope, offset = (like(part, p)[pairs.label] for part in sigmoids)
    losses, wrong = _logistic(pairs.sign * (slope * p + offset))
    return float(unsupported + losses @ pairs.cost), -pairs.cost * pairs.sign * wrong * slope


def _logistic(x: Array) -> tuple[Array, Array]:
    """Return −log σ(x) and σ(−x), from a single exponential."""
    xp = namespace(x)
    small = xp.exp(-xp.abs(x))
    beyond = 1 / (1 + small)
    return xp.log1p(small) + (-x).clip(0, None), xp.where(x > 0, small * beyond, beyond)


def smooth(p: Array) -> Array:
    """Return ε/2 + (1 − ε) p."""
    return EPSILON / 2 + (1 - EPSILON) * p


def rank_weights(penalties: np.ndarray) -> np.ndarray:
    """Return π = softmax(−λ) over the ranks, shape (K,)."""
    weights = np.exp(penalties.min() - penalties)
    return weights / weights.sum()


def rank_loss(
    penalties: np.ndarray, pairs: Pairs, sigmoids: Sigmoids | None
) -> tuple[float, np.ndarray]:
    """Return the loss with rank weights softmax(−λ), and its gradient by λ (K,)."""
    weights = rank_weights(penalties)
    value, by_p = likelihood_loss(pairs.votes(weights), pairs, sigmoids)
    by_weight = pairs.by_weight(by_p)
    return value, weights * (weights @ by_weight - by_weight)


def distance_loss(
    decay: np.ndarray, pairs: Pairs, distances: Array, sigmoids: Sigmoids | None
) -> tuple[float, np.ndarray]:
    """Return the loss with weights softmax(−λ d) and its gradient by λ; `decay` has one entry."""
    xp = namespace(distances)
    weights = distance_weights(distances, float(decay[0]))
    value, by_p = likelihood_loss(pairs.votes(weights), pairs, sigmoids)
    beyond = beyond_nearest(distances)
    by_decay = weights * (xp.sum(weights * beyond, axis=1, keepdims=True) - beyond)
    return value, np.array([float(by_p @ pairs.votes(by_decay))])


def fit_rank_weights(
    pairs: Pairs, penalties: np.ndarray, sigmoids: Sigmoids | None = None
) -> np.ndarray:
    """Return λ (K,) of least loss, starting from `penalties`; its minimum is 0.

    The loss is convex in π = softmax(−λ), so the optimum is unique.
    """
    best = scipy.optimize.minimize(
        rank_loss, penalties, (pairs, sigmoids), jac=True, method="L-BFGS-B", options=_OPTIONS
    ).x
    return best - best.min()  # a shift of all λ does not change π


def fit_distance_weights(
    pairs: Pairs, distances: Array, decay: float, sigmoids: Sigmoids | None = None
) -> float:
    """Return λ ≥ 0 of least loss, starting from `decay`."""
    # rescaled, because the optimiser's first steps are about 1
    unit = float(namespace(distances).mean(beyond_nearest(distances))) or 1.0
    result = scipy.optimize.minimize(
        distance_loss,
        np.array([decay * unit]),
        (pairs, distances / unit, sigmoids),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)],
        options=_OPTIONS,
    )
    return float(result.x[0] / unit)


def fit_label_sigmoids(
    pairs: Pairs,
    p: Array,
    start: Sigmoids | None = None,
    *,
    monotone: bool,
) -> Sigmoids:
    """Fit slopes and offsets of least loss for p (P,) by damped Newton steps, for all labels.

    With `monotone`, slopes are at least 0. Slopes have a weak prior, c a² / (2 · 100²) with the
    cost c of a present label: without it they reach thousands if nearly all images are neighbours,
    and rounding decides on probabilities. On Corel5k it raises the loss from .4096 to .4101.
    """
    d = len(pairs.unsupported_present)
    best = start or Sigmoids(np.zeros(d), np.zeros(d))
    value, gradient, curvature = sigmoid_problem(pairs, p, best)
    damping = np.zeros(d)
    for _ in range(100):
        trial = _newton_step(best, gradient, curvature, damping, monotone)
        trial_problem = sigmoid_problem(pairs, p, trial)
        better = trial_problem[0] <= value + 1e-14
        gain = np.where(better, value - trial_problem[0], 0).sum()
        best = Sigmoids(*np.where(better, trial, best))
        value, gradient, curvature = (
            np.where(better, new, old)
            for new, old in zip(trial_problem, (value, gradient, curvature), strict=True)
        )
        damping = np.where(better, damping / 8, np.maximum(8 * damping, 1e-3))
        if gain < _TOLERANCE and better.all():
            break
    return best


def sigmoid_problem(
    pairs: Pairs, p: Array, sigmoids: Sigmoids
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each label's loss (D,), its gradient by (a, b) (2, D), and its Hessian (3, D).

    The loss includes that of the prior. The rows of the Hessian are aa, ab and bb.
    """
    a, b = (like(part, p)[pairs.label] for part in sigmoids)
    losses, wrong = _logistic(pairs.sign * (a * p + b))
    slope = -pairs.cost * pairs.sign * wrong
    curve = pairs.cost * wrong * (1 - wrong)
    b, by_label = sigmoids.offset, pairs.by_label
    present, absent = pairs.unsupported_present, pairs.unsupported_absent
    p_unsupported = expit(b)
    precision = pairs.costs[0] / _SLOPE**2
    loss = by_label(pairs.cost * losses) + precision * sigmoids.slope**2 / 2
    loss += present * np.logaddexp(0, -b) + absent * np.logaddexp(0, b)
    by_offset = by_label(slope) + absent * p_unsupported - present * (1 - p_unsupported)
    gradient = np.stack([by_label(slope * p) + precision * sigmoids.slope, by_offset])
    curve_p = curve * p
    by_offset_twice = by_label(curve) + (absent + present) * p_unsupported * (1 - p_unsupported)
    curvature = np.stack([by_label(curve_p * p) + precision, by_label(curve_p), by_offset_twice])
    return loss, gradient, curvature


def _newton_step(
    sigmoids: Sigmoids,
    gradient: np.ndarray,
    curvature: np.ndarray,
    damping: np.ndarray,
    monotone: bool,
) -> Sigmoids:
    """Take a damped Newton step; a slope stops at its bounds."""
    (a, b), (by_a, by_b), (aa, ab, bb) = sigmoids, gradient, curvature
    tiny = np.finfo(float).tiny
    aa, bb = aa * (1 + damping) + tiny, bb * (1 + damping) + tiny
    determinant = aa * bb - ab * ab
    sound = determinant > 1e-12 * aa * bb
    step_a = np.where(sound, ab * by_b - bb * by_a, 0) / np.where(sound, determinant, 1)
    # a sigmoid that separates present from absent perfectly would rise for ever
    slope = np.clip(a + step_a, 0 if monotone else -1e4, 1e4)
    # the offset's step follows from the slope's
    step_b = -(by_b + ab * (slope - a)) / bb
    return Sigmoids(slope, b + np.clip(step_b, -10, 10))
