"""The solved space: what is kept of the canonical directions, with the length asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from tagkin.arrays import Array, like, namespace
from tagkin.errors import InvalidInput
from tagkin.space.landmarks import Landmarks
from tagkin.space.moments import Moments
from tagkin.space.regression import Directions, from_kernel, from_moments

__all__ = ["SCALINGS", "Projection", "solve", "solve_exactly"]

SCALINGS = ("correlation", "unit", "none")


@dataclass(frozen=True)
class Projection:
    """The solved space: ψ(x) = (k(x, S) − kernel_mean) coefficients.

    The ridge regression of the text features from the visual kernel is text_mean + ψ readout.
    """

    correlations: Array
    coefficients: Array
    kernel_mean: Array
    text_mean: Array
    readout: Array


def solve_exactly(
    landmarks: Landmarks,
    text: Any,
    *,
    regularization: float,
    scaling: str = "correlation",
    n_components: int | None = None,
) -> tuple[Projection, Array]:
    """Every image is a landmark: the dual form, with one factor of the N×N kernel.

    Returns the solution and the text features (N×q) to keep for later sums, in float64.
    """
    points = landmarks.points
    xp = namespace(points)
    trace = float(xp.sum(landmarks.kernel.diagonal(points)))
    # rounding of the kernel must stay small beside κ, or the solution is made of it
    single = points.dtype == xp.float32 and trace * 1.2e-7 < 0.01 * regularization
    K = landmarks.kernel(points) if single else landmarks.gram()
    largest = float(xp.max(xp.linalg.diagonal(K)))
    mean = xp.mean(K, axis=0, dtype=xp.float64)
    K -= xp.astype(mean, K.dtype)
    K -= xp.mean(K, axis=1)[:, None]
    _check_varied(float(xp.max(xp.linalg.diagonal(K))), landmarks, largest)
    dense = like(text, mean)
    text_mean = xp.mean(dense, axis=0)
    directions = from_kernel(K, dense - text_mean, regularization)
    kept = text.astype(np.float64) if issparse(text) else xp.asarray(dense, copy=True)
    return _scaled(directions, mean, text_mean, scaling, n_components), kept


def solve(
    landmarks: Landmarks,
    moments: Moments,
    gram: Array | None = None,
    *,
    regularization: float,
    scaling: str = "correlation",
    n_components: int | None = None,
) -> Projection:
    """The solution from sums over the images; `gram` is k(S, S) where it is known."""
    if moments.count < 2:
        raise InvalidInput(
            f"The space has learned from {moments.count} images, and needs 2 at least. Call "
            "partial_fit(X, Y)."
        )
    gram = landmarks.gram() if gram is None else gram
    xp = namespace(gram)
    kernel_gram = moments.centred_kernel_gram()
    variance = max(0.0, float(xp.max(xp.linalg.diagonal(kernel_gram)))) / moments.count
    largest = float(xp.max(xp.linalg.diagonal(gram)))
    _check_varied(math.sqrt(variance), landmarks, largest)
    directions = from_moments(
        kernel_gram, gram, moments.centred_cross(), moments.centred_text_gram(), regularization
    )
    text_mean = moments.text_sum / moments.count
    return _scaled(directions, moments.kernel_mean, text_mean, scaling, n_components)


def _check_varied(variation: float, landmarks: Landmarks, largest: float) -> None:
    """Refuse images that look the same to the kernel, whose `largest` value is k(x, x)."""
    if not variation > landmarks.rounding * largest:
        raise InvalidInput(
            "All images look the same to the kernel (constant features, "
            f"n_features={landmarks.points.shape[1]}): nothing tells them apart. Check how "
            "the features were made."
        )


def _scaled(
    directions: Directions,
    kernel_mean: Array,
    text_mean: Array,
    scaling: str,
    n_components: int | None,
) -> Projection:
    """The leading directions, with the length that `scaling` asks for."""
    correlations = directions.correlations
    if correlations.shape[0] == 0:
        raise InvalidInput(
            "Labels and features are unrelated in these images: every correlation is zero. "
            "Do all images carry the same labels?"
        )
    if float(correlations[0]) > 1.01:
        raise InvalidInput(
            f"The leading correlation is {float(correlations[0]):.3g}, which no set of images "
            "has. Either rounding outweighs the regularization: pass float64 features, or "
            "scale them down. Or an image was forgotten that was not learned, or forgotten "
            "twice: fit anew."
        )
    weights = correlations
    if scaling == "unit":
        correlations = directions.empirical_correlations
        weights = correlations / directions.visual_norms
    elif scaling == "none":
        weights = namespace(weights).ones_like(weights)
    keep = slice(0, n_components)
    return Projection(
        correlations[keep],
        (directions.coefficients * weights)[:, keep],
        kernel_mean,
        text_mean,
        (directions.readout / weights[:, None])[keep, :],
    )
