"""Scores of an annotator that follow decisions at once."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from tagkin.annotator.model import Model
from tagkin.arrays import Array, row_blocks, to_numpy
from tagkin.arrays.threads import blas_threads
from tagkin.transfer.live import LiveScores

__all__ = ["LiveScores", "live_scores", "principal_components"]

_COMPONENTS = 256
_SAMPLE = 20_000  # images to estimate directions from, at most
_SUPPORT = 2000  # sample of the images learned from, at most
_NOTHING = 1e-12  # share of the largest eigenvalue below which an eigenvalue is rounding error
_TEMPERATURE = 10.0  # for methods without a temperature


def live_scores(model: Model, features: Array, candidates: scipy.sparse.sparray) -> LiveScores:
    """Return scores of suggested labels that can follow decisions.

    Parameters
    ----------
    model : Model
    features : array of shape (N, d)
        Features of the images to decide on.
    candidates : sparse array of shape (N, D)
        Probabilities of the labels that each image may get; columns may differ from the model's.
    """
    embeddings, method = to_numpy(model.embed(features)), model.method
    temperature = float(getattr(method, "temperature", _TEMPERATURE))
    points = getattr(method.index, "points_", None)
    if points is not None:
        support = _support(embeddings, to_numpy(points), temperature)
    else:  # the index has no points
        distances = to_numpy(method.kneighbors(embeddings).distances)
        support = np.exp(-temperature * distances).sum(axis=1)
    visual = principal_components(to_numpy(features))
    return LiveScores(candidates, embeddings, visual, support, temperature)


def principal_components(X: np.ndarray, n_components: int = _COMPONENTS) -> np.ndarray:
    """Project images on the leading directions of their features, shape (N, r), float32.

    Features are scaled to unit length, centred, and scaled so the mean of ‖φ‖² is 1.
    """
    n, d = X.shape
    blocks = list(row_blocks(n, 16 * d, X))  # a copy of all features may be too large
    mean = np.zeros(d)
    for rows in blocks:
        mean += _unit(X[rows]).sum(axis=0, dtype=np.float64) / n
    mean = mean.astype(np.float32)
    sample = _unit(X[:: max(1, -(-n // _SAMPLE))]) - mean
    with blas_threads(1):  # a second thread gains little, and both would wait during a fit
        leading = _directions(sample)[:, :n_components]
    # the sign of a direction is arbitrary and differs between processors
    largest = np.argmax(np.abs(leading), axis=0)
    leading = leading * np.where(leading[largest, np.arange(leading.shape[1])] < 0, -1, 1)
    leading = leading.astype(np.float32)
    projected = np.empty((n, leading.shape[1]), dtype=np.float32)
    for rows in blocks:
        projected[rows] = (_unit(X[rows]) - mean) @ leading
    scale = float(np.sqrt(np.mean(np.sum(projected.astype(np.float64) ** 2, axis=1))))
    return projected / np.float32(scale if scale > 0 else 1)


def _directions(sample: np.ndarray) -> np.ndarray:
    """Return orthonormal directions (d×r) of centred rows (n×d), largest variance first."""
    n, d = sample.shape
    if n >= d:
        return np.linalg.eigh((sample.T @ sample).astype(np.float64))[1][:, ::-1]
    # with few rows, their products are the smaller matrix, with the same eigenvalues
    exact = sample.astype(np.float64)
    values, vectors = np.linalg.eigh(exact @ exact.T)
    positive = values > _NOTHING * values.max(initial=0)
    return (exact.T @ (vectors[:, positive] / np.sqrt(values[positive])))[:, ::-1]


def _support(embeddings: np.ndarray, learned: np.ndarray, temperature: float) -> np.ndarray:
    """Estimate Σ exp(τ (cos − 1)) over the images learned from by a sample, shape (N,)."""
    step = max(1, -(-len(learned) // _SUPPORT))
    sample = _unit(learned[::step])
    total = np.empty(len(embeddings))
    for rows in row_blocks(len(embeddings), 16 * len(sample), embeddings):
        cosines = _unit(embeddings[rows]) @ sample.T
        total[rows] = np.exp(temperature * (cosines - 1)).sum(axis=1, dtype=np.float64)
    return total * (len(learned) / len(sample))


def _unit(rows: np.ndarray) -> np.ndarray:
    """Scale rows to unit length, in float32; a zero row stays zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1), dtype=np.float32)
