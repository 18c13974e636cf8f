"""What decisions on one label add to its scores: a regularised logistic correction."""

from __future__ import annotations

import numpy as np
import scipy  # its parts when they are asked for

from tagkin.arrays import expit

__all__ = ["fit_correction", "left_out"]

_LONGEST = 4.0  # logits by which one step moves any score, at most
_LEAST_SLOPE = 1e-6  # of the logistic function: a decision that is quite sure has one of 0


def fit_correction(
    inputs: np.ndarray,
    offsets: np.ndarray,
    truth: np.ndarray,
    penalties: np.ndarray,
    prior: np.ndarray,
    start: np.ndarray | None = None,
    *,
    tolerance: float = 1e-4,
    max_steps: int = 50,
) -> np.ndarray:
    """Coefficients θ (k,) that minimise Σᵢ log-loss(oᵢ + aᵢθ, yᵢ) + ½ Σⱼ λⱼ (θⱼ − θ⁰ⱼ)².

    Newton's method from `start`. The problem is strictly convex, so that where it starts changes
    how long it takes, and not what it finds.

    Parameters
    ----------
    inputs : array of shape (n, k)
        a.
    offsets : array of shape (n,)
        o: what the scores were.
    truth : array of shape (n,)
        y, 0 or 1.
    penalties, prior : arrays of shape (k,)
        λ > 0 and θ⁰.
    tolerance : float
        It is done when a step moves no score by more than this, in logits.
    """
    A = np.asarray(inputs, dtype=np.float64)
    theta = np.array(prior if start is None else start, dtype=np.float64)
    for _ in range(max_steps):
        p = expit(offsets + A @ theta)
        gradient = A.T @ (p - truth) + penalties * (theta - prior)
        slopes = np.maximum(p * (1 - p), _LEAST_SLOPE)
        step = _solved(A, slopes, penalties, gradient)
        moved = float(np.max(np.abs(A @ step), initial=0.0))
        theta -= step * min(1.0, _LONGEST / max(moved, 1e-12))
        if moved <= tolerance:
            break
    return theta


def left_out(
    inputs: np.ndarray,
    offsets: np.ndarray,
    truth: np.ndarray,
    penalties: np.ndarray,
    theta: np.ndarray,
) -> np.ndarray:
    """Scores (n,) of the decisions, each by a correction that has not learned from it.

    One Newton step away from θ: z − (y − p) g / (1 − p(1 − p) g), g being aᵀ(Λ + AᵀSA)⁻¹a.
    Takes what `fit_correction` does, and what it found.
    """
    A = np.asarray(inputs, dtype=np.float64)
    scores = offsets + A @ theta
    p = expit(scores)
    slopes = np.maximum(p * (1 - p), _LEAST_SLOPE)
    hessian = (A * slopes[:, None]).T @ A
    hessian.flat[:: len(theta) + 1] += penalties
    lower = scipy.linalg.cholesky(hessian, lower=True, overwrite_a=True)
    spread = np.sum(scipy.linalg.solve_triangular(lower, A.T, lower=True) ** 2, axis=0)
    return np.asarray(scores - (truth - p) * spread / np.maximum(1 - slopes * spread, 1e-6))


def _solved(
    A: np.ndarray, slopes: np.ndarray, penalties: np.ndarray, gradient: np.ndarray
) -> np.ndarray:
    """(Λ + AᵀSA)⁻¹ g, by the smaller of the two matrices: of coefficients, or of decisions.

    The latter is Woodbury's Λ⁻¹g − Λ⁻¹Aᵀ (S⁻¹ + AΛ⁻¹Aᵀ)⁻¹ AΛ⁻¹g.
    """
    n, k = A.shape
    if n >= k:
        hessian = (A * slopes[:, None]).T @ A
        hessian.flat[:: k + 1] += penalties
        found = scipy.linalg.solve(hessian, gradient, assume_a="pos", overwrite_a=True)
        return np.asarray(found)
    scaled = A / penalties
    inner = scaled @ A.T
    inner.flat[:: n + 1] += 1 / slopes
    along = scipy.linalg.solve(inner, scaled @ gradient, assume_a="pos", overwrite_a=True)
    return np.asarray(gradient / penalties - scaled.T @ along)
