"""Many dimensions laid out in two, so that neighbours stay neighbours."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.preprocessing import normalize

from tagkin.arrays import Array, one_thread, row_blocks, to_numpy
from tagkin.errors import InvalidInput

__all__ = ["lay_out", "leading_directions", "placed_among"]

_N_DIRECTIONS = 50
_N_NEAREST = 3
_N_STEPS = 500  # of descent; a map to look at has converged by then


def lay_out(X: Array, random_state: int = 0, *, n_laid_out: int = 5000) -> np.ndarray:
    """Positions in the plane, near each other where photographs are near by cosine (t-SNE).

    The rows are scaled to unit length and projected onto their 50 leading directions; t-SNE
    starts from the first two of them. Of more than `n_laid_out` photographs, so many chosen without
    replacement are laid out so, and every other one is put in the middle of the three of those
    that are nearest to it. It runs in one thread: the same input gives the same positions.

    Parameters
    ----------
    X : array of shape (n, d)
        Features, or embeddings in the semantic space.
    random_state : int, default 0
    n_laid_out : int, default 5000
        The time of t-SNE grows with them.

    Returns
    -------
    positions : float64 array of shape (n, 2)
        Fewer than five photographs are laid out by their two leading directions alone.
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2:
        raise InvalidInput(f"X must have the shape (n, d), a row per photograph; found {X.shape}.")
    n, d = X.shape
    few = np.sort(np.random.default_rng(random_state).permutation(n)[:n_laid_out])
    with one_thread():
        leading = leading_directions(X, few, random_state) if n and d else np.zeros((n, 0))
        if n < 5 or not np.ptp(leading[few], axis=0).any():
            return _in_the_plane(leading)
        laid = _tsne(leading[few], random_state)
        return laid if len(few) == n else placed_among(leading, few, laid)


def leading_directions(X: Array, few: np.ndarray, random_state: int) -> np.ndarray:
    """Rows of unit length on the leading directions of some of them; some rows at a time.

    The distance of two of them goes with their cosine: ‖a − b‖² = 2 − 2 cos.
    """
    n, d = X.shape
    sample = _unit(X[few])
    if not np.ptp(sample, axis=0).any():  # one alone, or all alike
        return np.zeros((n, 0))
    k = min(_N_DIRECTIONS, *sample.shape)
    solver = "full" if d <= 512 else "randomized"
    pca = PCA(k, svd_solver=solver, random_state=random_state).fit(sample)
    return np.concatenate([pca.transform(_unit(X[rows])) for rows in row_blocks(n, 32 * d)])


def _unit(rows: Array) -> np.ndarray:
    block = to_numpy(rows).astype(np.float64)
    if not np.isfinite(block).all():
        raise InvalidInput("X must hold finite numbers; found NaN or infinity.")
    return normalize(block)


def _in_the_plane(leading: np.ndarray) -> np.ndarray:
    return np.pad(leading, ((0, 0), (0, max(0, 2 - leading.shape[1]))))[:, :2]


def _tsne(leading: np.ndarray, random_state: int) -> np.ndarray:
    start = _in_the_plane(leading)
    start = 1e-4 * start / start.std(axis=0).max()
    model = TSNE(
        perplexity=min(30.0, (len(leading) - 1) / 3),
        init=start.astype(np.float32),
        max_iter=_N_STEPS,
        random_state=random_state,
        n_jobs=1,
    )
    return model.fit_transform(leading.astype(np.float32)).astype(np.float64)


def placed_among(leading: np.ndarray, few: np.ndarray, laid: np.ndarray) -> np.ndarray:
    """Those that were not laid out, each amid the nearest that were; some rows at a time."""
    positions = np.empty((len(leading), 2))
    among = leading[few]
    squares = (among**2).sum(axis=1)
    for rows in row_blocks(len(leading), 16 * len(few)):
        distance = squares - 2 * leading[rows] @ among.T  # but for what all have in common
        near = np.argpartition(distance, _N_NEAREST, axis=1)[:, :_N_NEAREST]
        positions[rows] = laid[near].mean(axis=1)
    positions[few] = laid
    return positions
