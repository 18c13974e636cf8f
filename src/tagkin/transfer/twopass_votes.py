"""Votes of a neighbourhood that represents every label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, namespace, row_blocks
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.neighbors.exact import search
from tagkin.neighbors.neighbor_index import keep_neighbors, sort_lists
from tagkin.records.forms import storable
from tagkin.records.rules import Number, Whole
from tagkin.transfer.neighbor_lists import (
    first_of_each,
    label_rows,
    on_device_of,
    on_host_or_accelerator,
    stack_lists,
)
from tagkin.transfer.votes import NeighborVotes

__all__ = ["TwoPassVotes", "balanced_neighbors"]


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
        index = self._filled_index()
        assert isinstance(index, ExactNeighbors)
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
