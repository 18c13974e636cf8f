"""Explicit features of a kernel, by landmarks."""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tagkin.arrays import (
    Array,
    as_block,
    check_features,
    namespace,
    row_blocks,
    smaller_blocks_when_full,
)
from tagkin.arrays.linalg import solve_triangular
from tagkin.arrays.namespaces import Seed
from tagkin.kernels import Kernel
from tagkin.records.forms import storable
from tagkin.records.rules import Floats, Size, Texts
from tagkin.space.landmark_choice import choose_landmarks
from tagkin.space.space import Landmarks

__all__ = ["LandmarkMap"]


@storable
class LandmarkMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Explicit features whose inner products approximate a kernel.

    Φ(x) = L⁻¹ k(S, x), with landmarks S chosen among the images and L Lᵀ = k(S, S).

    Parameters
    ----------
    kernel : str or Kernel, default "arc-cosine"
        A name in `tagkin.kernels.KERNELS`, such as "rbf", or an object of `tagkin.kernels`.
    n_landmarks : int, default 4096
        Most landmarks. With as many as there are images the map is exact.
    selection : "rpcholesky", "pgso", "uniform", or an array of shape (r, d)
        How to choose landmarks: by randomly pivoted Cholesky among a random sample of at least
        2 × `n_landmarks` images; by partial Gram–Schmidt over all images (the paper's method, which
        is slow and needs an N×r matrix); uniformly at random. Or the landmarks themselves.
    random_state : int, RandomState or None, default 0

    Attributes
    ----------
    landmarks_ : Landmarks
        The kernel, the chosen images (``points``) and their rows in X (``indices``), without
        linearly dependent images.
    factor_ : float64 array of shape (r, r), L

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin import LandmarkMap
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> Phi = LandmarkMap(n_landmarks=100).fit_transform(X)
    >>> (Phi @ Phi.T).diagonal().round(2)[:3]  # the kernel of an image with itself
    array([1., 1., 1.])
    """

    landmarks_: Landmarks
    factor_: Annotated[Array, Floats("r", "r", triangular=True)]
    n_features_in_: Annotated[int, Size("d").or_absent()]
    feature_names_in_: Annotated[np.ndarray, Texts("d").or_absent()]

    def __init__(
        self,
        kernel: str | Kernel = "arc-cosine",
        n_landmarks: int = 4096,
        *,
        selection: str | Array = "rpcholesky",
        random_state: Seed = 0,
    ):
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.selection = selection
        self.random_state = random_state

    def fit(self, X: Array, y: object = None) -> Self:
        """Choose the landmarks among the rows of X (N×d).

        Parameters
        ----------
        X : array of shape (N, d)
            Features of N images.
        y : ignored
            For scikit-learn; not used.
        """
        features = check_features(X)
        chosen = choose_landmarks(
            features, self.kernel, self.n_landmarks, self.selection, self.random_state
        )
        landmarks, _, factor = chosen.factor()
        validate_data(self, X, skip_check_array=True)
        self.landmarks_, self.factor_ = landmarks, factor
        return self

    @smaller_blocks_when_full
    def transform(self, X: Array) -> Array:
        """Return explicit features Φ (n×r) of the rows of X (n×d), in X's floating dtype."""
        check_is_fitted(self)
        features = check_features(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        X = features
        xp = namespace(X, self.factor_)
        r = self.factor_.shape[0]
        dtype = as_block(X[:1]).dtype
        features = xp.empty((X.shape[0], r), dtype=dtype, device=X.device)
        for rows in row_blocks(X.shape[0], 16 * r + 8 * X.shape[1], X):
            K = self.landmarks_.columns(X[rows], rows=range(rows.start, rows.stop))
            K = xp.astype(K, xp.float64, copy=False)
            features[rows] = xp.astype(solve_triangular(self.factor_, K.T).T, dtype, copy=False)
        return features

    def describe(self) -> list[str]:
        """Return a few sentences that describe this map."""
        check_is_fitted(self)
        r, d = self.landmarks_.points.shape
        return [f"Maps {d:,} features by {r:,} landmarks under {self.landmarks_.kernel!r}."]

    @property
    def _n_features_out(self) -> int:
        return self.factor_.shape[0]
