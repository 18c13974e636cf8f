"""Many dimensions laid out in two, so that neighbours stay neighbours."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from tagkin.arrays import Array, row_blocks, to_numpy
from tagkin.errors import InvalidInput

__all__ = ["embed"]

_MOST = 5000
_FIRST = 50
_NEAREST = 3
_STEPS = 500  # of descent; a map to look at has settled by then


def embed(X: Array, seed: int = 0) -> np.ndarray:
    """Places in the plane for photographs, near where they are near by cosine (t-SNE).

    The rows are brought to unit length and onto their 50 leading directions; t-SNE starts from
    the first two of them. Of more than 5,000 photographs, 5,000 drawn without replacement are
    laid out so, and every other one comes to the middle of the three of those that are nearest
    to it. It runs in one thread: the same input gives the same places.

    Parameters
    ----------
    X : array of shape (n, d)
        Features, or coordinates in the semantic space.
    seed : int

    Returns
    -------
    places : float64 array of shape (n, 2)
        Fewer than five photographs are placed by their two leading directions alone.
    """
    rows = to_numpy(X).astype(np.float64)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InvalidInput(
            f"Places are made of finite numbers of shape (n, d); found shape {rows.shape}"
            f"{'' if rows.ndim != 2 else ' with NaN or infinity'}."
        )
    n, d = rows.shape
    if not n or not d:
        return np.zeros((n, 2))
    rng = np.random.default_rng(seed)
    few = np.sort(rng.permutation(n)[:_MOST])
    with threadpool_limits(limits=1):
        rows = normalize(rows)
        k = min(_FIRST, len(few), d)
        pca = PCA(k, svd_solver="full" if d <= 512 else "randomized", random_state=seed)
        leading = pca.fit(rows[few]).transform(rows)
        if n < 5 or not np.ptp(leading, axis=0).any():
            return np.pad(leading, ((0, 0), (0, max(0, 2 - k))))[:, :2]
        laid = _tsne(leading[few], seed)
        return laid if len(few) == n else _placed_among(leading, few, laid)


def _tsne(leading: np.ndarray, seed: int) -> np.ndarray:
    start = np.pad(leading, ((0, 0), (0, max(0, 2 - leading.shape[1]))))[:, :2]
    start = 1e-4 * start / start.std(axis=0).max()
    model = TSNE(
        perplexity=min(30.0, (len(leading) - 1) / 3),
        metric="cosine",
        init=start.astype(np.float32),
        max_iter=_STEPS,
        random_state=seed,
        n_jobs=1,
    )
    return model.fit_transform(leading.astype(np.float32)).astype(np.float64)


def _placed_among(leading: np.ndarray, few: np.ndarray, laid: np.ndarray) -> np.ndarray:
    """Those that were not laid out, each amid the nearest that were; some rows at a time."""
    places = np.empty((len(leading), 2))
    unit = normalize(leading)
    for rows in row_blocks(len(leading), 16 * len(few)):
        near = np.argpartition(-unit[rows] @ unit[few].T, _NEAREST, axis=1)[:, :_NEAREST]
        places[rows] = laid[near].mean(axis=1)
    places[few] = laid
    return places
