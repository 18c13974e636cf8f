"""Tag denoising, chosen on held-out tags."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from tagkin.arrays import (
    Array,
    check_features,
    check_groups,
    check_same_features,
    row_blocks,
    to_numpy,
)
from tagkin.arrays.labels import TakesLabelMatrix, check_names, label_names
from tagkin.arrays.records import Axes, storable
from tagkin.arrays.rules import Number, Size, Sparse, Texts, Whole
from tagkin.denoising.propagation import (
    as_tags,
    blend_tags,
    propagate,
    squared_neighbors,
)
from tagkin.denoising.trials import Comparison, HeldOutFold, Setting, folds
from tagkin.errors import InvalidInput
from tagkin.kernels.kernel import mean_distance, mean_squared_distance
from tagkin.neighbors import ExactNeighbors
from tagkin.neighbors.neighbor_index import check_metric, check_n_neighbors
from tagkin.wording import count

__all__ = ["TagDenoiser"]

SCALES = ("mean-squared", "mean")
_SAMPLE = 8000  # images for the choice
_FIRST_SAMPLE = 4000  # images for the first trials, which may decide against more
_FEWEST = 200  # tagged images; with fewer, the choice would be chance
_BLENDS = (0.05, 0.15, 0.3, 0.5, 1.0)
_FIRST_LOOK = (0.0, 0.5, 1.0)
_MOSTLY = 0.5  # smallest blend with which the paper's view for denoised tags is tried


@storable
class TagDenoiser(TransformerMixin, TakesLabelMatrix, BaseEstimator):
    """Smooths tags over visually similar images: (1 − β) raw + β Σₖ wₖ t(k) / Σₖ wₖ.

    The paper propagates tags before it learns the space: each image gets the weighted mean of
    the tags of its R visually nearest images, w = exp(−‖φ − φₖ‖²/σ) (equation 7). That helps
    if tags are wrong and hurts if they are right but few. Here β, R, σ and the textual view are
    chosen by held-out tags of the training images: the mildest setting within a standard error of
    the best. β = 0 is among the settings.

    Parameters
    ----------
    n_neighbors : int, default 100
        R, at most the number of images. An image is its own first neighbour, at distance 0. The
        choice also tries a third of R.
    scale : "mean-squared", "mean" or a positive number
        σ: the mean squared distance over pairs of images, the mean distance, or a number. The
        choice also tries a quarter of it.
    blend : "auto" or a number from 0 to 1
        β. 1 is exactly the paper's method; 0 leaves tags unchanged. In between, an image without
        tags gets the propagated tags in full. "auto" needs 200 tagged images and two tags that
        are not on all of them; otherwise β = 0.
    metric : "cosine" or "euclidean"
        "cosine" scales features to unit length, which ranks images like the visual kernel;
        "euclidean" uses them unchanged. With "cosine", an image with zero features gives no tags
        and keeps only its own.
    space : SemanticSpace, optional
        Settings of the spaces in which ``blend="auto"`` tries blends, by the held-out tags that
        neighbours in each space predict. 1,024 landmarks are enough.
    passed_on : "denoised" or "raw"
        The tags that neighbours predict in these trials. Use "raw" if denoised tags are used only
        to fit the space. That seldom helps, so two blends on a quarter of 4,000 images decide
        whether to try more.
    random_state : int or None, default 0
        Seed for the sample of at most 8,000 images and for its split into quarters, whose tags
        are held out in turn.

    Attributes
    ----------
    blend_, n_neighbors_, scale_ : float, int, float
        The values of β, R and σ in use.
    view_ : str
        The best textual view, for ``SemanticSpace(text_view=denoiser.view_)``.
    trials_ : list of Setting
        All trials with scores; empty if there was nothing to choose.

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

    index_: Annotated[ExactNeighbors, Axes(m="d")]
    tags_: Annotated[scipy.sparse.csr_array, Sparse("N", "D")]
    trials_: list[Setting]
    blend_: Annotated[float, Number(low=0, high=1)]
    view_: str
    n_neighbors_: Annotated[int, Whole(1)]
    scale_: Annotated[float, Number(low=0)]
    _label_names: Annotated[Any, Texts("D").or_none().or_absent()]
    n_features_in_: Annotated[int, Size("d").or_absent()]
    feature_names_in_: Annotated[np.ndarray, Texts("d").or_absent()]

    def __init__(
        self,
        n_neighbors: int = 100,
        scale: str | float = "mean-squared",
        *,
        blend: str | float = "auto",
        metric: str = "cosine",
        space: Any = None,
        random_state: int | None = 0,
        passed_on: str = "denoised",
    ):
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.blend = blend
        self.metric = metric
        self.space = space
        self.random_state = random_state
        self.passed_on = passed_on

    # --- learning ------------------------------------------------------------------------

    def fit(self, X: Array, y: Any = None, *, groups: Array | None = None) -> Self:
        """Store features X (N×d) and tags y (N×D, dense or sparse), and choose how to denoise.

        If it fails, the denoiser does not change. Images of the same group in `groups` (N,), such
        as a burst, are held out together.
        """
        self.check_parameters()
        features = check_features(X)
        tags, names = as_tags(y, features.shape[0]), label_names(y)
        codes = None if groups is None else check_groups(groups, features.shape[0])
        index = ExactNeighbors(self.metric).fit(features)
        scale = self.scale_of(index.points_)
        if self.blend == "auto":
            setting, trials = self._choose_setting(features, tags, scale, codes)
        else:
            setting, trials = Setting(float(self.blend), int(self.n_neighbors)), []
        validate_data(self, X, skip_check_array=True, reset=True)
        self.index_, self.tags_, self.trials_ = index, tags, trials
        self._label_names = names
        self.blend_, self.view_ = setting.blend, setting.view
        self.n_neighbors_, self.scale_ = setting.n_neighbors, setting.narrowing * scale
        return self

    def fit_transform(
        self, X: Array, y: Any = None, *, groups: Array | None = None
    ) -> scipy.sparse.csr_array:
        """Fit, and return the denoised tags (N×D) of the same images as a float32 CSR array."""
        self.fit(X, y, groups=groups)
        return self._denoise(check_features(X), self.tags_, fitted=True)

    def transform(self, X: Array, y: Any = None) -> scipy.sparse.csr_array:
        """Return denoised tags (n×D) of new images, from the fitted images and their own tags y.

        Without y, all tags are propagated, for any blend. All images count as new. For the fitted
        images use `fit_transform`; here each would be its own neighbour.
        """
        if not hasattr(self, "index_"):
            raise NotFittedError("This TagDenoiser is not fitted yet. Call fit(X, y) first.")
        features = check_features(X)
        check_same_features(self, X)
        own = None if y is None else as_tags(y, features.shape[0])
        if own is not None and own.shape[1] != self.tags_.shape[1]:
            raise InvalidInput(
                f"Found {own.shape[1]} tags in Y, but {self.tags_.shape[1]} were fitted. Pass "
                "the same tags in the same order."
            )
        check_names(getattr(self, "_label_names", None), y)
        return self._denoise(features, own)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def describe(self) -> list[str]:
        """Return a few sentences that describe this denoiser."""
        n, d = self.tags_.shape
        from_others = "all" if self.blend_ == 1 else f"{100 * self.blend_:.0f} %"
        neighbors = count(self.n_neighbors_, "visual neighbour")
        return [
            f"Smooths {count(d, 'tag')} over {count(n, 'image')}.",
            f"Of the weight of an image's tags, {from_others} comes from {neighbors}; the view "
            f"that did best is {self.view_!r}.",
            *(f"Tried {trial}." for trial in self.trials_),
        ]

    def _denoise(
        self, features: Array, own: scipy.sparse.csr_array | None, *, fitted: bool = False
    ) -> scipy.sparse.csr_array:
        if own is not None and self.blend_ == 0:
            return _tidy(own)
        parts = []
        for rows in self._blocks(features):
            exclude = np.arange(rows.start, rows.stop) if fitted else None
            raw = None if own is None else own[rows]
            parts.append(_tidy(self._denoise_block(features[rows], raw, exclude)))
        return scipy.sparse.vstack(parts, format="csr")

    def _denoise_block(
        self, features: Array, raw: scipy.sparse.csr_array | None, exclude: np.ndarray | None
    ) -> scipy.sparse.csr_array:
        """Return denoised tags of a block of images; `exclude` are their rows if fitted."""
        k = self.n_neighbors_ - (raw is not None)
        near = squared_neighbors(self.index_, features, k, exclude)
        indices, squared = map(to_numpy, near)
        propagated = propagate(indices, squared, self.scale_, self.tags_, raw)
        return propagated if raw is None else blend_tags(raw, propagated, self.blend_)

    def _blocks(self, features: Array) -> Iterator[slice]:
        n, n_tags = self.tags_.shape
        k = min(self.n_neighbors_, n)
        # a row of propagated tags has at most the tags of all its neighbours
        n_propagated = min(n_tags, k * max(1, self.tags_.nnz // n))
        return row_blocks(features.shape[0], 32 * (k + n_propagated + features.shape[1]))

    def scale_of(self, points: Array) -> float:
        """Return σ of points (N×m), before it is narrowed."""
        if self.scale == "mean-squared":
            return mean_squared_distance(points)
        if self.scale == "mean":
            return mean_distance(points, self.random_state)
        return float(self.scale)

    def check_parameters(self) -> None:
        """Reject invalid parameters."""
        check_n_neighbors(self.n_neighbors, np.inf)
        check_metric(self.metric)
        blend, scale = self.blend, self.scale
        if blend != "auto" and not (isinstance(blend, Real) and 0 <= blend <= 1):
            raise InvalidInput(f"blend must be 'auto' or a number from 0 to 1; found {blend!r}.")
        if blend == "auto" and not hasattr(self.space, "refits"):
            raise InvalidInput(
                "blend='auto' tries blends in a semantic space: pass one, as in "
                "TagDenoiser(space=SemanticSpace(n_landmarks=1024)), or a number from 0 to 1 as "
                "blend."
            )
        if self.passed_on not in ("denoised", "raw"):
            raise InvalidInput(f'passed_on must be "denoised" or "raw"; found {self.passed_on!r}.')
        if scale not in SCALES and not (isinstance(scale, Real) and 0 < scale < math.inf):
            raise InvalidInput(
                f"scale must be {', '.join(SCALES)} or a positive number; found {scale!r}."
            )

    # --- choosing ------------------------------------------------------------------------

    def _choose_setting(
        self,
        features: Array,
        tags: scipy.sparse.csr_array,
        scale: float,
        groups: np.ndarray | None,
    ) -> tuple[Setting, list[Setting]]:
        """Return the best setting and all trials on a sample; no trials if tags are few."""
        r = int(self.n_neighbors)
        unchanged = Setting(0.0, r)
        tagged = np.diff(tags.indptr) > 0
        if np.count_nonzero(tagged) < _FEWEST:
            return unchanged, []
        parts = folds(tagged, _SAMPLE, self.random_state, groups)
        known: list[HeldOutFold] = []
        if self.passed_on == "raw":
            first_parts = parts
            if len(tagged) > _FIRST_SAMPLE:
                first_parts = folds(tagged, _FIRST_SAMPLE, self.random_state, groups)
            first_fold = HeldOutFold(self, features, tags, *first_parts[0])
            first_look = Comparison([first_fold], scale)
            for blend in _FIRST_LOOK:
                if np.count_nonzero(first_look.weights) < 2 or not first_look.add(
                    Setting(blend, r, 0.25)
                ):
                    return unchanged, []
            if first_look.mildest().blend == 0:
                return unchanged, list(first_look.precisions)
            known = first_look.folds if first_parts is parts else []
        others = [HeldOutFold(self, features, tags, *part) for part in parts[len(known) :]]
        trials = Comparison([*known, *others], scale)
        if np.count_nonzero(trials.weights) < 2 or not trials.add(unchanged):
            return unchanged, []
        for blend in sorted(_BLENDS, key=lambda blend: blend not in _FIRST_LOOK):
            skippable = self.passed_on == "raw" and blend not in _FIRST_LOOK
            if skippable and trials.mildest().blend == 0:
                break  # all folds do not confirm the first look
            trials.add(Setting(blend, r, 0.25))
        if trials.mildest().blend > 0:
            trials.add(replace(trials.mildest(), narrowing=1.0))
            if r // 3 > 1:
                trials.add(replace(trials.mildest(), n_neighbors=r // 3))
        if trials.mildest().blend >= _MOSTLY:
            trials.add(replace(trials.mildest(), view="chi2"))
        return trials.mildest(), list(trials.precisions)


def _tidy(tags: Any) -> scipy.sparse.csr_array:
    """Return a copy with sorted entries, without zeros."""
    tags = scipy.sparse.csr_array(tags, copy=True)
    tags.eliminate_zeros()
    tags.sort_indices()
    return tags
