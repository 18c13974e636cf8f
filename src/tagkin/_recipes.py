"""How well would denoised tags do? Tried on images whose tags are held out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, namespace, to_numpy
from tagkin.errors import InvalidInput
from tagkin.evaluation import average_precision
from tagkin.labels.chi2 import Chi2View
from tagkin.labels.denoising import blended, propagate, spread
from tagkin.neighbors import ExactNeighbors, Neighbors, nearest
from tagkin.space import SemanticSpace

__all__ = ["Bench", "parted", "squared_neighbors"]

_LANDMARKS = 1024
_VOTERS = (50, 100, 200)
_OFTEN = 3  # tags on fewer images would make the score a matter of luck


def parted(tagged: np.ndarray, size: int, random_state: int | None) -> tuple[Any, Any]:
    """Indices of images that are known, and of tagged ones held out: a quarter of those looked at.

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
    held_out, known = np.split(carrying, [n_tagged // 4])
    return np.sort(np.concatenate([known, bare])), np.sort(held_out)


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
        self.known, self.tags, self.held_out = known, tags, held_out
        self.include_self, self.seed = include_self, random_state
        counts = [np.diff(part.tocsc().indptr) for part in (tags, truth)]
        varied = (counts[0] < tags.shape[0]) & (counts[1] < truth.shape[0])
        fewer = np.where(varied, np.minimum(*counts), 0)
        self.measured = np.flatnonzero(fewer >= min(_OFTEN, max(1, fewer.max())))
        self.truth = truth[:, self.measured]
        n = known.shape[0]
        self.near = squared_neighbors(index, known, n_neighbors - include_self, np.arange(n))
        self.landmarks = known[:: -(-n // _LANDMARKS)]

    def precisions(self, blend: float, n_neighbors: int, scale: float, view: str) -> Any:
        """Average precision of each measured tag; None where no space can be learned."""
        tags = self.tags
        if blend > 0:
            k = n_neighbors - self.include_self
            indices, distances = (part[:, :k] for part in self.near)
            own = tags if self.include_self else None
            tags = blended(tags, propagate(indices, distances, scale, tags, own), blend)
        text_view = Chi2View(random_state=self.seed) if view == "chi2" else view
        space = SemanticSpace(selection=self.landmarks, text_view=text_view)
        try:
            space.fit(self.known, tags)
        except InvalidInput:
            return None  # images that all look the same, or tags that all images share
        places, asked = space.transform(self.known), space.transform(self.held_out)
        kin = to_numpy(nearest(asked, places, min(max(_VOTERS), places.shape[0])).indices)
        wanted = tags[:, self.measured]
        precisions = []
        for k in _VOTERS:
            voters = kin[:, :k]
            votes = spread(voters, np.ones(voters.shape), wanted)
            precisions.append(average_precision(self.truth, votes.toarray()))
        return max(precisions, key=np.mean)
