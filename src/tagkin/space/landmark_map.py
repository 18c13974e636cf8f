"""Explicit features of a kernel, by landmarks, which are chosen among images."""

from __future__ import annotations

import math
from typing import Annotated, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from tagkin.arrays import (
    Array,
    as_block,
    check_features,
    check_finite,
    check_integer,
    namespace,
    row_blocks,
    smaller_blocks_when_full,
)
from tagkin.arrays.linalg import solve_triangular
from tagkin.arrays.namespaces import Seed
from tagkin.errors import InvalidInput
from tagkin.kernels import Kernel, as_kernel
from tagkin.records.forms import storable
from tagkin.records.rules import Floats, Size, Texts
from tagkin.space.pivoting import pgso, rp_cholesky
from tagkin.space.space import Landmarks, only_zeros

__all__ = ["LandmarkMap", "choose_landmarks"]

SELECTIONS = ("rpcholesky", "pgso", "uniform")


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


# --- choosing landmarks -----------------------------------------------------------------


def choose_landmarks(
    X: Array,
    kernel: str | Kernel,
    n_landmarks: int,
    selection: str | Array,
    random_state: Seed,
) -> Landmarks:
    """Choose landmarks among the rows of X (N×d), or take all rows if N ≤ `n_landmarks`."""
    check_integer("n_landmarks", n_landmarks)
    kernel = as_kernel(kernel)
    if not isinstance(selection, str):
        return _take_given(selection, X, kernel)
    if selection not in SELECTIONS:
        raise InvalidInput(
            f"selection must be one of {', '.join(SELECTIONS)} or an array of landmarks; "
            f"found {selection!r}."
        )
    n = X.shape[0]
    rng = check_random_state(random_state)
    size = _n_candidates(n, n_landmarks, selection)
    candidates = np.sort(_draw_numbers(n, size, rng)) if size < n else np.arange(n)
    sample = X[candidates] if size < n else X
    for rows in row_blocks(len(candidates), 8 * X.shape[1], X):
        check_finite(as_block(sample[rows], finite=False), rows=candidates[rows])
    kernel = kernel.resolve(sample)
    _check_range(kernel, sample)
    chosen = np.arange(len(candidates))
    if n > n_landmarks:
        chosen = _select(selection, kernel, sample, n_landmarks, rng)
    if len(chosen) == 0:
        raise only_zeros(sample)
    return Landmarks(kernel, as_block(sample[chosen], finite=False), candidates[chosen])


def _take_given(points: Array, X: Array, kernel: Kernel) -> Landmarks:
    points = check_features(points, name="selection")
    if points.shape[1] != X.shape[1]:
        raise InvalidInput(
            f"The landmarks given as selection have {points.shape[1]} features and X has "
            f"{X.shape[1]}."
        )
    points = as_block(points, name="selection")
    kernel = kernel.resolve(points)
    _check_range(kernel, points)
    # a copy, because the caller's array may change later
    return Landmarks(kernel, namespace(points).asarray(points, copy=True), None)


def _n_candidates(n: int, n_landmarks: int, selection: str) -> int:
    """Return the number of images among which landmarks are chosen.

    With random pivots these are enough to find rare images at a small part of the cost of a fit.
    Above twice the landmarks, at most 2²⁶ kernel values are computed.
    """
    if selection == "pgso":
        return n
    if selection == "uniform":
        return min(n, max(2048, n_landmarks))
    affordable = 2**26 // n_landmarks
    return min(n, max(2 * n_landmarks, min(max(2048, n // 10), affordable)))


def _draw_numbers(n: int, size: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw `size` different numbers below n."""
    if n < 2**16:
        return rng.choice(n, size=size, replace=False)
    # a generator shuffles only what it draws
    return np.random.default_rng(rng.randint(2**31)).choice(n, size=size, replace=False)


def _check_range(kernel: Kernel, X: Array) -> None:
    """Reject features on which the kernel overflows."""
    xp = namespace(X)
    blocks = row_blocks(X.shape[0], 16 * X.shape[1], X)
    largest = max(float(xp.max(kernel.diagonal(X[rows]))) for rows in blocks)
    dtype = as_block(X[:1], finite=False).dtype
    if not largest < float(xp.finfo(dtype).max):
        raise InvalidInput(
            f"The kernel {kernel!r} leaves the range of {dtype} on these features (k(x, x) reaches "
            f"{largest:.3g}). Scale the features down, or use a normalised kernel."
        )


def _select(
    selection: str, kernel: Kernel, X: Array, n_landmarks: int, rng: np.random.RandomState
) -> np.ndarray:
    """Return the indices of `n_landmarks` rows of X."""
    if selection == "uniform":
        return rng.choice(X.shape[0], size=n_landmarks, replace=False)
    if selection == "rpcholesky":
        # with a kernel of low rank, draws from the residual might not reach the full rank
        low_rank = kernel.max_rank(X.shape[1]) < math.inf
        n_pivots = n_landmarks if low_rank else min(n_landmarks, max(256, n_landmarks // 4))
        return rp_cholesky(kernel, as_block(X), n_landmarks, rng, n_pivots=n_pivots)
    xp = namespace(X)
    blocks = list(row_blocks(X.shape[0], 8 * X.shape[1], X))

    def column(j: int) -> Array:
        return xp.concat([kernel(X[rows], X[j : j + 1])[:, 0] for rows in blocks])

    diagonal = xp.concat([kernel.diagonal(X[rows]) for rows in blocks])
    return pgso(column, diagonal, max_rank=n_landmarks).pivots
