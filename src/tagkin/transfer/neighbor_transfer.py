"""What all methods share that take labels from an image's neighbours."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self
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
    to_numpy,
    weighted_rows,
)
from tagkin.arrays.labels import checked_names, label_names, widened
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, NeighborIndex, Neighbors, neighbors_outside
from tagkin.neighbors.base import check_n_neighbors
from tagkin.transfer._lists import (
    checked_neighbors,
    on_device_of,
    on_host,
    on_host_or_accelerator,
    sums_over_lists,
)
from tagkin.transfer.base import LabelTransfer, score_dtype
from tagkin.transfer.evidence import Evidence, label_lists, supporting_neighbors
from tagkin.wording import count

__all__ = ["NeighborTransfer"]


# Labels as accelerators read them, built at first use; no part of a model.
_TABLES: WeakKeyDictionary[LabelTransfer, tuple[Any, Any]] = WeakKeyDictionary()


class NeighborTransfer(LabelTransfer):
    """A method that takes labels from an image's neighbours.

    A method gives every neighbour a weight; the weights of those that carry a label add up to
    the label's votes, and votes become the score. Methods differ in `_weights` and `_scores`,
    and in what they learn for them from the neighbours of the labelled images (`_learn`).
    """

    learns_from_neighbors: ClassVar[bool] = False
    """Whether `_learn` uses the neighbours of the labelled images: it gets them only if True."""

    n_neighbors: int
    metric: str
    index: NeighborIndex | None

    index_: NeighborIndex | None
    labels_: scipy.sparse.csr_array

    @property
    def needs_embeddings(self) -> bool:
        """Whether lists of neighbours are not all that the method learns and scores from."""
        return False

    # --- learning ------------------------------------------------------------------------

    def fit(self, X: Array, y: Any = None, *, groups: Array | None = None) -> Self:
        """Take embeddings X (N×m) and labels y (N×D), and learn what the method needs to.

        If it fails, what was learned before stays.

        Parameters
        ----------
        X : array of shape (N, m)
        y : array or sparse matrix of shape (N, D)
        groups : array of shape (N,), optional
            The group of each image, such as a burst. A method that learns from the neighbours of
            the labelled images then leaves out those of the image's own group, which say nothing
            about images of other groups. Suggestions come from all images all the same.
        """
        self._check_parameters()
        embeddings, labels = self._validated(X, y)
        names = label_names(y)
        index = self._new_index().fit(embeddings)
        learned = self._learn(self._neighbors_of_fitted(index, embeddings, groups), labels)
        validate_data(self, X, skip_check_array=True, reset=True)
        return self._keep(index, labels, learned, names)

    def partial_fit(self, X: Array, y: Any = None) -> Self:
        """Add images, perhaps with new labels, and learn nothing anew.

        y has all columns known so far, and those of new labels after them; images from before
        do not carry those. A new label can be suggested at once.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        self._check_parameters()
        index = self._fitted_index()
        embeddings = self._checked_queries(X)
        added = self._as_labels(y, embeddings.shape[0])
        known = self.labels_.shape[1]
        if added.shape[1] < known:
            raise InvalidInput(
                f"Found {added.shape[1]} labels where {known} are known. Pass all columns, with "
                "those of new labels at the end."
            )
        names = checked_names(self._known_names(), y, added.shape[1])
        old = widened(self.labels_, added.shape[1])
        labels = scipy.sparse.vstack([old, added], format="csr")
        learned = self._widened(added)
        index.add(self._as_searched(embeddings))
        return self._keep(index, labels, learned, names)

    def relabel(self, y: Array) -> Self:
        """Give the images that were fitted other labels y (N×D), and learn nothing anew.

        D stays as it is: `partial_fit` brings new labels.
        """
        self._check_fitted()
        labels = self._as_labels(y, self.labels_.shape[0])
        if labels.shape[1] != self.n_labels_:
            raise InvalidInput(
                f"Found {labels.shape[1]} labels where {self.n_labels_} are known. Pass the same "
                "columns; partial_fit adds new ones."
            )
        names = checked_names(self._known_names(), y, self.n_labels_)
        return self._keep(self.index_, labels, self._widened(labels), names)

    def fit_neighbors(self, indices: Array, distances: Array, y: Array) -> Self:
        """Learn from neighbours that are known already.

        Parameters
        ----------
        indices, distances : arrays of shape (N, k)
            Neighbours of each image among the others, nearest first, as `neighbors_outside` of
            `tagkin.neighbors` gives them; the first `n_neighbors` are used. Index −1 stands for
            none.
        y : array of shape (N, D)

        Notes
        -----
        Without embeddings there is nothing to search: use `score_neighbors` then.
        """
        self._check_parameters()
        n = np.shape(indices)[0] if np.ndim(indices) else 0
        labels = self._as_labels(y, n)
        among = checked_neighbors(indices, distances, n)
        learned = self._learn(among if self.learns_from_neighbors else None, labels)
        names = label_names(y)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        return self._keep(None, labels, learned, names)

    def _keep(
        self,
        index: NeighborIndex | None,
        labels: scipy.sparse.csr_array,
        learned: dict[str, Any],
        names: np.ndarray | None,
    ) -> Self:
        """Replace what was learned, when all of it has succeeded."""
        self.index_, self.labels_, self.n_labels_ = index, labels, labels.shape[1]
        self._label_names = names
        for name, value in learned.items():
            setattr(self, name, value)
        return self

    def _neighbors_of_fitted(
        self, index: NeighborIndex, embeddings: Array, groups: Array | None
    ) -> Neighbors | None:
        """Neighbours of the labelled images among the others, for methods that learn from them."""
        if not self.learns_from_neighbors:
            return None
        n = embeddings.shape[0]
        if n < 2:
            raise InvalidInput(
                f"Found {n} sample(s), that is images; {type(self).__name__} learns from the "
                "neighbours of each image among the others. Pass at least 2."
            )
        k = min(self.n_neighbors, n - 1)
        return on_host_or_accelerator(neighbors_outside(index, embeddings, k, groups))

    # --- using ---------------------------------------------------------------------------

    def kneighbors(self, X: Array) -> Neighbors:
        """The neighbours that each image's labels come from: `n_neighbors`, or all if fewer.

        Where an approximate index finds fewer, lists end with index −1 at distance ∞.
        """
        self._check_parameters()
        index = self._fitted_index()
        embeddings = self._checked_queries(X)
        found = self._neighbors_of(index, embeddings)
        return Neighbors(*(on_device_of(part, embeddings) for part in found))

    def nearest(self, X: Array, n_neighbors: int) -> Neighbors:
        """The nearest of all images that were fitted, whatever they carry, on the host.

        Distances are those of the search: by `metric`, or with learned weights Euclidean.
        """
        index = self._fitted_index()
        embeddings = self._as_searched(self._checked_queries(X))
        check_n_neighbors(n_neighbors, np.inf)
        return on_host(index.kneighbors(embeddings, min(int(n_neighbors), index.n_points_)))

    def score_neighbors(self, indices: Array, distances: Array, X: Array | None = None) -> Array:
        """Score of every label, shape (n, D), given the neighbours.

        Parameters
        ----------
        indices, distances : arrays of shape (n, k)
            Nearest first; the first `n_neighbors` are used. Index −1 stands for none.
        X : array of shape (n, m), optional
            The images' embeddings, for methods that read labels off them as well.
        """
        self._check_fitted()
        self._check_parameters()
        found = checked_neighbors(indices, distances, self.labels_.shape[0])
        scores = np.empty((len(found.indices), self.n_labels_), score_dtype(found.distances))
        for rows in row_blocks(len(scores), self._bytes_per_image(found.indices.shape[1])):
            some = self._used_neighbors(Neighbors(found.indices[rows], found.distances[rows]))
            scores[rows], _ = self._scored(some)
        return on_device_of(self._rescaled(scores), distances)

    def decision_function(self, X: Array) -> Array:
        """Score of every label for every image, shape (n, D)."""
        self._check_parameters()
        index = self._fitted_index()
        embeddings = self._checked_queries(X)
        scores = _empty_scores(embeddings, self.n_labels_)
        for rows, found in self._neighbors_in_blocks(index, embeddings):
            scores[rows] = on_device_of(self._scored(found)[0], scores)
        return on_device_of(self._rescaled(scores), embeddings)

    def explain(self, X: Array, labels: Any) -> list[list[Evidence]]:
        """Which neighbours support each label, and how much of its score each one gives.

        Parameters
        ----------
        X : array of shape (n, m)
        labels : one list of labels for all images, or a list for each
            Columns of Y, names of `classes_`, or what `suggest` returned.

        Returns
        -------
        evidence : for each image, one `Evidence` per label
            Shares are the neighbours' weights, scaled to add up to the score. A label that none
            of the neighbours carries has no evidence: its lists are empty.
        """
        self._check_parameters()
        index = self._fitted_index()
        embeddings = self._checked_queries(X)
        return self._explained(
            self._neighbors_in_blocks(index, embeddings),
            embeddings.shape[0],
            score_dtype(embeddings),
            labels,
        )

    def explain_neighbors(
        self, indices: Array, distances: Array, labels: Any, X: Array | None = None
    ) -> list[list[Evidence]]:
        """As `explain`, given the neighbours (n×k), as `score_neighbors` takes them."""
        self._check_fitted()
        self._check_parameters()
        found = checked_neighbors(indices, distances, self.labels_.shape[0])
        n, k = found.indices.shape
        blocks = (
            (rows, self._used_neighbors(Neighbors(found.indices[rows], found.distances[rows])))
            for rows in row_blocks(n, self._bytes_per_image(k))
        )
        return self._explained(blocks, n, score_dtype(found.distances), labels)

    def _explained(
        self, blocks: Iterable[tuple[slice, Neighbors]], n: int, dtype: np.dtype, labels: Any
    ) -> list[list[Evidence]]:
        names = self.classes_.tolist()
        wanted = label_lists(labels, n, names)
        scores = np.empty((n, self.n_labels_), dtype)
        evidence: list[list[Evidence]] = []
        for rows, listed in blocks:
            found = on_host(listed)
            scores[rows], weights = self._scored(found)
            for i, asked in enumerate(wanted[rows]):
                one = Neighbors(found.indices[i], found.distances[i])
                evidence.append(
                    list(supporting_neighbors(one, weights[i], self.labels_, asked, names))
                )
        return [
            [one.with_score(float(row[one.label])) for one in of_image]
            for row, of_image in zip(self._rescaled(scores), evidence, strict=True)
        ]

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
        """Fitted attributes, from the neighbours (N×k) of labelled images among the others.

        They are None unless `learns_from_neighbors`.
        """
        return {}

    def _widened(self, added: scipy.sparse.csr_array) -> dict[str, Any]:
        """Fitted attributes with room for the labels of images that are added or relabelled."""
        return {}

    def _as_searched(self, embeddings: Array) -> Array:
        """Embeddings as they are searched."""
        return embeddings

    def _neighbors_of(self, index: NeighborIndex, embeddings: Array) -> Neighbors:
        """The neighbours whose labels count, on the host or on an accelerator."""
        return on_host_or_accelerator(
            index.kneighbors(embeddings, min(self.n_neighbors, index.n_points_))
        )

    def _used_neighbors(self, found: Neighbors) -> Neighbors:
        """The neighbours whose labels count, of those given."""
        return Neighbors(*(part[:, : self.n_neighbors] for part in found))

    @abstractmethod
    def _weights(self, found: Neighbors) -> Array:
        """The weight of each neighbour, shape (n, k), in float64; 0 for none."""

    def _scores(self, votes: Array, found: Neighbors) -> Array:
        """Scores from votes (n×D), which may be changed in place."""
        return votes

    def _rescaled(self, scores: Array) -> Array:
        """Scores of all images of a call, where they depend on each other."""
        return scores

    def _list_length(self) -> int:
        """How many neighbours an image's labels come from, at most."""
        return min(self.n_neighbors, self.labels_.shape[0])

    def _neighbors_in_blocks(
        self, index: NeighborIndex, embeddings: Array
    ) -> Iterator[tuple[slice, Neighbors]]:
        per_image = self._bytes_per_image(self._list_length())
        for rows in row_blocks(embeddings.shape[0], per_image, embeddings):
            yield rows, self._neighbors_of(index, embeddings[rows])

    def _bytes_per_image(self, list_length: int) -> int:
        return 64 * list_length + 40 * self.n_labels_

    def _scored(self, found: Neighbors) -> tuple[Array, Array]:
        """Scores (n×D) in float64, and the weights (n×k) that they come from."""
        table = self._labels_on_device_of(found.indices)
        if table is None:
            found = on_host(found)
        weights = self._weights(found)
        return self._scores(self._votes(found.indices, weights, table), found), weights

    def _votes(self, indices: Array, weights: Array, table: Array | None) -> Array:
        """Σₖ wₖ y(k, t), shape (n, D), in float64."""
        if table is not None:
            return weighted_rows(table, namespace(indices).clip(indices, 0, None), weights)
        return sums_over_lists(self.labels_, to_numpy(indices), to_numpy(weights))

    def _labels_on_device_of(self, indices: Array) -> Array | None:
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

    def _new_index(self) -> NeighborIndex:
        if self.index is None:
            return ExactNeighbors(self.metric)
        if not all(hasattr(self.index, name) for name in ("fit", "add", "kneighbors")):
            raise InvalidInput(f"index must be an index of tagkin.neighbors; found {self.index!r}.")
        return clone(self.index)

    def _fitted_index(self) -> NeighborIndex:
        self._check_fitted()
        if self.index_ is None:
            raise NotFittedError(
                f"This {type(self).__name__} was fitted from neighbours and has no embeddings to "
                "search. Use score_neighbors(indices, distances), or fit(X, y)."
            )
        return self.index_


def _empty_scores(embeddings: Array, n_labels: int) -> Array:
    """Room for scores (n×D): on the embeddings' accelerator, else on the host."""
    n = embeddings.shape[0]
    if not on_accelerator(embeddings):
        return np.empty((n, n_labels), score_dtype(embeddings))
    dtype = as_block(embeddings[:1], finite=False).dtype
    return namespace(embeddings).empty((n, n_labels), dtype=dtype, device=embeddings.device)
