"""The text view by the exp-χ² kernel of tag vectors."""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import Array, check_integer, check_label_matrix, like, namespace, row_blocks
from tagkin.arrays.namespaces import Seed, is_sparse
from tagkin.paper.exp_chi2 import ExpChi2, mean_chi2
from tagkin.records.forms import Axes, storable
from tagkin.records.rules import Number
from tagkin.space import LandmarkMap

__all__ = ["Chi2View"]


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
