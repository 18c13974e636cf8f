"""Textual views: from a label matrix Y (N×D) to explicit text features T̂ (N×q).

The textual kernel of a view is the inner product of its features, K^T = T̂ T̂ᵀ. A view is any
object with `fit` and `transform`. `SemanticSpace(text_view=…)` takes a view or its name.
"""

from __future__ import annotations

from typing import Annotated, Protocol, Self, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import (
    Array,
    check_integer,
    check_label_matrix,
    like,
    namespace,
    row_blocks,
    to_numpy,
)
from tagkin.arrays.namespaces import LabelMatrix, Seed, is_sparse
from tagkin.errors import InvalidInput
from tagkin.kernels import ExpChi2
from tagkin.kernels.exp_chi2 import mean_chi2
from tagkin.records.forms import Axes, storable
from tagkin.records.rules import Indices, Number, Size
from tagkin.space.landmark_map import LandmarkMap

__all__ = ["Chi2View", "IndicatorView", "TextView", "as_text_view", "text_features"]


@runtime_checkable
class TextView(Protocol):
    """A textual view. Y and T̂ are dense or sparse CSR, with one row per image."""

    def fit(self, Y: LabelMatrix) -> object:
        """Learn from all labels (N×D)."""

    def transform(self, Y: LabelMatrix) -> LabelMatrix:
        """Return text features T̂ (n×q) of labels Y (n×D)."""


@storable
class IndicatorView(TransformerMixin, BaseEstimator):
    """Plain labels: T̂ = Y, so K^T counts the labels that two images share.

    Entries may also be weights, such as confidences.

    Parameters
    ----------
    max_labels : int, default 4096
        Number of text features. If there are more labels, the most frequent are used: a space
        needs a matrix of the size of its text features, and rare labels say little about most
        images.

    Attributes
    ----------
    n_labels_ : int
        D.
    kept_ : int array of shape (q,)
        Columns of Y that are text features.
    """

    n_labels_: Annotated[int, Size("D")]
    kept_: Annotated[np.ndarray, Indices("q", below="D", ascending=True)]

    def __init__(self, max_labels: int = 4096):
        self.max_labels = max_labels

    def fit(self, Y: Array, y: object = None) -> Self:
        """Store the number of labels, and choose the most frequent if they are too many.

        Parameters
        ----------
        Y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        y : ignored
            For scikit-learn; not used.
        """
        check_integer("max_labels", self.max_labels)
        self.n_labels_ = Y.shape[1]
        self.kept_ = np.arange(self.n_labels_)
        if self.n_labels_ > self.max_labels:
            order = np.argsort(-_n_images(Y), kind="stable")
            self.kept_ = np.sort(order[: self.max_labels])
        return self

    def transform(self, Y: Array) -> Array:
        """Return Y itself (n×D), or the columns that are kept."""
        check_label_matrix(Y, n_labels=self.n_labels_, signed=True)
        kept = self.kept_
        if len(kept) == self.n_labels_:
            return Y
        if is_sparse(Y):
            return Y[:, kept]
        if isinstance(Y, np.ndarray):
            return np.take(Y, kept, axis=1)  # with contiguous rows, which are read next
        return Y[:, namespace(Y).asarray(kept, device=Y.device)]


def _n_images(Y: LabelMatrix) -> np.ndarray:
    """Return the number of images with each label, shape (D,)."""
    if is_sparse(Y):
        return np.bincount(Y.tocsr().indices[Y.tocsr().data != 0], minlength=Y.shape[1])
    blocks = row_blocks(Y.shape[0], 8 * Y.shape[1], Y)
    return np.sum([to_numpy((Y[rows] != 0).sum(axis=0)) for rows in blocks], axis=0)


@storable
class Chi2View(TransformerMixin, BaseEstimator):
    """Features T̂ whose inner products are the exp-χ² kernel of tag vectors, through landmarks.

    T̂ T̂ᵀ ≈ exp(−χ²(a, b) / 2C), χ² = Σ (a − b)² / (a + b), C the mean χ² over all pairs of
    training images (the paper's equation 8, for denoised tags). It is exact with as many landmarks
    as images. Y may be sparse, and becomes dense in blocks only.

    Parameters
    ----------
    n_landmarks : int, default 1024
        At most this many features, chosen by randomly pivoted Cholesky among a random sample
        of at least twice as many images.
    random_state : int, RandomState or None, default 0
        Seed of both samples.

    Attributes
    ----------
    scale_ : float
        C.
    scale_error_ : float
        Its standard error: 0 up to 512 images; above, C is estimated from a sample of pairs.
    map_ : LandmarkMap
        The fitted map.
    """

    map_: Annotated[LandmarkMap, Axes(r="q", d="label")]
    scale_: Annotated[float, Number(above=0)]
    scale_error_: Annotated[float, Number(low=0)]

    def __init__(self, n_landmarks: int = 1024, random_state: Seed = 0):
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def fit(self, Y: Array, y: object = None) -> Self:
        """Estimate C and choose the landmarks among the rows of Y (N×D), non-negative.

        Parameters
        ----------
        Y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        y : ignored
            For scikit-learn; not used.
        """
        check_integer("n_landmarks", self.n_landmarks)
        Y = check_label_matrix(Y)
        rng = check_random_state(self.random_state)
        scale, error = mean_chi2(Y, rng)
        if scale == 0:
            scale = 1.0  # all images have the same tags, so every scale gives the same kernel
        n_candidates = min(Y.shape[0], max(2 * int(self.n_landmarks), 2048))
        candidates = np.sort(rng.choice(Y.shape[0], size=n_candidates, replace=False))
        seed = int(rng.randint(2**31 - 1))
        landmark_map = LandmarkMap(ExpChi2(scale), self.n_landmarks, random_state=seed)
        sample = Y[candidates]
        self.map_ = landmark_map.fit(sample.toarray() if is_sparse(sample) else sample)
        self.scale_, self.scale_error_ = scale, error
        return self

    def transform(self, Y: Array) -> Array:
        """Return features T̂ (n×r) of tag vectors Y (n×D), in Y's floating dtype.

        Features of sparse vectors have the dtype and the device of the landmarks.
        """
        check_is_fitted(self)
        Y = check_label_matrix(Y, n_labels=self.map_.n_features_in_)
        if not is_sparse(Y):
            return self.map_.transform(Y)
        points, r = self.map_.landmarks_.points, self.map_.factor_.shape[0]
        xp = namespace(points)
        features = xp.empty((Y.shape[0], r), dtype=points.dtype, device=points.device)
        for rows in row_blocks(Y.shape[0], 8 * (Y.shape[1] + r)):
            features[rows] = self.map_.transform(like(Y[rows], points))
        return features

    def describe(self) -> list[str]:
        """Return a few sentences that describe this view."""
        check_is_fitted(self)
        r, n_labels = self.map_.landmarks_.points.shape
        return [
            f"Maps {n_labels:,} labels by {r:,} landmarks under the exp-χ² kernel.",
            f"Its scale C is {self.scale_:.4g}, with a standard error of {self.scale_error_:.2g}.",
        ]


# Views that need only Y have a name; `WordVectorView` needs the names of the labels.
_VIEWS = {"chi2": Chi2View, "indicator": IndicatorView}

# Views that need more than Y, and how to make them, for an error message.
_MADE_BY_HAND = {"ontology": "tagkin.labels.OntologyView(names), with the labels' names"}


def as_text_view(view: str | TextView) -> TextView:
    """Return an unfitted copy of a view, from a name or an object with fit and transform."""
    if isinstance(view, str):
        if view in _MADE_BY_HAND:
            raise InvalidInput(
                f"The text view {view!r} has no default. Pass {_MADE_BY_HAND[view]}."
            )
        if view not in _VIEWS:
            raise InvalidInput(
                f"Unknown text view {view!r}. Use one of {', '.join(sorted(_VIEWS))}, or an object "
                "with fit(Y) and transform(Y)."
            )
        return _VIEWS[view]()
    if isinstance(view, type) or not isinstance(view, TextView):
        raise InvalidInput(
            f"text_view must be a name or an object with fit and transform; found {view!r}."
        )
    return clone(view, safe=False)


def text_features(view: TextView, Y: LabelMatrix) -> LabelMatrix:
    """Return checked text features (n×q) of checked labels (n×D)."""
    text = view.transform(Y)
    if text is Y:
        return Y
    return check_label_matrix(text, Y.shape[0], name="text features", signed=True)
