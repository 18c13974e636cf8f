"""Scores of an annotator that follow decisions at once."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse

from tagkin.annotator.model import Model
from tagkin.arrays import Array, row_blocks, to_numpy
from tagkin.arrays.threads import blas_threads
from tagkin.transfer.live import LiveScores

__all__ = ["LiveImages", "LiveScores", "live_scores", "sample_step"]

_COMPONENTS = 256
_DIMENSIONS = 512  # of embeddings, at most; a space has as many as there are labels
_SAMPLE = 20_000  # images to estimate directions from, at most
_SUPPORT = 2000  # sample of the images learned from, at most
_NOTHING = 1e-12  # share of the largest eigenvalue below which an eigenvalue is rounding error
_TEMPERATURE = 10.0  # for methods without a temperature


class LiveImages:
    """Embeddings and principal components of images, for live scores.

    Images are added in blocks, because their features may not fit into memory together. For the
    same reason embeddings have at most 512 dimensions, and all numbers are float16.

    Parameters
    ----------
    model : Model
    sample : array of shape (k, d)
        Features of some of the images, to estimate the directions of all from.
    n : int
        Number of images that will be added, at most.
    """

    def __init__(self, model: Model, sample: Array, n: int):
        self.model = model
        self.n_images = 0
        sample = to_numpy(sample)
        self._center, self._leading = leading_directions(sample)
        embeddings = _normalize(to_numpy(model.embed(_take_evenly(sample, _SUPPORT))))
        self._axes = None if embeddings.shape[1] <= _DIMENSIONS else _find_axes(embeddings)
        n_dimensions = (embeddings if self._axes is None else self._axes).shape[1]
        self._embeddings = np.empty((n, n_dimensions), dtype=np.float16)
        self._components = np.empty((n, self._leading.shape[1]), dtype=np.float16)
        self._support = np.empty(n)

    @classmethod
    def of(cls, model: Model, features: Array) -> Self:
        """Return images with these features (N×d)."""
        images = cls(model, _take_evenly(features, _SAMPLE), len(features))
        images.add(features)
        return images

    def add(self, features: Array) -> None:
        """Add images with these features (n×d)."""
        for rows in row_blocks(len(features), 16 * features.shape[1], features):
            block = features[rows]
            embeddings = _normalize(to_numpy(self.model.embed(block)))
            places = slice(self.n_images, self.n_images + len(block))
            self._support[places] = _sum_votes(embeddings, self.model.method)
            if self._axes is not None:
                embeddings = _normalize(embeddings @ self._axes)
            self._embeddings[places] = embeddings
            self._components[places] = (_normalize(to_numpy(block)) - self._center) @ self._leading
            self.n_images += len(block)

    @property
    def embeddings(self) -> np.ndarray:
        """Embeddings of unit length (N×m)."""
        return self._embeddings[: self.n_images]

    @property
    def components(self) -> np.ndarray:
        """Leading principal components (N×r), whose mean of ‖φ‖² is about 1."""
        return self._components[: self.n_images]

    @property
    def support(self) -> np.ndarray:
        """Estimates of Σ exp(τ (cos − 1)) over the images learned from, shape (N,)."""
        return self._support[: self.n_images]


def sample_step(n: int) -> int:
    """Return k such that every k-th of n images is in the sample for `LiveImages`."""
    return max(1, -(-n // _SAMPLE))


def live_scores(images: LiveImages, candidates: scipy.sparse.sparray) -> LiveScores:
    """Return scores of suggested labels that can follow decisions.

    Parameters
    ----------
    images : LiveImages
        The images to decide on.
    candidates : sparse array of shape (N, D)
        Probabilities of the labels that each image may get; columns may differ from the model's.
    """
    temperature = _temperature(images.model.method)
    return LiveScores(candidates, images.embeddings, images.components, images.support, temperature)


def _take_evenly(rows: Array, most: int) -> Array:
    """Return at most `most` evenly spaced rows."""
    return rows[:: max(1, -(-len(rows) // most))]


def _temperature(method: Any) -> float:
    return float(getattr(method, "temperature", _TEMPERATURE))


def leading_directions(
    sample: np.ndarray, n_components: int = _COMPONENTS
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean (d,) of rows (n×d) of unit length, and their leading directions (d×r).

    They are scaled: if φ are the centred rows, projected on them, the mean of ‖φ‖² is 1.
    """
    sample = _normalize(sample)
    mean = (sample.sum(axis=0, dtype=np.float64) / max(1, len(sample))).astype(np.float32)
    sample -= mean
    with blas_threads(1):  # a second thread gains little, and both would wait during a fit
        leading = _find_directions(sample)[:, :n_components]
    # the sign of a direction is arbitrary and differs between processors
    largest = np.argmax(np.abs(leading), axis=0)
    leading = leading * np.where(leading[largest, np.arange(leading.shape[1])] < 0, -1, 1)
    leading = leading.astype(np.float32)
    return mean, leading / _mean_length(sample @ leading)


def _find_directions(sample: np.ndarray) -> np.ndarray:
    """Return orthonormal directions (d×r) of centred rows (n×d), largest variance first."""
    n, d = sample.shape
    if n >= d:
        return np.linalg.eigh((sample.T @ sample).astype(np.float64))[1][:, ::-1]
    # with few rows, their products are the smaller matrix, with the same eigenvalues
    exact = sample.astype(np.float64)
    values, vectors = np.linalg.eigh(exact @ exact.T)
    positive = values > _NOTHING * values.max(initial=0)
    return (exact.T @ (vectors[:, positive] / np.sqrt(values[positive])))[:, ::-1]


def _find_axes(embeddings: np.ndarray) -> np.ndarray:
    """Return the directions (m×512) that keep most of embeddings (n×m) of unit length."""
    with blas_threads(1):
        return _find_directions(embeddings)[:, :_DIMENSIONS].astype(np.float32)


def _sum_votes(embeddings: np.ndarray, method: Any) -> np.ndarray:
    """Estimate Σ exp(τ (cos − 1)) over the images learned from, shape (n,).

    `embeddings` (n×m) are of unit length. A sample of the images learned from counts for all.
    """
    temperature = _temperature(method)
    points = getattr(method.index, "points_", None)
    if points is None:
        distances = to_numpy(method.kneighbors(embeddings).distances)
        return np.exp(-temperature * distances).sum(axis=1, dtype=np.float64)
    sample = _normalize(to_numpy(_take_evenly(points, _SUPPORT)))
    votes = np.exp(temperature * (embeddings @ sample.T - 1))
    return votes.sum(axis=1, dtype=np.float64) * (len(points) / len(sample))


def _mean_length(rows: np.ndarray) -> np.float32:
    """Return the root mean square length of rows (n×r), or 1 if all are zero."""
    squares = np.vecdot(rows, rows).astype(np.float64)
    length = float(np.sqrt(squares.mean())) if len(squares) else 0.0
    return np.float32(length if length > 0 else 1)


def _normalize(rows: np.ndarray) -> np.ndarray:
    """Scale rows to unit length, in float32; a zero row stays zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1), dtype=np.float32)
