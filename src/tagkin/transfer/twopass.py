"""2PKNN: a neighbourhood in which every label has its say."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from tagkin.arrays import Array, like, namespace, row_blocks, to_numpy
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.neighbors.base import check_n_neighbors, unit_rows
from tagkin.transfer._likelihood import rows_of
from tagkin.transfer._margins import learn_dimension_weights
from tagkin.transfer.base import check_number
from tagkin.transfer.kin import NeighborTransfer, first_of_each

__all__ = ["TwoPassKNN"]

FORMS = ("paper", "authors")
_SAMPLE = 1000  # images that metric learning looks at


class TwoPassKNN(NeighborTransfer):
    """2PKNN: f(I, t) = Σ exp(−w d(I, Iⱼ)) y(j, t) over a balanced neighbourhood.

    Pass 1 collects for every label the K₁ nearest images that carry it; pass 2 lets their union
    speak, the nearer the louder. Rare labels are heard as frequent ones are.

    Parameters
    ----------
    n_per_label : int, default 2
        K₁; all images with a label where there are fewer.
    decay : float, default 1.0
        w. The authors try 1 to 30 with their form.
    form : "paper" or "authors"
        The paper's bare distance; or, as the authors' code has it, the distance less the least
        of the neighbourhood, over the mean of those, and each image's scores divided by their
        sum.
    label_maximum : bool, default False
        Divide each label's scores by their maximum over the images of one call, as the authors'
        code does over the test set. An image's scores then depend on the others in the call.
    metric_learning : bool, default False
        2PKNN-ML: learn a weight for each dimension, so that images with common labels come
        nearer than others by a margin; distances are then weighted squared Euclidean ones.
    metric : "cosine" or "euclidean"
        How far images are apart. With metric learning the cosine stands for places of unit
        length.
    random_state : int or None
        Seed of the sample of images that metric learning uses.

    Attributes
    ----------
    dimension_weights_ : array of shape (m,), or None
        Learned weights, of mean 1.
    labels_ : CSR array of shape (N, D)
        The labels that pass to others.
    n_labels_ : int
        D.

    Notes
    -----
    `score_neighbors` runs both passes within the lists that it is given; lists that hold the
    whole of pass 1, as from `kneighbors`, give the scores of `decision_function`.

    References
    ----------
    Verma, Jawahar. Image annotation using metric learning in semantic neighbourhoods. ECCV, 2012.
    """

    dimension_weights_: np.ndarray | None

    def __init__(
        self,
        n_per_label: int = 2,
        decay: float = 1.0,
        form: str = "paper",
        label_maximum: bool = False,
        metric_learning: bool = False,
        metric: str = "cosine",
        random_state: int | None = None,
    ):
        self.n_per_label = n_per_label
        self.decay = decay
        self.form = form
        self.label_maximum = label_maximum
        self.metric_learning = metric_learning
        self.metric = metric
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_n_neighbors(self.n_per_label, np.inf)
        check_number("decay", self.decay, above=0)
        if not isinstance(self.form, str) or self.form not in FORMS:
            raise InvalidInput(f"form must be one of {', '.join(FORMS)}; found {self.form!r}.")

    # --- learning ------------------------------------------------------------------------

    def fit(self, Z: Array, Y: Array = None) -> Self:
        """Take places Z (N×m) and labels Y (N×D); with metric learning, learn weights."""
        self._check_parameters()
        places, labels = self._validated(Z, Y)
        weights = None
        if self.metric_learning:
            weights = self._learned_weights(places, labels)
        index = ExactNeighbors("euclidean" if self.metric_learning else self.metric)
        index.fit(self._placed(places, weights))
        validate_data(self, Z, skip_check_array=True, reset=True)
        return self._keep(index, labels, {"dimension_weights_": weights})

    def _learn(self, neighbors: Neighbors | None, labels: scipy.sparse.csr_array) -> dict[str, Any]:
        if self.metric_learning:
            raise InvalidInput(
                "Metric learning needs the places of the images, not only their neighbours: use "
                "fit(Z, Y), or metric_learning=False."
            )
        return {"dimension_weights_": None}

    def _learned_weights(self, places: Array, labels: scipy.sparse.csr_array) -> np.ndarray:
        """Weights from the balanced neighbourhoods of a sample of the images with labels."""
        flat = to_numpy(self._placed(places, np.ones(places.shape[1])))
        labelled = np.flatnonzero(np.diff(labels.indptr))
        rng = np.random.default_rng(self.random_state)
        sample = np.sort(rng.permutation(labelled)[:_SAMPLE])
        if not len(sample):
            return np.ones(places.shape[1])
        index = ExactNeighbors("euclidean").fit(flat)
        # one more, since each image is the nearest to itself
        found = self._balanced(index, flat[sample], labels, self.n_per_label + 1)
        return learn_dimension_weights(flat, labels, sample, found)

    def _placed(self, places: Array, weights: np.ndarray | None = None) -> Array:
        """Places as they are searched: with learned weights, each dimension times its root."""
        weights = getattr(self, "dimension_weights_", None) if weights is None else weights
        if weights is None:
            return places
        xp = namespace(places)
        if self.metric == "cosine":
            places = unit_rows(places, "Z")
        return places * like(np.sqrt(weights), xp.astype(places[:1], xp.float64))

    # --- pass 1 --------------------------------------------------------------------------

    def kneighbors(self, Z: Array) -> Neighbors:
        """Pass 1: the union of the `n_per_label` nearest images of every label, nearest first.

        Lists are as long as the longest; shorter ones end with index −1 at distance ∞.
        """
        places = self._placed(self._checked_queries(Z))
        index = self._searchable()
        assert isinstance(index, ExactNeighbors)
        found = self._balanced(index, places, self.labels_, self.n_per_label)
        if self.metric_learning:
            found = Neighbors(found.indices, found.distances**2)
        if isinstance(places, np.ndarray):
            return found
        xp = namespace(places)
        return Neighbors(*(xp.asarray(part, device=places.device) for part in found))

    @staticmethod
    def _balanced(
        index: ExactNeighbors, queries: Array, labels: scipy.sparse.csr_array, n_per_label: int
    ) -> Neighbors:
        by_label = labels.tocsc()
        by_label.sort_indices()
        groups = [g for g in np.split(by_label.indices, by_label.indptr[1:-1]) if len(g)]
        width = sum(min(n_per_label, len(group)) for group in groups)
        parts = []
        for rows in row_blocks(queries.shape[0], 64 * max(width, 1)):
            found = index.kneighbors_by_group(queries[rows], groups, n_per_label)
            parts.append(_union([Neighbors(*map(to_numpy, one)) for one in found], rows))
        return _stacked(parts)

    def _cut(self, found: Neighbors) -> Neighbors:
        """Pass 1 within the lists that are given."""
        (n, k), d = found.indices.shape, self.labels_.shape[1]
        carried = rows_of(self.labels_, found.indices.ravel())
        slot = np.repeat(np.arange(n * k), np.diff(carried.indptr))
        key = slot // k * d + carried.indices
        order = np.argsort(key, kind="stable")  # by image and label, the nearest first
        fresh = np.flatnonzero(np.diff(key[order], prepend=-1))
        place = np.arange(len(key)) - np.repeat(fresh, np.diff(np.append(fresh, len(key))))
        speaking = np.zeros(n * k, dtype=bool)
        speaking[slot[order][place < self.n_per_label]] = True
        return _compressed(found, speaking.reshape(n, k))

    # --- pass 2 --------------------------------------------------------------------------

    def _weights(self, found: Neighbors) -> np.ndarray:
        there = found.indices >= 0
        distances = np.where(there, found.distances.astype(np.float64), 0)
        if self.form == "authors":
            least = np.where(there, distances, np.inf).min(axis=1, keepdims=True, initial=np.inf)
            distances -= np.where(np.isfinite(least), least, 0)
            mean = (distances * there).sum(axis=1, keepdims=True)
            mean /= np.maximum(there.sum(axis=1, keepdims=True), 1)
            distances /= np.where(mean > 0, mean, 1)
        return np.exp(-self.decay * distances) * there

    def _scores(self, votes: np.ndarray, found: Neighbors) -> np.ndarray:
        if self.form == "authors":
            total = votes.sum(axis=1, keepdims=True)
            votes /= np.where(total > 0, total, 1)
        return votes

    def _finished(self, scores: np.ndarray) -> np.ndarray:
        if self.label_maximum and len(scores):
            most = scores.max(axis=0)
            scores = scores / np.where(most > 0, most, 1)
        return scores

    def describe(self) -> list[str]:
        """What this model is, in a few sentences."""
        n, d = self.labels_.shape
        return [
            f"Passes {d:,} labels on from {n:,} images that carry {self.labels_.nnz:,}.",
            f"Each image is spoken for by the {self.n_per_label} nearest of every label.",
        ]


def _union(groups: list[Neighbors], rows: slice) -> Neighbors:
    """Each query's neighbours from all groups, every one once, nearest first."""
    if not groups:
        n = rows.stop - rows.start
        return Neighbors(np.full((n, 1), -1), np.full((n, 1), np.inf))
    indices = np.concatenate([group.indices for group in groups], axis=1)
    distances = np.concatenate([group.distances for group in groups], axis=1)
    order = np.lexsort((indices, distances), axis=1)
    found = Neighbors(*(np.take_along_axis(part, order, axis=1) for part in (indices, distances)))
    return _compressed(found, first_of_each(found.indices))


def _compressed(found: Neighbors, kept: np.ndarray) -> Neighbors:
    """Lists of those kept (n×k), in the order that they have, filled up with index −1."""
    width = max(int(kept.sum(axis=1).max(initial=0)), 1)
    order = np.argsort(~kept, axis=1, kind="stable")[:, :width]
    kept = np.take_along_axis(kept, order, axis=1)
    indices, distances = (np.take_along_axis(part, order, axis=1) for part in found)
    return Neighbors(np.where(kept, indices, -1), np.where(kept, distances, np.inf))


def _stacked(parts: list[Neighbors]) -> Neighbors:
    """Lists of different lengths, one above the other."""
    width = max(part.indices.shape[1] for part in parts)

    def filled(part: np.ndarray, value: float) -> np.ndarray:
        return np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=value)

    return Neighbors(
        np.concatenate([filled(part.indices, -1) for part in parts]),
        np.concatenate([filled(part.distances, np.inf) for part in parts]),
    )
