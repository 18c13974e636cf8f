"""Calibrated probabilities of labels from scores of several kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Annotated

import numpy as np

from tagkin.arrays import expit, row_blocks
from tagkin.calibration.link import Cuts, Link
from tagkin.calibration.mixture import Mixture
from tagkin.errors import InvalidInput
from tagkin.records.forms import Axes, storable
from tagkin.records.rules import Whole
from tagkin.wording import count

__all__ = ["Calibration"]


@storable
@dataclass(frozen=True, eq=False)
class Calibration:
    """Probabilities of D labels from k scores of each, P = σ(g(z)); `fit_calibration` learns it.

    z are the log-odds of a mixture of the scores, with weights of each label. g is one increasing
    function for all labels, so probabilities rank like z.
    """

    n_images: Annotated[int, Whole()]
    """Number of held-out images."""
    mixture: Mixture
    link: Annotated[Link, Axes(k="L")]
    """g."""
    cuts: Cuts

    @property
    def n_labels(self) -> int:
        """Number of labels, D."""
        return self.mixture.n_labels

    def mix(self, scores: Sequence[np.ndarray]) -> np.ndarray:
        """Return log-odds z (n×D) from k scores (n×D)."""
        if len(scores) != self.mixture.weights.shape[1] or scores[0].shape[1] != self.n_labels:
            raise InvalidInput(
                f"Found {len(scores)} scores of {scores[0].shape[1]} labels, but "
                f"{self.mixture.weights.shape[1]} of {self.n_labels} labels were fitted. Pass the "
                "same labels in the same order, or fit again."
            )
        return self.mixture(scores)

    def probabilities(self, z: np.ndarray) -> np.ndarray:
        """Return probabilities (n×D), float32, of log-odds z (n×D)."""
        P = np.empty(z.shape, dtype=np.float32)
        for rows in row_blocks(len(z), 32 * z.shape[1]):
            P[rows] = expit(self.link(z[rows]))
        return P

    def threshold(self, precision: float) -> float:
        """Return the probability from which on suggestions reach a precision, all labels together.

        It is ∞ if the held-out images do not show that any suggestions reach it.
        """
        is_number = isinstance(precision, Real) and not isinstance(precision, bool)
        if not is_number or not 0 < precision <= 1:
            raise InvalidInput(f"precision must be above 0 and at most 1; found {precision!r}.")
        return self.cuts.threshold(precision)

    def spread(self, columns: np.ndarray, centers: np.ndarray, levels: np.ndarray) -> Calibration:
        """Expand to the D labels of `levels`; see `Mixture.spread`.

        Parameters
        ----------
        columns : array of shape (K,) of int
            The labels that were fitted, ascending.
        centers : array of shape (D, k)
            Where each score of a label says nothing.
        levels : array of shape (D,)
            Levels of all labels.
        """
        return replace(self, mixture=self.mixture.spread(columns, centers, levels))

    def describe(self) -> list[str]:
        """Return a few sentences that describe this calibration."""
        half = self.threshold(0.5)
        reached = "No suggestions reach" if half > 1 else f"Suggestions from {half:.2f} on reach"
        return [
            f"Probabilities of {count(self.n_labels, 'label')}, learned from the scores of "
            f"{count(self.n_images, 'held-out image')}.",
            *self.mixture.describe(),
            f"{reached} a precision of 0.5.",
        ]
