"""Vectors of tag names, centred on the names of a collection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from tagkin.records.forms import storable
from tagkin.records.rules import Flags, Floats, Number
from tagkin.tag_meanings.word_map import normalize

__all__ = ["Meanings", "NameTable", "NameWeights"]

_PULL = 8  # names of mean zero that count with those of a collection, because few have no mean


@storable
@dataclass(frozen=True)
class NameTable:
    """One vector for the name of each of D tags, which a prior uses to score the tag.

    Attributes
    ----------
    rows : float32 array of shape (D, m)
        Centred and of unit length; zero for names without a meaning.
    is_unknown : bool array of shape (D,)
        Which names have no meaning, such as numbers.
    center : float32 array of shape (m,)
        Mean of the names' vectors, which was subtracted.
    """

    rows: Annotated[np.ndarray, Floats("D", "words")]
    is_unknown: Annotated[np.ndarray, Flags("D").kept_on_host()]
    center: Annotated[np.ndarray, Floats("words")]

    def __len__(self) -> int:
        return len(self.is_unknown)

    def some(self, tags: np.ndarray) -> NameTable:
        """Return the rows of these tags (n,), given by number."""
        return NameTable(self.rows[tags], self.is_unknown[tags], self.center)

    def append(self, other: NameTable) -> NameTable:
        """Return these tags followed by the other tags."""
        rows = np.vstack([self.rows, other.rows])
        return NameTable(rows, np.append(self.is_unknown, other.is_unknown), self.center)


@dataclass(frozen=True)
class Meanings:
    """What a prior knows about D names.

    Attributes
    ----------
    vectors : float32 array of shape (D, m)
        Of unit length.
    is_unknown : bool array of shape (D,)
    is_centered : bool
        Whether a table has the names relative to their mean.
    """

    vectors: np.ndarray
    is_unknown: np.ndarray
    is_centered: bool = True

    def table(self, center: np.ndarray | None = None) -> NameTable:
        """Return the names centred on the mean of these names, or on a given `center` (m,).

        What all tags of a collection have in common says nothing about a single photograph.
        """
        if center is None:
            known = self.vectors[~self.is_unknown & self.is_centered]
            center = known.sum(axis=0) / (len(known) + _PULL)
        rows = normalize(self.vectors - center)
        rows[self.is_unknown] = 0
        return NameTable(rows.astype(np.float32), self.is_unknown, center.astype(np.float32))


@storable
@dataclass(frozen=True)
class NameWeights:
    """Adds the prior of the names of D tags to learned scores.

        log-odds = aₜ s + bₜ + wₜ z,    aₜ, wₜ ≥ 0,

    where s is the learned score and z the prior, both standardised. `fit_name_weights` learns it.
    """

    center: float
    """Mean of the learned scores."""
    scale: Annotated[float, Number(above=0)]
    """Standard deviation of the learned scores."""
    prior_center: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """Mean of each tag's prior, shape (D,)."""
    prior_scale: Annotated[np.ndarray, Floats("D", above=0).kept_on_host()]
    """Standard deviation of each tag's prior, doubled for frequent tags, shape (D,)."""
    slopes: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """aₜ, shape (D,)."""
    intercepts: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """bₜ, shape (D,)."""
    weights: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """wₜ, shape (D,)."""
    expected: Annotated[np.ndarray, Floats(2, 3).kept_on_host()]
    """Means of (a, b, w) for tags whose names have a meaning, and for the others."""

    def combine(self, S: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return float32 log-odds (n, D) from learned scores and priors."""
        s, z = self._standardize(S, Z)
        odds = self.slopes * s + self.intercepts + self.weights * z
        return odds.astype(np.float32)

    def name_shares(self, S: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the share (n, D) of names in the evidence for a tag, from 0 to 1.

        It is wₜ z / (aₜ s + wₜ z), with negative terms set to 0.
        """
        s, z = self._standardize(S, Z)
        learned, names = np.maximum(self.slopes * s, 0), np.maximum(self.weights * z, 0)
        total = learned + names
        return np.divide(names, total, out=np.zeros_like(total), where=total > 0)

    def extend(self, is_unknown: np.ndarray) -> NameWeights:
        """Return a copy with new tags appended, with the expected weights.

        Their prior is standardised like that of the median tag.
        """
        n = len(is_unknown)
        slopes, intercepts, weights = self.expected[is_unknown.astype(np.int64)].T
        return replace(
            self,
            prior_center=np.append(self.prior_center, np.full(n, np.median(self.prior_center))),
            prior_scale=np.append(self.prior_scale, np.full(n, np.median(self.prior_scale))),
            slopes=np.append(self.slopes, slopes),
            intercepts=np.append(self.intercepts, intercepts),
            weights=np.append(self.weights, weights),
        )

    def _standardize(self, S: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (S - self.center) / self.scale, (Z - self.prior_center) / self.prior_scale
