"""The common link from scores to log-odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from tagkin.arrays.records import storable
from tagkin.arrays.rules import Floats

__all__ = ["Link", "LinkedLabels"]


@storable
@dataclass(frozen=True)
class Link:
    """An increasing function g from scores to log-odds: linear between its k steps."""

    scores: Annotated[np.ndarray, Floats("k", ascending=True).kept_on_host()]
    """Shape (k,), ascending."""
    log_odds: Annotated[np.ndarray, Floats("k").kept_on_host()]
    """Shape (k,)."""

    def __call__(self, s: np.ndarray) -> np.ndarray:
        """Return g(s), constant outside the steps."""
        return np.interp(s, self.scores, self.log_odds)

    def prolonged(self, s: np.ndarray) -> np.ndarray:
        """Return g(s), continued in a straight line below the lowest and above the highest step."""
        low, high = self.scores[0], self.scores[-1]
        slope = (self.log_odds[-1] - self.log_odds[0]) / (high - low) if high > low else 0.0
        return self(s) + slope * (s - np.clip(s, low, high))


class LinkedLabels(NamedTuple):
    """Labels with a common link."""

    labels: slice
    link: Link
    sigmoids: np.ndarray
    """Slopes and intercepts, shape (2, labels)."""
    level: Link | None
    """h of new labels; see `NewLabels`. None for labels that were fitted together."""
    joint_precision: np.ndarray

    def log_odds(self, s: np.ndarray, prolonged: bool = False) -> np.ndarray:
        """Return log-odds of scores s (n, labels); `prolonged` extends links beyond their steps."""
        slopes, intercepts = self.sigmoids
        z = self.link.prolonged(s) if prolonged else self.link(s)
        z *= slopes
        z += intercepts
        if self.level is None:
            return z
        return self.level.prolonged(z) if prolonged else self.level(z)
