"""Tag propagation: an image's tags become those of the images that look like it (equation 7)."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, as_block, namespace, row_blocks

__all__ = ["mean_distance", "mean_squared_distance", "propagation_weights", "spread"]


def mean_squared_distance(X: Array) -> float:
    """Mean of ‖xᵢ − xⱼ‖² over all pairs of rows: 2 (mean ‖x‖² − ‖mean x‖²)."""
    xp = namespace(X)
    total, squares = None, 0.0
    for rows in row_blocks(X.shape[0], 16 * X.shape[1]):
        block = as_block(X[rows], double=True)
        part = xp.sum(block, axis=0)
        total = part if total is None else total + part
        squares += float(xp.sum(block * block))
    mean = total / X.shape[0]
    return max(0.0, 2 * (squares / X.shape[0] - float(xp.sum(mean * mean))))


def mean_distance(X: Array, random_state: int | None = 0, n_pairs: int = 100_000) -> float:
    """Mean of ‖xᵢ − xⱼ‖ over all pairs of rows, on a sample of the pairs where they are many."""
    xp = namespace(X)
    n = X.shape[0]
    if n * n <= n_pairs:
        first, second = np.divmod(np.arange(n * n), n)
    else:
        first, second = np.random.default_rng(random_state).integers(0, n, (2, n_pairs))
    total = 0.0
    for rows in row_blocks(len(first), 32 * X.shape[1]):
        difference = as_block(X[first[rows]], double=True) - as_block(X[second[rows]], double=True)
        total += float(xp.sum(xp.linalg.vector_norm(difference, axis=1)))
    return total / len(first)


def propagation_weights(squared_distances: np.ndarray, scale: float) -> np.ndarray:
    """Weights exp(−d²/σ) of an image's neighbours, shape (n, k), that add up to 1.

    The least distance of each row is taken off first, which changes no weight and lets none
    vanish. An infinite distance stands for no neighbour.
    """
    least = squared_distances.min(axis=1, keepdims=True)
    beyond = squared_distances - np.where(np.isfinite(least), least, 0)
    with np.errstate(invalid="ignore", over="ignore"):
        # all images the same: the nearest ones weigh alike, the others nothing
        weights = np.exp(-beyond / scale) if scale > 0 else (beyond == 0).astype(float)
    total = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total > 0, total, 1)


def spread(
    indices: np.ndarray, weights: np.ndarray, tags: scipy.sparse.csr_array
) -> scipy.sparse.csr_array:
    """Weighted mean of the neighbours' tag vectors: Σₖ wₖ t(k), CSR of shape (n, D).

    Parameters
    ----------
    indices, weights : arrays of shape (n, k)
        Rows of `tags`, and what each counts; index −1 stands for none.
    tags : CSR array of shape (N, D)
    """
    n, k = indices.shape
    weights = np.where(indices >= 0, weights, 0).astype(np.float32)
    speakers = scipy.sparse.csr_array(
        (weights.ravel(), np.maximum(indices, 0).ravel(), np.arange(0, n * k + 1, k)),
        shape=(n, tags.shape[0]),
    )
    return scipy.sparse.csr_array(speakers @ tags)
