"""TagProp: weights of the neighbours, learned by maximum likelihood."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, blas_threads_for, expit, is_out_of_memory, namespace
from tagkin.errors import InvalidInput
from tagkin.neighbors import NeighborIndex, Neighbors
from tagkin.transfer._likelihood import (
    Sigmoids,
    distance_weights,
    fit_distance_weights,
    fit_label_sigmoids,
    fit_rank_weights,
    likelihood_loss,
    rank_weights,
    smoothed,
)
from tagkin.transfer._lists import on_device_of, on_host
from tagkin.transfer._pairs import Pairs
from tagkin.transfer.neighbor_transfer import NeighborTransfer

__all__ = ["TagProp"]

WEIGHTS = ("rank", "distance")
_ROUNDS = 5  # of weights and sigmoids in turn
_CONVERGED = 1e-6  # a round that gains less ends it


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
    classes_ : array of shape (D,)
        Names of the labels (columns of a DataFrame y), or column numbers.

    Notes
    -----
    The defaults are the paper's. `Annotator` takes ``weights="distance", sigmoids=False``: without
    sigmoids, which lift rare labels, the labels of one image are ranked better, and what each
    neighbour adds to a score is plain to see. Compare both on your own images.

    Since present and absent labels weigh the same in sum, scores with sigmoids are probabilities
    as if half of all labels were present. `predict_proba` takes that back: the odds are multiplied
    by n₊/n₋ of the labels that are known. The order of labels stays. Without sigmoids the
    probability is the weighted share of the neighbours that carry a label.

    `partial_fit` adds images and leaves weights and sigmoids as they are; a label that comes to its
    first images, with them or through `relabel`, gets the median sigmoid of the others. With
    sigmoids, a label that was never on an image scores 0. Where an image lacks neighbours (index
    −1), the weights of those that it has are brought to a sum of 1, but not while weights by rank
    are being learned. Memory for `fit`: 12 bytes (16 on an accelerator) for each label that a
    neighbour carries, N × K × labels per image, and a few times that while the table is built.
    Where an accelerator's is too small for it, the weights are learned on the host.

    Where several images are nearly the same, such as the shots of a burst, say so with
    ``fit(X, y, groups=…)``: else the weights are learned from burst mates, which carry the same
    labels, and nearly all weight goes to the nearest image.

    References
    ----------
    Guillaumin, Mensink, Verbeek, Schmid. TagProp: discriminative metric learning in nearest
    neighbor models for image auto-annotation. ICCV, 2009.
    """

    learns_from_neighbors = True

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

    def _learn(self, neighbors: Neighbors | None, labels: scipy.sparse.csr_array) -> dict[str, Any]:
        assert neighbors is not None
        if not labels.nnz:
            raise InvalidInput(
                f"No label at all: none of the {labels.shape[0]} images carries any of the "
                f"{labels.shape[1]} labels, so that there is nothing to learn weights from."
            )
        with blas_threads_for(math.prod(neighbors.indices.shape)):  # its products are of vectors
            try:
                return self._most_likely(self._used_neighbors(neighbors), labels)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            return self._most_likely(on_host(self._used_neighbors(neighbors)), labels)

    def _most_likely(self, neighbors: Neighbors, labels: scipy.sparse.csr_array) -> dict[str, Any]:
        """Weights and sigmoids of least loss, where the neighbours are: host or accelerator."""
        xp = namespace(neighbors.distances)
        distances = xp.astype(neighbors.distances, xp.float64)
        by_rank = self.weights == "rank"
        pairs = Pairs.of(neighbors.indices, labels, by_rank=by_rank)
        penalties, decay = np.zeros(neighbors.indices.shape[1]), 0.0

        def predicted() -> Array:
            pi = rank_weights(penalties) if by_rank else distance_weights(distances, decay)
            return pairs.table.votes(pi)

        def loss() -> float:
            return likelihood_loss(predicted(), pairs, sigmoids)[0]

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
            sigmoids = fit_label_sigmoids(pairs, predicted(), sigmoids, monotone=self.monotone)
            before = loss()
            better_weights(sigmoids)
            if before - loss() < _CONVERGED:
                break
        if self.sigmoids:
            sigmoids = fit_label_sigmoids(pairs, predicted(), sigmoids, monotone=self.monotone)
        learned = {
            "rank_weights_": rank_weights(penalties) if by_rank else None,
            "decay_": None if by_rank else decay,
            "slopes_": None,
            "offsets_": None,
            "loss_": loss(),
        }
        if sigmoids is not None:
            carried = _carried(labels)
            learned["slopes_"] = np.where(carried, sigmoids.slope, 0)
            learned["offsets_"] = np.where(carried, sigmoids.offset, -np.inf)
        return learned

    def _widened(self, added: scipy.sparse.csr_array) -> dict[str, Any]:
        if self.slopes_ is None or self.offsets_ is None:
            return {}
        known = np.isfinite(self.offsets_)  # labels that have a sigmoid
        fresh = added.shape[1] - len(known)
        slopes = np.append(self.slopes_, np.zeros(fresh))
        offsets = np.append(self.offsets_, np.full(fresh, -np.inf))
        first = _carried(added) & ~np.append(known, np.zeros(fresh, dtype=bool))
        slopes[first] = np.median(self.slopes_[known])
        offsets[first] = np.median(self.offsets_[known])
        return {"slopes_": slopes, "offsets_": offsets}

    def _weights(self, found: Neighbors) -> Array:
        xp = namespace(found.indices)
        if self.rank_weights_ is None:
            assert self.decay_ is not None
            return distance_weights(xp.astype(found.distances, xp.float64), self.decay_)
        of_ranks = np.zeros(found.indices.shape[1])
        known = min(len(of_ranks), len(self.rank_weights_))
        of_ranks[:known] = self.rank_weights_[:known]
        weights = on_device_of(of_ranks, found.indices) * (found.indices >= 0)
        total = xp.sum(weights, axis=1, keepdims=True)
        return weights / xp.where(total > 0, total, xp.ones_like(total))

    def _scores(self, votes: Array, found: Neighbors) -> Array:
        if self.slopes_ is None or self.offsets_ is None:
            return smoothed(votes)
        return expit(on_device_of(self.slopes_, votes) * votes + on_device_of(self.offsets_, votes))

    def _has_probabilities(self) -> bool:
        return True

    def _probabilities(self, scores: Array) -> Array:
        if self.slopes_ is None:
            return scores
        n, d = self.labels_.shape
        n_present = self.labels_.nnz
        present = scores * n_present
        return present / (present + (1 - scores) * (n * d - n_present))

    def describe(self) -> list[str]:
        """What this model is, in a few sentences."""
        if self.rank_weights_ is not None:
            first = ", ".join(f"{w:.3f}" for w in self.rank_weights_[:5])
            learned = f"Weights by rank; those of the nearest are {first}."
        else:
            learned = f"Weights fall with distance at the rate {self.decay_:.3g}."
        return [*super().describe(), learned]


def _carried(labels: scipy.sparse.csr_array) -> np.ndarray:
    """Which labels are on some image, shape (D,)."""
    return np.bincount(labels.indices, minlength=labels.shape[1]) > 0
