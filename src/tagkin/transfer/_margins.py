"""Metric learning for 2PKNN-ML: a weight for each dimension, by large margins."""

from __future__ import annotations

import numpy as np
import scipy.optimize
import scipy.sparse

from tagkin.neighbors import Neighbors

__all__ = ["learn_dimension_weights", "margin_loss"]

_PULL = 0.1  # how much targets are drawn near, beside being kept nearer than impostors
_TARGETS, _IMPOSTORS = 10, 20


def learn_dimension_weights(
    places: np.ndarray, labels: scipy.sparse.csr_array, sample: np.ndarray, found: Neighbors
) -> np.ndarray:
    """Weights v ≥ 0 (m,) of mean 1 under which images are nearer to those with common labels.

    Parameters
    ----------
    places : array of shape (N, m)
    labels : CSR array of shape (N, D)
    sample : int array of shape (s,)
        Images to learn from.
    found : Neighbors of shape (s, k)
        Their balanced neighbourhoods; index −1 stands for none.
    """
    common = _common_labels(labels, sample, found.indices)
    there = (found.indices >= 0) & (found.indices != sample[:, None])
    targets = _nearest_where(found.indices, there & (common > 0), _TARGETS)
    impostors = _nearest_where(found.indices, there & (common == 0), _IMPOSTORS)
    useful = (targets[:, 0] >= 0) & (impostors[:, 0] >= 0)
    m = places.shape[1]
    if not useful.any():
        return np.ones(m)
    queries = places[sample[useful]].astype(np.float64)
    near = _squares(queries, places, targets[useful])
    far = _squares(queries, places, impostors[useful])
    unit = np.nanmean(near.sum(axis=2)) or 1.0
    best = scipy.optimize.minimize(
        margin_loss,
        np.ones(m),
        args=(near / unit, far / unit),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * m,
        options={"maxiter": 100},
    ).x
    return best / best.mean() if best.any() else np.ones(m)


def margin_loss(weights: np.ndarray, near: np.ndarray, far: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean of [pull × d(i,j)] and of [1 + d(i,j) − d(i,l)]₊² over targets j and impostors l.

    `near` (s, T, m) and `far` (s, I, m) are squared differences, dimension by dimension, with
    NaN where there are fewer; d = Σ weights × squared differences. Returns loss and gradient.
    """
    to_near, to_far = near @ weights, far @ weights
    short = 1 + to_near[:, :, None] - to_far[:, None, :]
    counted = ~np.isnan(short)
    pairs = counted.sum(axis=(1, 2), keepdims=True)
    short = np.where(counted, np.maximum(short, 0), 0)
    pulled = ~np.isnan(to_near)
    pull = _PULL * pulled / pulled.sum(axis=1, keepdims=True)
    loss = (short**2 / pairs).sum() + (pull * np.where(pulled, to_near, 0)).sum()
    by_pair = 2 * short / pairs
    gradient = np.einsum("st,stm->m", by_pair.sum(axis=2) + pull, np.nan_to_num(near))
    gradient -= np.einsum("si,sim->m", by_pair.sum(axis=1), np.nan_to_num(far))
    return float(loss / len(near)), gradient / len(near)


def _common_labels(
    labels: scipy.sparse.csr_array, sample: np.ndarray, indices: np.ndarray
) -> np.ndarray:
    """How many labels each neighbour has in common with its image, shape (s, k)."""
    rows = np.repeat(sample, indices.shape[1])
    others = np.maximum(indices, 0).ravel()
    return labels[rows].multiply(labels[others]).sum(axis=1).reshape(indices.shape)


def _nearest_where(indices: np.ndarray, allowed: np.ndarray, count: int) -> np.ndarray:
    """The first `count` allowed indices of each row, filled up with −1."""
    order = np.argsort(~allowed, axis=1, kind="stable")[:, :count]
    kept = np.take_along_axis(allowed, order, axis=1)
    return np.where(kept, np.take_along_axis(indices, order, axis=1), -1)


def _squares(queries: np.ndarray, places: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """(q − p)² dimension by dimension, shape (s, k, m); NaN for index −1."""
    squares = (places[np.maximum(indices, 0)] - queries[:, None, :]) ** 2
    return np.where((indices >= 0)[:, :, None], squares, np.nan)
