"""Choose labels to suggest for images, and the images learned from that support them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import NamedTuple

import numpy as np
import scipy.sparse

from tagkin.annotator.label_input import KnownLabels, label_matrix, rejection_matrix, take_rows
from tagkin.annotator.model import UNLIKELY, Model
from tagkin.annotator.suggestions import LabelSuggestion, SimilarImage, Support
from tagkin.arrays import Array, check_integer, row_blocks, to_numpy
from tagkin.arrays.labels import check_complete
from tagkin.calibration import Calibration
from tagkin.calibration.calibration import check_precision
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.tag_meanings import NamePrior
from tagkin.transfer import Evidence

__all__ = [
    "STILL_LIKELY",
    "Images",
    "Rule",
    "Shares",
    "check_known",
    "drop_itself",
    "find_similar",
    "find_supported",
    "make_images",
    "make_rule",
    "suggest_labels",
    "top_support",
]

STILL_LIKELY = 0.003
"""Least confidence of a label that was offered before. With .01, the first fit lost a right label,
one of several hundred, in two of fourteen evenings."""


class Images(NamedTuple):
    """n images to suggest labels for."""

    features: Array
    """Features of shape (n, d)."""
    known: np.ndarray
    """Number of the image among those learned from, or −1, shape (n,)."""
    unwanted: scipy.sparse.csr_array
    """Labels not to suggest, shape (n, D): present or rejected labels."""
    was_labelled: np.ndarray
    """Whether a person has labelled the image, shape (n,)."""
    offered: scipy.sparse.csr_array
    """Labels that were suggested before and are still open, shape (n, D)."""


def make_images(
    model: Model, features: Array, known: np.ndarray, labels: KnownLabels | None = None
) -> Images:
    """Return images to suggest labels for, as `FeatureAnnotator.suggest` takes them."""
    present, rejected, complete, offered = labels or KnownLabels()
    n = features.shape[0]
    was_labelled = (known >= 0) & model.complete[known]
    if present is None:
        own = take_rows(model.method.labels, known)
    else:
        own = label_matrix(present, n, model.labels)
        was_labelled |= (known < 0) & (np.diff(own.indptr) > 0)
    if complete is not None:
        mask = check_complete(complete, n)
        was_labelled = np.ones(n, dtype=bool) if mask is None else mask
    unwanted = own + take_rows(model.rejected, known)
    if rejected is not None:
        unwanted = unwanted + rejection_matrix(rejected, n, model.labels)
    still_open = scipy.sparse.csr_array(own.shape)
    if offered is not None:
        still_open = rejection_matrix(offered, n, model.labels)
    return Images(features, known, scipy.sparse.csr_array(unwanted), was_labelled, still_open)


def suggest_labels(
    model: Model, images: Images, rule: Rule, n_kin: int, prior: NamePrior | None
) -> list[list[LabelSuggestion]]:
    """Suggest the labels that satisfy a rule, each with at most `n_kin` supporting images."""
    per_image = 64 * (model.method.n_labels + 256)
    blocks = [
        Images(*(part[rows] for part in images))
        for rows in row_blocks(len(images.known), per_image, images.features)
    ]
    if rule.precision is not None and images.unwanted.nnz:
        rule = _rule_for_open(model, blocks, rule, rule.precision, prior)
    return [
        suggestions
        for block in blocks
        for suggestions in _suggest_block(model, block, rule, n_kin, prior)
    ]


def _rule_for_open(
    model: Model, blocks: list[Images], rule: Rule, precision: float, prior: NamePrior | None
) -> Rule:
    """Return a rule whose precision applies to the open labels of the images.

    The threshold for a precision counts all labels. The labels that images have already are mostly
    the most confident, so the precision of the others would be lower. Their mean confidence from
    the threshold on is to reach the precision, too.
    """
    parts = []
    for block in blocks:
        scored = _score_block(model, block, prior)
        parts.append(scored.P[scored.allowed & (rule.threshold <= scored.P)])
    confidences = -np.sort(-np.concatenate(parts))
    means = np.cumsum(confidences, dtype=np.float64) / np.arange(1, len(confidences) + 1)
    n_reached = np.count_nonzero(means >= precision)  # the means descend
    least = float(confidences[n_reached - 1]) if n_reached else np.inf
    return replace(rule, threshold=max(rule.threshold, least))


class _Scored(NamedTuple):
    """Confidences, which labels are allowed, and which were offered (n×D); the evidence."""

    P: np.ndarray
    allowed: np.ndarray
    offered: np.ndarray
    shares: Shares
    neighbors: Neighbors


class Shares(NamedTuple):
    """Shares of neighbours, read-out and name in the evidence for each label, shape (n, D).

    They add up to 1.
    """

    votes: np.ndarray
    readout: np.ndarray
    name: np.ndarray

    @classmethod
    def of(cls, model: Model, scores: Sequence[np.ndarray]) -> Shares:
        """Return the shares of a model's scores (n×D)."""
        shares = model.calibrator.mixture.shares(scores)
        nothing = np.zeros(shares.shape[1:])
        name = nothing if model.names is None else shares[-1]
        has_readout = len(shares) - (model.names is not None) > 1
        return cls(shares[0], shares[1] if has_readout else nothing, name)


def _score_block(model: Model, images: Images, prior: NamePrior | None) -> _Scored:
    """Score few enough images to hold all their labels in memory."""
    embeddings = model.embed(images.features)
    neighbors = drop_itself(model.method.kneighbors(embeddings), images.known)
    components = model.components(images.features, prior, embeddings, neighbors)
    shares = Shares.of(model, components)
    allowed = find_supported(neighbors, model.method.labels) | (shares.name > 0)
    allowed[images.unwanted.nonzero()] = False
    offered = np.zeros_like(allowed)
    offered[images.offered.nonzero()] = True
    offered[images.unwanted.nonzero()] = False
    mixed = model.calibrator.mix(components)
    scores = model.replace_known_scores(mixed, images.known)
    # a label without a stored score, such as one that the held-out model could not learn
    scores = np.where(offered & (scores <= UNLIKELY), mixed, scores)
    P = model.probabilities(scores, images.was_labelled)
    return _Scored(P, allowed, offered, shares, neighbors)


def _suggest_block(
    model: Model, images: Images, rule: Rule, n_kin: int, prior: NamePrior | None
) -> list[list[LabelSuggestion]]:
    """Suggest labels for few enough images to hold all their labels in memory."""
    method, names = model.method, model.labels.classes().tolist()
    P, allowed, offered, shares, neighbors = _score_block(model, images, prior)
    columns = rule.select_labels(P, allowed, offered)
    evidence = method.explain(columns, names, neighbors=neighbors)
    suggestions: list[list[LabelSuggestion]] = []
    for i, of_image in enumerate(evidence):
        suggestions.append([])
        for e in of_image:
            votes, readout, name = (float(part[i, e.label]) for part in shares)
            if not len(e.indices):
                name = max(name, 0.0)
                if name <= 0 and not offered[i, e.label]:
                    continue
                votes, readout = 0.0, max(readout, 0.0)
                total = readout + name or 1.0
                readout, name = readout / total, name / total
            support = top_support(e, n_kin, votes)
            confidence = float(P[i, e.label])
            label = LabelSuggestion(names[e.label], confidence, e.label, support, name, readout)
            suggestions[-1].append(label)
    return suggestions


@dataclass(frozen=True)
class Rule:
    """Condition for a label to be suggested."""

    n: int | None
    """Most labels per image."""
    threshold: float
    """Least confidence; above 1 if nothing is to be suggested."""
    precision: float | None = None
    """Share of correct suggestions for which the threshold was chosen."""

    def __post_init__(self) -> None:
        if self.n is not None:
            check_integer("n", self.n, 1)

    def select_labels(
        self, P: np.ndarray, allowed: np.ndarray, offered: np.ndarray | None = None
    ) -> list[list[int]]:
        """Return the columns of the labels to suggest for each image, most confident first.

        Parameters
        ----------
        P : array of shape (n, D)
            Confidences.
        allowed : bool array of shape (n, D)
            Labels that may be suggested.
        offered : bool array of shape (n, D), optional
            Labels that stay while their confidence is at least `STILL_LIKELY`, beyond `n` too.
        """
        possible = allowed & (self.threshold <= P)
        stays = np.zeros_like(possible) if offered is None else offered & (STILL_LIKELY <= P)
        selected = []
        for row, is_possible, is_kept in zip(P, possible, stays, strict=True):
            columns = np.flatnonzero(is_possible | is_kept)
            columns = columns[np.argsort(-row[columns], kind="stable")]
            first = columns[is_possible[columns]][: self.n]
            selected.append([int(t) for t in columns if is_kept[t] or t in first])
        return selected


def make_rule(
    calibrator: Calibration | None,
    n: int | None,
    threshold: float | None,
    precision: float | None,
) -> Rule:
    """Return the rule for the options of `FeatureAnnotator.suggest`.

    Without a calibrator, the precision is used as a threshold: of labels with .8, 80 % are right.
    """
    if threshold is not None:
        is_number = isinstance(threshold, Real) and not isinstance(threshold, bool)
        if not is_number or not 0 <= threshold <= 1:
            raise InvalidInput(f"threshold must be a number from 0 to 1; found {threshold!r}.")
    if precision is not None:
        precision = check_precision(precision)
        if calibrator is None:
            return Rule(n, max(precision, threshold or 0.0))
        least = max(calibrator.threshold(precision), threshold or 0.0)
        return Rule(n, least, precision)
    if threshold is None:
        threshold = 0.5 if n is None else 0.0
    return Rule(n, threshold)


def drop_itself(neighbors: Neighbors, known: np.ndarray) -> Neighbors:
    """Remove each image's own number `known` (n,) from its list of neighbours (n×k).

    The lists keep their length and end with −1. A number of −1 removes nothing. The result is on
    the host.
    """
    indices, distances = to_numpy(neighbors.indices), to_numpy(neighbors.distances)
    is_itself = (indices == known[:, None]) & (indices >= 0)
    order = np.argsort(is_itself, axis=1, kind="stable")
    indices = np.where(is_itself, -1, indices)
    distances = np.where(is_itself, distances.dtype.type(np.inf), distances)
    return Neighbors(
        np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)
    )


def find_similar(
    model: Model, features: Array, known: np.ndarray, n: int
) -> list[list[SimilarImage]]:
    """Find the n images learned from that are nearest to each image, without the image itself."""
    index = model.method.index
    assert index is not None  # every model has one
    k = min(check_integer("n", n) + 1, index.n_points_)
    nearest = drop_itself(index.kneighbors(model.embed(features), k), known)
    distances = nearest.distances
    similarity = 1 - distances if index.metric == "cosine" else 1 / (1 + distances)
    return [
        [SimilarImage(int(j), float(s)) for j, s in zip(row[:n], values[:n], strict=True) if j >= 0]
        for row, values in zip(nearest.indices, similarity, strict=True)
    ]


def check_known(known: Array | None, n: int, model: Model) -> np.ndarray:
    """Return the numbers (n,) of images among those learned from, −1 for new images."""
    if known is None:
        return np.full(n, -1)
    numbers, n_learned = np.asarray(to_numpy(known)), model.n_images
    is_fine = numbers.shape == (n,) and numbers.dtype.kind in "iu"
    if not is_fine or (n and not -1 <= numbers.min() <= numbers.max() < n_learned):
        raise InvalidInput(
            f"known must hold a number for each of the {n} images: 0 to {n_learned - 1} for an "
            f"image learned from, or -1; found {known!r}."
        )
    return numbers.astype(np.int64)


def find_supported(neighbors: Neighbors, labels: scipy.sparse.csr_array) -> np.ndarray:
    """Return which labels (n×D) at least one of the neighbours (n×k) has.

    A label on most images can be likely without any such neighbour.
    """
    is_neighbor = neighbors.indices >= 0
    of_neighbors = labels[neighbors.indices[is_neighbor]]
    image = np.repeat(np.arange(len(is_neighbor)), is_neighbor.sum(axis=1))
    is_label = of_neighbors.data > 0
    rows = np.repeat(image, np.diff(of_neighbors.indptr))[is_label]
    supported = np.zeros((len(is_neighbor), labels.shape[1]), dtype=bool)
    supported[rows, of_neighbors.indices[is_label]] = True
    return supported


def top_support(evidence: Evidence, n_kin: int, part: float = 1.0) -> tuple[Support, ...]:
    """Return the images with the largest shares of the support; all have `part` of it together."""
    parts = np.asarray(evidence.shares, dtype=np.float64)
    # a score below what chance gives is negative, and so is each part of it
    shares = parts / parts.sum() if parts.any() else np.ones(len(parts)) / max(len(parts), 1)
    shares = part * shares
    largest = zip(evidence.indices[:n_kin], shares[:n_kin], strict=True)
    return tuple(Support(int(j), float(share)) for j, share in largest)
