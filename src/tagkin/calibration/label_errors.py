"""Which labels are wrong or missing, and how many, from held-out log-odds.

A label t belongs on an image with probability q. A label that does not belong is present with
probability aₜ, and a label that belongs is absent with probability eₜ. So it is present with
probability

    p = (1 − q) aₜ + q (1 − eₜ).

As q approaches 0 and 1, p levels off at aₜ and 1 − eₜ. The two rates are learned from this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from tagkin.arrays import Array, expit, row_blocks
from tagkin.arrays.labels import check_scores, read_scores
from tagkin.errors import InvalidInput
from tagkin.records.forms import storable
from tagkin.records.rules import Floats, Number

__all__ = ["LabelErrors", "probability_missing", "probability_wrong"]


@storable
@dataclass(frozen=True)
class LabelErrors:
    """Shares of wrong and of missing labels; a label belongs with P(belongs | z) = σ(αₜ z + βₜ).

    `estimate_label_errors` learns it.
    """

    slopes: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """αₜ, shape (D,)."""
    intercepts: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """βₜ, shape (D,)."""
    wrong_rates: Annotated[np.ndarray, Floats("D", low=0, high=1).kept_on_host()]
    """aₜ: the share of images with the label among those where it does not belong, (D,)."""
    missing_rates: Annotated[np.ndarray, Floats("D", low=0, high=1).kept_on_host()]
    """eₜ: the share of images without the label among those where it belongs, (D,)."""
    wrong_share: Annotated[float, Number(low=0)]
    """Share of wrong labels among the present labels."""
    missing_share: Annotated[float, Number(low=0)]
    """Share of absent labels among the labels that belong."""

    @property
    def n_labels(self) -> int:
        """Number of labels, D."""
        return len(self.slopes)

    def predict_proba(self, Z: Array) -> np.ndarray:
        """Return q, the probability that each label belongs, present or not, shape (n, D)."""
        Z = check_scores(Z)
        if Z.shape[1] != self.n_labels:
            raise InvalidInput(
                f"Z has {Z.shape[1]} columns, but log-odds of {self.n_labels} labels were fitted."
            )
        q = np.empty(tuple(Z.shape))
        for rows in row_blocks(Z.shape[0], 32 * Z.shape[1]):
            z = read_scores(Z, rows, finite=True).astype(np.float64)
            q[rows] = expit(self.slopes * z + self.intercepts)
        return q

    def spread(self, columns: np.ndarray, n_labels: int) -> LabelErrors:
        """Expand to D labels. The others get the medians of the fitted labels.

        Parameters
        ----------
        columns : int array of shape (K,)
            The labels that were fitted, ascending.
        n_labels : int
            D.
        """

        def widen(known: np.ndarray) -> np.ndarray:
            wide = np.full(n_labels, np.median(known))
            wide[columns] = known
            return wide

        return replace(
            self,
            slopes=widen(self.slopes),
            intercepts=widen(self.intercepts),
            wrong_rates=widen(self.wrong_rates),
            missing_rates=widen(self.missing_rates),
        )


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

    The parameters and p are as in `probability_wrong`.

    Parameters
    ----------
    q : array
        Probability that the label belongs.
    wrong_rate : array
        How often the label is given by mistake.
    missing_rate : array
        How often it is forgotten.
    """
    missing = q * missing_rate
    return np.asarray(missing / (missing + (1 - q) * (1 - wrong_rate)))
