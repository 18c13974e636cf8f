"""How well would denoised tags do? Tried on images whose tags are held out."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, like, namespace, to_numpy
from tagkin.denoising.propagation import blended, propagate, spread
from tagkin.errors import InvalidInput
from tagkin.evaluation import average_precision
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.neighbors.base import unit_rows
from tagkin.space import SemanticSpace
from tagkin.space.chi2_view import Chi2View
from tagkin.space.regression import Root

__all__ = ["Bench", "folds", "parted", "squared_neighbors"]

_FOLDS = 4
_LANDMARKS = 1024
_VOTERS = (50, 100, 200)
_OFTEN = 3  # tags on fewer images would make the score a matter of luck


def folds(
    tagged: np.ndarray, size: int, random_state: int | None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Indices of images that are known, and of tagged ones held out: each quarter in its turn.

    Parameters
    ----------
    tagged : bool array of shape (N,)
    size : int
        Images to look at, as many of them tagged as of all; where few are, up to a quarter of
        this all the same.
    random_state : int or None
    """
    order = np.random.default_rng(random_state).permutation(len(tagged))
    carrying, bare = order[tagged[order]], order[~tagged[order]]
    n_tagged = min(len(carrying), max(size // 4, size * len(carrying) // len(tagged)))
    carrying, bare = carrying[:n_tagged], bare[: max(0, size - n_tagged)]
    return [
        (np.sort(np.concatenate([np.setdiff1d(carrying, held_out), bare])), np.sort(held_out))
        for held_out in np.array_split(carrying, _FOLDS)
    ]


def parted(tagged: np.ndarray, size: int, random_state: int | None) -> tuple[Any, Any]:
    """The first of the `folds`; both its parts together are the images that are looked at."""
    return folds(tagged, size, random_state)[0]


def squared_neighbors(
    index: ExactNeighbors, queries: Array, k: int, exclude: np.ndarray | None = None
) -> Neighbors:
    """At most k neighbours of each query (n×d), with *squared* distances, on the host.

    Zero features are like nothing: under the cosine they are at an infinite distance.
    """
    k = min(k, index.n_points_ - (exclude is not None))
    if k < 1:
        return Neighbors(np.empty((queries.shape[0], 0), np.int64), np.empty((queries.shape[0], 0)))
    found = index.kneighbors(queries, k, exclude=exclude)
    indices, distances = to_numpy(found.indices), to_numpy(found.distances).astype(np.float64)
    if index.metric == "euclidean":
        return Neighbors(indices, distances**2)
    squared = 2 * distances  # of unit vectors ‖a − b‖² = 2 (1 − cosine)
    if (distances == 1).any():  # at a right angle, or one of the two is zero
        xp = namespace(queries)
        zero_query = to_numpy(xp.all(queries == 0, axis=1))
        zero_point = to_numpy(xp.all(index.points_ == 0, axis=1))
        squared[zero_query[:, None] | zero_point[indices]] = np.inf
    return Neighbors(indices, squared)


class Looks:
    """The visual side of spaces of the same known images, whatever their tags.

    Only the text features T̂ differ from trial to trial. Ψ = Φ (Z+κI)⁻¹ C (G+κI)^-½ is the
    space that `SemanticSpace` learns, up to a rotation, which changes no cosine.

    Parameters
    ----------
    known, held_out : arrays of shape (n, d) and (m, d)
    tags : CSR array of shape (n, D)
    """

    def __init__(self, known: Array, held_out: Array, tags: scipy.sparse.csr_array):
        space = SemanticSpace(selection=known[:: -(-known.shape[0] // _LANDMARKS)])
        landmarks = space.prepare(known, tags).landmarks_
        columns = landmarks.columns(known)
        xp = namespace(columns)
        mean = xp.mean(columns, axis=0, dtype=xp.float64)
        self.known = columns - xp.astype(mean, columns.dtype)
        self.held_out = landmarks.columns(held_out) - xp.astype(mean, columns.dtype)
        squares = xp.astype(self.known.T @ self.known, xp.float64)
        gram = landmarks.gram()
        variance = float(xp.max(xp.linalg.diagonal(squares))) / known.shape[0]
        largest = float(xp.max(xp.linalg.diagonal(gram)))
        if not variance > (landmarks.rounding * largest) ** 2:
            raise InvalidInput("All images look the same to the kernel.")
        self.regularization = space.regularization
        self.root = Root.of_visual(squares, gram, self.regularization)

    def places(self, text: Array) -> tuple[np.ndarray, np.ndarray]:
        """Places of the known (n×p) and the held-out images (m×p), of unit length, on the host.

        They are learned from `text`, the known images' text features (n×q), dense or sparse.
        """
        xp = namespace(self.known)
        dense = like(text, self.known)
        dense = dense - xp.mean(dense, axis=0)
        exact = xp.astype(dense, xp.float64)
        cross = xp.astype(self.known.T @ dense, xp.float64)
        ridge = self.root.half_transposed(self.root.half(cross))
        whitened = Root.of_text(exact.T @ exact, self.regularization).half(ridge.T).T
        whitened = xp.astype(whitened, self.known.dtype)
        if not xp.any(whitened != 0):
            raise InvalidInput("Tags and features are unrelated: do all images carry the same?")
        known, held_out = self.known @ whitened, self.held_out @ whitened
        return to_numpy(unit_rows(known, "known")), to_numpy(unit_rows(held_out, "held_out"))


def _most_alike(queries: np.ndarray, points: np.ndarray, k: int) -> np.ndarray:
    """The k points (n×p) nearest to each query (m×p) by cosine, all of unit length, best first.

    A plain search of a sample: which of two at the same distance comes first is no matter here.
    """
    likeness = queries @ points.T
    near = np.argpartition(likeness, -k, axis=1)[:, -k:]
    order = np.argsort(-np.take_along_axis(likeness, near, axis=1), axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1)


class Bench:
    """Held-out images on whose tags ways to denoise are tried, as they will be used.

    A space is learned from the blended tags of the known images, and each held-out image gets the
    blended tags of its neighbours there, which are compared with its own.

    Parameters
    ----------
    known, held_out : arrays of shape (n, d) and (m, d)
    tags, truth : CSR arrays of shape (n, D) and (m, D)
    index : ExactNeighbors
        Of the known images.
    n_neighbors : int
        The largest R that will be tried.
    include_self : bool
    random_state : int or None

    Attributes
    ----------
    measured : int array
        Tags that are looked at: on some images of both kinds, and not on all.
    carriers : int array
        Held-out images that carry each of them.
    looks : Looks or None
        None where no space can be learned: images that all look the same.
    """

    def __init__(
        self,
        known: Array,
        tags: scipy.sparse.csr_array,
        held_out: Array,
        truth: scipy.sparse.csr_array,
        *,
        index: ExactNeighbors,
        n_neighbors: int,
        include_self: bool,
        random_state: int | None,
    ):
        self.tags, self.include_self, self.seed = tags, include_self, random_state
        counts = [np.diff(part.tocsc().indptr) for part in (tags, truth)]
        varied = (counts[0] < tags.shape[0]) & (counts[1] < truth.shape[0])
        fewer = np.where(varied, np.minimum(*counts), 0)
        self.measured = np.flatnonzero(fewer >= min(_OFTEN, max(1, fewer.max())))
        self.truth, self.carriers = truth[:, self.measured], counts[1][self.measured]
        n = known.shape[0]
        self.near = squared_neighbors(index, known, n_neighbors - include_self, np.arange(n))
        self.looks: Looks | None = None
        with suppress(InvalidInput):
            self.looks = Looks(known, held_out, tags)

    def precisions(self, blend: float, n_neighbors: int, scale: float, view: str) -> Any:
        """Average precision of each measured tag, for fewer and more voters, shape (3, measured).

        None where no space can be learned.
        """
        if self.looks is None:
            return None
        if not len(self.measured):
            return np.zeros((len(_VOTERS), 0))
        tags = self._denoised(blend, n_neighbors, scale)
        try:
            text = Chi2View(random_state=self.seed).fit_transform(tags) if view == "chi2" else tags
            known, held_out = self.looks.places(text)
        except InvalidInput:
            return None
        kin = _most_alike(held_out, known, min(max(_VOTERS), len(known)))
        wanted = tags[:, self.measured]
        precisions = []
        for k in _VOTERS:
            voters = kin[:, :k]
            votes = spread(voters, np.ones(voters.shape), wanted)
            precisions.append(average_precision(self.truth, votes.toarray()))
        return np.array(precisions)

    def _denoised(self, blend: float, n_neighbors: int, scale: float) -> scipy.sparse.csr_array:
        if blend == 0:
            return self.tags
        k = n_neighbors - self.include_self
        indices, distances = (part[:, :k] for part in self.near)
        own = self.tags if self.include_self else None
        propagated = propagate(indices, distances, scale, self.tags, own)
        return blended(self.tags, propagated, blend)
