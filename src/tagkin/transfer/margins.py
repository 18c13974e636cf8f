"""Metric learning for 2PKNN-ML: a weight per dimension, learned with large margins."""

from __future__ import annotations

import numpy as np
import scipy  # it imports its submodules at first use
import scipy.sparse

from tagkin.arrays import Array, row_blocks, to_numpy
from tagkin.arrays.threads import blas_threads_for
from tagkin.neighbors import Neighbors
from tagkin.transfer.neighbor_lists import on_device_of

__all__ = ["learn_dimension_weights", "margin_loss", "sample_size"]

_PULL = 0.1  # weight of the distance to targets, next to the margin over impostors
TARGETS, IMPOSTORS = 10, 20
_SAMPLE = 1000  # images to learn from
_DIFFERENCES = 3 * 10**7  # most numbers in memory for the sample


def sample_size(n_dimensions: int) -> int:
    """Return the number of images to learn from whose differences fit in memory."""
    return max(1, min(_SAMPLE, _DIFFERENCES // ((TARGETS + IMPOSTORS) * n_dimensions)))


def learn_dimension_weights(
    embeddings: Array, labels: scipy.sparse.csr_array, sample: np.ndarray, neighbors: Neighbors
) -> np.ndarray:
    """Learn weights v ≥ 0 (m,) of mean 1 that bring images with common labels nearer.

    Parameters
    ----------
    embeddings : array of shape (N, m)
    labels : CSR array of shape (N, D)
    sample : int array of shape (s,)
        Images to learn from.
    neighbors : Neighbors of shape (s, k), on the host
        Their balanced neighbourhoods; index −1 marks a missing neighbour.
    """
    indices = to_numpy(neighbors.indices)
    common = _common_labels(labels, sample, indices)
    there = (indices >= 0) & (indices != sample[:, None])
    targets = _nearest_where(indices, there & (common > 0), TARGETS)
    impostors = _nearest_where(indices, there & (common == 0), IMPOSTORS)
    useful = (targets[:, 0] >= 0) & (impostors[:, 0] >= 0)
    m = embeddings.shape[1]
    if not useful.any():
        return np.ones(m)
    targets, impostors = targets[useful], impostors[useful]
    queries = _take_rows(embeddings, sample[useful])
    near, far = (
        _squared_differences(queries, embeddings, targets),
        _squared_differences(queries, embeddings, impostors),
    )
    unit = near.sum() / (targets >= 0).sum() or 1.0  # mean distance of a target
    near /= unit
    far /= unit
    with blas_threads_for(near[0].size):  # products with vectors, image by image
        best = scipy.optimize.minimize(
            margin_loss,
            np.ones(m),
            args=(near, far, targets >= 0, impostors >= 0),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * m,
            options={"maxiter": 100},
        ).x
    return best / best.mean() if best.any() else np.ones(m)


def margin_loss(
    weights: np.ndarray,
    near: np.ndarray,
    far: np.ndarray,
    is_target: np.ndarray,
    is_impostor: np.ndarray,
) -> tuple[float, np.ndarray]:
    """Return the margin loss and its gradient by the weights (m,).

    The loss of an image i is 0.1 × the mean of d(i,j) over its targets j, plus the mean of
    [1 + d(i,j) − d(i,l)]₊² over its targets j and impostors l, with d = Σ weights × squared
    differences. The result is the mean over the images.

    `near` (s, T, m) and `far` (s, I, m) are squared differences, dimension by dimension; they are
    0 for missing targets and impostors, by `is_target` (s, T) and `is_impostor` (s, I). Every image
    has at least one of each.
    """
    pairs = is_target[:, :, None] & is_impostor[:, None, :]
    pairs = pairs / pairs.sum(axis=(1, 2), keepdims=True)
    pull = _PULL * is_target / is_target.sum(axis=1, keepdims=True)
    to_near, to_far = near @ weights, far @ weights
    short = np.maximum(1 + to_near[:, :, None] - to_far[:, None, :], 0)
    loss = (pairs * short**2).sum() + (pull * to_near).sum()
    by_pair = 2 * pairs * short
    gradient = np.einsum("st,stm->m", by_pair.sum(axis=2) + pull, near)
    gradient -= np.einsum("si,sim->m", by_pair.sum(axis=1), far)
    return float(loss / len(near)), gradient / len(near)


def _common_labels(
    labels: scipy.sparse.csr_array, sample: np.ndarray, indices: np.ndarray
) -> np.ndarray:
    """Count the labels that each neighbour shares with its image, shape (s, k)."""
    common = np.empty(indices.shape)
    for rows in row_blocks(len(sample), 24 * labels.shape[0]):
        with_all = (labels[sample[rows]] @ labels.T).toarray()
        common[rows] = np.take_along_axis(with_all, np.maximum(indices[rows], 0), axis=1)
    return common


def _nearest_where(indices: np.ndarray, allowed: np.ndarray, count: int) -> np.ndarray:
    """Return the first `count` allowed indices of each row, padded with −1."""
    order = np.argsort(~allowed, axis=1, kind="stable")[:, :count]
    is_allowed = np.take_along_axis(allowed, order, axis=1)
    return np.where(is_allowed, np.take_along_axis(indices, order, axis=1), -1)


def _take_rows(embeddings: Array, indices: np.ndarray) -> np.ndarray:
    """Return the embeddings of these images in float64, on the host."""
    return to_numpy(embeddings[on_device_of(indices, embeddings)]).astype(np.float64)


def _squared_differences(queries: np.ndarray, embeddings: Array, indices: np.ndarray) -> np.ndarray:
    """Return (q − p)² per dimension, shape (s, k, m); 0 for index −1."""
    squares = _take_rows(embeddings, np.maximum(indices, 0)) - queries[:, None, :]
    squares *= squares
    squares[indices < 0] = 0
    return squares
