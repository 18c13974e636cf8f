"""Neighbour voting (NNvot) and tag relevance."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Self

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, to_numpy
from tagkin.arrays.labels import as_labels
from tagkin.errors import InvalidInput
from tagkin.neighbors import NeighborIndex, Neighbors
from tagkin.records.forms import storable
from tagkin.transfer.label_transfer import count_rows
from tagkin.transfer.nearest_votes import CountVotes, RelevanceVotes
from tagkin.transfer.neighbor_transfer import NeighborTransfer

__all__ = ["NeighborVoting", "TagRelevance"]


@storable
class NeighborVoting(NeighborTransfer):
    """NNvot: a label's score is the number of neighbours that have it, f(I, t) = kₜ.

    Parameters
    ----------
    n_neighbors : int, default 100
        K; all images if there are fewer.
    metric : "cosine" or "euclidean"
        Distance between images.
    index : index of tagkin.neighbors, optional
        Index to search instead of the exact search, such as ``FaissNeighbors("HNSW32")``. It has
        its own metric.
    weighted : bool, default False
        Add up the entries of y, such as the weights of denoised tags, instead of counting labels.

    Attributes
    ----------
    labels_ : CSR array of shape (N, D)
        Labels of the fitted images.
    n_labels_ : int
        D.
    classes_ : array of shape (D,)
        Names of the labels (columns of a DataFrame y), or column numbers.

    Notes
    -----
    Probabilities are the share of the neighbours that have a label, kₜ/K. With `weighted` there
    are no probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.transfer import NeighborVoting
    >>> X = np.array([[1, 0], [2, 0], [0, 1]])
    >>> Y = np.array([[1, 0], [1, 1], [0, 1]])
    >>> model = NeighborVoting(n_neighbors=2).fit(X, Y)
    >>> model.decision_function([[3.0, 0.1]])
    array([[2., 1.]])
    >>> model.predict_proba([[3.0, 0.1]])
    array([[1. , 0.5]])
    """

    model_: CountVotes

    def __init__(
        self,
        n_neighbors: int = 100,
        metric: str = "cosine",
        *,
        index: NeighborIndex | None = None,
        weighted: bool = False,
    ):
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.index = index
        self.weighted = weighted

    def _as_labels(self, y: Array | None, n_rows: int) -> scipy.sparse.csr_array:
        return as_labels(y, n_rows, weighted=self.weighted)

    def _learn(self, labels: scipy.sparse.csr_array, neighbors: Neighbors | None) -> CountVotes:
        return CountVotes(labels=labels, n_neighbors=int(self.n_neighbors))

    def _has_probabilities(self) -> bool:
        return not self.weighted

    def _probabilities(self, scores: Array) -> Array:
        return self.model_.probabilities(scores)


@storable
class TagRelevance(NeighborVoting):
    """Tag relevance: votes beyond what a label's frequency explains, f(I, t) = kₜ − K nₜ/|S|.

    With `users` (the owner of each image, passed to `fit`), only the nearest image of each user
    votes, so a person's habits do not count many times.

    Parameters
    ----------
    n_neighbors : int, default 100
        K; fewer if there are fewer images or users.
    metric : "cosine" or "euclidean"
        Distance between images.
    index : index of tagkin.neighbors, optional
        Index to search instead of the exact search.
    weighted : bool, default False
        Add up the entries of y instead of counting labels.

    Attributes
    ----------
    labels_ : CSR array of shape (N, D)
        Labels of the fitted images.
    n_labels_ : int
        D.
    classes_ : array of shape (D,)
        Names of the labels (columns of a DataFrame y), or column numbers.
    users_ : int array of shape (N,), or None
        Number of each image's owner.

    References
    ----------
    Li, Snoek, Worring. Learning social tag relevance by neighbor voting. IEEE Transactions on
    Multimedia, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin import TagRelevance
    >>> Z = np.array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])  # embeddings
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])  # labels
    >>> model = TagRelevance(n_neighbors=2).fit(Z, Y)
    >>> model.suggest(np.array([[1.0, 0.2]]), n=1)[0][0].label
    0
    """

    model_: RelevanceVotes

    users_ = property(attrgetter("model_.users"))

    def fit(
        self,
        X: Array,
        y: Array | None = None,
        *,
        users: Array | None = None,
        groups: Array | None = None,
    ) -> Self:
        """Store embeddings X (N×m), labels y (N×D) and, for one vote per user, the owners (N,).

        Parameters
        ----------
        X : array of shape (N, m)
            Embeddings of N images.
        y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        users : array of shape (N,), optional
            The owner of each image, for one vote per user.
        groups : array of shape (N,), optional
            Which images belong together, such as the shots of a burst.
        """
        names, codes = _number_users(users, count_rows(X))
        super().fit(X, y, groups=groups)
        self.model_ = replace(self.model_, user_names=names, users=codes)
        return self

    def partial_fit(self, X: Array, y: Array | None = None, *, users: Array | None = None) -> Self:
        """Add images, perhaps with new labels; pass `users` if `fit` had `users`.

        Parameters
        ----------
        X : array of shape (N, m)
            Embeddings of N images.
        y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        users : array of shape (N,), optional
            The owner of each image; needed if `fit` had it.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, users=users)
        if (users is None) != (self.users_ is None):
            given_users = "no users" if users is None else "users"
            raise InvalidInput(
                f"Found {given_users} for added images, but the model was fitted "
                f"{'without' if self.users_ is None else 'with'} users."
            )
        names, codes = _number_users(users, count_rows(X))
        return self._add(X, y, user_names=names, users=codes)

    def fit_neighbors(
        self, indices: Array, distances: Array, y: Array, *, users: Array | None = None
    ) -> Self:
        """Fit as in `NeighborTransfer.fit_neighbors`, with each image's owner (N,).

        Parameters
        ----------
        indices : array of shape (N, k) of int
            Neighbours of each image.
        distances : array of shape (N, k)
            Their distances.
        y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        users : array of shape (N,), optional
            The owner of each image.
        """
        names, codes = _number_users(users, count_rows(indices))
        super().fit_neighbors(indices, distances, y)
        self.model_ = replace(self.model_, user_names=names, users=codes)
        return self

    def _learn(self, labels: scipy.sparse.csr_array, neighbors: Neighbors | None) -> RelevanceVotes:
        return RelevanceVotes(
            labels=labels,
            n_neighbors=int(self.n_neighbors),
            user_names=np.empty(0, dtype=object),
            users=None,
        )

    def _has_probabilities(self) -> bool:
        return False


def _number_users(users: Array | None, n_images: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the distinct users, sorted, and the position of each image's user (N,)."""
    if users is None:
        return np.empty(0, dtype=object), None
    names = np.asarray([str(user) for user in to_numpy(users).tolist()], dtype=object)
    if names.shape != (n_images,):
        raise InvalidInput(f"Found {len(names)} users for {n_images} images; pass one per image.")
    distinct, codes = np.unique(names, return_inverse=True)
    return distinct, codes
