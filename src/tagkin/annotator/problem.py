"""A problem to learn from: features and labels, and how images are held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse

from tagkin.annotator.label_input import NamedLabels
from tagkin.annotator.naming import Naming
from tagkin.arrays import Array, check_groups
from tagkin.errors import InvalidInput, Parameter
from tagkin.model_selection.folds import number_folds
from tagkin.model_selection.kinds import (
    KINDS,
    Round,
    deal_rounds,
    follow,
    nearest_mates,
    number_clusters,
)
from tagkin.tag_meanings import NamePrior
from tagkin.transfer.occasions import Asked, Occasions
from tagkin.transfer.readout import MOST_LABELS

__all__ = [
    "SIZES",
    "Labels",
    "Problem",
    "Sizes",
    "check_enough",
    "count_as_complete",
    "count_images",
    "find_groups",
    "has_examples_only",
    "n_folds",
]


@dataclass(frozen=True)
class Sizes:
    """Numbers of images, labels and bytes that decide how images are held out."""

    fewest: int = 6
    """Images. With fewer, none could be held out to learn confidences from."""
    few_complete: int = 50
    """Complete images with labels. With fewer, images that had labels before answers count as
    complete. So many added images tell how rare a new label is, and so many labels how much
    its weights count."""
    labels_of_example: float = 1.5
    """Labels of an example, on average. Images with more say something about absent labels, too."""
    folds: int = 10
    """Folds of fewer images than `many`. With 5, the models of folds know clearly less than that of
    all images, and chance decides more: on eight draws (photos, Flickr8k), the first fits after
    answers kept .84 to 1.04 of the right suggestions at 50 %, and .93 to 1.04 with 10."""
    many: int = 2000
    """Images from which three folds leave enough to learn from."""
    huge: int = 20_000
    """Images up to which memory holds folds in parallel."""
    most_scored: int = 16_384
    """Labels with scores, weights and confidences, even if memory holds more; and images, if it
    does not hold all. More would teach little."""
    bytes_per_score: int = 32
    """Memory for a pair of an image and a label: held-out scores of several kinds."""
    memory_share: int = 4
    """If not all held-out scores fit, they take one part in this many of the memory."""
    most_labels: int = MOST_LABELS
    """Labels with scores in that case, and dimensions of a space: as many as a read-out learns."""
    fewest_labels: int = 64
    """Labels with scores, and dimensions, however short memory is."""
    bytes_per_dimension: int = 60
    """Memory per image and dimension: three float32 copies in a fifth of it."""


SIZES = Sizes()


@dataclass(frozen=True)
class Labels:
    """What is known about D labels on N images."""

    said: scipy.sparse.csr_array
    """int8 array of shape (N, D): 1 if an image has a label, 2 if a person accepted it as a
    suggestion, −1 if a person rejected it."""
    complete: np.ndarray | None = None
    """Which images have all of their labels, shape (N,); None if all have. A label that is absent
    from another image is unknown, unless it is rejected."""

    @classmethod
    def of(
        cls,
        Y: scipy.sparse.csr_array,
        rejected: scipy.sparse.csr_array | None = None,
        accepted: scipy.sparse.csr_array | None = None,
        complete: np.ndarray | None = None,
    ) -> Labels:
        """Join the labels Y (N×D) with rejected labels, and with accepted labels among Y."""
        yes = scipy.sparse.csr_array(scipy.sparse.csr_array(Y) > 0)
        said = yes.astype(np.int8)
        if accepted is not None:
            said = said + yes.multiply(accepted > 0).astype(np.int8)
        if rejected is not None:
            no = scipy.sparse.csr_array(rejected > 0)
            said = said - (no.astype(np.int8) - no.multiply(yes).astype(np.int8))
        said = scipy.sparse.csr_array(said)
        said.eliminate_zeros()
        said.sort_indices()
        return cls(said, complete)

    def take(self, rows: np.ndarray, columns: np.ndarray | slice = slice(None)) -> Labels:
        """Return what is known about some labels (C,) on some images (n,), which are complete."""
        return Labels(self.said[rows][:, columns])

    @cached_property
    def present(self) -> scipy.sparse.csr_array:
        """The labels that images have, shape (N, D), float32."""
        return self._select(self.said.data > 0)

    @cached_property
    def rejected(self) -> scipy.sparse.csr_array:
        """Rejected labels, shape (N, D). The calibration treats them like any absent label: counted
        twice, they made confidences too low, by .05 on Flickr8k if a person had reviewed the best
        three suggestions per image.
        """
        return self._select(self.said.data < 0)

    @cached_property
    def accepted(self) -> scipy.sparse.csr_array:
        """Labels that a person accepted as suggestions, shape (N, D). With the rejected labels they
        tell how often unannotated labels are right.
        """
        return self._select(self.said.data == 2)

    def _select(self, is_wanted: np.ndarray) -> scipy.sparse.csr_array:
        """Return ones for some of the entries, as a matrix (N×D) of float32."""
        parts = is_wanted.astype(np.float32), self.said.indices, self.said.indptr
        matrix = scipy.sparse.csr_array(parts, shape=self.said.shape, copy=True)
        matrix.eliminate_zeros()
        return matrix

    @property
    def was_complete(self) -> np.ndarray | None:
        """Which images were complete before labels were accepted, shape (N,); None if all were."""
        if self.complete is None:
            return None
        # an image whose labels were all accepted had none when they were suggested
        return self.complete & (np.diff(self.present.indptr) > np.diff(self.accepted.indptr))


@dataclass(frozen=True)
class Problem:
    """Features and labels of N images, with groups and names."""

    X: Array
    """Features of shape (N, d)."""
    labels: Labels
    groups: np.ndarray | None = None
    """Group of each image, shape (N,); None if no images belong together. Images of one group are
    held out together, and are not neighbours of each other while weights are learned."""
    naming: Naming | None = None
    """Possible meanings of the label names."""
    seed: int | None = 0
    source: NamedLabels | None = None
    """Names of the labels, and the lists of tags that they were read from."""
    occasions: Occasions | None = None
    """When and where the images were taken, and their folders, if that tells images apart."""
    takes_incomplete: bool = True
    """Whether the method learns from incomplete images. Otherwise, all count as complete."""

    @property
    def Y(self) -> scipy.sparse.csr_array:  # noqa: N802, as in equations
        """The labels that images have, shape (N, D), float32."""
        return self.labels.present

    @property
    def rejected(self) -> scipy.sparse.csr_array | None:
        """Rejected labels, shape (N, D); None if there are none."""
        return self.labels.rejected if self.labels.rejected.nnz else None

    @cached_property
    def is_by_example(self) -> bool:
        """Whether nothing but a few examples is known; see `has_examples_only`."""
        labels = self.labels
        if labels.complete is None or not self.takes_incomplete:
            return False
        counts = np.diff(self.Y.indptr), np.diff(labels.accepted.indptr)
        return has_examples_only(labels.complete, *counts)

    @cached_property
    def complete(self) -> np.ndarray | None:
        """Which images count as complete, shape (N,); None if all do.

        All do if there are examples only: then images without a label teach what is no example.
        All with labels do if the complete ones cannot be learned from: if they are one series, or
        all have the same labels.
        """
        labels = self.labels
        if labels.complete is None or not self.takes_incomplete or self.is_by_example:
            return None
        n_labels, n_accepted = np.diff(self.Y.indptr), np.diff(labels.accepted.indptr)
        counted = count_as_complete(labels.complete, n_labels, n_accepted)
        n_with_label = count_images(self.Y[np.flatnonzero(counted)])
        is_varied = bool(((n_with_label > 0) & (n_with_label < counted.sum())).any())
        if not is_varied or (self.groups is not None and len(np.unique(self.groups[counted])) < 2):
            counted = counted | (n_labels > 0)
        return None if counted.all() else counted

    def take_complete(self) -> Problem:
        """Return the complete images of this problem, with names."""
        if self.complete is None:
            return self
        rows = np.flatnonzero(self.complete)
        problem, source = self.take(rows), self.source
        if source is not None:
            tags = None if source.tags is None else [source.tags[i] for i in rows]
            source = source._replace(Y=problem.Y, tags=tags)
        return replace(problem, naming=self.naming, source=source)

    def take(self, rows: np.ndarray, columns: np.ndarray | slice = slice(None)) -> Problem:
        """Return features, labels and groups of some images (n,) and labels (C,)."""
        groups = self.groups
        return Problem(
            self.X[rows],
            self.labels.take(rows, columns),
            None if groups is None else np.unique(groups[rows], return_inverse=True)[1],
            seed=self.seed,
            occasions=None if self.occasions is None else self.occasions.take(rows),
        )

    def split(self, n_parts: int, n_rounds: int = 1) -> list[Round]:
        """Return rounds of `n_parts` folds, or of one per group if groups are fewer.

        If nothing is known of occasions, there is one round, in which all images are near.
        """
        if self.occasions is None:
            numbers = self._number_folds(n_parts)
            return [Round(numbers, np.zeros(len(numbers), np.intp), np.arange(len(numbers)))]
        times, n = self.occasions.times, len(self.X)
        events, trips = (
            number_clusters(times, self.occasions.folders, gap, n)
            for gap in (KINDS.event, KINDS.trip)
        )
        if self.complete is None:
            n_parts = max(2, min(n_parts, n // 2))
            return deal_rounds(events, trips, self.groups, n_parts, n_rounds, self.seed)
        rows, others = np.flatnonzero(self.complete), np.flatnonzero(~self.complete)
        first, second = (self.take(part).split(n_parts, n_rounds) for part in (rows, others))
        guides = nearest_mates(trips, times, rows, others)
        rounds = [follow(*pair, rows, guides) for pair in zip(first, second, strict=True)]
        if self.groups is None:
            return rounds
        # images of a group go with its first complete image
        order = np.append(rows, others)
        _, leaders, members = np.unique(self.groups[order], return_index=True, return_inverse=True)
        leads = np.empty(n, np.intp)
        leads[order] = order[leaders[members]]
        return [Round(r.folds[leads], r.kinds[leads], r.clusters) for r in rounds]

    def _number_folds(self, n_parts: int) -> np.ndarray:
        """Return the fold of each image, shape (N,).

        With the same number of folds, complete images are in the same folds as without the others:
        answers about other images move none, and each fold has complete images to learn from.
        """
        if self.complete is not None:
            rows = np.flatnonzero(self.complete)
            numbers = self.take(rows)._number_folds(min(n_parts, n_folds(len(rows))))
            images = np.arange(len(self.complete))
            groups = (
                images if self.groups is None else np.unique(self.groups, return_inverse=True)[1]
            )
            fold_of = np.full(groups.max() + 1, -1)
            fold_of[groups[rows]] = numbers
            others = np.flatnonzero(fold_of < 0)
            # large groups first, so folds are about equal
            others = others[np.argsort(-np.bincount(groups)[others], kind="stable")]
            fold_of[others] = np.arange(len(others)) % (numbers.max() + 1)
            return fold_of[groups]
        if self.groups is not None:
            n_parts = max(2, min(n_parts, len(np.unique(self.groups))))
        return number_folds(self.Y.shape[0], n_parts, self.groups, self.seed)

    def answers(
        self, rows: np.ndarray, columns: np.ndarray
    ) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
        """Return the labels (n×C) that a person said are right and wrong, beside the examples.

        They were accepted or rejected as suggestions, or are those of complete images.
        """
        labels, complete = self.labels, np.zeros(len(rows))
        if labels.complete is not None:
            complete = labels.complete[rows].astype(float)
        said = labels.said[rows][:, columns]
        finished = scipy.sparse.diags_array(complete, format="csr")
        present = finished @ (said > 0)
        every = scipy.sparse.csr_array(complete[:, None]) @ np.ones((1, len(columns)))
        right, wrong = present + (said == 2), scipy.sparse.csr_array(every) - present + (said < 0)
        return scipy.sparse.csr_array(right > 0), scipy.sparse.csr_array(wrong > 0)

    def ask(self, rows: np.ndarray) -> Asked:
        """Return some of the images (n,) as new images to score."""
        occasions = None if self.occasions is None else self.occasions.take(rows)
        return Asked.new(occasions, len(rows))

    @property
    def prior(self) -> NamePrior | None:
        """Scores images by label names, if there are names to score by."""
        return None if self.naming is None else self.naming.prior

    @property
    def largest_product(self) -> int:
        """Most multiplications in a matrix product while learning; few images need one thread."""
        (n, d), n_labels = self.X.shape, self.Y.shape[1]
        return n * max(n, n_labels) * max(n, d, n_labels)


def count_as_complete(
    complete: np.ndarray, n_labels: np.ndarray, n_accepted: np.ndarray
) -> np.ndarray:
    """Return which images count as complete, shape (N,), given the numbers (N,) of their labels.

    If few images are complete, those that had labels before a person accepted some count, too, and
    all with labels if even these are too few to learn from. An answer about one label says nothing
    of others: if all with labels count, the first fit of evenings with 25 complete photographs of
    300 lost half of the right suggestions (photos) and a tenth (Flickr8k), and none otherwise.
    """
    has_labels, counted = n_labels > 0, complete
    for also, least in (
        (n_labels > n_accepted, SIZES.few_complete),
        (has_labels, SIZES.fewest),
    ):
        if np.count_nonzero(counted & has_labels) < least:
            counted = counted | also
    return counted


def has_examples_only(complete: np.ndarray, n_labels: np.ndarray, n_accepted: np.ndarray) -> bool:
    """Return whether labels are known of a few examples, and of other images nothing.

    An example has a label that nobody suggested, and hardly one has two. Parameters are as in
    `count_as_complete`. If examples counted as complete, nothing would say that an image has none
    of their labels: of 319 labels said to be right, 52 were (8 examples of 4 words, 500 photos).
    """
    n_given = np.where(complete, 0, n_labels - n_accepted)
    n_examples = int(np.count_nonzero(n_given))
    return bool(
        np.count_nonzero(complete & (n_labels > 0)) < min(SIZES.few_complete, n_examples)
        and n_given.sum() < SIZES.labels_of_example * n_examples
        and np.count_nonzero(~complete & (n_labels == 0)) >= n_examples
    )


def find_groups(features: Array, groups: Array | None) -> np.ndarray | None:
    """Return the groups (N,) that were passed, or near-duplicates among the features (N×d).

    None if no two images are in the same group.
    """
    if groups is None:
        from tagkin.model_selection import find_groups as find_near_duplicates

        found = find_near_duplicates(features)
    else:
        found = check_groups(groups, features.shape[0])
    return None if len(np.unique(found)) == len(found) else found


def check_enough(Y: scipy.sparse.csr_array, are_tags: bool = False) -> None:
    """Reject labels that cannot be learned from; tags are called so in errors."""
    images, label = ("tagged photographs", "tag") if are_tags else ("labelled images", "label")
    n, n_labels = Y.shape
    if n_labels == 0:
        raise InvalidInput(
            f"No {label} is on enough images to be learned. Pass more {images}, or lower ",
            Parameter("min_count"),
            ".",
        )
    if n < SIZES.fewest:
        raise InvalidInput(
            f"Found {n} {images}; at least {SIZES.fewest} are needed to learn from. Pass more "
            f"{images}."
        )
    if Y.nnz == 0:
        raise InvalidInput(f"None of the {n} images has a {label}. Pass {images}.")
    if Y.nnz == n * n_labels:
        raise InvalidInput(
            f"All {n} {images} have the same {label}s, so nothing can be learned from them. Pass "
            f"{images} of something else, too, or lower ",
            Parameter("min_count"),
            ".",
        )


def n_folds(n_images: int) -> int:
    """Return the number of folds: 3 for 2,000 images and more, else at most 10."""
    return 3 if n_images >= SIZES.many else min(SIZES.folds, n_images // 2)


def count_images(Y: scipy.sparse.csr_array) -> np.ndarray:
    """Count the images with each label, shape (D,)."""
    return np.bincount(Y.tocsr().indices, minlength=Y.shape[1])
