"""The paper's equation, solved as printed: N×N matrices and a general eigenproblem."""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg


class DenseSpace(NamedTuple):
    """Correlations λ, weights A (N×m), and ψ of training and new images."""

    correlations: np.ndarray
    A: np.ndarray
    psi: np.ndarray
    psi_new: np.ndarray


def dense_space(K, K_new, K_text, kappa, n_components) -> DenseSpace:
    """(K^V+κI)⁻¹ K^T (K^T+κI)⁻¹ K^V α = λ²α for double-centred kernels, ψ = K^V A R.

    α is scaled so that the regularised variance αᵀ(K^V² + κK^V)α is 1.
    """
    n = len(K)
    centre = np.eye(n) - 1 / n
    visual, text = centre @ K @ centre, centre @ K_text @ centre
    new = (K_new - K.mean(axis=0)) @ centre
    ridge = kappa * np.eye(n)
    M = np.linalg.solve(visual + ridge, text @ np.linalg.solve(text + ridge, visual))
    squares, vectors = scipy.linalg.eig(M)
    order = np.argsort(-squares.real)[:n_components]
    correlations, A = np.sqrt(squares.real[order]), vectors.real[:, order]
    variance = np.einsum("ij,ik,kj->j", A, visual @ visual + kappa * visual, A)
    A = A / np.sqrt(variance)
    return DenseSpace(correlations, A, visual @ A * correlations, new @ A * correlations)


def gram(Z: Any) -> np.ndarray:
    """Products of all pairs of rows."""
    Z = np.asarray(Z, dtype=np.float64)
    return Z @ Z.T


def cosines(Z: Any) -> np.ndarray:
    """Of all pairs of rows."""
    Z = np.asarray(Z, dtype=np.float64)
    return gram(Z / np.linalg.norm(Z, axis=1, keepdims=True))
