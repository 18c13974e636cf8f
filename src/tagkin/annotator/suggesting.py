"""Which tags to suggest for photographs, and the photographs that support them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from tagkin.annotator.suggestions import Kin, PhotoSuggestions, Similar, TagSuggestion
from tagkin.arrays import check_integer, to_numpy
from tagkin.calibration import LabelCalibrator
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.transfer import Evidence

if TYPE_CHECKING:
    from tagkin.annotator.annotator import Annotator

__all__ = [
    "Rule",
    "kin_of",
    "rule_for",
    "similar_of",
    "suggestions_of",
    "supported",
    "without_itself",
]


def suggestions_of(
    annotator: Annotator,
    files: Sequence[str],
    features: np.ndarray,
    known: np.ndarray,
    own: Sequence[Sequence[str]],
    rule: Rule,
    n_kin: int,
) -> list[PhotoSuggestions]:
    """Suggestions for some photographs, few enough to be in memory with all tags.

    Parameters
    ----------
    annotator : Annotator
        Fitted.
    files : sequence of n str
    features : array of shape (n, d)
    known : int array of shape (n,)
        Which photograph learned from each is, or −1; it does not support a tag of its own.
    own : sequence of n sequences of str
        Tags that they carry, which are not suggested.
    rule : Rule
        What a tag must reach.
    n_kin : int
        Kin to name for each suggestion, at most.
    """
    method, vocabulary = annotator.method_, annotator.vocabulary_
    found = without_itself(method.kneighbors(annotator.space_.transform(features)), known)
    scores = to_numpy(method.score_neighbors(*found))
    P = to_numpy(annotator.calibrator_.predict_proba(scores))
    free = supported(found, method.labels_)
    free[vocabulary.transform(own).nonzero()] = False
    evidence = method.explain_neighbors(*found, rule.picked(scores, P, free))
    paths, tags, names, result = annotator.paths_, annotator.tags_, vocabulary.names_, []
    for i, file in enumerate(files):
        suggested = tuple(
            TagSuggestion(names[e.label], float(P[i, e.label]), kin_of(e, paths, tags, n_kin))
            for e in evidence[i]
            if len(e.indices)
        )
        result.append(PhotoSuggestions(file, suggested, tuple(own[i])))
    return result


@dataclass(frozen=True)
class Rule:
    """What a tag must reach to be suggested."""

    n: int | None = None
    """At most so many tags per photograph."""
    threshold: float = 0.0
    """Confidence, from 0 to 1."""
    scores: np.ndarray | float = -np.inf
    """Score, for each tag (D,)."""

    def __post_init__(self) -> None:
        if self.n is not None:
            check_integer("n", self.n, 1)
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
            picked.append([int(t) for t in columns[order][: self.n]])
        return picked


def rule_for(
    calibrator: LabelCalibrator,
    n: int | None,
    threshold: float | None,
    precision: float | None,
) -> Rule:
    """The rule that a person asked for, as `Annotator.suggest` explains it."""
    if precision is not None:
        if not isinstance(precision, Real):
            raise InvalidInput(f"precision must be a number up to 1; found {precision!r}.")
        return Rule(n, threshold or 0.0, calibrator.min_scores(precision))
    if threshold is None:
        threshold = 0.5 if n is None else 0.0
    return Rule(n, threshold)


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


def supported(found: Neighbors, labels: scipy.sparse.csr_array) -> np.ndarray:
    """Which tags (n×D) one of the neighbours (n×k) carries; no photograph supports the others.

    A tag that is on most photographs can be likely even so.
    """
    there = found.indices >= 0
    ends = np.append(0, np.cumsum(there.sum(axis=1)))
    ones = np.ones(ends[-1], dtype=np.float32)
    shape = (len(there), labels.shape[0])
    lists = scipy.sparse.csr_array((ones, found.indices[there], ends), shape=shape)
    return (lists @ labels).toarray() > 0


def kin_of(
    evidence: Evidence, files: Sequence[str], tags: Sequence[Sequence[str]], n_kin: int
) -> tuple[Kin, ...]:
    """The photographs that support a tag most; shares are parts of all support."""
    parts = np.asarray(evidence.shares, dtype=np.float64)
    # a score that takes away what chance gives may be below zero, and so is each part of it then
    shares = parts / parts.sum() if parts.any() else np.ones(len(parts)) / max(len(parts), 1)
    heaviest = zip(evidence.indices[:n_kin], shares[:n_kin], strict=True)
    return tuple(Kin(str(files[j]), float(share), tuple(tags[j])) for j, share in heaviest)
