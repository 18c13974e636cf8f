"""Votes of the neighbours: NNvot and tag relevance."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, namespace, row_blocks, to_numpy
from tagkin.arrays.labels import as_labels
from tagkin.errors import InvalidInput
from tagkin.neighbors import NeighborIndex, Neighbors
from tagkin.neighbors.base import compressed
from tagkin.transfer._lists import first_of_each, on_device_of, on_host
from tagkin.transfer.neighbor_transfer import NeighborTransfer

__all__ = ["NeighborVoting", "TagRelevance"]


class NeighborVoting(NeighborTransfer):
    """NNvot: a label's score is the number of neighbours that carry it, f(I, t) = kₜ.

    Parameters
    ----------
    n_neighbors : int, default 100
        K; all images where there are fewer.
    metric : "cosine" or "euclidean"
        How far images are apart.
    index : index of `tagkin.neighbors`, optional
        Searches instead of the exact search, such as ``FaissNeighbors("HNSW32")``; it has its own
        metric.
    weighted : bool, default False
        Add up the entries of y, such as the weights of denoised tags, instead of one for each
        label that an image carries.

    Attributes
    ----------
    labels_ : CSR array of shape (N, D)
        The labels that pass to others.
    n_labels_ : int
        D.
    classes_ : array of shape (D,)
        Names of the labels (columns of a DataFrame y), or column numbers.

    Notes
    -----
    Probabilities are the share of the neighbours that carry a label, kₜ/K. With `weighted` there
    are none.

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

    def __init__(
        self,
        n_neighbors: int = 100,
        metric: str = "cosine",
        index: NeighborIndex | None = None,
        weighted: bool = False,
    ):
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.index = index
        self.weighted = weighted

    def _as_labels(self, y: Array, n_rows: int) -> scipy.sparse.csr_array:
        return as_labels(y, n_rows, weighted=self.weighted)

    def _weights(self, found: Neighbors) -> Array:
        xp = namespace(found.indices)
        return xp.astype(found.indices >= 0, xp.float64)

    def _has_probabilities(self) -> bool:
        return not self.weighted

    def _probabilities(self, scores: Array) -> Array:
        return scores / self._list_length()


class TagRelevance(NeighborVoting):
    """Tag relevance: votes beyond what a label's frequency explains, f(I, t) = kₜ − K nₜ/|S|.

    With `users` (the owner of each image, given to `fit`) each user has one vote, that of the
    nearest image, so that one person's habits do not count many times.

    Parameters
    ----------
    n_neighbors : int, default 100
        K; fewer where there are not as many images, or users.
    metric : "cosine" or "euclidean"
        How far images are apart.
    index : index of `tagkin.neighbors`, optional
        Searches instead of the exact search.
    weighted : bool, default False
        Add up the entries of y instead of one for each label that an image carries.

    Attributes
    ----------
    labels_ : CSR array of shape (N, D)
        The labels that pass to others.
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
    """

    users_: np.ndarray | None
    _user_names: np.ndarray

    def fit(
        self,
        X: Array,
        y: Any = None,
        users: Array | None = None,
        *,
        groups: Array | None = None,
    ) -> Self:
        """Take embeddings X (N×m), labels y (N×D) and, for one vote per user, the owners (N,)."""
        names, codes = _numbered(users, np.shape(X)[0] if np.ndim(X) else 0)
        super().fit(X, y, groups=groups)
        self._user_names, self.users_ = names, codes
        return self

    def partial_fit(self, X: Array, y: Any = None, users: Array | None = None) -> Self:
        """Add images, perhaps with new labels; with `users` if the first ones came with them."""
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, users)
        n = np.shape(X)[0] if np.ndim(X) else 0
        if (users is None) != (self.users_ is None):
            found = "no users" if users is None else "users"
            raise InvalidInput(
                f"Found {found} for images added to a model that was fitted "
                f"{'without' if self.users_ is None else 'with'} them."
            )
        names, codes = self._user_names, None
        if self.users_ is not None:
            fresh, own = _numbered(users, n)
            names, numbers = np.unique(np.concatenate([names, fresh]), return_inverse=True)
            known = len(self._user_names)
            codes = np.concatenate([numbers[:known][self.users_], numbers[known:][own]])
        super().partial_fit(X, y)
        self._user_names, self.users_ = names, codes
        return self

    def fit_neighbors(
        self, indices: Array, distances: Array, y: Array, users: Array | None = None
    ) -> Self:
        """As for every method by neighbours, and each image's owner (N,)."""
        names, codes = _numbered(users, np.shape(indices)[0] if np.ndim(indices) else 0)
        super().fit_neighbors(indices, distances, y)
        self._user_names, self.users_ = names, codes
        return self

    def _neighbors_of(self, index: NeighborIndex, embeddings: Array) -> Neighbors:
        """With users, the nearest image of each; lists end with −1 where there are too few."""
        found = super()._neighbors_of(index, embeddings)
        if self.users_ is None:
            return found
        found = on_host(found)
        n, width = index.n_points_, found.indices.shape[1]
        enough = min(width, len(self._user_names))
        found = self._used_neighbors(found)
        while width < n:
            short = np.flatnonzero((found.indices >= 0).sum(axis=1) < enough)
            width = min(2 * width, n)
            for rows in row_blocks(len(short), 64 * width):
                some = short[rows]
                more = self._used_neighbors(on_host(index.kneighbors(embeddings[some], width)))
                found.indices[some], found.distances[some] = more
        return found

    def _used_neighbors(self, found: Neighbors) -> Neighbors:
        if self.users_ is None:
            return super()._used_neighbors(found)
        owners = np.where(found.indices >= 0, self.users_[found.indices], -1)
        return compressed(found, first_of_each(owners) & (owners >= 0), self.n_neighbors)

    def _has_probabilities(self) -> bool:
        return False

    def _scores(self, votes: Array, found: Neighbors) -> Array:
        xp = namespace(votes)
        n_votes = xp.sum(xp.astype(found.indices >= 0, xp.int64), axis=1, keepdims=True)
        share = self.labels_.sum(axis=0, dtype=np.float64) / self.labels_.shape[0]
        votes -= n_votes * on_device_of(share, votes)
        return votes


def _numbered(users: Array | None, n_images: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The distinct users, sorted, and the number of each image's user."""
    if users is None:
        return np.empty(0, dtype=object), None
    names = np.asarray([str(user) for user in to_numpy(users).tolist()], dtype=object)
    if names.shape != (n_images,):
        raise InvalidInput(f"Found {len(names)} users for {n_images} images; pass one per image.")
    distinct, codes = np.unique(names, return_inverse=True)
    return distinct, codes
