"""Scores of an annotator that follow decisions at once."""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse

from tagkin.annotator.model import Model
from tagkin.arrays import Array, row_blocks, to_numpy
from tagkin.arrays.threads import blas_threads
from tagkin.transfer.live import LiveScores

__all__ = ["LiveImages", "LiveScores", "live_scores", "sample_step"]

_COMPONENTS = 256
_SAMPLE = 20_000  # images to estimate directions from, at most
_SUPPORT = 2000  # sample of the images learned from, at most
_NOTHING = 1e-12  # share of the largest eigenvalue below which an eigenvalue is rounding error
_TEMPERATURE = 10.0  # for methods without a temperature


class LiveImages:
    """Embeddings and principal components of images, for live scores.

    Images are added in blocks, because their features may not fit into memory together.

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
        self._center, self._leading = leading_directions(to_numpy(sample))
        self._components = np.empty((n, self._leading.shape[1]), dtype=np.float32)
        self._embeddings = np.empty((n, 0), dtype=np.float32)

    @classmethod
    def of(cls, model: Model, features: Array) -> Self:
        """Return images with these features (N×d)."""
        images = cls(model, features[:: sample_step(len(features))], len(features))
        images.add(features)
        return images

    def add(self, features: Array) -> None:
        """Add images with these features (n×d)."""
        for rows in row_blocks(len(features), 16 * features.shape[1], features):
            block = features[rows]
            embeddings = _normalize(to_numpy(self.model.embed(block)))
            if not self.n_images:
                self._embeddings = np.empty(
                    (len(self._components), embeddings.shape[1]), dtype=np.float32
                )
            places = slice(self.n_images, self.n_images + len(block))
            self._embeddings[places] = embeddings
            self._components[places] = (_normalize(to_numpy(block)) - self._center) @ self._leading
            self.n_images += len(block)

    @property
    def embeddings(self) -> np.ndarray:
        """Embeddings of unit length (N×m), float32."""
        return self._embeddings[: self.n_images]

    def components(self) -> np.ndarray:
        """Return the leading principal components (N×r), float32, whose mean of ‖φ‖² is 1."""
        components = self._components[: self.n_images]
        squares = np.vecdot(components, components).astype(np.float64)
        scale = float(np.sqrt(squares.mean())) if len(squares) else 0.0
        return components / np.float32(scale if scale > 0 else 1)


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
    embeddings, method = images.embeddings, images.model.method
    temperature = float(getattr(method, "temperature", _TEMPERATURE))
    points = getattr(method.index, "points_", None)
    if points is not None:
        support = _estimate_support(embeddings, to_numpy(points), temperature)
    else:  # the index has no points
        distances = to_numpy(method.kneighbors(embeddings).distances)
        support = np.exp(-temperature * distances).sum(axis=1)
    return LiveScores(candidates, embeddings, images.components(), support, temperature)


def leading_directions(
    sample: np.ndarray, n_components: int = _COMPONENTS
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean (d,) of rows (n×d) of unit length, and their leading directions (d×r)."""
    sample = _normalize(sample)
    mean = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
    sample -= mean
    with blas_threads(1):  # a second thread gains little, and both would wait during a fit
        leading = _find_directions(sample)[:, :n_components]
    # the sign of a direction is arbitrary and differs between processors
    largest = np.argmax(np.abs(leading), axis=0)
    leading = leading * np.where(leading[largest, np.arange(leading.shape[1])] < 0, -1, 1)
    return mean, leading.astype(np.float32)


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


def _estimate_support(
    embeddings: np.ndarray, learned: np.ndarray, temperature: float
) -> np.ndarray:
    """Estimate Σ exp(τ (cos − 1)) over the images learned from by a sample, shape (N,).

    `embeddings` (N×m) are of unit length.
    """
    step = max(1, -(-len(learned) // _SUPPORT))
    sample = _normalize(learned[::step])
    total = np.empty(len(embeddings))
    for rows in row_blocks(len(embeddings), 16 * len(sample), embeddings):
        cosines = embeddings[rows] @ sample.T
        total[rows] = np.exp(temperature * (cosines - 1)).sum(axis=1, dtype=np.float64)
    return total * (len(learned) / len(sample))


def _normalize(rows: np.ndarray) -> np.ndarray:
    """Scale rows to unit length, in float32; a zero row stays zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1), dtype=np.float32)
