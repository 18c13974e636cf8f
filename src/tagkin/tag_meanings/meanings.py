"""Vectors of tag names, centred on the names of a collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tagkin.records.forms import storable
from tagkin.records.rules import Flags, Floats
from tagkin.tag_meanings.word_map import normalize

__all__ = ["Meanings", "NameTable"]

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
