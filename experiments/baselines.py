"""A well-known baseline that is not in the paper: logistic regression."""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.optimize
import scipy.sparse

__all__ = ["LogisticProbe"]


class LogisticProbe:
    """Logistic regression of all labels at once, on standardised features.

    It minimises the mean over images of Σₜ log(1 + exp(−yₜ fₜ)) plus penalty/2 ‖W‖², by L-BFGS.
    """

    def __init__(self, penalty: float = 1e-3, max_iterations: int = 40, block: int = 8192):
        self.penalty = penalty
        self.block = block  # rows at a time, so that memory does not grow with the images
        self.max_iterations = max_iterations

    def fit(
        self, X: np.ndarray, Y: scipy.sparse.csr_array, start: np.ndarray | None = None
    ) -> Self:
        """Learn from features X (N×d) and labels Y (N×D); `start` is another fit's `flat_`."""
        self.mean_, self.scale_ = X.mean(axis=0), X.std(axis=0)
        self.scale_[self.scale_ == 0] = 1
        Z = np.asarray((X - self.mean_) / self.scale_, dtype=np.float32)
        Y = scipy.sparse.csr_array(Y, dtype=np.float32)
        d, D = Z.shape[1], Y.shape[1]
        share = np.clip(Y.mean(axis=0), 1e-6, 1 - 1e-6)
        if start is None:
            start = np.concatenate([np.zeros(d * D), np.log(share / (1 - share))])
        found = scipy.optimize.minimize(
            _logistic_loss,
            start,
            (Z, Y, self.penalty, self.block),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iterations, "ftol": 1e-6, "gtol": 1e-7},
        )
        self.flat_ = found.x
        self.coef_ = found.x[: d * D].reshape(d, D).astype(np.float32)
        self.intercept_ = found.x[d * D :].astype(np.float32)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Log odds of every label (n×D)."""
        return ((X - self.mean_) / self.scale_).astype(np.float32) @ self.coef_ + self.intercept_


def _logistic_loss(
    flat: np.ndarray, Z: np.ndarray, Y: scipy.sparse.csr_array, penalty: float, block: int
) -> tuple[float, np.ndarray]:
    """Loss and gradient, in blocks of rows."""
    (n, d), D = Z.shape, Y.shape[1]
    W = flat[: d * D].reshape(d, D).astype(np.float32)
    b = flat[d * D :].astype(np.float32)
    value = 0.5 * penalty * float(flat[: d * D] @ flat[: d * D])
    by_w, by_b = penalty * flat[: d * D].reshape(d, D), np.zeros(D)
    for first in range(0, n, block):
        z, y = Z[first : first + block], Y[first : first + block].toarray()
        f = z @ W + b
        small = np.exp(-np.abs(f))
        losses = np.log1p(small) + np.maximum(f, 0) - y * f
        value += float(losses.sum(dtype=np.float64)) / n
        wrong = (np.where(f > 0, 1, small) / (1 + small) - y) / np.float32(n)
        by_w += z.T @ wrong
        by_b += wrong.sum(axis=0)
    return value, np.concatenate([by_w.ravel(), by_b])
