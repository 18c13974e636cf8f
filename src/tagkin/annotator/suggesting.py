"""Which labels to suggest for images, and the images learned from that support them."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from tagkin.annotator.suggestions import LabelSuggestion, SimilarImage, Support
from tagkin.arrays import Array, check_integer, to_numpy
from tagkin.calibration import LabelCalibrator
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.transfer import Evidence

if TYPE_CHECKING:
    from tagkin.annotator.feature_annotator import FeatureAnnotator

__all__ = [
    "Rule",
    "rule_for",
    "scored",
    "similar_to",
    "suggestions_of",
    "support_of",
    "supported",
    "without_itself",
]


def suggestions_of(
    estimator: FeatureAnnotator,
    features: Array,
    known: np.ndarray,
    unwanted: scipy.sparse.csr_array,
    said: np.ndarray,
    rule: Rule,
    n_support: int,
) -> list[list[LabelSuggestion]]:
    """Suggestions for some images, few enough to be in memory with all labels.

    Parameters
    ----------
    estimator : FeatureAnnotator
        Fitted.
    features : array of shape (n, d)
    known : int array of shape (n,)
        Which image learned from each is, or −1; it does not support a label of its own.
    unwanted : CSR array of shape (n, D)
        Labels that are not suggested.
    said : bool array of shape (n,)
        Images that somebody has labelled.
    rule : Rule
        What a label must reach.
    n_support : int
        Images to name for each suggestion, at most.
    """
    method, names = estimator.method_, estimator.classes_.tolist()
    embeddings = estimator.space_.transform(features)
    found, scores = scored(method, embeddings, known)
    free, shares = supported(found, method.labels_), np.zeros(scores.shape)
    if counted := estimator.names_:
        by_name = counted.prior_scores(estimator.prior, features)
        shares = counted.weights.name_shares(scores, by_name)
        scores = counted.weights.combine(scores, by_name)
        free |= shares > 0
    P = estimator.probabilities(scores, said)
    free[unwanted.nonzero()] = False
    evidence = method.explain_neighbors(*found, rule.picked(scores, P, free), embeddings)
    return [
        [
            LabelSuggestion(
                names[e.label],
                float(P[i, e.label]),
                e.label,
                support_of(e, n_support),
                *_other_shares(e, float(shares[i, e.label])),
            )
            for e in of_image
            if len(e.indices) or shares[i, e.label] > 0
        ]
        for i, of_image in enumerate(evidence)
    ]


def scored(method: Any, embeddings: Array, known: np.ndarray) -> tuple[Neighbors, np.ndarray]:
    """Neighbours (n×k) of images, of which none is the image itself, and scores (n×D) by them."""
    found = without_itself(method.kneighbors(embeddings), known)
    return found, to_numpy(method.score_neighbors(*found, embeddings))


@dataclass(frozen=True)
class Rule:
    """What a label must reach to be suggested."""

    n: int | None = None
    """At most so many labels per image."""
    threshold: float = 0.0
    """Confidence, from 0 to 1."""
    scores: np.ndarray | float = -np.inf
    """Score, for each label (D,)."""

    def __post_init__(self) -> None:
        if self.n is not None:
            check_integer("n", self.n, 1)
        number = isinstance(self.threshold, Real) and not isinstance(self.threshold, bool)
        if not number or not 0 <= self.threshold <= 1:
            raise InvalidInput(f"threshold must be a number from 0 to 1; found {self.threshold!r}.")

    def picked(self, scores: np.ndarray, P: np.ndarray, free: np.ndarray) -> list[list[int]]:
        """Columns of the labels to suggest for each image, the surest first.

        Parameters
        ----------
        scores, P : arrays of shape (n, D)
            Scores and confidences.
        free : bool array of shape (n, D)
            Labels that may be suggested.
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
    """The rule that a person asked for, as `FeatureAnnotator.suggest` explains it."""
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


def similar_to(
    method: Any, embeddings: Array, known: np.ndarray, n: int
) -> list[list[SimilarImage]]:
    """The n images learned from that are nearest to each image, itself left out."""
    found = without_itself(method.nearest(embeddings, n + 1), known)
    metric = getattr(method.index_, "metric", method.metric)
    alike = 1 - found.distances if metric == "cosine" else 1 / (1 + found.distances)
    return [
        [SimilarImage(int(j), float(s)) for j, s in zip(row[:n], near[:n], strict=True) if j >= 0]
        for row, near in zip(found.indices, alike, strict=True)
    ]


def supported(found: Neighbors, labels: scipy.sparse.csr_array) -> np.ndarray:
    """Which labels (n×D) one of the neighbours (n×k) carries; no image supports the others.

    A label that is on most images can be likely even so.
    """
    there = found.indices >= 0
    carried = labels[found.indices[there]]
    of_image = np.repeat(np.arange(len(there)), there.sum(axis=1))
    there_too = np.repeat(of_image, np.diff(carried.indptr))[carried.data > 0]
    some = np.zeros((len(there), labels.shape[1]), dtype=bool)
    some[there_too, carried.indices[carried.data > 0]] = True
    return some


def _other_shares(evidence: Evidence, by_name: float) -> tuple[float, float]:
    """What of the evidence for a label is its name's, and what was read off the image."""
    if not len(evidence.indices):
        return 1.0, 0.0
    read_off = evidence.readout / evidence.score if evidence.score else 0.0
    return by_name, (1 - by_name) * min(max(read_off, 0.0), 1.0)


def support_of(evidence: Evidence, n_support: int) -> tuple[Support, ...]:
    """The images that support a label most; shares are parts of all support."""
    parts = np.asarray(evidence.shares, dtype=np.float64)
    # a score that takes away what chance gives may be below zero, and so is each part of it then
    shares = parts / parts.sum() if parts.any() else np.ones(len(parts)) / max(len(parts), 1)
    heaviest = zip(evidence.indices[:n_support], shares[:n_support], strict=True)
    return tuple(Support(int(j), float(share)) for j, share in heaviest)
