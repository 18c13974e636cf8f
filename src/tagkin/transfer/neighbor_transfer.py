"""The base class of methods that take labels from an image's neighbours."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, Self
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
)
from tagkin.arrays.labels import check_names, label_names, widen
from tagkin.arrays.rules import Sparse
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, NeighborIndex, Neighbors, neighbors_outside
from tagkin.neighbors.base import check_n_neighbors
from tagkin.transfer._lists import (
    check_neighbors,
    on_device_of,
    on_host,
    on_host_or_accelerator,
    sums_over_lists,
)
from tagkin.transfer.base import LabelTransfer, score_dtype
from tagkin.transfer.evidence import Evidence, label_lists, supporting_neighbors
from tagkin.wording import count

__all__ = ["NeighborTransfer"]


# Dense labels on accelerators, built at first use and not saved with a model.
_TABLES: WeakKeyDictionary[LabelTransfer, tuple[Any, Any]] = WeakKeyDictionary()


class NeighborTransfer(LabelTransfer):
    """A method that takes labels from an image's neighbours.

    A method gives every neighbour a weight. The weights of the neighbours that have a label add up
    to the label's votes, and votes become the score. Methods differ in `_weights` and `_scores`,
    and in what they learn from the neighbours of the labelled images (`_learn`).
    """

    learns_from_neighbors: ClassVar[bool] = False
    """Whether `_learn` needs the neighbours of the labelled images."""

    n_neighbors: int
    metric: str
    index: NeighborIndex | None

    index_: NeighborIndex | None
    labels_: Annotated[scipy.sparse.csr_array, Sparse("N", "D")]

    @property
    def needs_embeddings(self) -> bool:
        """Whether the method needs embeddings in addition to lists of neighbours."""
        return False

    # --- learning ------------------------------------------------------------------------

    def fit(self, X: Array, y: Any = None, *, groups: Array | None = None) -> Self:
        """Store embeddings X (N×m) and labels y (N×D), and learn the method's parameters.

        If it fails, the model does not change.

        Parameters
        ----------
        X : array of shape (N, m)
        y : array or sparse matrix of shape (N, D)
        groups : array of shape (N,), optional
            The group of each image, such as a burst. A method that learns from the neighbours of
            the labelled images then ignores neighbours in the image's own group. Suggestions still
            come from all images.
        """
        self.check_parameters()
        embeddings, labels = self._validated(X, y)
        names = label_names(y)
        index = self._new_index().fit(embeddings)
        learned = self._learn(self._neighbors_of_fitted(index, embeddings, groups), labels)
        validate_data(self, X, skip_check_array=True, reset=True)
        return self._keep(index, labels, learned, names)

    def partial_fit(self, X: Array, y: Any = None) -> Self:
        """Add images, perhaps with new labels, without learning parameters again.

        y has all known columns, followed by the columns of new labels. Earlier images do not have
        the new labels. A new label can be suggested at once.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        self.check_parameters()
        index = self._fitted_index()
        embeddings = self._checked_queries(X)
        added = self._as_labels(y, embeddings.shape[0])
        known = self.labels_.shape[1]
        if added.shape[1] < known:
            raise InvalidInput(
                f"Found {added.shape[1]} labels, but {known} are known. Pass all columns, with "
                "the columns of new labels at the end."
            )
        names = check_names(self._known_names(), y, added.shape[1])
        old = widen(self.labels_, added.shape[1])
        labels = scipy.sparse.vstack([old, added], format="csr")
        learned = self._attributes_for(added)
        index.add(self._as_searched(embeddings))
        return self._keep(index, labels, learned, names)

    def relabel(self, y: Array) -> Self:
        """Replace the labels of the fitted images by y (N×D), without learning again.

        D must not change; `partial_fit` adds new labels.
        """
        self._check_fitted()
        labels = self._as_labels(y, self.labels_.shape[0])
        if labels.shape[1] != self.n_labels_:
            raise InvalidInput(
                f"Found {labels.shape[1]} labels, but {self.n_labels_} are known. Pass the same "
                "columns; partial_fit adds new labels."
            )
        names = check_names(self._known_names(), y, self.n_labels_)
        return self._keep(self.index_, labels, self._attributes_for(labels), names)

    def fit_neighbors(self, indices: Array, distances: Array, y: Array) -> Self:
        """Learn from known neighbours.

        Parameters
        ----------
        indices, distances : arrays of shape (N, k)
            Neighbours of each image among the others, nearest first, as returned by
            `neighbors_outside` of `tagkin.neighbors`. The first `n_neighbors` are used. Index −1
            marks a missing neighbour.
        y : array of shape (N, D)

        Notes
        -----
        The model then has no embeddings to search; use `score_neighbors`.
        """
        self.check_parameters()
        n = np.shape(indices)[0] if np.ndim(indices) else 0
        labels = self._as_labels(y, n)
        neighbors = check_neighbors(indices, distances, n)
        learned = self._learn(neighbors if self.learns_from_neighbors else None, labels)
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
        """Set all fitted attributes, after learning succeeded."""
        self.index_, self.labels_, self.n_labels_ = index, labels, labels.shape[1]
        self._label_names = names
        for name, value in learned.items():
            setattr(self, name, value)
        return self

    def _neighbors_of_fitted(
        self, index: NeighborIndex, embeddings: Array, groups: Array | None
    ) -> Neighbors | None:
        """Return the neighbours of each labelled image, for methods that learn from them."""
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
        """Return the `n_neighbors` neighbours that vote on each image, or all if fewer.

        If an approximate index returns fewer, lists end with index −1 at distance ∞.
        """
        self.check_parameters()
        index = self._fitted_index()
        embeddings = self._checked_queries(X)
        neighbors = self._neighbors_of(index, embeddings)
        return Neighbors(*(on_device_of(part, embeddings) for part in neighbors))

    def nearest(self, X: Array, n_neighbors: int) -> Neighbors:
        """Return the nearest fitted images, with any labels or none, on the host.

        Distances are by `metric`, or Euclidean with learned weights.
        """
        index = self._fitted_index()
        embeddings = self._as_searched(self._checked_queries(X))
        check_n_neighbors(n_neighbors, np.inf)
        return on_host(index.kneighbors(embeddings, min(int(n_neighbors), index.n_points_)))

    def score_neighbors(self, indices: Array, distances: Array, X: Array | None = None) -> Array:
        """Return the score of every label, shape (n, D), from known neighbours.

        Parameters
        ----------
        indices, distances : arrays of shape (n, k)
            Nearest first; the first `n_neighbors` are used. Index −1 marks a missing neighbour.
        X : array of shape (n, m), optional
            The images' embeddings, for methods that use them as well.
        """
        self._check_fitted()
        self.check_parameters()
        neighbors = check_neighbors(indices, distances, self.labels_.shape[0])
        scores = np.empty(
            (len(neighbors.indices), self.n_labels_), score_dtype(neighbors.distances)
        )
        for rows in row_blocks(len(scores), self._bytes_per_image(neighbors.indices.shape[1])):
            block = self._used_neighbors(
                Neighbors(neighbors.indices[rows], neighbors.distances[rows])
            )
            scores[rows], _ = self._score(block)
        return on_device_of(self._rescale(scores), distances)

    def decision_function(self, X: Array) -> Array:
        """Return the score of every label for every image, shape (n, D)."""
        self.check_parameters()
        index = self._fitted_index()
        embeddings = self._checked_queries(X)
        scores = _empty_scores(embeddings, self.n_labels_)
        for rows, neighbors in self._neighbors_in_blocks(index, embeddings):
            scores[rows] = on_device_of(self._score(neighbors)[0], scores)
        return on_device_of(self._rescale(scores), embeddings)

    def explain(self, X: Array, labels: Any) -> list[list[Evidence]]:
        """Return the neighbours that support each label, with their shares of its score.

        Parameters
        ----------
        X : array of shape (n, m)
        labels : one list of labels for all images, or a list for each
            Columns of Y, names of `classes_`, or the result of `suggest`.

        Returns
        -------
        evidence : for each image, one `Evidence` per label
            Shares are the neighbours' weights, scaled to add up to the score. If no neighbour has
            a label, its lists are empty.
        """
        self.check_parameters()
        index = self._fitted_index()
        embeddings = self._checked_queries(X)
        return self._explain_blocks(
            self._neighbors_in_blocks(index, embeddings),
            embeddings.shape[0],
            score_dtype(embeddings),
            labels,
        )

    def explain_neighbors(
        self, indices: Array, distances: Array, labels: Any, X: Array | None = None
    ) -> list[list[Evidence]]:
        """Explain labels from known neighbours (n×k), as in `score_neighbors`."""
        self._check_fitted()
        self.check_parameters()
        neighbors = check_neighbors(indices, distances, self.labels_.shape[0])
        n, k = neighbors.indices.shape
        blocks = (
            (
                rows,
                self._used_neighbors(Neighbors(neighbors.indices[rows], neighbors.distances[rows])),
            )
            for rows in row_blocks(n, self._bytes_per_image(k))
        )
        return self._explain_blocks(blocks, n, score_dtype(neighbors.distances), labels)

    def _explain_blocks(
        self, blocks: Iterable[tuple[slice, Neighbors]], n: int, dtype: np.dtype, labels: Any
    ) -> list[list[Evidence]]:
        names = self.classes_.tolist()
        columns_by_image = label_lists(labels, n, names)
        scores = np.empty((n, self.n_labels_), dtype)
        evidence: list[list[Evidence]] = []
        for rows, block in blocks:
            neighbors = on_host(block)
            scores[rows], weights = self._score(neighbors)
            for i, columns in enumerate(columns_by_image[rows]):
                of_image = Neighbors(neighbors.indices[i], neighbors.distances[i])
                evidence.append(
                    list(supporting_neighbors(of_image, weights[i], self.labels_, columns, names))
                )
        return [
            [item.with_score(float(row[item.label])) for item in items]
            for row, items in zip(self._rescale(scores), evidence, strict=True)
        ]

    def describe(self) -> list[str]:
        """Return a few sentences that describe this model."""
        n, d = self.labels_.shape
        return [
            f"Passes {count(d, 'label')} on from {count(n, 'image')} with "
            f"{count(self.labels_.nnz, 'label')} in all.",
            self._describe_neighbors(),
        ]

    # --- for authors of methods ----------------------------------------------------------

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        check_n_neighbors(self.n_neighbors, np.inf)

    def _describe_neighbors(self) -> str:
        metric = getattr(self.index_, "metric", self.metric)
        k = min(self.n_neighbors, self.labels_.shape[0])
        return f"Labels come from the {count(k, 'nearest neighbour')} of an image ({metric})."

    def _learn(self, neighbors: Neighbors | None, labels: scipy.sparse.csr_array) -> dict[str, Any]:
        """Learn fitted attributes from the neighbours (N×k) of each labelled image.

        `neighbors` is None unless `learns_from_neighbors`.
        """
        return {}

    def _attributes_for(self, added: scipy.sparse.csr_array) -> dict[str, Any]:
        """Return fitted attributes extended to the labels (n×D) of added or relabelled images."""
        return {}

    def _as_searched(self, embeddings: Array) -> Array:
        """Return embeddings in the form that the index searches."""
        return embeddings

    def _neighbors_of(self, index: NeighborIndex, embeddings: Array) -> Neighbors:
        """Return the neighbours that vote, on the host or on an accelerator."""
        return on_host_or_accelerator(
            index.kneighbors(embeddings, min(self.n_neighbors, index.n_points_))
        )

    def _used_neighbors(self, neighbors: Neighbors) -> Neighbors:
        """Return the neighbours that vote, from known neighbours."""
        return Neighbors(*(part[:, : self.n_neighbors] for part in neighbors))

    @abstractmethod
    def _weights(self, neighbors: Neighbors) -> Array:
        """Return the weight of each neighbour, shape (n, k), in float64; 0 if missing."""

    def _scores(self, votes: Array, neighbors: Neighbors) -> Array:
        """Return scores from votes (n×D), which may change in place."""
        return votes

    def _rescale(self, scores: Array) -> Array:
        """Rescale the scores of all images of a call, if they depend on each other."""
        return scores

    def _list_length(self) -> int:
        """Return the largest number of neighbours that vote on an image."""
        return min(self.n_neighbors, self.labels_.shape[0])

    def _neighbors_in_blocks(
        self, index: NeighborIndex, embeddings: Array
    ) -> Iterator[tuple[slice, Neighbors]]:
        per_image = self._bytes_per_image(self._list_length())
        for rows in row_blocks(embeddings.shape[0], per_image, embeddings):
            yield rows, self._neighbors_of(index, embeddings[rows])

    def _bytes_per_image(self, list_length: int) -> int:
        return 64 * list_length + 40 * self.n_labels_

    def _score(self, neighbors: Neighbors) -> tuple[Array, Array]:
        """Return scores (n×D) in float64 and the neighbours' weights (n×k)."""
        table = self._labels_on_device_of(neighbors.indices)
        if table is None:
            neighbors = on_host(neighbors)
        weights = self._weights(neighbors)
        return self._scores(self._votes(neighbors.indices, weights, table), neighbors), weights

    def _votes(self, indices: Array, weights: Array, table: Array | None) -> Array:
        """Return Σₖ wₖ y(k, t), shape (n, D), in float64."""
        if table is not None:
            # without an array of n × k × D entries
            return namespace(table).nn.functional.embedding_bag(
                indices.clip(0, None), table, per_sample_weights=weights, mode="sum"
            )
        return sums_over_lists(self.labels_, to_numpy(indices), to_numpy(weights))

    def _labels_on_device_of(self, indices: Array) -> Array | None:
        """Return dense labels (N×D) on the accelerator of `indices`, or None if they do not fit."""
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
    """Return an empty array for scores (n×D), on the embeddings' accelerator or the host."""
    n = embeddings.shape[0]
    if not on_accelerator(embeddings):
        return np.empty((n, n_labels), score_dtype(embeddings))
    dtype = as_block(embeddings[:1], finite=False).dtype
    return namespace(embeddings).empty((n, n_labels), dtype=dtype, device=embeddings.device)
