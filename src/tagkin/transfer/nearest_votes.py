"""Votes of the nearest images: counted, beyond a label's frequency, or weighted by TagProp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, expit, namespace, row_blocks
from tagkin.arrays.namespaces import LabelMatrix
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.neighbors.neighbor_index import keep_neighbors
from tagkin.records.forms import storable
from tagkin.records.rules import Floats, Indices, Number, Texts
from tagkin.transfer.likelihood import smooth
from tagkin.transfer.neighbor_lists import distance_weights, first_of_each, on_device_of, on_host
from tagkin.transfer.votes import NearestVotes

__all__ = ["CountVotes", "RelevanceVotes", "TagPropVotes", "on_some_image"]


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
