"""Methods that let an image's neighbours speak for their labels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from tagkin.arrays import (
    Array,
    as_block,
    block_rows,
    like,
    namespace,
    on_accelerator,
    row_blocks,
    weighted_rows,
)
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, NeighborIndex, Neighbors
from tagkin.neighbors.base import check_n_neighbors
from tagkin.transfer._lists import beside, checked_neighbors, on_host, where_used
from tagkin.transfer.base import LabelTransfer, label_lists, score_dtype, widened
from tagkin.wording import count

__all__ = ["Evidence", "NeighborTransfer"]


# Labels as accelerators read them, made at first use; no part of a model.
_TABLES: WeakKeyDictionary[LabelTransfer, tuple[Any, Any]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Evidence:
    """Why a label has its score for an image: the kin that carry it."""

    label: int
    """Column of Y."""
    score: float
    """The label's score; the shares add up to it."""
    indices: np.ndarray
    """The neighbours that carry the label, the heaviest first; rows of what was fitted."""
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
        """Take places Z (N×m) and labels Y (N×D), and learn what the method needs to.

        If it fails, what was learned before stays.
        """
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
        index = self._searchable()
        places = self._checked_queries(Z)
        added = self._as_labels(Y, places.shape[0])
        known = self.labels_.shape[1]
        if added.shape[1] < known:
            raise InvalidInput(
                f"Found {added.shape[1]} labels where {known} are known. Pass all columns, with "
                "those of new labels at the end."
            )
        old = widened(self.labels_, added.shape[1])
        labels = scipy.sparse.vstack([old, added], format="csr")
        learned = self._widened(added)
        index.add(self._placed(places))
        return self._keep(index, labels, learned)

    def relabel(self, Y: Array) -> Self:
        """Give the images that were fitted other labels Y (N×D), and learn nothing anew.

        D stays as it is: `partial_fit` brings new labels.
        """
        self._check_fitted()
        labels = self._as_labels(Y, self.labels_.shape[0])
        if labels.shape[1] != self.n_labels_:
            raise InvalidInput(
                f"Found {labels.shape[1]} labels where {self.n_labels_} are known. Pass the same "
                "columns; partial_fit adds new ones."
            )
        return self._keep(self.index_, labels, self._widened(labels))

    def fit_neighbors(self, indices: Array, distances: Array, Y: Array) -> Self:
        """Learn from neighbours that are known already.

        Parameters
        ----------
        indices, distances : arrays of shape (N, k)
            Neighbours of each image among the others, nearest first, as `kneighbors` of
            `tagkin.neighbors` gives them; the first `n_neighbors` are used. Index −1 stands for
            none.
        Y : array of shape (N, D)

        Notes
        -----
        Without places there is nothing to search: use `score_neighbors` then.
        """
        self._check_parameters()
        n = np.shape(indices)[0] if np.ndim(indices) else 0
        labels = self._as_labels(Y, n)
        learned = self._learn(checked_neighbors(indices, distances, n), labels)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
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

    # --- using ---------------------------------------------------------------------------

    def kneighbors(self, Z: Array) -> Neighbors:
        """The neighbours that speak for each image: `n_neighbors`, or all if there are fewer.

        Where an approximate index finds fewer, lists end with index −1 at distance ∞.
        """
        self._check_parameters()
        index = self._searchable()
        places = self._checked_queries(Z)
        found = self._found(index, places)
        return Neighbors(*(beside(part, places) for part in found))

    def nearest(self, Z: Array, n_neighbors: int) -> Neighbors:
        """The nearest of all images that were fitted, whatever they carry, on the host.

        Distances are those of the search: by `metric`, or with learned weights Euclidean.
        """
        index = self._searchable()
        places = self._placed(self._checked_queries(Z))
        check_n_neighbors(n_neighbors, np.inf)
        return on_host(index.kneighbors(places, min(int(n_neighbors), index.n_points_)))

    def score_neighbors(self, indices: Array, distances: Array) -> Array:
        """Score of every label, shape (n, D), given the neighbours.

        Parameters
        ----------
        indices, distances : arrays of shape (n, k)
            Nearest first; the first `n_neighbors` are used. Index −1 stands for none.
        """
        self._check_fitted()
        self._check_parameters()
        found = checked_neighbors(indices, distances, self.labels_.shape[0])
        scores = np.empty((len(found.indices), self.n_labels_), score_dtype(found.distances))
        for rows in row_blocks(len(scores), self._bytes_per_image(found.indices.shape[1])):
            some = self._cut(Neighbors(found.indices[rows], found.distances[rows]))
            scores[rows], _ = self._scored(some)
        return beside(self._finished(scores), distances)

    def decision_function(self, Z: Array) -> Array:
        """Score of every label for every image, shape (n, D)."""
        self._check_parameters()
        index = self._searchable()
        places = self._checked_queries(Z)
        scores = _empty_scores(places, self.n_labels_)
        for rows, found in self._found_in_blocks(index, places):
            scores[rows] = beside(self._scored(found)[0], scores)
        return beside(self._finished(scores), places)

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
        self._check_parameters()
        index = self._searchable()
        places = self._checked_queries(Z)
        return self._explained(
            self._found_in_blocks(index, places), places.shape[0], score_dtype(places), labels
        )

    def explain_neighbors(
        self, indices: Array, distances: Array, labels: Any
    ) -> list[list[Evidence]]:
        """As `explain`, given the neighbours (n×k), as `score_neighbors` takes them."""
        self._check_fitted()
        self._check_parameters()
        found = checked_neighbors(indices, distances, self.labels_.shape[0])
        n, k = found.indices.shape
        blocks = (
            (rows, self._cut(Neighbors(found.indices[rows], found.distances[rows])))
            for rows in row_blocks(n, self._bytes_per_image(k))
        )
        return self._explained(blocks, n, score_dtype(found.distances), labels)

    def _explained(
        self, blocks: Iterable[tuple[slice, Neighbors]], n: int, dtype: np.dtype, labels: Any
    ) -> list[list[Evidence]]:
        wanted = label_lists(labels, n, self.n_labels_)
        scores = np.empty((n, self.n_labels_), dtype)
        voices: list[list[Evidence]] = []
        for rows, listed in blocks:
            found = on_host(listed)
            scores[rows], weights = self._scored(found)
            for i, asked in enumerate(wanted[rows]):
                one = Neighbors(found.indices[i], found.distances[i])
                voices.append(self._voices(one, weights[i], asked))
        scores = self._finished(scores)
        return [
            [_with_score(voice, float(scores[i, voice.label])) for voice in asked]
            for i, asked in enumerate(voices)
        ]

    def _voices(self, found: Neighbors, weights: np.ndarray, labels: list[int]) -> list[Evidence]:
        """For each label the neighbours (k,) of one image that carry it, with their weights."""
        speaking = np.flatnonzero((found.indices >= 0) & (weights > 0))
        carried = self.labels_[found.indices[speaking]].tocsc()
        evidence = []
        for t in labels:
            entries = slice(carried.indptr[t], carried.indptr[t + 1])
            carriers = speaking[carried.indices[entries]]
            voice = weights[carriers] * carried.data[entries]
            order = np.lexsort((carriers, -voice))
            carriers = carriers[order]
            parts = found.indices[carriers], voice[order], found.distances[carriers]
            evidence.append(Evidence(t, np.nan, *parts))
        return evidence

    def describe(self) -> list[str]:
        """What this model is, in a few sentences."""
        n, d = self.labels_.shape
        return [
            f"Passes {count(d, 'label')} on from {count(n, 'image')} with "
            f"{count(self.labels_.nnz, 'label')} in all.",
            self._describe_neighbors(),
        ]

    # --- for those who write a method ----------------------------------------------------

    def _check_parameters(self) -> None:
        check_n_neighbors(self.n_neighbors, np.inf)

    def _describe_neighbors(self) -> str:
        metric = getattr(self.index_, "metric", self.metric)
        k = min(self.n_neighbors, self.labels_.shape[0])
        return f"Labels come from the {count(k, 'nearest neighbour')} of an image ({metric})."

    def _learn(self, neighbors: Neighbors | None, labels: scipy.sparse.csr_array) -> dict[str, Any]:
        """Fitted attributes, from the neighbours (N×k) of labelled images among the others."""
        return {}

    def _widened(self, added: scipy.sparse.csr_array) -> dict[str, Any]:
        """Fitted attributes with room for the labels of images that are added or relabelled."""
        return {}

    def _placed(self, places: Array) -> Array:
        """Places as they are searched."""
        return places

    def _found(self, index: NeighborIndex, places: Array) -> Neighbors:
        """The neighbours that speak, on the host or on an accelerator."""
        return where_used(index.kneighbors(places, min(self.n_neighbors, index.n_points_)))

    def _cut(self, found: Neighbors) -> Neighbors:
        """The neighbours that speak, of those given."""
        return Neighbors(*(part[:, : self.n_neighbors] for part in found))

    @abstractmethod
    def _weights(self, found: Neighbors) -> Array:
        """What each neighbour's voice counts, shape (n, k), in float64; 0 for none."""

    def _scores(self, votes: Array, found: Neighbors) -> Array:
        """Scores from votes (n×D), which may be changed in place."""
        return votes

    def _finished(self, scores: Array) -> Array:
        """Scores of all images of a call, where they depend on each other."""
        return scores

    def _list_length(self) -> int:
        """How many neighbours speak for an image, at most."""
        return min(self.n_neighbors, self.labels_.shape[0])

    def _found_in_blocks(
        self, index: NeighborIndex, places: Array
    ) -> Iterator[tuple[slice, Neighbors]]:
        per_image = self._bytes_per_image(self._list_length())
        for rows in row_blocks(places.shape[0], per_image, places):
            yield rows, self._found(index, places[rows])

    def _bytes_per_image(self, list_length: int) -> int:
        return 64 * list_length + 40 * self.n_labels_

    def _scored(self, found: Neighbors) -> tuple[Array, Array]:
        """Scores (n×D) in float64, and the weights (n×k) that they come from."""
        table = self._labels_beside(found.indices)
        if table is None:
            found = on_host(found)
        weights = self._weights(found)
        return self._scores(self._votes(found.indices, weights, table), found), weights

    def _votes(self, indices: Array, weights: Array, table: Array | None) -> Array:
        """Σₖ wₖ y(k, t), shape (n, D), in float64."""
        if table is not None:
            return weighted_rows(table, namespace(indices).clip(indices, 0, None), weights)
        n, k = indices.shape
        speakers = scipy.sparse.csr_array(
            (weights.ravel(), np.maximum(indices, 0).ravel(), np.arange(0, n * k + 1, k)),
            shape=(n, self.labels_.shape[0]),
        )
        return (speakers @ self.labels_).toarray()

    def _labels_beside(self, indices: Array) -> Array | None:
        """The labels (N×D), dense, on the accelerator of the neighbours' lists, if they fit."""
        if not on_accelerator(indices):
            return None
        labels, table = _TABLES.get(self, (None, None))
        if labels is not self.labels_ or table.device != indices.device:
            n, d = self.labels_.shape
            if n > block_rows(8 * d, indices):
                return None
            xp = namespace(indices)
            table = like(self.labels_, xp.empty(0, dtype=xp.float64, device=indices.device))
            _TABLES[self] = self.labels_, table
        return table

    def _fresh_index(self) -> NeighborIndex:
        if self.index is None:
            return ExactNeighbors(self.metric)
        if not all(hasattr(self.index, name) for name in ("fit", "add", "kneighbors")):
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


def _empty_scores(places: Array, n_labels: int) -> Array:
    """Room for scores (n×D): on the places' accelerator, else on the host."""
    n = places.shape[0]
    if not on_accelerator(places):
        return np.empty((n, n_labels), score_dtype(places))
    dtype = as_block(places[:1], finite=False).dtype
    return namespace(places).empty((n, n_labels), dtype=dtype, device=places.device)


def _with_score(voice: Evidence, score: float) -> Evidence:
    """Evidence whose weights are scaled to add up to the score."""
    total = voice.shares.sum()
    shares = voice.shares * (score / total) if total > 0 else voice.shares
    return replace(voice, score=score, shares=shares)
