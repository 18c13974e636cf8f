"""TagProp's likelihood and its maximum, without an N×K×D array.

Only for pairs (image, tag) where some neighbour carries the tag does the prediction depend on
the weights; all others are counted tag by tag. The table of those pairs has one entry for each
tag that a neighbour carries, and every sum is a sparse product over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse
from scipy.special import expit

from tagkin.arrays import Array, namespace
from tagkin.transfer._lists import rows_of

__all__ = [
    "Pairs",
    "Sigmoids",
    "distance_loss",
    "distance_weights",
    "fit_distance_weights",
    "fit_rank_weights",
    "fit_sigmoids",
    "rank_loss",
    "rank_weights",
    "smoothed",
]

EPSILON = 1e-3  # predictions lie in [ε/2, 1 − ε/2], so that a wrong one is not infinitely bad
_STEEPEST = 1e4  # of a sigmoid, where present and absent can be told apart without a fault
_TOLERANCE = 1e-9  # of the loss, which is of the order of 1
_OPTIONS = {"ftol": _TOLERANCE, "gtol": 0, "maxiter": 1000, "maxcor": 20}
_MAX_STEPS = 100


class Sigmoids(NamedTuple):
    """P = σ(aₜ p + bₜ), one for each tag."""

    slope: np.ndarray
    """a, shape (D,)."""
    offset: np.ndarray
    """b, shape (D,)."""


@dataclass(frozen=True)
class Pairs:
    """Which neighbours carry a tag, for each pair of an image and a tag that some carry.

    With n₊ tags present in the whole N×D matrix and n₋ absent, a present one costs
    c = 1/(2n₊) and an absent one 1/(2n₋).
    """

    carriers: scipy.sparse.csr_array
    """(P, N·K): a one in column i·K + k where neighbour k of the pair's image i carries its tag;
    (P, K) where all images share the weights of the ranks."""
    label: np.ndarray
    """Tag of each pair, shape (P,)."""
    present: np.ndarray
    """Whether the image carries the tag itself, shape (P,)."""
    bare_present: np.ndarray
    """For each tag, c × the images with it none of whose neighbours carry it, shape (D,)."""
    bare_absent: np.ndarray
    """For each tag, c × the images without it and without such neighbours, shape (D,)."""
    cost: np.ndarray
    """c of each pair, shape (P,)."""

    @classmethod
    def of(cls, indices: np.ndarray, labels: scipy.sparse.csr_array, *, by_rank: bool) -> Pairs:
        """Pairs of N images with neighbours (N×K) among themselves and labels (N×D)."""
        n, k = indices.shape
        d = labels.shape[1]
        carried = rows_of(labels, indices.ravel())
        slot = np.repeat(np.arange(n * k, dtype=np.int32), np.diff(carried.indptr))
        # entries grouped by image; sorting by tag puts those of a pair side by side
        table = scipy.sparse.csr_array((slot, carried.indices, carried.indptr[::k]), shape=(n, d))
        table.sort_indices()
        key = np.repeat(np.arange(n) * d, np.diff(table.indptr)) + table.indices
        first = np.flatnonzero(np.diff(key, prepend=-1))
        label = table.indices[first].astype(np.int64)
        columns = table.data % k if by_rank else table.data
        carriers = scipy.sparse.csr_array(
            (np.ones(len(key)), columns, np.append(first, len(key))),
            shape=(len(first), k if by_rank else n * k),
        )
        own = np.repeat(np.arange(n) * d, np.diff(labels.indptr)) + labels.indices
        present = np.isin(key[first], own)
        positives = np.bincount(labels.indices, minlength=d)
        total = int(positives.sum())
        cost_present, cost_absent = 0.5 / max(total, 1), 0.5 / max(n * d - total, 1)
        bare_present = positives - np.bincount(label[present], minlength=d)
        bare_absent = n - positives - np.bincount(label[~present], minlength=d)
        return cls(
            carriers,
            label,
            present,
            cost_present * bare_present,
            cost_absent * bare_absent,
            np.where(present, cost_present, cost_absent),
        )

    @cached_property
    def sign(self) -> np.ndarray:
        """1 where the tag is present, else −1."""
        return np.where(self.present, 1.0, -1.0)

    @cached_property
    def _right(self) -> tuple[np.ndarray, np.ndarray]:
        """Probability of what is so, without sigmoids: first + second × p."""
        return np.where(self.present, EPSILON / 2, 1 - EPSILON / 2), (1 - EPSILON) * self.sign

    def loss(self, p: np.ndarray, sigmoids: Sigmoids | None) -> tuple[float, np.ndarray]:
        """−Σ c log P over the whole matrix, and its derivative by p (P,).

        P = σ(aₜ p + bₜ) with sigmoids, else ε/2 + (1 − ε) p; for an absent tag 1 − P.
        """
        if sigmoids is None:
            start, slope = self._right
            right = start + slope * p
            bare = -np.log(EPSILON / 2) * self.bare_present.sum()
            bare -= np.log1p(-EPSILON / 2) * self.bare_absent.sum()
            return float(bare - np.log(right) @ self.cost), -self.cost * slope / right
        a, b = sigmoids
        losses, wrong = _logistic(self.sign * (a[self.label] * p + b[self.label]))
        bare = np.logaddexp(0, -b) @ self.bare_present + np.logaddexp(0, b) @ self.bare_absent
        return float(losses @ self.cost + bare), -self.cost * self.sign * wrong * a[self.label]


def _logistic(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """−log σ(x) and σ(−x), from one exponential."""
    small = np.exp(-np.abs(x))
    beyond = 1 / (1 + small)
    return np.log1p(small) + np.maximum(-x, 0), np.where(x > 0, small * beyond, beyond)


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
    value, by_p = pairs.loss(pairs.carriers @ weights, sigmoids)
    by_weight = pairs.carriers.T @ by_p
    return value, weights * (weights @ by_weight - by_weight)


def distance_loss(
    decay: np.ndarray, pairs: Pairs, distances: np.ndarray, sigmoids: Sigmoids | None
) -> tuple[float, np.ndarray]:
    """Loss with weights softmax(−λ d), and its gradient by λ; `decay` has one entry."""
    weights = distance_weights(distances, decay[0])
    value, by_p = pairs.loss(pairs.carriers @ weights.ravel(), sigmoids)
    beyond = _beyond_nearest(distances)
    by_decay = weights * ((weights * beyond).sum(axis=1, keepdims=True) - beyond)
    return value, np.array([by_p @ (pairs.carriers @ by_decay.ravel())])


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
    pairs: Pairs, distances: np.ndarray, decay: float, sigmoids: Sigmoids | None = None
) -> float:
    """λ ≥ 0 of least loss, from `decay` on."""
    # so that steps of about 1 are right for any distance
    unit = float(_beyond_nearest(distances).mean()) or 1.0
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


def fit_sigmoids(
    pairs: Pairs,
    p: np.ndarray,
    start: Sigmoids | None = None,
    *,
    monotone: bool,
) -> Sigmoids:
    """Slopes and offsets of least loss for given p (P,): damped Newton steps, all tags at once.

    With `monotone`, slopes are at least 0. For a tag whose images can be told apart without a
    fault the best slope is infinite; it stops at a steep one.
    """
    d = len(pairs.bare_present)
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
    pairs: Pairs, p: np.ndarray, sigmoids: Sigmoids
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loss of each tag (D,), its gradient by (a, b) (2, D), and aa, ab, bb of its Hessian."""
    a, b = sigmoids
    label, d = pairs.label, len(b)

    def by_tag(values: np.ndarray) -> np.ndarray:
        sums = np.bincount(label, values, minlength=d)
        return sums.astype(float, copy=False)  # of no pairs they are whole numbers

    losses, wrong = _logistic(pairs.sign * (a[label] * p + b[label]))
    slope = -pairs.cost * pairs.sign * wrong
    curve = pairs.cost * wrong * (1 - wrong)
    bare = expit(b)
    bare_slope = pairs.bare_absent * bare - pairs.bare_present * (1 - bare)
    bare_curve = (pairs.bare_absent + pairs.bare_present) * bare * (1 - bare)
    loss = by_tag(pairs.cost * losses)
    loss += pairs.bare_present * np.logaddexp(0, -b) + pairs.bare_absent * np.logaddexp(0, b)
    gradient = np.stack([by_tag(slope * p), by_tag(slope) + bare_slope])
    curve_p = curve * p
    curvature = np.stack([by_tag(curve_p * p), by_tag(curve_p), by_tag(curve) + bare_curve])
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
