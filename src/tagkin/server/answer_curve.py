"""Confidences of a label that follow the answers to its suggestions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

__all__ = ["N_BANDS", "AnswerCurve", "list_bands"]

N_BANDS = 10


@dataclass(frozen=True)
class Answering:
    """Numbers of the correction. Others (3 to 20, .3 to .8) changed log loss by less than .001."""

    strength: float = 5.0
    """Answers that a confidence counts for."""
    common_strength: float = 50.0
    """The same for the answers to all labels together. On six evenings (photos, Flickr8k), 5 and 20
    changed log loss by less than .001; without the answers to other labels it was .003 higher."""
    reach: float = 0.5
    """Weight of an answer for the next band."""


ANSWERING = Answering()
_CENTERS = (np.arange(N_BANDS) + 0.5) / N_BANDS
_WEIGHTS = ANSWERING.reach ** np.abs(np.subtract.outer(np.arange(N_BANDS), np.arange(N_BANDS)))


@dataclass(frozen=True)
class AnswerCurve:
    """A correction of one label's confidences, learned from its answers in bands of confidence.

    The confidence p at the center of a band has a Beta prior of strength s and mean p + c. An
    answer y (1 or 0) to a suggestion of confidence q counts as y − q + p here, with the weight
    w = 2^−k, k bands away. The corrected confidence is the mean of the posterior,

        p' = (s (p + c) + Σ w (y − q + p)) / (s + Σ w) = p + (s c + Σ w (y − q)) / (s + Σ w).

    c is the same correction, learned from the answers to all labels (`start`): the questions with
    the largest confidences come first, and these are too large more often than too small.

    A band gets at most the confidence of the band above it, so the order stays that of the model.
    Between centers, the correction is interpolated.
    """

    n_answers: np.ndarray = field(default_factory=lambda: np.zeros(N_BANDS))
    """Answers in each band, shape (10,)."""
    surplus: np.ndarray = field(default_factory=lambda: np.zeros(N_BANDS))
    """Σ (y − q) of the answers in each band, shape (10,)."""
    common: np.ndarray = field(default_factory=lambda: np.zeros(N_BANDS))
    """c, shape (10,)."""

    @classmethod
    def start(cls, bands: Iterable[tuple[int, float, float]]) -> AnswerCurve:
        """Return the curve of a label without answers, from the bands of all labels; see `add`."""
        every = cls().add(bands)
        return cls(common=every._mean_surplus(ANSWERING.common_strength))

    def add(self, bands: Iterable[tuple[int, float, float]]) -> AnswerCurve:
        """Return a curve with more bands, each with its number, its answers and their surplus."""
        n_answers, surpluses = self.n_answers.copy(), self.surplus.copy()
        for band, n, surplus in bands:
            n_answers[band] += n
            surpluses[band] += surplus
        return replace(self, n_answers=n_answers, surplus=surpluses)

    def correct(self, confidences: np.ndarray) -> np.ndarray:
        """Return corrected confidences (n,)."""
        shifts = self._mean_surplus(ANSWERING.strength)
        values = np.minimum.accumulate((_CENTERS + shifts)[::-1])[::-1]
        corrected = confidences + np.interp(confidences, _CENTERS, values - _CENTERS)
        return np.asarray(np.clip(corrected, 0, 1))

    def _mean_surplus(self, strength: float) -> np.ndarray:
        """Return (s c + Σ w (y − q)) / (s + Σ w) for each band, shape (10,)."""
        total = strength * self.common + _WEIGHTS @ self.surplus
        return np.asarray(total / (strength + _WEIGHTS @ self.n_answers))


def list_bands(confidences: np.ndarray, accepted: np.ndarray) -> list[tuple[int, float, float]]:
    """Return the bands of answers: confidences (n,), and whether each was accepted (n,)."""
    bands = np.minimum((N_BANDS * confidences).astype(int), N_BANDS - 1)
    n_answers = np.bincount(bands, minlength=N_BANDS).tolist()
    surplus = np.bincount(bands, accepted - confidences, minlength=N_BANDS).tolist()
    return list(zip(range(N_BANDS), n_answers, surplus, strict=True))
