"""2PKNN: voting in a neighbourhood that represents every label."""

from __future__ import annotations

from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from tagkin.arrays import Array, as_block, check_groups, namespace, row_blocks
from tagkin.arrays.labels import label_names
from tagkin.arrays.records import storable
from tagkin.arrays.rules import Floats
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, NeighborIndex, Neighbors
from tagkin.neighbors.base import check_metric, check_n_neighbors, compressed, unit_rows
from tagkin.transfer._lists import (
    first_of_each,
    label_rows,
    nearest_first,
    on_device_of,
    on_host,
    on_host_or_accelerator,
    stack_lists,
)
from tagkin.transfer.base import check_positive
from tagkin.transfer.margins import learn_dimension_weights, sample_size
from tagkin.transfer.neighbor_transfer import NeighborTransfer

__all__ = ["TwoPassKNN", "balanced_neighbors"]

FORMS = ("paper", "authors")
_MOST_OF_A_GROUP = 20  # images that metric learning skips


@storable
class TwoPassKNN(NeighborTransfer):
    """2PKNN: f(I, t) = Σ exp(−w d(I, Iⱼ)) y(j, t) over a balanced neighbourhood.

    Pass 1 collects the K₁ nearest images of every label. Pass 2 adds up their labels, with more
    weight for nearer images. Rare and frequent labels are represented equally.

    Parameters
    ----------
    n_per_label : int, default 2
        K₁; all images with a label if there are fewer.
    decay : float, default 1.0
        w. The authors try 1 to 30 with their form.
    form : "paper" or "authors"
        The paper's plain distance; or, as in the authors' code, the distance minus the least
        distance of the neighbourhood, divided by the mean of these differences, with each image's
        scores divided by their sum.
    label_maximum : bool, default False
        Divide each label's scores by their maximum over the images of a call, as the authors'
        code does over the test set. An image's scores then depend on the other images.
    metric_learning : bool, default False
        2PKNN-ML: learn a weight for each dimension that brings images with common labels nearer
        than others by a margin. Distances are then weighted squared Euclidean distances.
    metric : "cosine" or "euclidean"
        Distance between images. With metric learning, "cosine" scales embeddings to unit
        length.
    random_state : int or None, default 0
        Seed of metric learning's sample of images.

    Attributes
    ----------
    dimension_weights_ : array of shape (m,), or None
        Learned weights, of mean 1.
    labels_ : CSR array of shape (N, D)
        Labels of the fitted images.
    n_labels_ : int
        D.
    classes_ : array of shape (D,)
        Names of the labels (columns of a DataFrame y), or column numbers.

    Notes
    -----
    Lists of neighbours are as long as the longest; shorter lists end with index −1 at distance ∞.
    `score_neighbors` runs both passes within its lists. Lists that contain all of pass 1, such as
    from `kneighbors`, give the scores of `decision_function`.

    References
    ----------
    Verma, Jawahar. Image annotation using metric learning in semantic neighbourhoods. ECCV, 2012.
    """

    dimension_weights_: Annotated[np.ndarray | None, Floats("m", low=0).kept_on_host()]

    def __init__(
        self,
        n_per_label: int = 2,
        decay: float = 1.0,
        form: str = "paper",
        label_maximum: bool = False,
        metric_learning: bool = False,
        metric: str = "cosine",
        random_state: int | None = 0,
    ):
        self.n_per_label = n_per_label
        self.decay = decay
        self.form = form
        self.label_maximum = label_maximum
        self.metric_learning = metric_learning
        self.metric = metric
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        check_n_neighbors(self.n_per_label, np.inf)
        check_positive("decay", self.decay)
        if not isinstance(self.form, str) or self.form not in FORMS:
            raise InvalidInput(f"form must be one of {', '.join(FORMS)}; found {self.form!r}.")

    # --- learning ------------------------------------------------------------------------

    @property
    def needs_embeddings(self) -> bool:
        """Whether a metric is learned from embeddings."""
        return bool(self.metric_learning)

    def fit(self, X: Array, y: Any = None, *, groups: Array | None = None) -> Self:
        """Store embeddings X (N×m) and labels y (N×D); with metric learning, learn weights.

        If it fails, the model does not change. With `groups` (N,), metric learning ignores
        neighbours in an image's own group.
        """
        self.check_parameters()
        embeddings, labels = self._validated(X, y)
        names = label_names(y)
        weights = None
        if self.metric_learning:
            weights = self._learn_weights(embeddings, labels, groups)
        index = ExactNeighbors(self.metric if weights is None else "euclidean")
        index.fit(self._apply_weights(embeddings, weights))
        validate_data(self, X, skip_check_array=True, reset=True)
        return self._keep(index, labels, {"dimension_weights_": weights}, names)

    def _learn(self, neighbors: Neighbors | None, labels: scipy.sparse.csr_array) -> dict[str, Any]:
        if self.metric_learning:
            raise InvalidInput(
                "Metric learning needs embeddings, not only neighbours. Use fit(X, y), or "
                "metric_learning=False."
            )
        return {"dimension_weights_": None}

    def _learn_weights(
        self, embeddings: Array, labels: scipy.sparse.csr_array, groups: Array | None
    ) -> np.ndarray:
        """Learn weights from the balanced neighbourhoods of a sample of labelled images."""
        check_metric(self.metric)
        unweighted = self._apply_weights(embeddings, np.ones(embeddings.shape[1]))
        labelled = np.flatnonzero(np.diff(labels.indptr))
        rng = np.random.default_rng(self.random_state)
        sample = np.sort(rng.permutation(labelled)[: sample_size(embeddings.shape[1])])
        if not len(sample):
            return np.ones(embeddings.shape[1])
        n = embeddings.shape[0]
        codes = np.arange(n) if groups is None else check_groups(groups, n)
        # more than needed, because the image itself and its group are the nearest
        n_more = min(int(np.bincount(codes).max()), _MOST_OF_A_GROUP)
        index = ExactNeighbors("euclidean").fit(unweighted)
        queries = unweighted[on_device_of(sample, unweighted)]
        n_near = self.n_per_label + n_more
        neighbors = on_host(balanced_neighbors(index, queries, labels, n_near))
        others = (neighbors.indices >= 0) & (codes[neighbors.indices] != codes[sample][:, None])
        return learn_dimension_weights(unweighted, labels, sample, compressed(neighbors, others))

    def _as_searched(self, embeddings: Array) -> Array:
        return self._apply_weights(embeddings, self.dimension_weights_)

    def _apply_weights(self, embeddings: Array, weights: np.ndarray | None) -> Array:
        """Multiply each dimension by the root of its weight, if weights were learned."""
        if weights is None:
            return embeddings
        if self.metric == "cosine":
            embeddings = unit_rows(embeddings, "X")
        return as_block(embeddings, double=True) * on_device_of(np.sqrt(weights), embeddings)

    # --- pass 1 --------------------------------------------------------------------------

    def _neighbors_of(self, index: NeighborIndex, embeddings: Array) -> Neighbors:
        """Return the union of the `n_per_label` nearest images of every label, nearest first."""
        assert isinstance(index, ExactNeighbors)
        neighbors = balanced_neighbors(
            index, self._as_searched(embeddings), self.labels_, self.n_per_label
        )
        if self.dimension_weights_ is None:
            return neighbors
        return Neighbors(neighbors.indices, neighbors.distances**2)

    def _list_length(self) -> int:
        carriers = np.bincount(self.labels_.indices, minlength=1)
        return min(int(np.minimum(carriers, self.n_per_label).sum()), self.labels_.shape[0])

    def _used_neighbors(self, neighbors: Neighbors) -> Neighbors:
        """Run pass 1 within known neighbours."""
        (n, k), d = neighbors.indices.shape, self.labels_.shape[1]
        neighbor_labels = label_rows(self.labels_, neighbors.indices.ravel())
        slot = np.repeat(np.arange(n * k), np.diff(neighbor_labels.indptr))
        key = slot // k * d + neighbor_labels.indices
        order = np.argsort(key, kind="stable")  # by image and label, the nearest first
        fresh = np.flatnonzero(np.diff(key[order], prepend=-1))
        rank = np.arange(len(key)) - np.repeat(fresh, np.diff(np.append(fresh, len(key))))
        used = np.zeros(n * k, dtype=bool)
        used[slot[order][rank < self.n_per_label]] = True
        return compressed(neighbors, used.reshape(n, k))

    # --- pass 2 --------------------------------------------------------------------------

    def _weights(self, neighbors: Neighbors) -> Array:
        xp = namespace(neighbors.indices)
        there = neighbors.indices >= 0
        distances = xp.astype(neighbors.distances, xp.float64)
        zeros = xp.zeros_like(distances)
        distances = xp.where(there, distances, zeros)
        if self.form == "authors":
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
        if self.form == "authors":
            xp = namespace(votes)
            total = xp.sum(votes, axis=1, keepdims=True)
            votes /= xp.where(total > 0, total, xp.ones_like(total))
        return votes

    def _rescale(self, scores: Array) -> Array:
        if self.label_maximum:
            xp = namespace(scores)
            most = xp.max(scores, axis=0)
            scores /= xp.where(most > 0, most, xp.ones_like(most))
        return scores

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
        by_group = index.kneighbors_by_group(queries[rows], groups, n_per_label)
        parts.append(
            _union([on_host_or_accelerator(part) for part in by_group], rows.stop - rows.start)
        )
    return stack_lists(parts)


def _union(groups: list[Neighbors], n_queries: int) -> Neighbors:
    """Merge each query's neighbours from all groups, without repeats, nearest first."""
    if not groups:
        return Neighbors(np.full((n_queries, 1), -1), np.full((n_queries, 1), np.inf))
    xp = namespace(groups[0].indices)
    indices = xp.concat([group.indices for group in groups], axis=1)
    distances = xp.concat([group.distances for group in groups], axis=1)
    neighbors = nearest_first(Neighbors(indices, distances))
    return compressed(neighbors, first_of_each(neighbors.indices))
