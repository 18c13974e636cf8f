"""Which tags to suggest, and who may speak for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from tagkin.annotator.suggestions import Kin
from tagkin.arrays import to_numpy
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.transfer import Evidence

__all__ = ["Rule", "kin_of", "without_itself"]


@dataclass(frozen=True)
class Rule:
    """What a tag must reach to be suggested."""

    top: int | None = None
    """At most so many tags a photograph."""
    threshold: float = 0.0
    """Confidence, from 0 to 1."""
    scores: np.ndarray | float = -np.inf
    """Score, for each tag (D,)."""

    def __post_init__(self) -> None:
        top = self.top
        if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
            raise InvalidInput(f"top must be a whole number from 1; found {top!r}.")
        if isinstance(self.threshold, bool) or not 0 <= self.threshold <= 1:
            raise InvalidInput(f"threshold must be a number from 0 to 1; found {self.threshold!r}.")

    def picked(
        self, scores: np.ndarray, P: np.ndarray, carried: scipy.sparse.csr_array
    ) -> list[list[int]]:
        """Columns of the tags to suggest for each photograph, the surest first.

        Parameters
        ----------
        scores, P : arrays of shape (n, D)
            Scores and confidences.
        carried : CSR array of shape (n, D)
            Tags that are there already, which are not suggested.
        """
        possible = (scores >= self.scores) & (self.threshold <= P)
        possible[carried.nonzero()] = False
        picked = []
        for row, fine in zip(P, possible, strict=True):
            columns = np.flatnonzero(fine)
            order = np.argsort(-row[columns], kind="stable")
            picked.append([int(t) for t in columns[order][: self.top]])
        return picked


def without_itself(found: Neighbors, itself: np.ndarray) -> Neighbors:
    """Lists of neighbours (n×k) on the host, less the index `itself` (n,), −1 where there is none.

    The lists keep their length: they end with −1.
    """
    indices, distances = to_numpy(found.indices), to_numpy(found.distances)
    gone = (indices == itself[:, None]) & (indices >= 0)
    order = np.argsort(gone, axis=1, kind="stable")
    indices = np.where(gone, -1, indices)
    distances = np.where(gone, distances.dtype.type(np.inf), distances)
    return Neighbors(
        np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)
    )


def kin_of(evidence: Evidence, files: Sequence[str], n_kin: int) -> tuple[Kin, ...]:
    """The heaviest of the photographs that speak for a tag; shares are parts of all there are."""
    total = float(evidence.shares.sum())
    if total <= 0:
        return ()
    heaviest = zip(evidence.indices[:n_kin], evidence.shares[:n_kin], strict=True)
    return tuple(Kin(str(files[j]), float(share) / total) for j, share in heaviest)
