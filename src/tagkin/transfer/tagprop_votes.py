"""Votes with the weights that TagProp has learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, expit, namespace
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.records.forms import storable
from tagkin.records.rules import Floats, Number
from tagkin.transfer.likelihood import smooth
from tagkin.transfer.neighbor_lists import distance_weights, on_device_of
from tagkin.transfer.votes import NearestVotes

__all__ = ["TagPropVotes", "on_some_image"]


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
