"""Trials of denoising settings on images whose tags are held out."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, to_numpy
from tagkin.arrays.records import storable
from tagkin.arrays.rules import Number, Whole
from tagkin.denoising.propagation import blend_tags, propagate, spread, squared_neighbors
from tagkin.errors import InvalidInput
from tagkin.evaluation import average_precision
from tagkin.neighbors import ExactNeighbors, nearest

__all__ = ["Comparison", "HeldOutFold", "Setting", "folds"]

_FOLDS = 4
_VOTERS = (50, 100, 200)
_OFTEN = 3  # images per tag; with fewer, the score would be chance


@storable
@dataclass(frozen=True)
class Setting:
    """A way to denoise, and its score on held-out tags."""

    blend: Annotated[float, Number(low=0, high=1)]
    """β: share of the propagated tags."""
    n_neighbors: Annotated[int, Whole(1)]
    """R."""
    narrowing: Annotated[float, Number(above=0)] = 1.0
    """σ is this times the scale of the distances."""
    view: str = "indicator"
    """Textual view of the blended tags."""
    score: Annotated[float, Number(nan=True)] = float("nan")
    """MAP on held-out tags, in which a tag counts by the root of its images."""


def folds(
    tagged: np.ndarray, size: int, random_state: int | None, groups: np.ndarray | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return indices of known images and of held-out tagged images, for each quarter.

    Parameters
    ----------
    tagged : bool array of shape (N,)
    size : int
        Number of images to use. The share of tagged images is the same as in all images, but at
        least a quarter if there are enough.
    random_state : int or None
    groups : int array of shape (N,), optional
        Images of a group are held out together, except groups larger than a quarter.
    """
    order = np.random.default_rng(random_state).permutation(len(tagged))
    if groups is not None:  # each group as a whole, in the order of its first image
        _, first, codes = np.unique(groups[order], return_index=True, return_inverse=True)
        order = order[np.argsort(first[codes], kind="stable")]
    with_tags, untagged = order[tagged[order]], order[~tagged[order]]
    n_tagged = min(len(with_tags), max(size // 4, size * len(with_tags) // len(tagged)))
    with_tags, untagged = with_tags[:n_tagged], untagged[: max(0, size - n_tagged)]
    ends = np.cumsum([len(part) for part in np.array_split(with_tags, _FOLDS)])[:-1]
    if groups is not None:
        ends = _between_groups(ends, groups[with_tags])
    return [
        (
            np.sort(np.concatenate([np.setdiff1d(with_tags, held_out), untagged])),
            np.sort(held_out),
        )
        for held_out in np.split(with_tags, ends)
    ]


def _between_groups(ends: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Move `ends` to the nearest boundaries between groups.

    If a large group would leave less than half a quarter to another part, return `ends`.
    """
    borders = np.flatnonzero(np.diff(groups, prepend=-1, append=-1))
    moved = borders[np.abs(borders[:, None] - ends).argmin(axis=0)]
    inside = np.concatenate([[0], moved, [len(groups)]])
    return moved if (np.diff(inside) >= len(groups) // (2 * _FOLDS)).all() else ends


class HeldOutFold:
    """Held-out images for trials of settings.

    A space is learned from the blended tags of the known images. Each held-out image gets the
    blended or raw tags of its neighbours in that space, which are compared with its own tags.

    Parameters
    ----------
    denoiser : TagDenoiser
        Its `n_neighbors` is the largest R to try.
    features : array of shape (N, d)
    tags : CSR array of shape (N, D)
    known, held_out : int arrays of shape (n,) and (m,)
        Rows of the features and tags.

    Attributes
    ----------
    measured : int array
        Tags that are on enough known and held-out images, but not on all.
    carriers : int array
        Number of held-out images with each measured tag.
    refits : Refits or None
        Spaces of these images; None if all images look the same.
    """

    def __init__(
        self,
        denoiser: Any,
        features: Array,
        tags: scipy.sparse.csr_array,
        known: np.ndarray,
        held_out: np.ndarray,
    ):
        self.tags, self.passed_on, truth = tags[known], denoiser.passed_on, tags[held_out]
        counts = [np.diff(part.tocsc().indptr) for part in (self.tags, truth)]
        varied = (counts[0] < len(known)) & (counts[1] < len(held_out))
        fewer = np.where(varied, np.minimum(*counts), 0)
        self.measured = np.flatnonzero(fewer >= min(_OFTEN, max(1, fewer.max())))
        self.truth, self.carriers = truth[:, self.measured], counts[1][self.measured]
        points, new = features[known], features[held_out]
        index, own = ExactNeighbors(denoiser.metric).fit(points), np.arange(len(known))
        # rounding of distances changes no weight by more than that
        n_others = int(denoiser.n_neighbors) - 1
        self.near = squared_neighbors(index, points, n_others, own, by_pairs=False)
        self._known: dict[tuple[float, int, float, str], Any] = {}
        self.refits: Any = None
        with suppress(InvalidInput):
            self.refits = denoiser.space.refits(points, new)

    def precisions(self, blend: float, n_neighbors: int, scale: float, view: str) -> Any:
        """Return the average precision of each measured tag with 50, 100 and 200 voters.

        The shape is (3, measured); None if no space can be learned. Results are cached.
        """
        # without blending, the other parameters have no effect
        setting = (blend, n_neighbors, scale, view) if blend else (blend, 0, 0.0, view)
        if setting not in self._known:
            self._known[setting] = self._precisions(*setting)
        return self._known[setting]

    def _precisions(self, blend: float, n_neighbors: int, scale: float, view: str) -> Any:
        if self.refits is None:
            return None
        if not len(self.measured):
            return np.zeros((len(_VOTERS), 0))
        tags = self._denoised(blend, n_neighbors, scale)
        try:
            known, held_out = self.refits.embeddings(tags, view)
        except InvalidInput:
            return None
        k = min(max(_VOTERS), len(known))
        neighbors = to_numpy(nearest(held_out, known, k, by_pairs=False).indices)
        passed_on = self.tags if self.passed_on == "raw" else tags
        wanted = passed_on[:, self.measured]
        precisions = []
        for k in _VOTERS:
            voters = neighbors[:, :k]
            votes = spread(voters, np.ones(voters.shape), wanted)
            precisions.append(average_precision(self.truth, votes.toarray()))
        return np.array(precisions)

    def _denoised(self, blend: float, n_neighbors: int, scale: float) -> scipy.sparse.csr_array:
        if blend == 0:
            return self.tags
        indices, distances = (part[:, : n_neighbors - 1] for part in self.near)
        propagated = propagate(indices, distances, scale, self.tags, self.tags)
        return blend_tags(self.tags, propagated, blend)


class Comparison:
    """Settings that were tried on held-out tags, with the average precision of each tag.

    Attributes
    ----------
    weights : array of shape (D,)
        Weight of each tag: the root of its number of held-out images. Precision on few images is
        mostly chance, but weights by number would let the most common tags decide.
    precisions : dict
        The average precision of each tag by setting, shape (D,): the mean over the folds that
        measure the tag, with the best number of voters.
    """

    def __init__(self, folds: list[HeldOutFold], scale: float):
        self.folds, self.scale = folds, scale
        n_tags = folds[0].tags.shape[1]
        self.times, carriers = np.zeros(n_tags), np.zeros(n_tags)
        for fold in folds:
            self.times[fold.measured] += 1
            carriers[fold.measured] += fold.carriers
        self.weights = np.sqrt(carriers)
        self.precisions: dict[Setting, np.ndarray] = {}

    def add(self, setting: Setting) -> bool:
        """Try a setting; return False if no space can be learned with it."""
        scale = setting.narrowing * self.scale
        total: Any = 0
        for fold in self.folds:
            precisions = fold.precisions(setting.blend, setting.n_neighbors, scale, setting.view)
            if precisions is None:
                return False
            by_tag = np.zeros((len(precisions), len(self.times)))
            by_tag[:, fold.measured] = precisions
            total = total + by_tag
        best = max(total / np.maximum(self.times, 1), key=self.mean)
        self.precisions[replace(setting, score=self.mean(best))] = best
        return True

    def mildest(self) -> Setting:
        """Return the setting that changes tags least among those as good as the best.

        As good is within a standard error of the difference, over the tags. A larger blend
        changes more, a view of another kind most.
        """
        best = max(self.precisions, key=lambda setting: setting.score)

        def as_good(setting: Setting) -> bool:
            loss = self.precisions[best] - self.precisions[setting]
            return self.mean(loss) <= self.standard_error(loss)

        def change(setting: Setting) -> tuple[bool, float, float]:
            return setting.view != "indicator", setting.blend, -setting.score

        return min(filter(as_good, self.precisions), key=change)

    def mean(self, values: np.ndarray) -> float:
        """Return the weighted mean over tags."""
        return float(self.weights @ values / self.weights.sum())

    def standard_error(self, values: np.ndarray) -> float:
        """Return the standard error of the weighted mean."""
        n = np.count_nonzero(self.weights)
        beyond = self.weights * (values - self.mean(values))
        return float(np.linalg.norm(beyond) / self.weights.sum() * math.sqrt(n / (n - 1)))
