"""Sums over images, from which the rates of wrong and missing labels are learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tagkin.arrays import expit
from tagkin.calibration.pooling import ScoreTable

__all__ = ["Expected", "expect_errors", "probability_missing", "probability_wrong"]

_LEAST = 1e-300  # least probability that a label belongs
_CACHED = 2**14  # groups of images in a block that fits in a core's cache


def probability_wrong(
    q: np.ndarray, wrong_rate: np.ndarray, missing_rate: np.ndarray
) -> np.ndarray:
    """Return the probability that a present label does not belong: (1 − q) a / p.

    p = (1 − q) a + q (1 − e) is the probability that the label is present.

    Parameters
    ----------
    q : array
        Probability that the label belongs, regardless of whether it is present.
    wrong_rate, missing_rate : arrays that broadcast with q
        aₜ and eₜ.
    """
    wrong = (1 - q) * wrong_rate
    return np.asarray(wrong / (wrong + q * (1 - missing_rate)))


def probability_missing(
    q: np.ndarray, wrong_rate: np.ndarray, missing_rate: np.ndarray
) -> np.ndarray:
    """Return the probability that an absent label belongs: q e / (1 − p).

    The parameters and p are as in `probability_wrong`.
    """
    missing = q * missing_rate
    return np.asarray(missing / (missing + (1 - q) * (1 - wrong_rate)))


@dataclass(frozen=True)
class Expected:
    """Expected numbers of wrong and missing labels, and derivatives of the loss.

    The loss is the negative log-likelihood of the sigmoids, with the labels expected to belong as
    the truth and without a prior.
    """

    wrong: np.ndarray
    """Images (D,) that have the label and should not."""
    missing: np.ndarray
    """Images (D,) that should have the label and do not."""
    belonging: np.ndarray
    """Images (D,) that should have the label."""
    gradient: np.ndarray
    """Gradient of the loss, shape (D, 2)."""
    curvature: np.ndarray
    """Hessian of the loss, shape (D, 2, 2)."""


def expect_errors(
    table: ScoreTable, sigmoids: np.ndarray, wrong_rates: np.ndarray, missing_rates: np.ndarray
) -> Expected:
    """Compute expectations if labels belong with σ(αₜ z + βₜ) and have these rates (D,).

    The table has the images of D labels, grouped by log-odds z (D, G).
    """
    n_labels, n_groups = table.mean.shape
    sums = np.empty((7, n_labels))
    step = max(1, _CACHED // n_groups)
    for start in range(0, n_labels, step):
        block = slice(start, start + step)
        rates = wrong_rates[block, None], missing_rates[block, None]
        z, count, present = (part[block] for part in (table.mean, table.count, table.positives))
        q = expit(sigmoids[block, :1] * z + sigmoids[block, 1:])
        inside = np.clip(q, _LEAST, 1 - 1e-16)  # quotients stay finite if a rate is 0
        wrong = present * probability_wrong(inside, *rates)
        missing = (count - present) * probability_missing(inside, *rates)
        weight = count * q
        excess = weight - (present - wrong + missing)  # over the images where the label belongs
        weight *= 1 - q
        bent = weight * z
        parts = wrong, missing, excess * z, excess, bent * z, bent, weight
        sums[:, block] = [part.sum(axis=1) for part in parts]
    n_wrong, n_missing, g_slope, g_intercept, c_slope, c_both, c_intercept = sums
    curvature = np.stack([c_slope, c_both, c_both, c_intercept], axis=1).reshape(-1, 2, 2)
    gradient = np.stack([g_slope, g_intercept], axis=1)
    n_belonging = table.positives.sum(axis=1) - n_wrong + n_missing
    return Expected(n_wrong, n_missing, n_belonging, gradient, curvature)
