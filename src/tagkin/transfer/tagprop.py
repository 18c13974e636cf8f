"""TagProp: neighbours' weights learned by maximum likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import expit

from tagkin.arrays import Array
from tagkin.errors import InvalidInput
from tagkin.neighbors import NeighborIndex, Neighbors
from tagkin.transfer._likelihood import (
    Pairs,
    Sigmoids,
    distance_weights,
    fit_distance_weights,
    fit_rank_weights,
    fit_sigmoids,
    rank_weights,
    smoothed,
)
from tagkin.transfer.kin import NeighborTransfer

__all__ = ["TagProp"]

WEIGHTS = ("rank", "distance")
_ROUNDS = 5  # of weights and sigmoids in turn
_SETTLED = 1e-6  # a round that gains less ends it


class TagProp(NeighborTransfer):
    """TagProp: f(I, t) = Σⱼ πⱼ y(j, t), with weights π that make the known labels most likely.

    The likelihood is that of each labelled image's labels given its neighbours among the others;
    present and absent labels weigh the same in sum. With sigmoids, P = σ(aₜ p + bₜ) lifts rare
    labels and holds frequent ones down.

    Parameters
    ----------
    n_neighbors : int, default 100
        K; all images where there are fewer.
    weights : "rank" or "distance"
        One weight for each rank, π = softmax(−λₖ); or by distance, π = softmax(−λ d), λ ≥ 0.
    sigmoids : bool, default True
        Learn a sigmoid for each label.
    monotone : bool, default True
        Keep aₜ ≥ 0, so that more votes never lower a label's score; without it a label on few
        images can turn its ranking over.
    metric : "cosine" or "euclidean"
        How far images are apart.
    index : index of `tagkin.neighbors`, optional
        Searches instead of the exact search.

    Attributes
    ----------
    rank_weights_ : array of shape (K,), or None
        π of the ranks.
    decay_ : float, or None
        λ of the distances.
    slopes_, offsets_ : arrays of shape (D,), or None
        aₜ and bₜ.
    loss_ : float
        −Σ c log P over all images and labels, c = 1/(2n₊) for a label that is present and
        1/(2n₋) for one that is absent.
    labels_ : CSR array of shape (N, D)
        The labels that pass to others.
    n_labels_ : int
        D.

    Notes
    -----
    `partial_fit` adds images and leaves weights and sigmoids as they are; a new label gets the
    mean sigmoid of the others. Memory for `fit`: 12 bytes for each label that a neighbour
    carries, N × K × labels an image.

    References
    ----------
    Guillaumin, Mensink, Verbeek, Schmid. TagProp: discriminative metric learning in nearest
    neighbor models for image auto-annotation. ICCV, 2009.
    """

    rank_weights_: np.ndarray | None
    decay_: float | None
    slopes_: np.ndarray | None
    offsets_: np.ndarray | None

    def __init__(
        self,
        n_neighbors: int = 100,
        weights: str = "rank",
        sigmoids: bool = True,
        monotone: bool = True,
        metric: str = "cosine",
        index: NeighborIndex | None = None,
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.sigmoids = sigmoids
        self.monotone = monotone
        self.metric = metric
        self.index = index

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.weights, str) or self.weights not in WEIGHTS:
            raise InvalidInput(
                f"weights must be one of {', '.join(WEIGHTS)}; found {self.weights!r}."
            )

    def _neighbors_of_fitted(self, index: NeighborIndex, places: Array) -> Neighbors:
        return self._training_neighbors(index, places)

    def _learn(self, neighbors: Neighbors | None, labels: scipy.sparse.csr_array) -> dict[str, Any]:
        assert neighbors is not None
        if not labels.nnz:
            raise InvalidInput(
                f"No label at all: none of the {labels.shape[0]} images carries any of the "
                f"{labels.shape[1]} labels, so that there is nothing to learn weights from."
            )
        neighbors = self._cut(neighbors)
        distances = np.asarray(neighbors.distances, dtype=np.float64)
        distances = np.where(neighbors.indices >= 0, distances, np.inf)
        by_rank = self.weights == "rank"
        pairs = Pairs.of(neighbors.indices, labels, by_rank=by_rank)
        penalties, decay = np.zeros(neighbors.indices.shape[1]), 0.0

        def predicted() -> np.ndarray:
            pi = rank_weights(penalties) if by_rank else distance_weights(distances, decay)
            return pairs.carriers @ pi.ravel()

        def better_weights(sigmoids: Sigmoids | None) -> None:
            nonlocal penalties, decay
            if by_rank:
                penalties = fit_rank_weights(pairs, penalties, sigmoids)
            else:
                decay = fit_distance_weights(pairs, distances, decay, sigmoids)

        sigmoids = None
        if not self.sigmoids:
            better_weights(None)
        for _ in range(_ROUNDS if self.sigmoids else 0):
            sigmoids = fit_sigmoids(pairs, predicted(), sigmoids, monotone=self.monotone)
            before = pairs.loss(predicted(), sigmoids)[0]
            better_weights(sigmoids)
            if before - pairs.loss(predicted(), sigmoids)[0] < _SETTLED:
                break
        if self.sigmoids:
            sigmoids = fit_sigmoids(pairs, predicted(), sigmoids, monotone=self.monotone)
        slopes, offsets = sigmoids or (None, None)
        return {
            "rank_weights_": rank_weights(penalties) if by_rank else None,
            "decay_": None if by_rank else decay,
            "slopes_": slopes,
            "offsets_": offsets,
            "loss_": pairs.loss(predicted(), sigmoids)[0],
        }

    def _widen(self, n_labels: int) -> None:
        if self.slopes_ is None or self.offsets_ is None:
            return
        fresh = n_labels - len(self.slopes_)
        self.slopes_ = np.append(self.slopes_, np.full(fresh, self.slopes_.mean()))
        self.offsets_ = np.append(self.offsets_, np.full(fresh, self.offsets_.mean()))

    def _weights(self, found: Neighbors) -> np.ndarray:
        there = found.indices >= 0
        if self.rank_weights_ is None:
            assert self.decay_ is not None
            distances = np.where(there, found.distances.astype(np.float64), np.inf)
            return distance_weights(distances, self.decay_)
        weights = np.zeros(found.indices.shape)
        known = min(weights.shape[1], len(self.rank_weights_))
        weights[:, :known] = self.rank_weights_[:known]
        weights *= there
        total = weights.sum(axis=1, keepdims=True)
        return weights / np.where(total > 0, total, 1)

    def _scores(self, votes: np.ndarray, found: Neighbors) -> np.ndarray:
        if self.slopes_ is None or self.offsets_ is None:
            return smoothed(votes)
        return expit(self.slopes_ * votes + self.offsets_)

    def describe(self) -> list[str]:
        """What this model is, in a few sentences."""
        if self.rank_weights_ is not None:
            first = ", ".join(f"{w:.3f}" for w in self.rank_weights_[:5])
            learned = f"Weights by rank; the nearest weigh {first}."
        else:
            learned = f"Weights fall with distance at the rate {self.decay_:.3g}."
        return [*super().describe(), learned]
