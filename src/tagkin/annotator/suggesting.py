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
from tagkin.calibration.calibration import check_precision
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.tag_meanings import NamePrior
from tagkin.transfer import Evidence
from tagkin.transfer.occasions import Asked

__all__ = [
    "STILL_LIKELY",
    "Images",
    "LabelChoice",
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
    asked: Asked
    """When and where the images were taken."""

    def take(self, rows: slice) -> Images:
        """Return some of the images."""
        return Images(
            self.features[rows],
            self.known[rows],
            self.unwanted[rows],
            self.was_labelled[rows],
            self.offered[rows],
            self.asked.take(rows),
        )


def make_images(
    model: Model, features: Array, asked: Asked, labels: KnownLabels | None = None
) -> Images:
    """Return images to suggest labels for, as `FeatureAnnotator.suggest` takes them."""
    known = asked.known
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
    unwanted = scipy.sparse.csr_array(unwanted)
    return Images(features, known, unwanted, was_labelled, still_open, asked)


def suggest_labels(
    model: Model, images: Images, rule: LabelChoice, n_kin: int, prior: NamePrior | None
) -> list[list[LabelSuggestion]]:
    """Suggest the labels that satisfy a rule, each with at most `n_kin` supporting images."""
    per_image = 64 * (model.method.n_labels + 256)
    blocks = [
        images.take(rows) for rows in row_blocks(len(images.known), per_image, images.features)
    ]
    if rule.precision is not None and images.unwanted.nnz:
        rule = _rule_for_open(model, blocks, rule, rule.precision, prior)
    return [
        suggestions
        for block in blocks
        for suggestions in _suggest_block(model, block, rule, n_kin, prior)
    ]


def _rule_for_open(
    model: Model, blocks: list[Images], rule: LabelChoice, precision: float, prior: NamePrior | None
) -> LabelChoice:
    """Return a rule whose precision applies to the open labels of the images.

    The threshold for a precision counts all labels. The labels that images have already are mostly
    the most confident, so the precision of the others would be lower. Their mean confidence from
    the threshold on is to reach the precision, too.
    """
    parts = []
    for block in blocks:
        scored = _score_block(model, block, prior)
        parts.append(scored.P[scored.allowed & (rule.least(scored.kinds) <= scored.P)])
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
    kinds: np.ndarray
    """Kind of each image, shape (n,)."""


class Shares(NamedTuple):
    """Shares of the inputs in the evidence for each label, shape (n, D). They add up to 1."""

    votes: np.ndarray
    readout: np.ndarray
    name: np.ndarray
    time: np.ndarray
    place: np.ndarray
    folder: np.ndarray

    @classmethod
    def of(cls, model: Model, scores: Sequence[np.ndarray], kinds: np.ndarray) -> Shares:
        """Return the shares of a model's scores (n×D), for images of these kinds (n,)."""
        shares = model.shares(scores, kinds)
        inputs = () if model.occasions is None else model.occasions.inputs
        n_learned = len(shares) - len(inputs) - (model.names is not None)
        by_name = {"votes": shares[0], **dict(zip(inputs, shares[n_learned:], strict=False))}
        if n_learned > 1:
            by_name["readout"] = shares[1]
        if model.names is not None:
            by_name["name"] = shares[-1]
        nothing = np.zeros(shares.shape[1:])
        return cls(*(by_name.get(name, nothing) for name in cls._fields))

    def of_pair(self, image: int, label: int) -> dict[str, float]:
        """Return the share of each input for one image and label."""
        return {name: float(part[image, label]) for name, part in self._asdict().items()}


def _score_block(model: Model, images: Images, prior: NamePrior | None) -> _Scored:
    """Score few enough images to hold all their labels in memory."""
    embeddings = model.embed(images.features)
    neighbors = drop_itself(model.method.kneighbors(embeddings), images.known)
    components = model.components(images.features, prior, images.asked, embeddings, neighbors)
    kinds = model.kinds(images.asked, len(images.known))
    shares = Shares.of(model, components, kinds)
    allowed = find_supported(neighbors, model.method.labels)
    for share in (shares.name, shares.time, shares.place, shares.folder):
        allowed |= share > 0
    allowed[images.unwanted.nonzero()] = False
    offered = np.zeros_like(allowed)
    offered[images.offered.nonzero()] = True
    offered[images.unwanted.nonzero()] = False
    mixed = model.mix(components, kinds)
    scores = model.replace_known_scores(mixed, images.known)
    # a label without a stored score, such as one that the held-out model could not learn
    scores = np.where(offered & (scores <= UNLIKELY), mixed, scores)
    P = model.probabilities(scores, images.was_labelled, kinds)
    return _Scored(P, allowed, offered, shares, neighbors, kinds)


def _suggest_block(
    model: Model, images: Images, rule: LabelChoice, n_kin: int, prior: NamePrior | None
) -> list[list[LabelSuggestion]]:
    """Suggest labels for few enough images to hold all their labels in memory."""
    method, names = model.method, model.labels.classes().tolist()
    P, allowed, offered, shares, neighbors, kinds = _score_block(model, images, prior)
    columns = rule.select_labels(P, allowed, offered, rule.least(kinds))
    evidence = method.explain(columns, names, neighbors=neighbors)
    suggestions: list[list[LabelSuggestion]] = []
    for i, of_image in enumerate(evidence):
        suggestions.append([])
        for e in of_image:
            parts = shares.of_pair(i, e.label)
            votes = parts.pop("votes")
            if not len(e.indices):
                others = {name: max(share, 0.0) for name, share in parts.items()}
                if not any(others.values()) and not offered[i, e.label]:
                    continue
                votes, total = 0.0, sum(others.values()) or 1.0
                parts = {name: share / total for name, share in others.items()}
            by_input = {f"{name}_share": share for name, share in parts.items()}
            support = top_support(e, n_kin, votes)
            confidence = float(P[i, e.label])
            suggestions[-1].append(
                LabelSuggestion(names[e.label], confidence, e.label, support, **by_input)
            )
    return suggestions


@dataclass(frozen=True)
class LabelChoice:
    """Condition for a label to be suggested."""

    n: int | None
    """Most labels per image."""
    threshold: float
    """Least confidence; above 1 if nothing is to be suggested."""
    precision: float | None = None
    """Share of correct suggestions for which the threshold was chosen."""
    by_kind: tuple[float, ...] = ()
    """Least confidence of each kind of images, for a precision."""

    def least(self, kinds: np.ndarray) -> np.ndarray:
        """Return the least confidence for images of these kinds (n,), shape (n, 1)."""
        if not self.by_kind:
            return np.full((len(kinds), 1), self.threshold)
        return np.maximum(np.array(self.by_kind)[kinds], self.threshold)[:, None]

    def __post_init__(self) -> None:
        if self.n is not None:
            check_integer("n", self.n, 1)

    def select_labels(
        self,
        P: np.ndarray,
        allowed: np.ndarray,
        offered: np.ndarray | None = None,
        least: np.ndarray | None = None,
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
        least : array of shape (n, 1), optional
            Least confidence for each image. Default: the threshold.
        """
        possible = allowed & ((self.threshold if least is None else least) <= P)
        stays = np.zeros_like(possible) if offered is None else offered & (STILL_LIKELY <= P)
        selected = []
        for row, is_possible, is_kept in zip(P, possible, stays, strict=True):
            columns = np.flatnonzero(is_possible | is_kept)
            columns = columns[np.argsort(-row[columns], kind="stable")]
            first = columns[is_possible[columns]][: self.n]
            selected.append([int(t) for t in columns if is_kept[t] or t in first])
        return selected


def make_rule(
    model: Model | None,
    n: int | None,
    threshold: float | None,
    precision: float | None,
) -> LabelChoice:
    """Return the rule for the options of `FeatureAnnotator.suggest`.

    Without a model, the precision is used as a threshold: of labels with .8, 80 % are right.
    """
    if threshold is not None:
        is_number = isinstance(threshold, Real) and not isinstance(threshold, bool)
        if not is_number or not 0 <= threshold <= 1:
            raise InvalidInput(f"threshold must be a number from 0 to 1; found {threshold!r}.")
    if precision is not None:
        precision = check_precision(precision)
        if model is None:
            return LabelChoice(n, max(precision, threshold or 0.0))
        return LabelChoice(n, threshold or 0.0, precision, tuple(model.thresholds(precision)))
    if threshold is None:
        threshold = 0.5 if n is None else 0.0
    return LabelChoice(n, threshold)


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
