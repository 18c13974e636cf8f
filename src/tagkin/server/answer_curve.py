"""Confidences of a label that follow the answers to its suggestions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

__all__ = ["N_BANDS", "AnswerCurve"]

N_BANDS = 10


@dataclass(frozen=True)
class Answering:
    """Numbers of the correction. Others (3 to 20, .3 to .8) changed log loss by less than .001."""

    strength: float = 5.0
    """Answers that a confidence of the model counts for."""
    reach: float = 0.5
    """Weight of an answer for the next band."""


ANSWERING = Answering()
_CENTERS = (np.arange(N_BANDS) + 0.5) / N_BANDS
_WEIGHTS = ANSWERING.reach ** np.abs(np.subtract.outer(np.arange(N_BANDS), np.arange(N_BANDS)))


@dataclass(frozen=True)
class AnswerCurve:
    """A correction of one label's confidences, learned from its answers in bands of confidence.

    The confidence p at the center of a band has the prior Beta(s p, s (1 − p)). An answer y (1 or
    0) to a suggestion of confidence q counts as y − q + p here, with the weight w = 2^−k, k bands
    away. The corrected confidence is the mean of the posterior,

        p' = (s p + Σ w (y − q + p)) / (s + Σ w) = p + Σ w (y − q) / (s + Σ w).

    A band gets at most the confidence of the band above it, so the order stays that of the model.
    Between centers, the correction is interpolated.
    """

    n_answers: np.ndarray = field(default_factory=lambda: np.zeros(N_BANDS))
    """Answers in each band, shape (10,)."""
    surplus: np.ndarray = field(default_factory=lambda: np.zeros(N_BANDS))
    """Σ (y − q) of the answers in each band, shape (10,)."""

    @classmethod
    def of(cls, bands: Iterable[tuple[int, float, float]]) -> AnswerCurve:
        """Return the curve of bands, each with its number, its answers and their surplus."""
        curve = cls()
        for band, n_answers, surplus in bands:
            curve.n_answers[band] += n_answers
            curve.surplus[band] += surplus
        return curve

    @classmethod
    def learn(cls, confidences: np.ndarray, accepted: np.ndarray) -> AnswerCurve:
        """Return the curve of answers: confidences (n,), and whether each was accepted (n,)."""
        bands = np.minimum((N_BANDS * confidences).astype(int), N_BANDS - 1)
        return cls(
            np.bincount(bands, minlength=N_BANDS).astype(float),
            np.bincount(bands, accepted - confidences, minlength=N_BANDS),
        )

    def correct(self, confidences: np.ndarray) -> np.ndarray:
        """Return corrected confidences (n,)."""
        shifts = (_WEIGHTS @ self.surplus) / (ANSWERING.strength + _WEIGHTS @ self.n_answers)
        values = np.minimum.accumulate((_CENTERS + shifts)[::-1])[::-1]
        corrected = confidences + np.interp(confidences, _CENTERS, values - _CENTERS)
        return np.asarray(np.clip(corrected, 0, 1))
