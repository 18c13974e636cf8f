"""TagProp's likelihood and its maximum, without an N×K×D array.

What there is of each pair of an image and a label stays where the neighbours are, on the host or
on an accelerator; weights and sigmoids, a few numbers, are found on the host.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy  # its parts when they are asked for

from tagkin.arrays import Array, clip, expit, like, namespace, on_accelerator
from tagkin.transfer._pairs import Pairs

__all__ = [
    "Sigmoids",
    "distance_loss",
    "distance_weights",
    "fit_distance_weights",
    "fit_label_sigmoids",
    "fit_rank_weights",
    "likelihood_loss",
    "rank_loss",
    "rank_weights",
    "smoothed",
]

EPSILON = 1e-3  # predictions lie in [ε/2, 1 − ε/2], so that a wrong one is not infinitely bad
_STEEPEST = 1e4  # of a sigmoid, where present and absent can be told apart without a fault
_TOLERANCE = 1e-9  # of the loss, which is of the order of 1
_OPTIONS = {"ftol": _TOLERANCE, "gtol": 0, "maxiter": 1000, "maxcor": 20}
_MAX_STEPS = 100
_PAIRS = 2**13  # that are computed at a time on the host


class Sigmoids(NamedTuple):
    """P = σ(aₜ p + bₜ), one for each label."""

    slope: np.ndarray
    """a, shape (D,)."""
    offset: np.ndarray
    """b, shape (D,)."""


def likelihood_loss(p: Array, pairs: Pairs, sigmoids: Sigmoids | None) -> tuple[float, Array]:
    """−Σ c log P over the whole matrix, given votes p (P,), and its derivative by p (P,).

    P = σ(aₜ p + bₜ) with sigmoids, else ε/2 + (1 − ε) p; for an absent label 1 − P.
    """
    xp = namespace(p)
    if sigmoids is None:
        slope = (1 - EPSILON) * pairs.sign
        right = 0.5 + slope * (p - 0.5)
        unsupported = -math.log(EPSILON / 2) * pairs.unsupported_present.sum()
        unsupported -= math.log1p(-EPSILON / 2) * pairs.unsupported_absent.sum()
        return float(unsupported - xp.log(right) @ pairs.cost), -pairs.cost * slope / right
    total = float(
        np.logaddexp(0, -sigmoids.offset) @ pairs.unsupported_present
        + np.logaddexp(0, sigmoids.offset) @ pairs.unsupported_absent
    )
    slope, offset = (like(part, p) for part in sigmoids)
    by_p = xp.empty_like(p)
    for some in _in_cache(p):
        label, cost, sign = pairs.table.label[some], pairs.cost[some], pairs.sign[some]
        a = sign * slope[label]
        losses, wrong = _logistic(a * p[some] + sign * offset[label])
        total += float(losses @ cost)
        by_p[some] = -cost * wrong * a
    return total, by_p


def _in_cache(p: Array) -> Iterator[slice]:
    """Slices over pairs (P,): what is computed of some stays in the cache of a processor."""
    step = max(1, p.shape[0]) if on_accelerator(p) else _PAIRS
    return (slice(start, start + step) for start in range(0, p.shape[0], step))


def _logistic(x: Array) -> tuple[Array, Array]:
    """−log σ(x) and σ(−x), from one exponential."""
    xp = namespace(x)
    small = xp.exp(-xp.abs(x))
    beyond = 1 / (1 + small)
    return xp.log1p(small) + clip(-x, 0, None), xp.where(x > 0, small * beyond, beyond)


def smoothed(p: Array) -> Array:
    """ε/2 + (1 − ε) p."""
    return EPSILON / 2 + (1 - EPSILON) * p


def rank_weights(penalties: np.ndarray) -> np.ndarray:
    """π = softmax(−λ) over the ranks, shape (K,)."""
    weights = np.exp(penalties.min() - penalties)
    return weights / weights.sum()


def distance_weights(distances: Array, decay: float) -> Array:
    """π = softmax(−λ d) over the neighbours of each image, shape (N, K).

    An infinite distance stands for no neighbour, which has no weight.
    """
    xp = namespace(distances)
    weights = xp.exp(-decay * _beyond_nearest(distances)) * xp.isfinite(distances)
    total = xp.sum(weights, axis=1, keepdims=True)
    return weights / xp.where(total > 0, total, xp.ones_like(total))


def _beyond_nearest(distances: Array) -> Array:
    """Distances less the least of each image, 0 where there is no neighbour."""
    xp = namespace(distances)
    least = xp.min(distances, axis=1, keepdims=True)
    least = xp.where(xp.isfinite(least), least, xp.zeros_like(least))
    return xp.where(xp.isfinite(distances), distances, least) - least


def rank_loss(
    penalties: np.ndarray, pairs: Pairs, sigmoids: Sigmoids | None
) -> tuple[float, np.ndarray]:
    """Loss with weights softmax(−λ) of the ranks, and its gradient by λ (K,)."""
    weights = rank_weights(penalties)
    value, by_p = likelihood_loss(pairs.table.votes(weights), pairs, sigmoids)
    by_weight = pairs.table.by_weight(by_p)
    return value, weights * (weights @ by_weight - by_weight)


def distance_loss(
    decay: np.ndarray, pairs: Pairs, distances: Array, sigmoids: Sigmoids | None
) -> tuple[float, np.ndarray]:
    """Loss with weights softmax(−λ d), and its gradient by λ; `decay` has one entry."""
    xp = namespace(distances)
    weights = distance_weights(distances, float(decay[0]))
    value, by_p = likelihood_loss(pairs.table.votes(weights), pairs, sigmoids)
    beyond = _beyond_nearest(distances)
    by_decay = weights * (xp.sum(weights * beyond, axis=1, keepdims=True) - beyond)
    return value, np.array([float(by_p @ pairs.table.votes(by_decay))])


def fit_rank_weights(
    pairs: Pairs, penalties: np.ndarray, sigmoids: Sigmoids | None = None
) -> np.ndarray:
    """λ (K,) of least loss, from `penalties` on; the least of them is 0.

    The loss is convex in π = softmax(−λ), so that there is one optimum.
    """
    best = scipy.optimize.minimize(
        rank_loss, penalties, (pairs, sigmoids), jac=True, method="L-BFGS-B", options=_OPTIONS
    ).x
    return best - best.min()  # a shift of all λ leaves π as it is


def fit_distance_weights(
    pairs: Pairs, distances: Array, decay: float, sigmoids: Sigmoids | None = None
) -> float:
    """λ ≥ 0 of least loss, from `decay` on."""
    # so that steps of about 1 are right for any distance
    unit = float(namespace(distances).mean(_beyond_nearest(distances))) or 1.0
    found = scipy.optimize.minimize(
        distance_loss,
        np.array([decay * unit]),
        (pairs, distances / unit, sigmoids),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)],
        options=_OPTIONS,
    )
    return float(found.x[0] / unit)


def fit_label_sigmoids(
    pairs: Pairs,
    p: Array,
    start: Sigmoids | None = None,
    *,
    monotone: bool,
) -> Sigmoids:
    """Slopes and offsets of least loss for given p (P,): damped Newton steps, all labels at once.

    With `monotone`, slopes are at least 0. For a label whose images can be told apart without a
    fault the best slope is infinite; it stops at a steep one.
    """
    d = len(pairs.unsupported_present)
    best = start or Sigmoids(np.zeros(d), np.zeros(d))
    value, gradient, curvature = _sigmoid_problem(pairs, p, best)
    damping = np.zeros(d)
    for _ in range(_MAX_STEPS):
        trial = _newton_step(best, gradient, curvature, damping, monotone)
        found = _sigmoid_problem(pairs, p, trial)
        better = found[0] <= value + 1e-14
        gain = np.where(better, value - found[0], 0).sum()
        best = Sigmoids(*np.where(better, trial, best))
        value, gradient, curvature = (
            np.where(better, new, old)
            for new, old in zip(found, (value, gradient, curvature), strict=True)
        )
        damping = np.where(better, damping / 8, np.maximum(8 * damping, 1e-3))
        if gain < _TOLERANCE and better.all():
            break
    return best


def _sigmoid_problem(
    pairs: Pairs, p: Array, sigmoids: Sigmoids
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loss of each label (D,), its gradient by (a, b) (2, D), and aa, ab, bb of its Hessian."""
    a, b = (like(part, p)[pairs.table.label] for part in sigmoids)
    losses, wrong = _logistic(pairs.sign * (a * p + b))
    slope = -pairs.cost * pairs.sign * wrong
    curve = pairs.cost * wrong * (1 - wrong)
    b, by_label = sigmoids.offset, pairs.table.by_label
    present, absent = pairs.unsupported_present, pairs.unsupported_absent
    p_unsupported = expit(b)
    loss = by_label(pairs.cost * losses)
    loss += present * np.logaddexp(0, -b) + absent * np.logaddexp(0, b)
    by_offset = by_label(slope) + absent * p_unsupported - present * (1 - p_unsupported)
    gradient = np.stack([by_label(slope * p), by_offset])
    curve_p = curve * p
    by_offset_twice = by_label(curve) + (absent + present) * p_unsupported * (1 - p_unsupported)
    curvature = np.stack([by_label(curve_p * p), by_label(curve_p), by_offset_twice])
    return loss, gradient, curvature


def _newton_step(
    sigmoids: Sigmoids,
    gradient: np.ndarray,
    curvature: np.ndarray,
    damping: np.ndarray,
    monotone: bool,
) -> Sigmoids:
    """Where a damped Newton step leads; a slope that would leave its bounds stops there."""
    (a, b), (by_a, by_b), (aa, ab, bb) = sigmoids, gradient, curvature
    tiny = np.finfo(float).tiny
    aa, bb = aa * (1 + damping) + tiny, bb * (1 + damping) + tiny
    determinant = aa * bb - ab * ab
    sound = determinant > 1e-12 * aa * bb
    step_a = np.where(sound, ab * by_b - bb * by_a, 0) / np.where(sound, determinant, 1)
    slope = np.clip(a + step_a, 0 if monotone else -_STEEPEST, _STEEPEST)
    # the offset's own step, given that of the slope
    step_b = -(by_b + ab * (slope - a)) / bb
    return Sigmoids(slope, b + np.clip(step_b, -10, 10))
