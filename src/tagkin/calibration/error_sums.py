"""Sums over the images of labels, from which rates of wrong and of missing ones are learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tagkin.calibration.pooling import ScoreTable

__all__ = ["ErrorSums", "Expected", "probability_missing", "probability_wrong"]

_LARGEST = 690.0  # log-odds against a label whose exponential is a number, also a sum of a few
_CACHED = 2**14  # groups of images that are worked on together, so that a core's cache holds them


def probability_wrong(
    q: np.ndarray, wrong_rate: np.ndarray, missing_rate: np.ndarray
) -> np.ndarray:
    """Probability that a label which is there does not belong: (1 − q) a / p.

    Parameters
    ----------
    q : array
        Probability that the label belongs, before looking at whether it is there.
    wrong_rate, missing_rate : arrays that broadcast with q
        aₜ and eₜ.
    """
    wrong = (1 - q) * wrong_rate
    return np.asarray(wrong / (wrong + q * (1 - missing_rate)))


def probability_missing(
    q: np.ndarray, wrong_rate: np.ndarray, missing_rate: np.ndarray
) -> np.ndarray:
    """Probability that a label which is not there does belong: q e / (1 − p).

    Takes what `probability_wrong` does.
    """
    missing = q * missing_rate
    return np.asarray(missing / (missing + (1 - q) * (1 - wrong_rate)))


@dataclass(frozen=True)
class Expected:
    """What is expected of each label's images: wrong ones, missing ones, and how the loss bends.

    The loss is that of the sigmoids where labels are those expected to belong, without a prior.
    """

    wrong: np.ndarray
    """Images (D,) that carry the label and should not."""
    missing: np.ndarray
    """Images (D,) that should carry it and do not."""
    belonging: np.ndarray
    """Images (D,) that should carry it."""
    gradient: np.ndarray
    """(D, 2)."""
    curvature: np.ndarray
    """(D, 2, 2)."""


class ErrorSums:
    """The images of D labels, grouped by log-odds (D, G)."""

    def __init__(self, table: ScoreTable):
        self._z, self._count, self._there = table.mean, table.count, table.positives
        self._absent = table.count - table.positives
        self._n_there = table.positives.sum(axis=1)

    def at(
        self, sigmoids: np.ndarray, wrong_rates: np.ndarray, missing_rates: np.ndarray
    ) -> Expected:
        """What is expected where labels belong with σ(αₜ z + βₜ) and have these rates (D,)."""
        n_labels, n_groups = self._z.shape
        found = np.empty((7, n_labels))
        step = max(1, _CACHED // n_groups)
        for start in range(0, n_labels, step):
            some = slice(start, start + step)
            rates = wrong_rates[some, None], missing_rates[some, None]
            found[:, some] = self._of_block(some, sigmoids[some], *rates)
        wrong, missing, g_slope, g_intercept, c_slope, c_both, c_intercept = found
        curvature = np.stack([c_slope, c_both, c_both, c_intercept], axis=1).reshape(-1, 2, 2)
        gradient = np.stack([g_slope, g_intercept], axis=1)
        return Expected(wrong, missing, self._n_there - wrong + missing, gradient, curvature)

    def _of_block(
        self, some: slice, sigmoids: np.ndarray, a: np.ndarray, e: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """The sums of some labels (B,), in place as far as it goes: it is gone through 200 times.

        With t = exp(−αz − β), q = 1/(1 + t), so that a label that is there is wrong with
        probability a t/(a t + 1 − e), and one that is not is missing with e/(e + t (1 − a)).
        """
        z = self._z[some]
        t = z * -sigmoids[:, :1]
        t -= sigmoids[:, 1:]
        np.exp(np.minimum(t, _LARGEST, out=t), out=t)
        work = t * a
        groups = work + (1 - e)
        work /= groups
        work *= self._there[some]
        wrong = work.sum(axis=1)
        np.subtract(self._there[some], work, out=groups)  # images where the label belongs
        np.multiply(t, 1 - a, out=work)
        work += e
        with np.errstate(divide="ignore"):  # where nothing is missing
            np.divide(self._absent[some], work, out=work)
        work[e[:, 0] == 0] = 0
        work *= e
        missing = work.sum(axis=1)
        groups += work
        t += 1
        q = np.reciprocal(t, out=t)
        weight = np.multiply(self._count[some], q, out=work)
        excess = np.subtract(weight, groups, out=groups)
        slope, intercept = np.vecdot(excess, z), excess.sum(axis=1)
        weight *= np.subtract(1, q, out=q)
        bend = weight.sum(axis=1)
        weight *= z
        return wrong, missing, slope, intercept, np.vecdot(weight, z), weight.sum(axis=1), bend
