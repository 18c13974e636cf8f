"""Spaces of the same images for several sets of labels, which share the visual side."""

from __future__ import annotations

from typing import Any

from tagkin.arrays import Array, like, namespace
from tagkin.arrays.linalg import matmul
from tagkin.errors import InvalidInput
from tagkin.space.regression import Root, solve_unrotated
from tagkin.space.space import Landmarks
from tagkin.space.views import TextView, as_text_view

__all__ = ["Refits"]


class Refits:
    """Embeddings of known and other images, learned from any labels of the known images.

    Only the text features T̂ differ between fits. The kernel columns, their Gram matrix and its
    root are computed once. Each fit is Ψ = Φ (Z+κI)⁻¹ C (G+κI)^-½, the embeddings of
    `SemanticSpace` up to a rotation, which changes no cosine.

    Parameters
    ----------
    landmarks : Landmarks
    known, others : arrays of shape (n, d) and (m, d)
        All kernel columns, (n + m) × r, are in memory, so these are samples, not collections.
    regularization : float
        κ.
    """

    def __init__(self, landmarks: Landmarks, known: Array, others: Array, regularization: float):
        columns = landmarks.columns(known)
        xp = namespace(columns)
        mean = xp.astype(xp.mean(columns, axis=0, dtype=xp.float64), columns.dtype)
        self._known = columns - mean
        self._others = landmarks.columns(others) - mean
        squares = xp.astype(matmul(self._known.T, self._known), xp.float64)
        gram = landmarks.gram()
        variance = float(xp.max(xp.linalg.diagonal(squares))) / known.shape[0]
        largest = float(xp.max(xp.linalg.diagonal(gram)))
        if not variance > (landmarks.rounding * largest) ** 2:
            raise InvalidInput("All images look the same to the kernel.")
        self._regularization = regularization
        self._root = Root.of_visual(squares, gram, regularization)

    def embeddings(self, Y: Array, text_view: str | TextView = "indicator") -> tuple[Any, Any]:
        """Return embeddings of known (n×p) and other images (m×p), learned from Y (n×D)."""
        view = as_text_view(text_view)
        view.fit(Y)
        xp = namespace(self._known)
        text = like(view.transform(Y), self._known)
        text = text - xp.mean(text, axis=0)
        exact = xp.astype(text, xp.float64)
        cross = xp.astype(matmul(self._known.T, text), xp.float64)
        unrotated = solve_unrotated(self._root, cross, matmul(exact.T, exact), self._regularization)
        coefficients = xp.astype(unrotated.coefficients, self._known.dtype)
        if not xp.any(coefficients != 0):
            raise InvalidInput(
                "Labels and features are unrelated. Do all images have the same labels?"
            )
        return matmul(self._known, coefficients), matmul(self._others, coefficients)
