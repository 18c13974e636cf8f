"""Records of voting: votes counted, weighted by TagProp, or balanced by label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, expit, namespace, row_blocks
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.neighbors.exact import search
from tagkin.neighbors.lists import keep_neighbors, sort_lists
from tagkin.paper.likelihood import smooth
from tagkin.records.forms import storable
from tagkin.records.rules import Floats, Number, Whole
from tagkin.transfer.neighbor_lists import (
    distance_weights,
    first_of_each,
    label_rows,
    on_device_of,
    on_host_or_accelerator,
    stack_lists,
)
from tagkin.transfer.votes import NearestVotes, NeighborVotes

__all__ = [
    "CountVotes",
    "RelevanceVotes",
    "TagPropVotes",
    "TwoPassVotes",
    "balanced_neighbors",
    "on_some_image",
]


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class CountVotes(NearestVotes):
    """Each neighbour has one vote, f(I, t) = kₜ."""

    def _weights(self, neighbors: Neighbors) -> Array:
        xp = namespace(neighbors.indices)
        return xp.astype(neighbors.indices >= 0, xp.float64)

    def probabilities(self, scores: Array) -> Array:
        """Return the share of the neighbours that have a label, kₜ/K."""
        return scores / self.list_length


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class RelevanceVotes(CountVotes):
    """Votes beyond what a label's frequency explains, f(I, t) = kₜ − K nₜ/|S|."""

    def _scores(self, votes: Array, neighbors: Neighbors) -> Array:
        xp = namespace(votes)
        n_votes = xp.sum(xp.astype(neighbors.indices >= 0, xp.int64), axis=1, keepdims=True)
        share = self.labels.sum(axis=0, dtype=np.float64) / self.n_images
        votes -= n_votes * on_device_of(share, votes)
        return votes


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class TagPropVotes(NearestVotes):
    """Weighted votes f(I, t) = Σⱼ πⱼ y(j, t), perhaps with a sigmoid for each label."""

    rank_weights: Annotated[np.ndarray | None, Floats("K", low=0).kept_on_host()]
    """π of the ranks, shape (K,)."""
    decay: Annotated[float | None, Number(low=0)]
    """λ of the distances."""
    slopes: Annotated[np.ndarray | None, Floats("D").kept_on_host()]
    """aₜ of the sigmoids, shape (D,)."""
    offsets: Annotated[np.ndarray | None, Floats("D", endless=True).kept_on_host()]
    """bₜ of the sigmoids, shape (D,)."""
    loss: float
    """−Σ c log P over all images and labels."""

    @property
    def weights(self) -> str:
        """The parameter `weights` of `TagProp`."""
        return "rank" if self.decay is None else "distance"

    def check_stored(self) -> None:
        """Raise `InvalidInput` if a stored record has no weights."""
        if self.rank_weights is None and self.decay is None:
            raise InvalidInput("it has neither rank_weights nor decay")

    def _extend(self, labels: scipy.sparse.csr_array) -> dict[str, np.ndarray]:
        if self.slopes is None or self.offsets is None:
            return {}
        known = np.isfinite(self.offsets)  # labels that have a sigmoid
        fresh = labels.shape[1] - len(known)
        slopes = np.append(self.slopes, np.zeros(fresh))
        offsets = np.append(self.offsets, np.full(fresh, -np.inf))
        first = on_some_image(labels) & ~np.append(known, np.zeros(fresh, dtype=bool))
        slopes[first] = np.median(self.slopes[known])
        offsets[first] = np.median(self.offsets[known])
        return {"slopes": slopes, "offsets": offsets}

    def _weights(self, neighbors: Neighbors) -> Array:
        xp = namespace(neighbors.indices)
        if self.rank_weights is None:
            assert self.decay is not None
            return distance_weights(xp.astype(neighbors.distances, xp.float64), self.decay)
        by_rank = np.zeros(neighbors.indices.shape[1])
        known = min(len(by_rank), len(self.rank_weights))
        by_rank[:known] = self.rank_weights[:known]
        weights = on_device_of(by_rank, neighbors.indices) * (neighbors.indices >= 0)
        total = xp.sum(weights, axis=1, keepdims=True)
        return weights / xp.where(total > 0, total, xp.ones_like(total))

    def _scores(self, votes: Array, neighbors: Neighbors) -> Array:
        if self.slopes is None or self.offsets is None:
            return smooth(votes)
        return expit(on_device_of(self.slopes, votes) * votes + on_device_of(self.offsets, votes))

    def probabilities(self, scores: Array) -> Array:
        """Return scores as probabilities, with the odds of the known labels n₊/n₋."""
        if self.slopes is None:
            return scores
        n_present = self.labels.nnz
        present = scores * n_present
        n_absent = self.n_images * self.n_labels - n_present
        return present / (present + (1 - scores) * n_absent)

    def describe(self) -> list[str]:
        """Return a few sentences that describe the record."""
        if self.rank_weights is not None:
            first = ", ".join(f"{w:.3f}" for w in self.rank_weights[:5])
            learned = f"Weights by rank; the nearest have {first}."
        else:
            learned = f"Weights fall with distance at the rate {self.decay:.3g}."
        return [*super().describe(), learned]


def on_some_image(labels: scipy.sparse.csr_array) -> np.ndarray:
    """Return a mask of labels that are on at least one image, shape (D,)."""
    return np.bincount(labels.indices, minlength=labels.shape[1]) > 0


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class TwoPassVotes(NeighborVotes):
    """f(I, t) = Σ exp(−w d(I, Iⱼ)) y(j, t) over the K₁ nearest images of every label."""

    n_per_label: Annotated[int, Whole(1)]
    """K₁."""
    decay: Annotated[float, Number(above=0)]
    """w."""
    by_authors: bool
    """Whether distances and scores are scaled as in the authors' code."""

    @property
    def list_length(self) -> int:
        """The largest number of neighbours that vote on an image."""
        carriers = np.bincount(self.labels.indices, minlength=1)
        return min(int(np.minimum(carriers, self.n_per_label).sum()), self.n_images)

    # --- pass 1 --------------------------------------------------------------------------

    def _neighbors_of(self, embeddings: Array) -> Neighbors:
        """Return the union of the `n_per_label` nearest images of every label, nearest first."""
        index = self.filled_index()
        return balanced_neighbors(index, embeddings, self.labels, self.n_per_label)

    def _used_neighbors(self, neighbors: Neighbors) -> Neighbors:
        """Run pass 1 within known neighbours."""
        (n, k), d = neighbors.indices.shape, self.n_labels
        neighbor_labels = label_rows(self.labels, neighbors.indices.ravel())
        slot = np.repeat(np.arange(n * k), np.diff(neighbor_labels.indptr))
        key = slot // k * d + neighbor_labels.indices
        order = np.argsort(key, kind="stable")  # by image and label, the nearest first
        fresh = np.flatnonzero(np.diff(key[order], prepend=-1))
        rank = np.arange(len(key)) - np.repeat(fresh, np.diff(np.append(fresh, len(key))))
        used = np.zeros(n * k, dtype=bool)
        used[slot[order][rank < self.n_per_label]] = True
        return keep_neighbors(neighbors, used.reshape(n, k))

    # --- pass 2 --------------------------------------------------------------------------

    def _weights(self, neighbors: Neighbors) -> Array:
        xp = namespace(neighbors.indices)
        there = neighbors.indices >= 0
        distances = xp.astype(neighbors.distances, xp.float64)
        zeros = xp.zeros_like(distances)
        distances = xp.where(there, distances, zeros)
        if self.by_authors:
            infinity = xp.full_like(distances, np.inf)
            least = xp.min(xp.where(there, distances, infinity), axis=1, keepdims=True)
            distances = xp.where(there, distances - least, zeros)
            # a sequential sum, because a pairwise sum would depend on the padding
            mean = xp.cumulative_sum(distances, axis=1)[:, -1:]
            count = xp.sum(xp.astype(there, xp.int64), axis=1, keepdims=True)
            mean /= xp.clip(count, 1, None)
            distances /= xp.where(mean > 0, mean, xp.ones_like(mean))
        return xp.exp(-self.decay * distances) * there

    def _scores(self, votes: Array, neighbors: Neighbors) -> Array:
        if self.by_authors:
            xp = namespace(votes)
            total = xp.sum(votes, axis=1, keepdims=True)
            votes /= xp.where(total > 0, total, xp.ones_like(total))
        return votes

    def _describe_neighbors(self) -> str:
        return f"Labels come from the {self.n_per_label} nearest neighbours of each label."


def balanced_neighbors(
    index: ExactNeighbors, queries: Array, labels: scipy.sparse.csr_array, n_per_label: int
) -> Neighbors:
    """Return the nearest images of every label for each query, without repeats, nearest first."""
    by_label = labels.tocsc()
    by_label.sort_indices()
    members, starts = by_label.indices.astype(np.int64), by_label.indptr
    groups = [members[starts[t] : starts[t + 1]] for t in np.flatnonzero(np.diff(starts))]
    width = sum(min(n_per_label, len(group)) for group in groups)
    parts = []
    for rows in row_blocks(queries.shape[0], 64 * max(width, 1), queries):
        searched = index.as_searched(queries[rows])
        by_group = [_search_group(index, searched, group, n_per_label) for group in groups]
        parts.append(_merge_groups(by_group, rows.stop - rows.start))
    return stack_lists(parts)


def _search_group(
    index: ExactNeighbors, searched: Array, group: np.ndarray, n_neighbors: int
) -> Neighbors:
    """Return the nearest points of a group (ascending indices), on the host or accelerator."""
    members = on_device_of(group, searched)
    k = min(n_neighbors, len(group))
    neighbors = search(searched, index.points_[members], k, index.metric)
    return on_host_or_accelerator(Neighbors(members[neighbors.indices], neighbors.distances))


def _merge_groups(groups: list[Neighbors], n_queries: int) -> Neighbors:
    """Merge each query's neighbours from all groups, without repeats, nearest first."""
    if not groups:
        return Neighbors(np.full((n_queries, 1), -1), np.full((n_queries, 1), np.inf))
    xp = namespace(groups[0].indices)
    indices = xp.concat([group.indices for group in groups], axis=1)
    distances = xp.concat([group.distances for group in groups], axis=1)
    indices, distances, _ = sort_lists(indices, distances, xp.zeros_like(distances))
    neighbors = Neighbors(indices, distances)
    return keep_neighbors(neighbors, first_of_each(neighbors.indices))
