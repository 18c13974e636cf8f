"""Lay out many dimensions in two, keeping neighbours close."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from tagkin.arrays import Array, row_blocks, to_numpy
from tagkin.arrays.threads import blas_threads
from tagkin.errors import InvalidInput

__all__ = ["lay_out", "leading_directions", "place_others"]

_N_DIRECTIONS = 50
_N_NEAREST = 3
_N_STEPS = 500  # of gradient descent, enough for a map


def lay_out(X: Array, random_state: int = 0, *, n_laid_out: int = 5000) -> np.ndarray:
    """Return positions in the plane, close for photographs with similar cosines (t-SNE).

    The rows are scaled to unit length and projected onto their 50 leading directions; t-SNE starts
    from the first two directions. If there are more than `n_laid_out` photographs, t-SNE gets a
    random sample of that size, and every other photograph gets the mean position of its three
    nearest photographs in the sample. It runs in one thread, so the same input gives the same
    positions.

    Parameters
    ----------
    X : array of shape (n, d)
        Features, or embeddings in the semantic space.
    random_state : int, default 0
    n_laid_out : int, default 5000
        Maximum number of photographs for t-SNE.

    Returns
    -------
    positions : float64 array of shape (n, 2)
        Fewer than five photographs are laid out by their two leading directions.
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2:
        raise InvalidInput(f"X must have the shape (n, d), a row per photograph; found {X.shape}.")
    n, d = X.shape
    sample = np.sort(np.random.default_rng(random_state).permutation(n)[:n_laid_out])
    with blas_threads(1), threadpool_limits(1, "openmp"):
        leading = leading_directions(X, sample, random_state) if n and d else np.zeros((n, 0))
        if n < 5 or not np.ptp(leading[sample], axis=0).any():
            return _first_two(leading)
        positions = _tsne(leading[sample], random_state)
        return positions if len(sample) == n else place_others(leading, sample, positions)


def leading_directions(X: Array, sample: np.ndarray, random_state: int) -> np.ndarray:
    """Project rows of unit length onto the leading directions of a sample, block by block.

    The distance of two rows depends only on their cosine: ‖a − b‖² = 2 − 2 cos.
    """
    n, d = X.shape
    rows_of_sample = _unit(X[sample])
    if not np.ptp(rows_of_sample, axis=0).any():  # a single row, or all equal
        return np.zeros((n, 0))
    k = min(_N_DIRECTIONS, *rows_of_sample.shape)
    solver = "full" if d <= 512 else "randomized"
    pca = PCA(k, svd_solver=solver, random_state=random_state).fit(rows_of_sample)
    return np.concatenate([pca.transform(_unit(X[rows])) for rows in row_blocks(n, 32 * d)])


def _unit(rows: Array) -> np.ndarray:
    block = to_numpy(rows).astype(np.float64)
    if not np.isfinite(block).all():
        raise InvalidInput("X must contain finite numbers; found NaN or infinity.")
    return normalize(block)


def _first_two(leading: np.ndarray) -> np.ndarray:
    return np.pad(leading, ((0, 0), (0, max(0, 2 - leading.shape[1]))))[:, :2]


def _tsne(leading: np.ndarray, random_state: int) -> np.ndarray:
    start = _first_two(leading)
    start = 1e-4 * start / start.std(axis=0).max()
    model = TSNE(
        perplexity=min(30.0, (len(leading) - 1) / 3),
        init=start.astype(np.float32),
        max_iter=_N_STEPS,
        random_state=random_state,
        n_jobs=1,
    )
    return model.fit_transform(leading.astype(np.float32)).astype(np.float64)


def place_others(
    leading: np.ndarray, sample: np.ndarray, sample_positions: np.ndarray
) -> np.ndarray:
    """Give every other row the mean position of its nearest rows in the sample."""
    positions = np.empty((len(leading), 2))
    sample_rows = leading[sample]
    squares = (sample_rows**2).sum(axis=1)
    for rows in row_blocks(len(leading), 16 * len(sample)):
        # without the row's own square, which does not change the order
        distance = squares - 2 * leading[rows] @ sample_rows.T
        near = np.argpartition(distance, _N_NEAREST, axis=1)[:, :_N_NEAREST]
        positions[rows] = sample_positions[near].mean(axis=1)
    positions[sample] = sample_positions
    return positions
