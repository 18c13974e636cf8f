"""Sums over images, from which the rates of wrong and missing labels are learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tagkin.calibration.pooling import ScoreTable

__all__ = ["ErrorSums", "Expected", "probability_missing", "probability_wrong"]

_LARGEST = 690.0  # log-odds against a label; the exponential, and sums of a few, stay finite
_CACHED = 2**14  # groups of images in a block that fits in a core's cache


def probability_wrong(
    q: np.ndarray, wrong_rate: np.ndarray, missing_rate: np.ndarray
) -> np.ndarray:
    """Return the probability that a present label does not belong: (1 − q) a / p.

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

    The parameters are those of `probability_wrong`.
    """
    missing = q * missing_rate
    return np.asarray(missing / (missing + (1 - q) * (1 - wrong_rate)))


@dataclass(frozen=True)
class Expected:
    """Expected numbers of wrong and missing labels, and derivatives of the loss.

    The loss is that of the sigmoids for the labels expected to belong, without a prior.
    """

    wrong: np.ndarray
    """Images (D,) that have the label and should not."""
    missing: np.ndarray
    """Images (D,) that should have the label and do not."""
    belonging: np.ndarray
    """Images (D,) that should have the label."""
    gradient: np.ndarray
    """(D, 2)."""
    curvature: np.ndarray
    """(D, 2, 2)."""


class ErrorSums:
    """The images of D labels, grouped by log-odds (D, G)."""

    def __init__(self, table: ScoreTable):
        self._z, self._count, self._present = table.mean, table.count, table.positives
        self._absent = table.count - table.positives
        self._n_present = table.positives.sum(axis=1)

    def at(
        self, sigmoids: np.ndarray, wrong_rates: np.ndarray, missing_rates: np.ndarray
    ) -> Expected:
        """Compute expectations if labels belong with σ(αₜ z + βₜ) and have these rates (D,)."""
        n_labels, n_groups = self._z.shape
        sums = np.empty((7, n_labels))
        step = max(1, _CACHED // n_groups)
        for start in range(0, n_labels, step):
            block = slice(start, start + step)
            rates = wrong_rates[block, None], missing_rates[block, None]
            sums[:, block] = self._block_sums(block, sigmoids[block], *rates)
        wrong, missing, g_slope, g_intercept, c_slope, c_both, c_intercept = sums
        curvature = np.stack([c_slope, c_both, c_both, c_intercept], axis=1).reshape(-1, 2, 2)
        gradient = np.stack([g_slope, g_intercept], axis=1)
        return Expected(wrong, missing, self._n_present - wrong + missing, gradient, curvature)

    def _block_sums(
        self, block: slice, sigmoids: np.ndarray, a: np.ndarray, e: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Return the sums of a block of labels (B,); mostly in place, because it runs 200 times.

        With t = exp(−αz − β), q = 1/(1 + t), so a present label is wrong with probability
        a t/(a t + 1 − e), and an absent label is missing with probability e/(e + t (1 − a)).
        """
        z = self._z[block]
        t = z * -sigmoids[:, :1]
        t -= sigmoids[:, 1:]
        np.exp(np.minimum(t, _LARGEST, out=t), out=t)
        work = t * a
        groups = work + (1 - e)
        work /= groups
        work *= self._present[block]
        wrong = work.sum(axis=1)
        np.subtract(self._present[block], work, out=groups)  # images where the label belongs
        np.multiply(t, 1 - a, out=work)
        work += e
        with np.errstate(divide="ignore"):  # rates of 0
            np.divide(self._absent[block], work, out=work)
        work[e[:, 0] == 0] = 0
        work *= e
        missing = work.sum(axis=1)
        groups += work
        t += 1
        q = np.reciprocal(t, out=t)
        weight = np.multiply(self._count[block], q, out=work)
        excess = np.subtract(weight, groups, out=groups)
        slope, intercept = np.vecdot(excess, z), excess.sum(axis=1)
        weight *= np.subtract(1, q, out=q)
        bend = weight.sum(axis=1)
        weight *= z
        return wrong, missing, slope, intercept, np.vecdot(weight, z), weight.sum(axis=1), bend
