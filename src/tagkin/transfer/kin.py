"""Methods that let an image's neighbours speak for their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from tagkin.arrays import Array, like, namespace, row_blocks, to_numpy
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, NeighborIndex, Neighbors
from tagkin.neighbors.base import check_n_neighbors
from tagkin.transfer.base import LabelTransfer, as_labels, float_like, label_lists, widened

__all__ = ["Evidence", "NeighborTransfer"]


@dataclass(frozen=True)
class Evidence:
    """Why a label has its score for an image: the kin that carry it."""

    label: int
    """Column of Y."""
    score: float
    """The label's score; the shares add up to it."""
    indices: np.ndarray
    """The neighbours that carry the label, the largest share first; rows of what was fitted."""
    shares: np.ndarray
    """Each neighbour's share of the score."""
    distances: np.ndarray
    """How far each neighbour is."""


class NeighborTransfer(LabelTransfer):
    """What all methods by neighbours share.

    A method gives every neighbour a weight; the weights of those that carry a label add up to
    the label's votes, and votes become the score. Methods differ in `_weights` and `_scores`,
    and in what they learn for them from the neighbours of the labelled images (`_learn`).
    """

    n_neighbors: int
    metric: str
    index: NeighborIndex | None

    index_: NeighborIndex | None
    labels_: scipy.sparse.csr_array

    # --- learning ------------------------------------------------------------------------

    def fit(self, Z: Array, Y: Array = None) -> Self:
        """Take places Z (N×m) and labels Y (N×D), and learn what the method needs to."""
        self._check_parameters()
        places, labels = self._validated(Z, Y)
        index = self._fresh_index().fit(places)
        learned = self._learn(self._neighbors_of_fitted(index, places), labels)
        validate_data(self, Z, skip_check_array=True, reset=True)
        return self._keep(index, labels, learned)

    def partial_fit(self, Z: Array, Y: Array = None) -> Self:
        """Add images, perhaps with new labels, and learn nothing anew.

        Y has all columns known so far, and those of new labels after them; images from before
        do not carry those. A new label can be suggested at once.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(Z, Y)
        self._check_parameters()
        places = self._checked_queries(Z)
        labels = as_labels(Y, places.shape[0])
        known = self.labels_.shape[1]
        if labels.shape[1] < known:
            raise InvalidInput(
                f"Found {labels.shape[1]} labels where {known} are known. Pass all columns, with "
                "those of new labels at the end."
            )
        self._searchable().add(self._placed(places))
        old = widened(self.labels_, labels.shape[1])
        self.labels_ = scipy.sparse.vstack([old, labels], format="csr")
        self._widen(labels.shape[1])
        self.n_labels_ = labels.shape[1]
        return self

    def fit_neighbors(self, indices: Array, distances: Array, Y: Array) -> Self:
        """Learn from neighbours that are known already.

        Parameters
        ----------
        indices, distances : arrays of shape (N, k)
            Neighbours of each image among the others, nearest first, as `kneighbors` of
            `tagkin.neighbors` gives them; the first `n_neighbors` are used.
        Y : array of shape (N, D)

        Notes
        -----
        Without places there is nothing to search: use `score_neighbors` then.
        """
        self._check_parameters()
        n = np.shape(indices)[0] if np.ndim(indices) else 0
        labels = as_labels(Y, n)
        neighbors = self._checked_neighbors(indices, distances, labels.shape[0])
        learned = self._learn(neighbors, labels)
        if hasattr(self, "n_features_in_"):
            del self.n_features_in_
        return self._keep(None, labels, learned)

    def _keep(
        self, index: NeighborIndex | None, labels: scipy.sparse.csr_array, learned: dict[str, Any]
    ) -> Self:
        """Replace what was learned, when all of it has succeeded."""
        self.index_, self.labels_, self.n_labels_ = index, labels, labels.shape[1]
        for name, value in learned.items():
            setattr(self, name, value)
        return self

    def _neighbors_of_fitted(self, index: NeighborIndex, places: Array) -> Neighbors | None:
        """Neighbours of the labelled images among the others, for methods that learn from them."""
        return None

    def _training_neighbors(self, index: NeighborIndex, places: Array) -> Neighbors:
        n = places.shape[0]
        if n < 2:
            raise InvalidInput(
                f"Found {n} sample(s), that is images; {type(self).__name__} learns from the "
                "neighbours of each image among the others. Pass at least 2."
            )
        k = min(self.n_neighbors, n - 1)
        found = index.kneighbors(places, k, exclude=np.arange(n))
        return Neighbors(to_numpy(found.indices), to_numpy(found.distances))

    # --- using ---------------------------------------------------------------------------

    def kneighbors(self, Z: Array) -> Neighbors:
        """The neighbours that speak for each image: `n_neighbors`, or all if there are fewer."""
        places = self._checked_queries(Z)
        index = self._searchable()
        return index.kneighbors(places, min(self.n_neighbors, index.n_points_))

    def score_neighbors(self, indices: Array, distances: Array) -> Array:
        """Score of every label, shape (n, D), given the neighbours.

        Parameters
        ----------
        indices, distances : arrays of shape (n, k)
            Nearest first; the first `n_neighbors` are used. Index −1 stands for none.
        """
        self._check_fitted()
        self._check_parameters()
        found = self._cut(self._checked_neighbors(indices, distances, self.labels_.shape[0]))
        scores = float_like(self._finished(self._scored(found)), distances)
        return scores if isinstance(distances, np.ndarray) else like(scores, distances)

    def decision_function(self, Z: Array) -> Array:
        """Score of every label for every image, shape (n, D)."""
        places = self._checked_queries(Z)
        self._check_parameters()
        parts = [
            self._scored(_on_host(self.kneighbors(places[rows])))
            for rows in row_blocks(places.shape[0], 16 * self.n_labels_ + 2**14)
        ]
        scores = float_like(self._finished(np.concatenate(parts)), places)
        if isinstance(places, np.ndarray):
            return scores
        xp = namespace(places)
        return xp.asarray(scores, device=places.device)

    def explain(self, Z: Array, labels: Any) -> list[list[Evidence]]:
        """Which neighbours speak for each label, and how much of its score each one gives.

        Parameters
        ----------
        Z : array of shape (n, m)
        labels : one list of labels for all images, or a list for each
            Columns of Y, or what `suggest` returned.

        Returns
        -------
        evidence : for each image, one `Evidence` a label
            Shares are the neighbours' weights, scaled to add up to the score. A label that none
            of the neighbours carries has no evidence: its lists are empty.
        """
        found = _on_host(self.kneighbors(Z))
        wanted = label_lists(labels, len(found.indices), self.n_labels_)
        self._check_parameters()
        weights = self._weights(found)
        scores = float_like(self._scores(self._votes(found, weights), found), found.distances)
        return [
            [
                self._evidence(t, scores[i, t], found.indices[i], found.distances[i], weights[i])
                for t in wanted[i]
            ]
            for i in range(len(wanted))
        ]

    def _evidence(
        self,
        label: int,
        score: float,
        indices: np.ndarray,
        distances: np.ndarray,
        weights: np.ndarray,
    ) -> Evidence:
        carries = self.labels_[np.maximum(indices, 0)][:, [label]].toarray()[:, 0] != 0
        speaking = np.flatnonzero(carries & (indices >= 0) & (weights > 0))
        speaking = speaking[np.argsort(-weights[speaking], kind="stable")]
        part = weights[speaking]
        shares = float(score) * part / part.sum() if len(part) else part
        return Evidence(int(label), float(score), indices[speaking], shares, distances[speaking])

    def describe(self) -> list[str]:
        """What this model is, in a few sentences."""
        n, d = self.labels_.shape
        return [
            f"Passes {d:,} labels on from {n:,} images that carry {self.labels_.nnz:,}.",
            f"Each image is spoken for by its {min(self.n_neighbors, n):,} nearest neighbours "
            f"({self.metric}).",
        ]

    # --- for those who write a method ----------------------------------------------------

    def _check_parameters(self) -> None:
        check_n_neighbors(self.n_neighbors, np.inf)

    def _learn(self, neighbors: Neighbors | None, labels: scipy.sparse.csr_array) -> dict[str, Any]:
        """Fitted attributes, from the neighbours (N×k) of labelled images among the others."""
        return {}

    def _placed(self, places: Array) -> Array:
        """Places as they are searched."""
        return places

    def _widen(self, n_labels: int) -> None:
        """Make room for labels that were added."""

    def _weights(self, found: Neighbors) -> np.ndarray:
        """What each neighbour's voice counts, shape (n, k), in float64; 0 for none."""
        raise NotImplementedError

    def _scores(self, votes: np.ndarray, found: Neighbors) -> np.ndarray:
        """Scores from votes (n×D), which may be changed in place."""
        return votes

    def _finished(self, scores: np.ndarray) -> np.ndarray:
        """Scores of all images of a call, where they depend on each other."""
        return scores

    def _scored(self, found: Neighbors) -> np.ndarray:
        out = np.empty((len(found.indices), self.n_labels_))
        width = found.indices.shape[1]
        for rows in row_blocks(len(out), 48 * width + 32 * self.n_labels_):
            block = Neighbors(found.indices[rows], found.distances[rows])
            out[rows] = self._scores(self._votes(block, self._weights(block)), block)
        return out

    def _votes(self, found: Neighbors, weights: np.ndarray) -> np.ndarray:
        """Σₖ wₖ y(k, t), shape (n, D)."""
        n, k = found.indices.shape
        speakers = scipy.sparse.csr_array(
            (weights.ravel(), np.maximum(found.indices, 0).ravel(), np.arange(0, n * k + 1, k)),
            shape=(n, self.labels_.shape[0]),
        )
        return (speakers @ self.labels_).toarray()

    def _cut(self, found: Neighbors) -> Neighbors:
        """The neighbours that speak, of those given."""
        return Neighbors(*(part[:, : self.n_neighbors] for part in found))

    @staticmethod
    def _checked_neighbors(indices: Array, distances: Array, n_points: int) -> Neighbors:
        indices, distances = to_numpy(indices), to_numpy(distances)
        if indices.ndim != 2 or indices.shape != distances.shape or not indices.shape[1]:
            raise InvalidInput(
                "indices and distances must be of one shape (images × neighbours); found "
                f"{indices.shape} and {distances.shape}."
            )
        if indices.dtype.kind not in "iu":
            raise InvalidInput(f"indices must be whole numbers; found {indices.dtype}.")
        if indices.size and not -1 <= indices.min() <= indices.max() < n_points:
            raise InvalidInput(
                f"Found a neighbour with index {int(indices.max())} among {n_points} images. "
                "Indices are rows of the images that were fitted."
            )
        if np.isnan(distances).any():
            raise InvalidInput("Found NaN among the distances to neighbours.")
        return Neighbors(indices.astype(np.int64, copy=False), distances)

    def _fresh_index(self) -> NeighborIndex:
        if self.index is None:
            return ExactNeighbors(self.metric)
        if not isinstance(self.index, (ExactNeighbors, NeighborIndex)) and not hasattr(
            self.index, "kneighbors"
        ):
            raise InvalidInput(f"index must be an index of tagkin.neighbors; found {self.index!r}.")
        return clone(self.index)

    def _searchable(self) -> NeighborIndex:
        self._check_fitted()
        if self.index_ is None:
            raise NotFittedError(
                f"This {type(self).__name__} was fitted from neighbours and has no places to "
                "search. Use score_neighbors(indices, distances), or fit(Z, Y)."
            )
        return self.index_


def _on_host(found: Neighbors) -> Neighbors:
    return Neighbors(to_numpy(found.indices), to_numpy(found.distances))


def first_of_each(codes: np.ndarray) -> np.ndarray:
    """Where a value occurs for the first time in its row, for codes of shape (n, k)."""
    order = np.argsort(codes, axis=1, kind="stable")
    ordered = np.take_along_axis(codes, order, axis=1)
    fresh = np.ones(codes.shape, dtype=bool)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.empty_like(fresh)
    np.put_along_axis(first, order, fresh, axis=1)
    return first
