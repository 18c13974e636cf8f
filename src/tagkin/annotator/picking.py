"""Which tags to suggest, and who may speak for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
import scipy.sparse

from tagkin.annotator.suggestions import Kin, Similar
from tagkin.arrays import check_integer, to_numpy
from tagkin.calibration import LabelCalibrator
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.transfer import Evidence

__all__ = ["Rule", "heard", "kin_of", "rule_for", "similar_of", "without_itself"]


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
        if self.top is not None:
            check_integer("top", self.top, 1)
        number = isinstance(self.threshold, Real) and not isinstance(self.threshold, bool)
        if not number or not 0 <= self.threshold <= 1:
            raise InvalidInput(f"threshold must be a number from 0 to 1; found {self.threshold!r}.")

    def picked(self, scores: np.ndarray, P: np.ndarray, free: np.ndarray) -> list[list[int]]:
        """Columns of the tags to suggest for each photograph, the surest first.

        Parameters
        ----------
        scores, P : arrays of shape (n, D)
            Scores and confidences.
        free : bool array of shape (n, D)
            Tags that may be suggested.
        """
        possible = (scores >= self.scores) & (self.threshold <= P) & free
        picked = []
        for row, fine in zip(P, possible, strict=True):
            columns = np.flatnonzero(fine)
            order = np.argsort(-row[columns], kind="stable")
            picked.append([int(t) for t in columns[order][: self.top]])
        return picked


def rule_for(
    calibrator: LabelCalibrator,
    top: int | None,
    threshold: float | None,
    precision: float | None,
) -> Rule:
    """The rule that a person asked for, as `Annotator.suggest` explains it."""
    if precision is not None:
        if not isinstance(precision, Real):
            raise InvalidInput(f"precision must be a number up to 1; found {precision!r}.")
        return Rule(top, threshold or 0.0, calibrator.thresholds(precision))
    if threshold is None:
        threshold = 0.5 if top is None else 0.0
    return Rule(top, threshold)


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


def similar_of(
    indices: np.ndarray,
    distances: np.ndarray,
    metric: str,
    files: Sequence[str],
    tags: Sequence[Sequence[str]],
    n: int,
) -> list[Similar]:
    """The first n neighbours (k,) of one photograph, with how alike they are."""
    alike = 1 - distances if metric == "cosine" else 1 / (1 + distances)
    return [
        Similar(str(files[j]), float(s), tuple(tags[j]))
        for j, s in zip(indices[:n], alike[:n], strict=True)
        if j >= 0
    ]


def heard(found: Neighbors, labels: scipy.sparse.csr_array) -> np.ndarray:
    """Which tags (n×D) one of the neighbours (n×k) carries; others have nobody to speak for them.

    A tag that is on most photographs can be likely even so.
    """
    there = found.indices >= 0
    ends = np.append(0, np.cumsum(there.sum(axis=1)))
    ones = np.ones(ends[-1], dtype=np.float32)
    shape = (len(there), labels.shape[0])
    lists = scipy.sparse.csr_array((ones, found.indices[there], ends), shape=shape)
    return (lists @ labels).toarray() > 0


def kin_of(evidence: Evidence, files: Sequence[str], n_kin: int) -> tuple[Kin, ...]:
    """The heaviest of the photographs that speak for a tag; shares are parts of all there are."""
    parts = np.asarray(evidence.shares, dtype=np.float64)
    # a score that takes away what chance gives may be below zero, and so is each part of it then
    shares = parts / parts.sum() if parts.any() else np.ones(len(parts)) / max(len(parts), 1)
    heaviest = zip(evidence.indices[:n_kin], shares[:n_kin], strict=True)
    return tuple(Kin(str(files[j]), float(share)) for j, share in heaviest)
