"""Regularised logistic corrections of a label's scores, learned from decisions on the label."""

from __future__ import annotations

import numpy as np
import scipy  # it imports its submodules at first use

from tagkin.arrays import expit

__all__ = ["fit_correction", "leave_one_out_scores"]

_TOLERANCE = 1e-4  # logits: a step that moves no score by more is the last
_MOST_STEPS = 50
_LONGEST = 4.0  # logits: the most that one step moves any score
_LEAST_SLOPE = 1e-6  # of the logistic function, which is flat at certain decisions


def fit_correction(
    inputs: np.ndarray,
    offsets: np.ndarray,
    truth: np.ndarray,
    penalties: np.ndarray,
    prior: np.ndarray,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Return θ (k,) that minimises Σᵢ log-loss(oᵢ + aᵢθ, yᵢ) + ½ Σⱼ λⱼ (θⱼ − θ⁰ⱼ)².

    This is Newton's method from `start`. The problem is strictly convex, so the start affects
    the time but not the result.

    Parameters
    ----------
    inputs : array of shape (n, k)
        a.
    offsets : array of shape (n,)
        o, the scores before the correction.
    truth : array of shape (n,)
        y, 0 or 1.
    penalties, prior : arrays of shape (k,)
        λ > 0 and θ⁰.
    """
    A = np.asarray(inputs, dtype=np.float64)
    theta = np.array(prior if start is None else start, dtype=np.float64)
    for _ in range(_MOST_STEPS):
        p = expit(offsets + A @ theta)
        gradient = A.T @ (p - truth) + penalties * (theta - prior)
        slopes = np.maximum(p * (1 - p), _LEAST_SLOPE)
        step = _solve(A, slopes, penalties, gradient)
        moved = float(np.max(np.abs(A @ step), initial=0.0))
        theta -= step * min(1.0, _LONGEST / max(moved, 1e-12))
        if moved <= _TOLERANCE:
            break
    return theta


def leave_one_out_scores(
    inputs: np.ndarray,
    offsets: np.ndarray,
    truth: np.ndarray,
    penalties: np.ndarray,
    theta: np.ndarray,
) -> np.ndarray:
    """Return leave-one-out scores (n,) of the decisions.

    They are one Newton step away from θ: z − (y − p) g / (1 − p(1 − p) g) with
    g = aᵀ(Λ + AᵀSA)⁻¹a. The parameters are as in `fit_correction`, and θ is its result.
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


def _solve(
    A: np.ndarray, slopes: np.ndarray, penalties: np.ndarray, gradient: np.ndarray
) -> np.ndarray:
    """Return (Λ + AᵀSA)⁻¹ g, with a k×k or an n×n matrix, whichever is smaller.

    The latter is Woodbury's Λ⁻¹g − Λ⁻¹Aᵀ (S⁻¹ + AΛ⁻¹Aᵀ)⁻¹ AΛ⁻¹g.
    """
    n, k = A.shape
    if n >= k:
        hessian = (A * slopes[:, None]).T @ A
        hessian.flat[:: k + 1] += penalties
        solution = scipy.linalg.solve(hessian, gradient, assume_a="pos", overwrite_a=True)
        return np.asarray(solution)
    scaled = A / penalties
    inner = scaled @ A.T
    inner.flat[:: n + 1] += 1 / slopes
    along = scipy.linalg.solve(inner, scaled @ gradient, assume_a="pos", overwrite_a=True)
    return np.asarray(gradient / penalties - scaled.T @ along)
