"""TagProp: weights of the neighbours, learned by maximum likelihood."""

from __future__ import annotations

import math
from operator import attrgetter

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, namespace
from tagkin.arrays.blocks import is_out_of_memory
from tagkin.arrays.threads import blas_threads_for
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.paper.likelihood import (
    Sigmoids,
    fit_distance_weights,
    fit_label_sigmoids,
    fit_rank_weights,
    likelihood_loss,
    rank_weights,
)
from tagkin.paper.pairs import Pairs
from tagkin.paper.voting_records import TagPropVotes, on_some_image
from tagkin.records.forms import storable
from tagkin.transfer.neighbor_lists import distance_weights, on_host
from tagkin.transfer.neighbor_transfer import NeighborTransfer

__all__ = ["TagProp"]

WEIGHTS = ("rank", "distance")
_ROUNDS = 5  # of weights and sigmoids in turn; on Corel5k, the last lowers a loss of .41 by 2.5e-7


@storable
class TagProp(NeighborTransfer):
    """TagProp: f(I, t) = Σⱼ πⱼ y(j, t), with weights π that make the known labels most likely.

    The likelihood is that of each image's labels given its neighbours among the other labelled
    images. Present and absent labels have the same total weight. With sigmoids, P = σ(aₜ p + bₜ)
    raises rare labels and lowers frequent labels; a weak prior keeps their slopes moderate.

    Parameters
    ----------
    n_neighbors : int, default 100
        K; all images if there are fewer.
    weights : "rank" or "distance"
        A weight for each rank, π = softmax(−λₖ); or by distance, π = softmax(−λ d), λ ≥ 0.
    sigmoids : bool, default True
        Learn a sigmoid for each label.
    monotone : bool, default True
        Keep aₜ ≥ 0, so more votes never lower a label's score. Without it, the ranking of a label
        on few images can be reversed.
    metric : "cosine" or "euclidean"
        Distance between images.

    Attributes
    ----------
    rank_weights_ : array of shape (K,), or None
        π of the ranks.
    decay_ : float, or None
        λ of the distances.
    slopes_, offsets_ : arrays of shape (D,), or None
        aₜ and bₜ.
    loss_ : float
        −Σ c log P over all images and labels, c = 1/(2n₊) for a present and 1/(2n₋) for an absent
        label.

    Notes
    -----
    The defaults are the paper's. To rank the labels of an image, as an annotator does, consider
    ``weights="distance", sigmoids=False``: sigmoids raise rare labels, and without them each
    neighbour's contribution to a score is easy to see. Compare both on your own images.

    Present and absent labels have the same total weight, so scores with sigmoids are probabilities
    as if half of all labels were present. `predict_proba` corrects this: it multiplies the odds by
    n₊/n₋ of the known labels. The order of labels does not change. Without sigmoids the
    probability is the weighted share of the neighbours that have a label.

    `partial_fit` adds images and does not change weights and sigmoids. A label that gets its first
    images by `partial_fit` gets the median sigmoid of the others. With sigmoids, a
    label that was never on an image scores 0. If an image lacks neighbours (index −1), the weights
    of its other neighbours are scaled to a sum of 1, except while learning weights by rank. `fit`
    needs 16 bytes of memory (32 on an accelerator) for each label of a neighbour, N × K × labels
    per image, and 45 while it builds the table: 100,000 images with 200 neighbours and 3 labels
    each take 2.7 GB. If an accelerator's memory is too small, the weights are learned on the host.

    If several images are nearly the same, such as the shots of a burst, pass
    ``fit(X, y, groups=…)``. Otherwise the weights are learned from shots of the same burst, which
    have the same labels, and nearly all weight goes to the nearest image.

    References
    ----------
    Guillaumin, Mensink, Verbeek, Schmid. TagProp: discriminative metric learning in nearest
    neighbor models for image auto-annotation. ICCV, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.paper import TagProp
    >>> Z = np.array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])  # embeddings
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])  # labels
    >>> model = TagProp(n_neighbors=2).fit(Z, Y)
    >>> model.suggest(np.array([[1.0, 0.2]]), n=1)[0][0].label
    0
    """

    learns_from_neighbors = True

    model_: TagPropVotes

    rank_weights_ = property(attrgetter("model_.rank_weights"))
    decay_ = property(attrgetter("model_.decay"))
    slopes_ = property(attrgetter("model_.slopes"))
    offsets_ = property(attrgetter("model_.offsets"))
    loss_ = property(attrgetter("model_.loss"))

    def __init__(
        self,
        n_neighbors: int = 100,
        weights: str = "rank",
        *,
        sigmoids: bool = True,
        monotone: bool = True,
        metric: str = "cosine",
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.sigmoids = sigmoids
        self.monotone = monotone
        self.metric = metric

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        super().check_parameters()
        if not isinstance(self.weights, str) or self.weights not in WEIGHTS:
            raise InvalidInput(
                f"weights must be one of {', '.join(WEIGHTS)}; found {self.weights!r}."
            )

    def _learn(self, labels: scipy.sparse.csr_array, neighbors: Neighbors | None) -> TagPropVotes:
        assert neighbors is not None
        if not labels.nnz:
            raise InvalidInput(
                f"No labels: none of the {labels.shape[0]} images has any of the "
                f"{labels.shape[1]} labels. TagProp needs labelled images to learn weights."
            )
        k = int(self.n_neighbors)
        used = Neighbors(*(part[:, :k] for part in neighbors))
        with blas_threads_for(math.prod(neighbors.indices.shape)):  # products of vectors
            try:
                return self._maximize_likelihood(used, labels)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                return self._maximize_likelihood(on_host(used), labels)

    def _maximize_likelihood(
        self, neighbors: Neighbors, labels: scipy.sparse.csr_array
    ) -> TagPropVotes:
        """Fit weights and sigmoids of least loss, on the neighbours' device."""
        xp = namespace(neighbors.distances)
        distances = xp.astype(neighbors.distances, xp.float64)
        by_rank = self.weights == "rank"
        pairs = Pairs.of(neighbors.indices, labels, by_rank=by_rank)
        penalties, decay = np.zeros(neighbors.indices.shape[1]), 0.0

        def predict_votes() -> Array:
            pi = rank_weights(penalties) if by_rank else distance_weights(distances, decay)
            return pairs.votes(pi)

        def improve_weights(sigmoids: Sigmoids | None) -> None:
            nonlocal penalties, decay
            if by_rank:
                penalties = fit_rank_weights(pairs, penalties, sigmoids)
            else:
                decay = fit_distance_weights(pairs, distances, decay, sigmoids)

        sigmoids = None
        if not self.sigmoids:
            improve_weights(None)
        for _ in range(_ROUNDS if self.sigmoids else 0):
            sigmoids = fit_label_sigmoids(pairs, predict_votes(), sigmoids, monotone=self.monotone)
            improve_weights(sigmoids)
        if self.sigmoids:
            sigmoids = fit_label_sigmoids(pairs, predict_votes(), sigmoids, monotone=self.monotone)
        on_image = on_some_image(labels)
        return TagPropVotes(
            labels=labels,
            n_neighbors=int(self.n_neighbors),
            rank_weights=rank_weights(penalties) if by_rank else None,
            decay=None if by_rank else decay,
            slopes=None if sigmoids is None else np.where(on_image, sigmoids.slope, 0),
            offsets=None if sigmoids is None else np.where(on_image, sigmoids.offset, -np.inf),
            loss=likelihood_loss(predict_votes(), pairs, sigmoids)[0],
        )

    def _has_probabilities(self) -> bool:
        return True

    def _probabilities(self, scores: Array) -> Array:
        return self.model_.probabilities(scores)
