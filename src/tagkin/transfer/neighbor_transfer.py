"""The base class of methods that take labels from an image's neighbours."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from operator import attrgetter
from typing import ClassVar, Self

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from tagkin.arrays import Array
from tagkin.arrays.checks import not_fitted
from tagkin.arrays.labels import check_names, label_names
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, Neighbors, neighbors_outside
from tagkin.neighbors.lists import check_n_neighbors
from tagkin.transfer.evidence import Evidence, LabelLists, label_lists
from tagkin.transfer.label_transfer import LabelTransfer, count_rows
from tagkin.transfer.neighbor_lists import check_neighbors, on_device_of, on_host_or_accelerator
from tagkin.transfer.votes import NeighborVotes

__all__ = ["NeighborTransfer"]


class NeighborTransfer(LabelTransfer):
    """A method that takes labels from an image's neighbours.

    `_learn` makes a record of votes from the labelled images (`model_`), which scores and explains.

    Attributes
    ----------
    labels_ : CSR array of shape (N, D)
        Labels of the fitted images.
    index_ : ExactNeighbors, or None after `fit_neighbors`
        Their embeddings.
    """

    learns_from_neighbors: ClassVar[bool] = False
    """Whether `_learn` needs the neighbours of the labelled images."""

    n_neighbors: int
    metric: str

    model_: NeighborVotes

    labels_ = property(attrgetter("model_.labels"))
    index_ = property(attrgetter("model_.index"))
    n_labels_ = property(attrgetter("model_.n_labels"))

    # --- learning ------------------------------------------------------------------------

    def fit(self, X: Array, y: Array | None = None, *, groups: Array | None = None) -> Self:
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
        embeddings, labels = self.check_fit_input(X, y)
        names = label_names(y)
        index = ExactNeighbors(self.metric).fit(embeddings)
        model = self._learn(labels, self._neighbors_of_fitted(index, embeddings, groups))
        return self._keep(replace(model, index=index), names, X)

    def partial_fit(self, X: Array, y: Array | None = None) -> Self:
        """Add images, perhaps with new labels, without learning parameters again.

        y has all known columns, followed by the columns of new labels. Earlier images do not have
        the new labels. A new label can be suggested at once.

        Parameters
        ----------
        X : array of shape (N, m)
            Embeddings of N images.
        y : array or sparse matrix of shape (N, D')
            Labels: the known columns, then those of new labels.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        model, embeddings = self._searchable_model(), self.check_queries(X)
        added = self._as_labels(y, embeddings.shape[0])
        if added.shape[1] < model.n_labels:
            raise InvalidInput(
                f"Found {added.shape[1]} labels, but {model.n_labels} are known. Pass all columns, "
                "with the columns of new labels at the end."
            )
        names = check_names(self._known_names(), y, added.shape[1])
        return self._keep(model.add(embeddings, added), names)

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
        n = count_rows(indices)
        labels = self._as_labels(y, n)
        neighbors = check_neighbors(indices, distances, n)
        model = self._learn(labels, neighbors if self.learns_from_neighbors else None)
        names = label_names(y)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        return self._keep(model, names)

    def _keep(self, model: NeighborVotes, names: np.ndarray | None, X: Array | None = None) -> Self:
        """Set all fitted attributes, after learning succeeded; X (N×m) if this is a fit."""
        if X is not None:
            validate_data(self, X, skip_check_array=True, reset=True)
        self.model_, self._label_names = model, names
        return self

    def _neighbors_of_fitted(
        self, index: ExactNeighbors, embeddings: Array, groups: Array | None
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
        return self._searchable_model().kneighbors(self.check_queries(X))

    def decision_function(self, X: Array) -> Array:
        """Return the score of every label for every image, shape (n, D)."""
        return self._searchable_model().decision_function(self.check_queries(X))

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
        neighbors = check_neighbors(indices, distances, self.model_.n_images)
        return on_device_of(self.model_.decision_function(X, neighbors), distances)

    def explain(self, X: Array, labels: LabelLists) -> list[list[Evidence]]:
        """Return the neighbours that support each label, with their shares of its score.

        Parameters
        ----------
        X : array of shape (n, m)
        labels : one list of labels for all images, or a list for each
            Columns of Y, names of `classes_`, or the result of `suggest`.

        Returns
        -------
        evidence : for each image, one Evidence per label
            Shares are the neighbours' weights, scaled to add up to the score. If no neighbour has
            a label, its lists are empty.
        """
        model, embeddings = self._searchable_model(), self.check_queries(X)
        names = self.classes_.tolist()
        columns = label_lists(labels, embeddings.shape[0], names)
        return model.explain(columns, names, embeddings=embeddings)

    def describe(self) -> list[str]:
        """Return a few sentences that describe this model."""
        self._check_fitted()
        return self.model_.describe()

    # --- for authors of methods ----------------------------------------------------------

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        check_n_neighbors(self.n_neighbors, np.inf)

    @abstractmethod
    def _learn(self, labels: scipy.sparse.csr_array, neighbors: Neighbors | None) -> NeighborVotes:
        """Return the record of votes of labelled images (N×D), without their embeddings.

        `neighbors` (N×k) are each image's neighbours if the method `learns_from_neighbors`, else
        None.
        """

    def _searchable_model(self) -> NeighborVotes:
        self._check_fitted()
        if self.model_.index is None:
            raise not_fitted(
                f"This {type(self).__name__} was fitted from neighbours and has no embeddings to "
                "search. Use score_neighbors(indices, distances), or fit(X, y)."
            )
        return self.model_
