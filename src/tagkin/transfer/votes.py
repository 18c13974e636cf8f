"""Votes of neighbours: the base of all records that score labels by an image's neighbours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, Self

import numpy as np
import scipy.sparse

from tagkin.arrays import (
    Array,
    as_block,
    block_rows,
    like,
    namespace,
    on_accelerator,
    row_blocks,
    to_numpy,
)
from tagkin.arrays.labels import widen
from tagkin.arrays.namespaces import LabelMatrix
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.records.rules import Sparse, Whole
from tagkin.transfer.evidence import Evidence, supporting_neighbors
from tagkin.transfer.neighbor_lists import (
    on_device_of,
    on_host,
    on_host_or_accelerator,
    sums_over_lists,
)
from tagkin.wording import count

__all__ = ["NearestVotes", "NeighborVotes"]


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighborVotes(ABC):
    """N images with their labels, which vote on the labels of other images.

    Every neighbour has a weight. The weights of the neighbours that have a label add up to the
    label's votes, and votes become the score. Records differ in `_weights` and `_scores`.
    """

    takes_rejected: ClassVar[bool] = False
    takes_incomplete: ClassVar[bool] = False

    index: ExactNeighbors | None = None
    """The images' embeddings; None if only lists of neighbours are known."""
    labels: Annotated[scipy.sparse.csr_array, Sparse("N", "D")]
    """The images' labels."""

    @property
    def n_images(self) -> int:
        """Number of images, N."""
        return int(self.labels.shape[0])

    @property
    def n_labels(self) -> int:
        """Number of labels, D."""
        return int(self.labels.shape[1])

    @property
    @abstractmethod
    def list_length(self) -> int:
        """The largest number of neighbours that vote on an image."""

    # --- using ---------------------------------------------------------------------------

    def decision_function(
        self, embeddings: Array | None, neighbors: Neighbors | None = None
    ) -> Array:
        """Return the score of every label, shape (n, D), for images with embeddings (n×m).

        `neighbors` (n×k) are theirs, if they are known; without embeddings only their votes count.
        """
        return self._finish(self._vote_scores(embeddings, neighbors), embeddings)

    def components(
        self, embeddings: Array, neighbors: Neighbors | None = None
    ) -> tuple[np.ndarray, ...]:
        """Return the scores (n×D) that an annotator mixes, on the host; here only one."""
        return (to_numpy(self.decision_function(embeddings, neighbors)),)

    def kneighbors(self, embeddings: Array) -> Neighbors:
        """Return the neighbours that vote on each image (n×m)."""
        neighbors = self._neighbors_of(embeddings)
        return Neighbors(*(on_device_of(part, embeddings) for part in neighbors))

    def explain(
        self,
        columns: Sequence[Sequence[int]],
        names: Sequence[str | int],
        *,
        embeddings: Array | None = None,
        neighbors: Neighbors | None = None,
    ) -> list[list[Evidence]]:
        """Return the neighbours that support labels, with their shares of the score.

        `columns` are the labels of each image, and `names` (D,) the names of all labels. The others
        are as in `decision_function`.
        """
        scores: list[Array] = []
        evidence: list[list[Evidence]] = []
        dtype = _score_dtype(_known(embeddings, neighbors))
        for rows, block in self._vote_blocks(embeddings, neighbors):
            voters = on_host(block)
            of_block, weights = self._score(voters)
            scores.extend(of_block.astype(dtype))
            for i, of_labels in enumerate(columns[rows]):
                of_image = Neighbors(voters.indices[i], voters.distances[i])
                support = supporting_neighbors(of_image, weights[i], self.labels, of_labels, names)
                evidence.append(list(support))
        scored = [
            [item.with_score(float(row[item.label])) for item in items]
            for row, items in zip(scores, evidence, strict=True)
        ]
        return self._finish_evidence(scored, embeddings)

    def describe(self) -> list[str]:
        """Return a few sentences that describe the record."""
        n, d = self.labels.shape
        return [
            f"Passes {count(d, 'label')} on from {count(n, 'image')} with "
            f"{count(self.labels.nnz, 'label')} in all.",
            self._describe_neighbors(),
        ]

    # --- growing -------------------------------------------------------------------------

    def add(
        self, embeddings: Array, labels: scipy.sparse.csr_array, **known: LabelMatrix | None
    ) -> Self:
        """Return a record with further images (n×m) and their labels (n×D').

        The first D labels are the known ones, and earlier images do not have the others. The index
        grows in place. `known` are as in `relabel`.
        """
        before = widen(self.labels, labels.shape[1])
        grown = self.relabel(scipy.sparse.vstack([before, labels], format="csr"), **known)
        self.filled_index().add(embeddings)
        return grown

    def relabel(self, labels: scipy.sparse.csr_array, **known: LabelMatrix | None) -> Self:
        """Return a record with other labels (N×D) of the same images.

        `known` are further fields of the record, about the labels.
        """
        return replace(self, labels=labels, **self._extend(labels), **known)  # type: ignore[arg-type]

    # --- for authors of methods ----------------------------------------------------------

    def _extend(self, labels: scipy.sparse.csr_array) -> dict[str, np.ndarray]:
        """Return the fields that change with the labels (N×D)."""
        return {}

    @abstractmethod
    def _neighbors_of(self, embeddings: Array) -> Neighbors:
        """Return the neighbours that vote, on the host or on an accelerator."""

    @abstractmethod
    def _used_neighbors(self, neighbors: Neighbors) -> Neighbors:
        """Return the neighbours that vote, from known neighbours."""

    @abstractmethod
    def _describe_neighbors(self) -> str:
        """Return a sentence that says which images vote."""

    @abstractmethod
    def _weights(self, neighbors: Neighbors) -> Array:
        """Return the weight of each neighbour, shape (n, k), in float64; 0 if missing."""

    def _scores(self, votes: Array, neighbors: Neighbors) -> Array:
        """Return scores from votes (n×D), which may change in place."""
        return votes

    def _finish(self, scores: Array, embeddings: Array | None) -> Array:
        """Return final scores from scores of votes (n×D), which may change in place."""
        return scores

    def _finish_evidence(
        self, evidence: list[list[Evidence]], embeddings: Array | None
    ) -> list[list[Evidence]]:
        """Return the evidence for final scores from the evidence for scores of votes."""
        return evidence

    def filled_index(self) -> ExactNeighbors:
        """Return the index of the embeddings."""
        assert self.index is not None, "The record has no embeddings to search."
        return self.index

    def _vote_scores(self, embeddings: Array | None, neighbors: Neighbors | None) -> Array:
        where = _known(embeddings, neighbors)
        scores = _empty_scores(where, self.n_labels)
        for rows, block in self._vote_blocks(embeddings, neighbors):
            scores[rows] = on_device_of(self._score(block)[0], scores)
        return on_device_of(scores, where)

    def _vote_blocks(
        self, embeddings: Array | None, neighbors: Neighbors | None
    ) -> Iterator[tuple[slice, Neighbors]]:
        """Yield blocks of images and the neighbours that vote on them."""
        where = _known(embeddings, neighbors)
        length = self.list_length if neighbors is None else where.shape[1]
        for rows in row_blocks(where.shape[0], 64 * length + 40 * self.n_labels, where):
            if neighbors is None:
                yield rows, self._neighbors_of(where[rows])
            else:
                yield rows, self._used_neighbors(Neighbors(*(part[rows] for part in neighbors)))

    def _score(self, neighbors: Neighbors) -> tuple[Array, Array]:
        """Return scores (n×D) in float64 and the neighbours' weights (n×k)."""
        table = self._labels_on_device_of(neighbors.indices)
        if table is None:
            neighbors = on_host(neighbors)
        weights = self._weights(neighbors)
        return self._scores(self._votes(neighbors.indices, weights, table), neighbors), weights

    def _votes(self, indices: Array, weights: Array, table: Array | None) -> Array:
        """Return Σₖ wₖ y(k, t), shape (n, D), in float64."""
        if table is not None:
            # without an array of n × k × D entries
            return namespace(table).nn.functional.embedding_bag(
                indices.clip(0, None), table, per_sample_weights=weights, mode="sum"
            )
        return sums_over_lists(self.labels, to_numpy(indices), to_numpy(weights))

    def _labels_on_device_of(self, indices: Array) -> Array | None:
        """Return dense labels (N×D) on the accelerator of `indices`, or None if they do not fit."""
        if not on_accelerator(indices):
            return None
        place = str(indices.device)
        if place not in self._tables:
            n, d = self.labels.shape
            if n > block_rows(8 * d, indices):
                return None
            xp = namespace(indices)
            empty = xp.empty(0, dtype=xp.float64, device=indices.device)
            self._tables[place] = like(self.labels, empty)
        return self._tables[place]

    @cached_property
    def _tables(self) -> dict[str, Array]:
        """Dense labels by device, made at first use and not stored."""
        return {}


@dataclass(frozen=True, kw_only=True, eq=False)
class NearestVotes(NeighborVotes):
    """Votes of the nearest images."""

    n_neighbors: Annotated[int, Whole(1)]
    """K; all images if there are fewer."""

    @property
    def list_length(self) -> int:
        """The largest number of neighbours that vote on an image."""
        return min(self.n_neighbors, self.n_images)

    def _neighbors_of(self, embeddings: Array) -> Neighbors:
        index = self.filled_index()
        k = min(self.n_neighbors, index.n_points_)
        return on_host_or_accelerator(index.kneighbors(embeddings, k))

    def _used_neighbors(self, neighbors: Neighbors) -> Neighbors:
        return Neighbors(*(part[:, : self.n_neighbors] for part in neighbors))

    def _describe_neighbors(self) -> str:
        nearest = count(self.list_length, "nearest neighbour")
        metric = "" if self.index is None else f" ({self.index.metric})"
        return f"Labels come from the {nearest} of an image{metric}."


def _known(embeddings: Array | None, neighbors: Neighbors | None) -> Array:
    """Return what is known of n images: distances of neighbours (n×k), or embeddings (n×m)."""
    if neighbors is not None:
        return neighbors.distances
    assert embeddings is not None, "Images need embeddings or neighbours."
    return embeddings


def _score_dtype(X: Array) -> np.dtype:
    """Return the dtype of scores for X: float32 for float32 and narrower, else float64."""
    wide = str(as_block(X[:1], finite=False).dtype).endswith("64")
    return np.dtype(np.float64 if wide else np.float32)


def _empty_scores(where: Array, n_labels: int) -> Array:
    """Return an empty array for scores (n×D), on the accelerator of `where` or the host."""
    n = where.shape[0]
    if not on_accelerator(where):
        return np.empty((n, n_labels), _score_dtype(where))
    dtype = as_block(where[:1], finite=False).dtype
    return namespace(where).empty((n, n_labels), dtype=dtype, device=where.device)
