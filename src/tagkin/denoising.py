"""Tag denoising that never hurts: how much of it to do is learned from held-out tags."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from tagkin.arrays import Array, check_features, check_label_matrix, row_blocks, to_numpy
from tagkin.errors import InvalidInput
from tagkin.evaluation import average_precision
from tagkin.labels.chi2 import Chi2View
from tagkin.labels.denoising import (
    mean_distance,
    mean_squared_distance,
    propagation_weights,
    spread,
)
from tagkin.neighbors import ExactNeighbors, Neighbors, nearest
from tagkin.neighbors.base import check_metric, check_n_neighbors
from tagkin.space import SemanticSpace

__all__ = ["Recipe", "TagDenoiser"]

SCALES = ("mean-squared", "mean")
_SAMPLE = 8000  # tagged images that the choice looks at, a quarter of them held out
_FEWEST = 200  # with fewer the choice would be chance
_LANDMARKS = 1024
_VOTERS = (50, 100, 200)


@dataclass(frozen=True)
class Recipe:
    """One way to denoise, and how well it did on held-out tags."""

    blend: float
    """β: share of the propagated tags beside the raw ones."""
    n_neighbors: int
    """R."""
    narrowing: float = 1.0
    """σ is this times the scale of the distances."""
    view: str = "indicator"
    """Textual view of the blended tags."""
    score: float = float("nan")
    """MAP on held-out tags."""


class TagDenoiser(BaseEstimator):
    """Tags smoothed over images that look alike: (1 − β) raw + β Σₖ wₖ t(k) / Σₖ wₖ.

    The paper propagates tags before it learns the space: each image gets the weighted mean of
    the tags of its R visually nearest images, w = exp(−‖φ − φₖ‖²/σ) (equation 7). That helps
    where tags are wrong and costs where they are right but few. Here β, and with it R, σ and the
    textual view, are chosen on held-out tags of the images given: the mildest recipe that is as
    good as the best, β = 0 among them.

    Parameters
    ----------
    n_neighbors : int, default 100
        R; the image itself counts. The choice also tries a third of it.
    scale : "mean-squared", "mean" or a positive number
        σ: the mean squared distance over pairs of images, the mean distance, or given. The
        choice also tries a quarter of it.
    include_self : bool, default True
        Whether an image is one of its own neighbours.
    blend : "auto" or a number from 0 to 1
        β. 1 is the paper's own form, exactly.
    metric : "cosine" or "euclidean"
        Whether features are brought to unit length first, which ranks images as the visual
        kernel does, or taken as they are.
    min_weight : float, default 0
        Leave out tags that come out below, for a sparser result.
    random_state : int or None
        Seed of the images that the choice looks at.

    Attributes
    ----------
    blend_, n_neighbors_, scale_ : float, int, float
        β, R and σ as they are used.
    view_ : str
        The textual view that did best, for ``SemanticSpace(text_view=denoiser.view_)``.
    trials_ : list of Recipe
        What was tried, with scores; empty where nothing was to choose.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin import TagDenoiser
    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> T = np.array([[1, 0], [0, 0], [0, 1], [0, 1]])
    >>> TagDenoiser(n_neighbors=2, blend=1.0).fit_transform(X, T).toarray().round(1)
    array([[0.5, 0. ],
           [0.5, 0. ],
           [0. , 1. ],
           [0. , 1. ]], dtype=float32)
    """

    def __init__(
        self,
        n_neighbors: int = 100,
        scale: str | float = "mean-squared",
        include_self: bool = True,
        blend: str | float = "auto",
        metric: str = "cosine",
        min_weight: float = 0.0,
        random_state: int | None = 0,
    ):
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.include_self = include_self
        self.blend = blend
        self.metric = metric
        self.min_weight = min_weight
        self.random_state = random_state

    # --- learning ------------------------------------------------------------------------

    def fit(self, X: Array, Y: Array = None) -> Self:
        """Take features X (N×d) and tags Y (N×D, dense or sparse), and choose how to denoise.

        If it fails, what was learned before stays.
        """
        self._check_parameters()
        features = check_features(X)
        tags = as_tags(Y, features.shape[0])
        index = ExactNeighbors(self.metric).fit(features)
        scale = self._scale_of(index.points_)
        if self.blend == "auto":
            recipe, trials = self._chosen(features, tags)
        else:
            recipe, trials = Recipe(float(self.blend), self.n_neighbors), []
        validate_data(self, X, skip_check_array=True, reset=True)
        self.index_, self.tags_, self.trials_ = index, tags, trials
        self.blend_, self.view_ = recipe.blend, recipe.view
        self.n_neighbors_, self.scale_ = recipe.n_neighbors, recipe.narrowing * scale
        return self

    def fit_transform(self, X: Array, Y: Array = None) -> scipy.sparse.csr_array:
        """Fit, and the denoised tags (N×D) of the same images."""
        self.fit(X, Y)
        features = check_features(X)
        if self.blend_ == 0:
            return self._thinned(self.tags_)
        parts = []
        for rows in self._blocks(features):
            own = None if self.include_self else np.arange(rows.start, rows.stop)
            near = self._neighbors(features[rows], self.n_neighbors_, exclude=own)
            weights = propagation_weights(near.distances, self.scale_)
            propagated = spread(near.indices, weights, self.tags_)
            parts.append(self._blended(self.tags_[rows], propagated))
        return scipy.sparse.vstack(parts, format="csr")

    def transform(self, X: Array, Y: Array = None) -> scipy.sparse.csr_array:
        """Denoised tags (n×D) of further images, from the images fitted and their own tags Y.

        Without own tags all of it is propagated, whatever the blend.
        """
        if not hasattr(self, "index_"):
            raise NotFittedError("This TagDenoiser is not fitted yet. Call fit(X, Y) first.")
        features = check_features(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        own = None if Y is None else as_tags(Y, features.shape[0])
        if own is not None and own.shape[1] != self.tags_.shape[1]:
            raise InvalidInput(
                f"Found {own.shape[1]} tags where {self.tags_.shape[1]} were fitted."
            )
        parts = []
        for rows in self._blocks(features):
            raw = None if own is None else own[rows]
            parts.append(self._of_new(features[rows], raw))
        return scipy.sparse.vstack(parts, format="csr")

    def describe(self) -> list[str]:
        """What this denoiser is, in a few sentences."""
        n, d = self.tags_.shape
        how = f"{self.blend_:.2g} of the tags of an image come from {self.n_neighbors_} like it"
        return [
            f"Smooths {d:,} tags over {n:,} images.",
            f"{how}; the view that did best is {self.view_!r}.",
            *(f"Tried {trial}." for trial in self.trials_),
        ]

    def _of_new(self, features: Array, raw: scipy.sparse.csr_array | None) -> Any:
        """Denoised tags of a block of images that were not fitted."""
        if raw is None or not self.include_self:
            near = self._neighbors(features, self.n_neighbors_)
            weights = propagation_weights(near.distances, self.scale_)
            propagated = spread(near.indices, weights, self.tags_)
            return self._thinned(propagated) if raw is None else self._blended(raw, propagated)
        # the image itself is the nearest of its neighbours
        near = self._neighbors(features, self.n_neighbors_ - 1)
        distances = np.pad(near.distances, ((0, 0), (1, 0)))
        weights = propagation_weights(distances, self.scale_)
        propagated = spread(near.indices, weights[:, 1:], self.tags_)
        propagated += scipy.sparse.diags_array(weights[:, 0].astype(np.float32)) @ raw
        return self._blended(raw, propagated)

    def _blended(self, raw: Any, propagated: Any) -> scipy.sparse.csr_array:
        return self._thinned(blended(raw, propagated, self.blend_))

    def _thinned(self, tags: Any) -> scipy.sparse.csr_array:
        tags = scipy.sparse.csr_array(tags, copy=True)
        tags.data[tags.data < self.min_weight] = 0
        tags.eliminate_zeros()
        return tags

    def _neighbors(self, queries: Array, k: int, exclude: Any = None) -> Neighbors:
        """Neighbours with *squared* distances between features, on the host."""
        n = self.index_.n_points_ - (exclude is not None)
        if min(k, n) < 1:
            empty = np.empty((queries.shape[0], 0))
            return Neighbors(empty.astype(np.int64), empty)
        return _squared(self.index_, queries, min(k, n), exclude)

    def _blocks(self, features: Array) -> Iterator[slice]:
        # a row of propagated tags holds at most those of all its neighbours
        tags = self.n_neighbors_ * max(1, self.tags_.nnz // max(1, self.tags_.shape[0]))
        return row_blocks(features.shape[0], 32 * (self.n_neighbors_ + tags + features.shape[1]))

    def _scale_of(self, points: Array) -> float:
        if self.scale == "mean-squared":
            return mean_squared_distance(points)
        if self.scale == "mean":
            return mean_distance(points, self.random_state)
        return float(self.scale)

    def _check_parameters(self) -> None:
        check_n_neighbors(self.n_neighbors, np.inf)
        check_metric(self.metric)
        blend, scale = self.blend, self.scale
        if blend != "auto" and not (isinstance(blend, Real) and 0 <= blend <= 1):
            raise InvalidInput(f"blend must be 'auto' or a number from 0 to 1; found {blend!r}.")
        if scale not in SCALES and not (isinstance(scale, Real) and scale > 0):
            raise InvalidInput(
                f"scale must be {', '.join(SCALES)} or a positive number; found {scale!r}."
            )

    # --- choosing ------------------------------------------------------------------------

    def _chosen(self, features: Array, tags: scipy.sparse.csr_array) -> tuple[Recipe, list[Recipe]]:
        """The best recipe, and all that were tried on a sample; none where tags are few."""
        rng = np.random.default_rng(self.random_state)
        sample = rng.permutation(tags.shape[0])[:_SAMPLE]
        tagged = sample[np.diff(tags.indptr)[sample] > 0]
        if len(tagged) < _FEWEST:
            return Recipe(0.0, self.n_neighbors), []
        held_out = np.sort(tagged[: len(tagged) // 4])
        known = np.setdiff1d(sample, held_out)
        bench = _Bench(self, features[known], tags[known], features[held_out], tags[held_out])
        r = self.n_neighbors
        raw = bench.tried(Recipe(0.0, r))
        for blend, narrowing in ((0.15, 0.25), (0.3, 0.25), (0.5, 0.25), (0.3, 1.0), (1.0, 1.0)):
            bench.tried(Recipe(blend, r, narrowing))
        best = bench.mildest()
        if best != raw:
            bench.tried(replace(best, n_neighbors=max(2, r // 3), score=np.nan))
            best = bench.mildest()
            bench.tried(replace(best, view="chi2", score=np.nan))
            best = bench.mildest()
        return best, list(bench.trials)


class _Bench:
    """Held-out images on whose tags recipes are tried, as they will be used.

    A space is learned from the blended tags of the known images, and each held-out image gets the
    blended tags of its neighbours there; the score is the MAP of these against its own tags.
    """

    def __init__(
        self,
        denoiser: TagDenoiser,
        known: Array,
        tags: scipy.sparse.csr_array,
        held_out: Array,
        truth: scipy.sparse.csr_array,
    ):
        self.known, self.tags, self.held_out = known, tags, held_out
        # tags on hardly an image would make the score a matter of luck
        counts = np.minimum(np.diff(truth.tocsc().indptr), np.diff(tags.tocsc().indptr))
        measured = counts >= min(3, counts.max())
        self.measured = np.flatnonzero(measured)
        self.truth = truth[:, self.measured]
        n = known.shape[0]
        index = ExactNeighbors(denoiser.metric).fit(known)
        self.scale = denoiser._scale_of(index.points_)
        k = min(denoiser.n_neighbors, n - (not denoiser.include_self))
        own = None if denoiser.include_self else np.arange(n)
        self.near = _squared(index, known, k, own)
        step = -(-n // _LANDMARKS)
        self.landmarks = known[::step]
        self.seed = denoiser.random_state
        self.trials: dict[Recipe, np.ndarray] = {}

    def tried(self, recipe: Recipe) -> Recipe:
        """The recipe with its score; it is noted among the trials."""
        tags = self.tags
        if recipe.blend > 0:
            near = Neighbors(*(part[:, : recipe.n_neighbors] for part in self.near))
            weights = propagation_weights(near.distances, recipe.narrowing * self.scale)
            tags = blended(tags, spread(near.indices, weights, tags), recipe.blend)
        view = recipe.view if recipe.view == "indicator" else Chi2View(random_state=self.seed)
        space = SemanticSpace(selection=self.landmarks, text_view=view).fit(self.known, tags)
        places, asked = space.transform(self.known), space.transform(self.held_out)
        voters = min(max(_VOTERS), places.shape[0])
        kin = to_numpy(nearest(asked, places, voters).indices)
        wanted = tags[:, self.measured]
        precisions = []
        for k in _VOTERS:
            votes = spread(kin[:, :k], np.ones((len(kin), min(k, voters))), wanted)
            precisions.append(average_precision(self.truth, votes.toarray()))
        best = max(precisions, key=np.mean)
        recipe = replace(recipe, score=float(best.mean()))
        self.trials[recipe] = best
        return recipe

    def mildest(self) -> Recipe:
        """The recipe that changes least, of those as good as the best.

        As good is within one standard error of the difference, over the tags. A larger blend
        changes more, a view of another kind most.
        """
        best = max(self.trials, key=lambda recipe: recipe.score)

        def as_good(recipe: Recipe) -> bool:
            loss = self.trials[best] - self.trials[recipe]
            return float(loss.mean()) <= float(loss.std()) / np.sqrt(len(loss))

        def change(recipe: Recipe) -> tuple[bool, float, float]:
            return recipe.view != "indicator", recipe.blend, -recipe.score

        return min(filter(as_good, self.trials), key=change)


def as_tags(Y: Array, n_rows: int) -> scipy.sparse.csr_array:
    """A copy of Y (N×D) as a CSR array of float32 weights."""
    checked = check_label_matrix(Y, n_rows)
    if not scipy.sparse.issparse(checked):
        checked = to_numpy(checked)
    tags = scipy.sparse.csr_array(checked, dtype=np.float32, copy=True)
    tags.sum_duplicates()
    tags.eliminate_zeros()
    if tags.nnz and tags.data.min() < 0:
        raise InvalidInput("Found a negative entry among the tags. A tag is on an image or not.")
    return tags


def blended(raw: Any, propagated: Any, blend: float) -> scipy.sparse.csr_array:
    """(1 − β) raw + β propagated; of images without a tag, what is propagated."""
    if blend == 1:
        return scipy.sparse.csr_array(propagated)
    share = np.where(np.diff(raw.indptr) > 0, blend, 1).astype(np.float32)
    mixed = scipy.sparse.diags_array(1 - share) @ raw
    return scipy.sparse.csr_array(mixed + scipy.sparse.diags_array(share) @ propagated)


def _squared(index: ExactNeighbors, queries: Array, k: int, exclude: Any) -> Neighbors:
    """Neighbours with squared distances between features, on the host."""
    found = index.kneighbors(queries, k, exclude=exclude)
    distances = to_numpy(found.distances).astype(np.float64)
    # of unit vectors the squared distance is twice 1 − cosine
    squared = 2 * distances if index.metric == "cosine" else distances**2
    return Neighbors(to_numpy(found.indices), squared)
