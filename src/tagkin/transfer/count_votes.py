"""Votes that count: neighbour voting, and tag relevance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, namespace, row_blocks
from tagkin.arrays.namespaces import LabelMatrix
from tagkin.neighbors import Neighbors
from tagkin.neighbors.neighbor_index import keep_neighbors
from tagkin.records.forms import storable
from tagkin.records.rules import Indices, Texts
from tagkin.transfer.neighbor_lists import first_of_each, on_device_of, on_host
from tagkin.transfer.votes import NearestVotes

__all__ = ["CountVotes", "RelevanceVotes"]


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
    """Votes beyond what a label's frequency explains, f(I, t) = kₜ − K nₜ/|S|.

    With users, only the nearest image of each user votes.
    """

    user_names: Annotated[np.ndarray, Texts("users")]
    """The distinct users, sorted."""
    users: Annotated[np.ndarray | None, Indices("N", below="users")]
    """Position of each image's user, shape (N,)."""

    def add(
        self,
        embeddings: Array,
        labels: scipy.sparse.csr_array,
        *,
        user_names: np.ndarray | None = None,
        users: np.ndarray | None = None,
        **learned: LabelMatrix | None,
    ) -> Self:
        """Return a record with further images; `users` (n,) are positions in `user_names`."""
        if self.users is not None and user_names is not None:
            names = np.concatenate([self.user_names, user_names])
            names, numbers = np.unique(names, return_inverse=True)
            n_known = len(self.user_names)
            known, fresh = numbers[:n_known][self.users], numbers[n_known:][users]
            learned |= {"user_names": names, "users": np.concatenate([known, fresh])}
        return super().add(embeddings, labels, **learned)

    def _neighbors_of(self, embeddings: Array) -> Neighbors:
        """Return neighbours; with users, the nearest image of each user, padded with −1."""
        neighbors = super()._neighbors_of(embeddings)
        if self.users is None:
            return neighbors
        index, neighbors = self._filled_index(), on_host(neighbors)
        n, width = index.n_points_, neighbors.indices.shape[1]
        enough = min(width, len(self.user_names))
        neighbors = self._used_neighbors(neighbors)
        while width < n:
            short = np.flatnonzero((neighbors.indices >= 0).sum(axis=1) < enough)
            width = min(2 * width, n)
            for rows in row_blocks(len(short), 64 * width):
                queries = short[rows]
                more = self._used_neighbors(on_host(index.kneighbors(embeddings[queries], width)))
                neighbors.indices[queries], neighbors.distances[queries] = more
        return neighbors

    def _used_neighbors(self, neighbors: Neighbors) -> Neighbors:
        if self.users is None:
            return super()._used_neighbors(neighbors)
        owners = np.where(neighbors.indices >= 0, self.users[neighbors.indices], -1)
        return keep_neighbors(neighbors, first_of_each(owners) & (owners >= 0), self.n_neighbors)

    def _scores(self, votes: Array, neighbors: Neighbors) -> Array:
        xp = namespace(votes)
        n_votes = xp.sum(xp.astype(neighbors.indices >= 0, xp.int64), axis=1, keepdims=True)
        share = self.labels.sum(axis=0, dtype=np.float64) / self.n_images
        votes -= n_votes * on_device_of(share, votes)
        return votes
