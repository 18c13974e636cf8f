"""The part of a problem whose held-out scores fit into memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from tagkin.annotator.problem import SIZES, Problem, count_images, n_folds
from tagkin.errors import InvalidInput, Parameter
from tagkin.machine import available_memory
from tagkin.model_selection.folds import Fold
from tagkin.model_selection.kinds import KINDS, Kind

__all__ = ["Part", "check_memory", "choose_part"]


@dataclass(frozen=True)
class Part:
    """Images and labels that have held-out scores: all of them, or as many as memory holds.

    A score for every image and every label, of several kinds, takes 64 GB for 100,000 images with
    20,000 labels. With less memory

    - one part of the images is held out, once, by a model that learned from all others;
    - only labels on most images have scores; rarer labels get the usual weights and confidences;
    - the space is learned from the labels on most images;
    - `audit` reports on those images and labels.

    At most 16,384 labels have scores, whatever the memory: if there are more, most are on hardly
    any image, and each teaches next to nothing. Every label can be suggested all the same, because
    neighbours have all labels, which are sparse.
    """

    folds: list[Fold]
    rows: np.ndarray
    """Images that are held out, shape (R·n,): in each of R rounds the same n, ascending."""
    columns: np.ndarray
    """Labels with scores, ascending, shape (C,)."""
    kinds: np.ndarray
    """Kind as which each of `rows` is held out, shape (R·n,)."""
    clusters: np.ndarray | None = None
    """What each of `rows` is held out with, shape (R·n,); None if there are no occasions."""
    n_dimensions: int = SIZES.most_labels
    """Most labels that a space may be learned from; its embeddings have as many dimensions."""
    is_whole: bool = False
    """Whether memory holds the scores of all images and labels."""
    n_rounds: int = 1
    """R; each round has as many folds."""

    @classmethod
    def whole(cls, problem: Problem, n_rounds: int | None = None) -> Part:
        """Return all images and all labels, in one round if there are many images."""
        columns = np.arange(problem.Y.shape[1])
        return replace(cls._of_rounds(problem, columns, n_rounds), is_whole=True)

    @classmethod
    def _of_rounds(cls, problem: Problem, columns: np.ndarray, n_rounds: int | None = None) -> Part:
        n = problem.Y.shape[0]
        if n_rounds is None:
            n_rounds = KINDS.rounds if n < SIZES.many else 1
        rounds = problem.split(n_folds(n), n_rounds)
        n_parts = min(int(r.folds.max()) + 1 for r in rounds)
        folds = [Fold.of(r.folds % n_parts, k) for r in rounds for k in range(n_parts)]
        rows, kinds = np.tile(np.arange(n), len(rounds)), np.concatenate([r.kinds for r in rounds])
        clusters = None
        if problem.occasions is not None:
            clusters = np.concatenate([r.clusters for r in rounds])
        return cls(folds, rows, columns, kinds, clusters, n_rounds=len(rounds))

    @classmethod
    def sample(
        cls, problem: Problem, n_images: int, columns: np.ndarray, n_dimensions: int
    ) -> Part:
        """Hold out all images in turn, or at most `n_images` once; no group is on both sides."""
        n = problem.Y.shape[0]
        if n_images >= n:
            return replace(cls._of_rounds(problem, columns), n_dimensions=n_dimensions)
        (one,) = problem.split(max(3, round(n / n_images)))
        known, held_out = Fold.of(one.folds, 0)  # many folds of many images take much memory
        n_taken = min(len(held_out), n_images)
        rows = held_out[np.arange(n_taken) * len(held_out) // n_taken]  # evenly spaced
        clusters = None if problem.occasions is None else one.clusters[rows]
        return cls(
            [Fold(known, rows)], rows, columns, one.kinds[rows], clusters, n_dimensions=n_dimensions
        )

    @property
    def images(self) -> np.ndarray:
        """The images that are held out, ascending, shape (n,)."""
        return self.rows[: len(self.rows) // self.n_rounds]

    def entries_as(self, kind: Kind) -> np.ndarray:
        """Return an entry of `rows` for each image, (n,), held out as the kind or a nearer one.

        There may be only one of another kind.
        """
        rank = np.where(self.kinds <= kind, kind - self.kinds, self.kinds)
        order = np.argsort(rank, kind="stable")
        return order[np.unique(self.rows[order], return_index=True)[1]]

    def places(self, number: int) -> np.ndarray:
        """Return where the held-out images of a fold are among `rows`."""
        n, n_folds = len(self.images), len(self.folds) // self.n_rounds
        held_out = self.folds[number].held_out
        return number // n_folds * n + np.searchsorted(self.images, held_out)

    def labels(self, Y: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Return the labels (N×C) with scores, of all images."""
        return Y if self.is_whole else Y[:, self.columns]

    def truth(self, Y: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Return the labels (n×C) of the images that are held out."""
        return Y if self.is_whole else Y[self.images][:, self.columns]


def choose_part(problem: Problem, memory: int | None = None) -> Part:
    """Choose the images and labels that have held-out scores.

    `memory` is in bytes. Default: the memory available to this process.
    """
    n, n_labels = problem.Y.shape
    memory = available_memory() if memory is None else memory
    n_images, n_scored, n_dimensions = n, min(n_labels, SIZES.most_scored), SIZES.most_labels
    if memory is not None and SIZES.bytes_per_score * n * n_scored > memory:
        n_scores = memory // (SIZES.bytes_per_score * SIZES.memory_share)
        n_images = max(
            SIZES.fewest, min(n // 3, SIZES.most_scored, n_scores // SIZES.fewest_labels)
        )
        n_scored = max(1, min(n_labels, SIZES.most_labels, n_scores // n_images))
        n_dimensions = max(
            SIZES.fewest_labels, min(SIZES.most_labels, memory // (SIZES.bytes_per_dimension * n))
        )
    if (n_images, n_scored) == (n, n_labels):
        return Part.whole(problem)
    columns = np.argsort(-count_images(problem.Y), kind="stable")[:n_scored]
    return Part.sample(problem, n_images, np.sort(columns), n_dimensions)


def check_memory(Y: scipy.sparse.csr_array, memory: int | None = None) -> None:
    """Reject labels (N×D) whose held-out scores do not fit into memory.

    Measurements need a score of every image for every label. `memory` is as in `choose_part`.
    """
    memory = available_memory() if memory is None else memory
    n, n_labels = Y.shape
    needed = SIZES.bytes_per_score * n * n_labels
    if memory is None or needed <= memory:
        return
    counts = np.sort(count_images(Y))[::-1]
    fits = max(1, min(n_labels - 1, memory // (2 * SIZES.bytes_per_score * n)))
    least = int(counts[fits]) + 1
    n_left = np.count_nonzero(counts >= least)
    raise InvalidInput(
        f"Scores of {n:,} images for {n_labels:,} labels take about {needed / 2**30:,.0f} GiB of "
        f"memory, and {memory / 2**30:,.0f} are available. Leave out labels on fewer than "
        f"{least:,} images (",
        Parameter("min_count", least),
        f"): {n_left:,} remain.",
    )
