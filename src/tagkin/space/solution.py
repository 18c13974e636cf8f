"""The solved space: canonical directions, scaled as the parameter `scaling` says."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tagkin.arrays import Array, as_block, like, namespace, to_numpy
from tagkin.arrays.linalg import matmul, pivoted_cholesky, solve_triangular
from tagkin.arrays.namespaces import LabelMatrix, is_sparse
from tagkin.errors import InvalidInput
from tagkin.space.moments import Moments
from tagkin.space.regression import Regression, Root, from_kernel, from_moments
from tagkin.space.space import Landmarks, Projection

__all__ = ["SCALINGS", "Solving", "canonical_correlations", "solve", "solve_exactly"]

SCALINGS = ("correlation", "unit", "none")
ROTATED = 1024  # text features; an eigenproblem of more takes longer than the rest of a fit


class Solving(NamedTuple):
    """Parameters that only the solution depends on, not the sums; see `SemanticSpace`."""

    regularization: float
    scaling: str
    n_components: int | None

    def rotates(self, n_text: int) -> bool:
        """Return whether to rotate a space of this many text features to its canonical directions.

        The rotation is an eigenproblem of their number and changes no cosine. It is left out if it
        would take longer than the rest, unless the parameters ask for the directions themselves.
        """
        return n_text <= ROTATED or self.scaling != "correlation" or self.n_components is not None


def solve_exactly(
    landmarks: Landmarks, text: LabelMatrix, solving: Solving, *, draft: bool = False
) -> tuple[Projection, LabelMatrix]:
    """Solve in the dual form, if every image is a landmark, with one factor of the N×N kernel.

    Return the solution and the text features (N×q) to keep for later sums, in float64. A `draft` is
    not rotated if that changes no cosine.
    """
    points, regularization = landmarks.points, solving.regularization
    xp = namespace(points)
    trace = float(xp.sum(landmarks.kernel.diagonal(points)))
    # rounding of the kernel must be small beside κ
    single = points.dtype == xp.float32 and trace * 1.2e-7 < 0.01 * regularization
    K = landmarks.kernel(points if single else as_block(points, double=True, finite=False))
    largest = float(xp.max(xp.linalg.diagonal(K)))
    mean = xp.mean(K, axis=0, dtype=xp.float64)
    K -= xp.astype(mean, K.dtype)
    K -= xp.astype(mean - xp.mean(mean), K.dtype)[:, None]
    _check_varied(float(xp.max(xp.linalg.diagonal(K))), landmarks, largest)
    dense = like(text, mean)
    text_mean = xp.mean(dense, axis=0)
    fewer, back = _limit_text_features(dense - text_mean)
    rotated = solving.rotates(ROTATED + 1 if draft else fewer.shape[1])
    regression = from_kernel(K, fewer, regularization, rotated=rotated)

    def norms(coefficients: Array) -> Array:
        # in the precision of K, which is by now K + κI and too large to copy
        directions = xp.astype(coefficients, K.dtype, copy=False)
        projections = matmul(K, directions) - regularization * directions
        return xp.astype(xp.linalg.vector_norm(projections, axis=0), xp.float64, copy=False)

    solution = _scale(regression, (mean, text_mean), solving, norms)
    if back is not None:
        solution = replace(solution, readout=matmul(solution.readout, back))
    solution = _scale_to_unit_variance(solution, points.shape[0])
    kept = text.astype(np.float64) if is_sparse(text) else xp.asarray(dense, copy=True)
    return solution, kept


def _limit_text_features(text: Array) -> tuple[Array, Array | None]:
    """Return centred text features (N×q); if q > N, others (N×p) with the same products T̂ T̂ᵀ.

    The others are the pivoted Cholesky factor of T̂ T̂ᵀ, whose rank is p. Also return the matrix
    (p×q) that turns them into the text features, or None if q ≤ N.
    """
    n, q = text.shape
    if q <= n:
        return text, None
    xp = namespace(text)
    products = to_numpy(matmul(text, text.T))
    largest = float(products.diagonal().max())
    if not largest > 0:
        return text[:, :1], xp.zeros((1, q), dtype=text.dtype, device=text.device)
    factor, pivots = pivoted_cholesky(products, 1e-12 * largest)
    triangle = like(factor[pivots], text)
    back = solve_triangular(triangle, text[xp.asarray(pivots, device=text.device)])
    return like(factor, text), back


def solve(
    landmarks: Landmarks,
    moments: Moments,
    solving: Solving,
    gram: Array | None = None,
    *,
    draft: bool = False,
) -> Projection:
    """Solve from sums over the images; `gram` is k(S, S) if it is known.

    A `draft` is not rotated if that changes no cosine, and has the precision of its kernel columns.
    """
    if moments.count < 2:
        raise InvalidInput(
            f"The space has learned from {moments.count} images; it needs at least 2. Call "
            "partial_fit(X, Y)."
        )
    gram = landmarks.gram() if gram is None else gram
    xp = namespace(gram)
    kernel_gram = moments.centred_kernel_gram()
    variance = max(0.0, float(xp.max(xp.linalg.diagonal(kernel_gram)))) / moments.weight
    largest = float(xp.max(xp.linalg.diagonal(gram)))
    _check_varied(math.sqrt(variance), landmarks, largest)
    means = moments.kernel_mean, moments.text_sum / moments.weight
    rotated = solving.rotates(ROTATED + 1 if draft else moments.text_sum.shape[0])
    regularization = solving.regularization
    single = draft and not rotated and landmarks.points.dtype == xp.float32
    visual = Root.of_visual(kernel_gram, gram, regularization, single=single)
    sums = moments.centred_cross(), moments.centred_text_gram()
    regression = from_moments(visual, *sums, regularization, rotated=rotated)

    def norms(coefficients: Array) -> Array:
        return xp.sqrt(xp.sum(coefficients * matmul(kernel_gram, coefficients), axis=0))

    solution = _scale(regression, means, solving, norms)
    return _scale_to_unit_variance(solution, moments.weight)


def canonical_correlations(landmarks: Landmarks, moments: Moments, regularization: float) -> Array:
    """Return correlations of all canonical directions, descending, for an unrotated space."""
    sums = moments.centred_cross(), moments.centred_text_gram()
    gram = moments.centred_kernel_gram()
    visual = Root.of_visual(gram, landmarks.gram(), regularization)
    correlations = from_moments(visual, *sums, regularization).correlations
    assert correlations is not None
    return correlations


def _scale_to_unit_variance(solution: Projection, n_images: float) -> Projection:
    """Multiply embeddings by √N, or by √Σω if images have weights.

    The equations make the projection of N images on a direction a vector of unit norm, but for κ.
    Its variance is then 1/N, too small for methods that expect features of about unit variance.
    """
    scale = math.sqrt(n_images)
    return replace(
        solution, coefficients=solution.coefficients * scale, readout=solution.readout / scale
    )


def _check_varied(variation: float, landmarks: Landmarks, largest: float) -> None:
    """Reject images that look the same to the kernel; `largest` is its largest value."""
    if not variation > landmarks.rounding * largest:
        raise InvalidInput(
            "All images look the same to the kernel (constant features, "
            f"n_features={landmarks.points.shape[1]}): nothing tells them apart. Check how "
            "the features were made."
        )


def _check_largest(correlation: float) -> None:
    """Reject a leading correlation of zero, or above 1."""
    if not correlation > 1e-7:
        raise InvalidInput(
            "Labels and features are unrelated in these images: every correlation is zero. "
            "Do all images have the same labels?"
        )
    if correlation > 1.01:
        raise InvalidInput(
            f"The leading correlation is {correlation:.3g}, but correlations are at most 1. "
            "Either rounding outweighs the regularization: pass float64 features, or scale "
            "them down. Or an image was forgotten twice, or without having been learned: fit "
            "again."
        )


def _scale(
    regression: Regression,
    means: tuple[Array, Array],
    solving: Solving,
    norms: Callable[[Array], Array],
) -> Projection:
    """Return the leading directions, scaled as `scaling` says; see `SemanticSpace`.

    `means` are of the kernel columns and of the text features. `norms` returns the norms of the
    projections of all training images on each of several coefficient vectors (r, m).
    """
    _check_largest(regression.largest)
    coefficients, readout = regression.coefficients, regression.readout
    correlations = regression.correlations
    if correlations is None:
        return Projection(None, coefficients, *means, readout)
    weights = namespace(correlations).ones_like(correlations)
    if solving.scaling == "unit":
        lengths = norms(coefficients)
        # of the two projections: λ / (‖Φw‖ ‖T̂z‖), and the length is λ ‖Φw‖
        correlations = correlations**2 / (lengths * regression.text_norms)
        weights = correlations / lengths
    elif solving.scaling == "none":
        weights = 1 / correlations
    keep = slice(0, solving.n_components)
    return Projection(
        correlations[keep],
        (coefficients * weights)[:, keep],
        *means,
        (readout / weights[:, None])[keep, :],
    )
