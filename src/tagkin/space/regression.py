"""The linear algebra of the semantic space: regularised canonical directions.

The paper's equation (K^V+κI)⁻¹ K^T (K^T+κI)⁻¹ K^V α = λ²α, with K^V = Φ Φᵀ and K^T = T̂ T̂ᵀ
centred, is the singular value decomposition

    (Z+κI)^-½ C (G+κI)^-½ = U Σ Vᵀ,    Z = ΦᵀΦ, C = ΦᵀT̂, G = T̂ᵀT̂,

with λ = Σ and visual directions w = (Z+κI)^-½ u. Any square root serves; a Cholesky factor
is the cheapest. Two forms give the same directions:

- `from_moments`, for landmarks S: w is expressed in kernel columns k(·, S) ("ω"), in which
  Z+κI becomes KᵀK + κ k(S, S). No array has the size N.
- `from_kernel`, if every image is a landmark: one factor of the N×N matrix K^V + κI.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tagkin.arrays import Array, namespace
from tagkin.arrays.linalg import cholesky, eigh, matmul, solve_triangular
from tagkin.errors import InvalidInput

__all__ = [
    "Directions",
    "Root",
    "Unrotated",
    "from_kernel",
    "from_moments",
    "regularization_of_public_code",
    "solve_unrotated",
    "unrotated_from_kernel",
]


def regularization_of_public_code(kappa: float) -> float:
    """Return the `regularization` κ that equals the κ' of Hardoon's public KCCA code.

    The code regularises by (1 − κ')K + κ'I. This is the printed equation with κ = κ' / (1 − κ')
    and correlations multiplied by 1 / (1 − κ').
    """
    if not 0 < kappa < 1:
        raise InvalidInput(f"The public code's κ' lies between 0 and 1; found {kappa}.")
    return kappa / (1 - kappa)


@dataclass(frozen=True)
class Directions:
    """Canonical directions of the two views, best correlated first.

    Attributes
    ----------
    correlations : array of shape (m,)
        λ, the regularised canonical correlations, descending, without zeros up to rounding.
    coefficients : array of shape (r, m)
        ω: the projection of an image on direction j is (k(x, S) − mean) ω_j.
    visual_norms, text_norms : arrays of shape (m,)
        Norms of the projections of all training images on each direction of a view.
    readout : array of shape (m, q)
        Σ Vᵀ (G+κI)^½: times an image's projections it is φᵀ (Z+κI)⁻¹ C, the ridge regression of
        the centred text features.
    """

    correlations: Array
    coefficients: Array
    visual_norms: Array
    text_norms: Array
    readout: Array

    @property
    def empirical_correlations(self) -> Array:
        """Correlation of the two projections over the training images, shape (m,)."""
        return self.correlations / (self.visual_norms * self.text_norms)


@dataclass(frozen=True)
class Unrotated:
    """The space before the rotation V to canonical directions, which changes no cosine.

    Attributes
    ----------
    coefficients : array of shape (r, p)
        (Z+κI)⁻¹ C (G+κI)^-½, in kernel columns: embeddings are (k(x, S) − mean) coefficients.
    readout : array of shape (p, q)
        (G+κI)^½: times an embedding it is the ridge regression of the centred text features.
    largest : float
        The leading correlation, to a few percent.
    """

    coefficients: Array
    readout: Array
    largest: float


class Root:
    """A square root A^½ of a symmetric positive definite matrix, to solve with.

    It is a Cholesky factor, or a matrix W with W Wᵀ = A⁻¹ on the directions that are kept.
    """

    def __init__(self, matrix: Array, *, is_inverse: bool = False):
        self._matrix, self._is_inverse = matrix, is_inverse

    @classmethod
    def of(cls, A: Array) -> Root:
        """Return the root of A; if A is singular up to rounding, drop directions of rounding."""
        factor = cholesky(A)
        if factor is not None:
            return cls(factor)
        values, vectors = eigh(A)
        keep = values > A.shape[0] * float(namespace(A).finfo(A.dtype).eps) * values[-1]
        return cls(vectors[:, keep] / namespace(A).sqrt(values[keep]), is_inverse=True)

    @classmethod
    def of_visual(
        cls,
        kernel_gram: Array,
        landmark_gram: Array,
        regularization: float,
        *,
        single: bool = False,
    ) -> Root:
        """Return the root of KᵀK + κ k(S, S), that is of Z + κI in kernel columns.

        If float32 rounding in KᵀK outweighs κ k(S, S), the sum is not positive definite. Then
        the negative eigenvalues of Z are set to zero. `single` asks for a factor in float32, if
        possible.
        """
        xp = namespace(kernel_gram)
        whole = kernel_gram + regularization * landmark_gram
        factor = None
        if single and isinstance(whole, np.ndarray):
            factor = cholesky(whole.astype(np.float32))
        if factor is None:
            factor = cholesky(whole)
        if factor is not None:
            return cls(factor)
        landmarks = cls.of(landmark_gram)
        Z = landmarks.half(landmarks.half(kernel_gram).T)
        values, vectors = eigh((Z + Z.T) / 2)
        roots = xp.sqrt(values.clip(0.0, None) + regularization)
        return cls(landmarks.half_transposed(vectors / roots), is_inverse=True)

    @classmethod
    def of_text(cls, gram: Array, regularization: float) -> Root:
        """Return the root of G + κI on directions of the text features, G their Gram matrix.

        With duplicate labels, labels on no image or exactly one label per image, nothing varies in
        some directions. They are left out, because they would become dimensions of rounding.
        """
        xp = namespace(gram)
        # above the rounding of sums over a million images, and below the variation of labels,
        # unless their weights differ by a factor of a million
        bound = 1e-12 * float(xp.max(xp.linalg.diagonal(gram)))
        factor = cholesky(gram)
        if factor is not None and _smallest(factor) ** 2 > bound:
            whole = cholesky(_add_to_diagonal(gram, regularization))
            if whole is not None:
                return cls(whole)
        values, vectors = eigh(gram)
        keep = values > bound
        return cls(vectors[:, keep] / xp.sqrt(values[keep] + regularization), is_inverse=True)

    def half(self, B: Array) -> Array:
        """Return A^-½ B."""
        if self._is_inverse:
            return matmul(self._matrix.T, B)
        return solve_triangular(self._matrix, self._match_precision(B))

    def half_transposed(self, B: Array) -> Array:
        """Return A^-½ᵀ B; ``half_transposed(half(B))`` is A⁻¹ B."""
        if self._is_inverse:
            return matmul(self._matrix, B)
        return solve_triangular(self._matrix, self._match_precision(B), transposed=True)

    def _match_precision(self, B: Array) -> Array:
        """Return B in the precision of the factor."""
        return namespace(B).astype(B, self._matrix.dtype, copy=False)

    def transpose_root(self) -> Array:
        """Return A^½ᵀ; ``half(B).T @ transpose_root()`` is Bᵀ on the directions that are kept."""
        if not self._is_inverse:
            return self._matrix.T
        squares = namespace(self._matrix).sum(self._matrix**2, axis=0)
        return (self._matrix / squares).T


def from_moments(
    kernel_gram: Array,
    landmark_gram: Array,
    cross: Array,
    text_gram: Array,
    regularization: float,
    *,
    with_norms: bool = True,
) -> Directions:
    """Compute directions from centred sums over the images.

    Parameters
    ----------
    kernel_gram : (r, r), KᵀK of the centred kernel columns K = k(X, S) (N×r)
    landmark_gram : (r, r), k(S, S)
    cross : (r, q), KᵀT̂
    text_gram : (q, q), T̂ᵀT̂
    with_norms : bool
        If False, the norms of visual projections are NaN, which saves a product.
    """
    xp = namespace(kernel_gram)
    visual = Root.of_visual(kernel_gram, landmark_gram, regularization)
    text = Root.of_text(text_gram, regularization)
    B = text.half(visual.half(cross).T).T
    U, correlations, V = _svd(B)
    text_directions = text.half_transposed(V)
    signs = _choose_signs(text_directions)
    coefficients = visual.half_transposed(U) * signs
    # wᵀ(Z+κI)w = 1 on both sides, so ‖Φw‖² = wᵀZw = 1 − κ‖w‖²
    visual_length = xp.full_like(correlations, math.nan)
    if with_norms:
        visual_length = xp.sum(coefficients * matmul(landmark_gram, coefficients), axis=0)
    return Directions(
        correlations,
        coefficients,
        _projection_norms(visual_length, regularization),
        _projection_norms(xp.sum(text_directions**2, axis=0), regularization),
        _readout(text, V, signs * correlations),
    )


def from_kernel(kernel: Array, text: Array, regularization: float) -> Directions:
    """Compute directions in the dual form, if every image is a landmark.

    Parameters
    ----------
    kernel : (N, N), the centred visual kernel, float32 or float64; overwritten
    text : (N, q), the centred text features, float64
    """
    xp = namespace(kernel)
    text_root = Root.of_text(matmul(text.T, text), regularization)
    whitened, dual = _solve_dual(kernel, text, text_root, regularization)
    # a = (K+κI)⁻¹ T, hence K a = T − κ a
    projected = whitened - regularization * dual
    squares = matmul(whitened.T, projected)
    eps = float(xp.finfo(kernel.dtype).eps)
    rounding = 8 * eps if kernel.dtype == xp.float32 else kernel.shape[0] * eps
    correlations, V = _descending_roots((squares + squares.T) / 2, rounding)
    text_directions = text_root.half_transposed(V)
    signs = _choose_signs(text_directions)
    coefficients = matmul(dual, V / correlations) * signs
    projections = matmul(projected, V / correlations)
    return Directions(
        correlations,
        coefficients,
        xp.sqrt(xp.sum(projections**2, axis=0)),
        _projection_norms(xp.sum(text_directions**2, axis=0), regularization),
        _readout(text_root, V, signs * correlations),
    )


def _readout(text: Root, V: Array, scale: Array) -> Array:
    """Return Σ Vᵀ (G+κI)^½, shape (m, q), for the singular values and signs in `scale` (m,)."""
    return matmul(V.T, text.transpose_root()) * scale[:, None]


def _solve_dual(
    kernel: Array, text: Array, text_root: Root, regularization: float
) -> tuple[Array, Array]:
    """Return the whitened text features T (N×p), and (K+κI)⁻¹ T; K is overwritten."""
    xp = namespace(kernel)
    whitened = text_root.half(text.T).T
    visual = Root.of(_add_to_diagonal(kernel, regularization))
    right = xp.astype(whitened, kernel.dtype, copy=False)
    dual = xp.astype(visual.half_transposed(visual.half(right)), text.dtype, copy=False)
    # T and K are centred, so (K+κI)⁻¹ T is, up to rounding; a mean would be multiplied by the
    # uncentred kernel of new images
    return whitened, dual - xp.mean(dual, axis=0)


def solve_unrotated(
    visual: Root, cross: Array, text_gram: Array, regularization: float
) -> Unrotated:
    """Solve as `from_moments` does, without the eigenproblem of the size of the text features.

    Parameters
    ----------
    visual : Root, of Z + κI in kernel columns
    cross, text_gram : as in `from_moments`; the latter is overwritten
    """
    # directions without any variation of the text stay, with nothing but rounding along them
    text = Root.of(_add_to_diagonal(text_gram, regularization))
    half = text.half(visual.half(cross).T).T
    return Unrotated(visual.half_transposed(half), text.transpose_root(), _largest_value(half))


def unrotated_from_kernel(kernel: Array, text: Array, regularization: float) -> Unrotated:
    """Solve as `from_kernel` does, without the eigenproblem of the size of the text features."""
    text_root = Root.of(_add_to_diagonal(matmul(text.T, text), regularization))
    whitened, dual = _solve_dual(kernel, text, text_root, regularization)
    squares = matmul(whitened.T, whitened - regularization * dual)
    largest = abs(_largest_value(squares)) ** 0.5
    return Unrotated(dual, text_root.transpose_root(), largest)


def _largest_value(A: Array) -> float:
    """Return the largest singular value of A to a few percent, by power iteration."""
    xp = namespace(A)
    v = xp.ones(A.shape[1], dtype=A.dtype, device=A.device)
    for _ in range(20):
        v = matmul(A.T, matmul(A, v / xp.clip(xp.linalg.vector_norm(v), 1e-300, None)))
    return float(xp.linalg.vector_norm(v)) ** 0.5


def _smallest(factor: Array) -> float:
    """Return the smallest entry on the diagonal."""
    xp = namespace(factor)
    return float(xp.min(xp.linalg.diagonal(factor)))


def _add_to_diagonal(A: Array, value: float) -> Array:
    """Add `value` to the diagonal of A in place, and return A."""
    i = namespace(A).arange(A.shape[0], device=A.device)
    A[i, i] += value
    return A


def _projection_norms(squared_length: Array, regularization: float) -> Array:
    """Return √(1 − κ‖w‖²), the norms ‖Φw‖ of the projections on directions w, shape (m,)."""
    xp = namespace(squared_length)
    eps = float(xp.finfo(squared_length.dtype).eps)
    return xp.sqrt((1.0 - regularization * squared_length).clip(eps, None))


def _svd(B: Array) -> tuple[Array, Array, Array]:
    """Return U, Σ and V of B (r×q), from the Gram matrix of its shorter side."""
    rounding = max(B.shape) * float(namespace(B).finfo(B.dtype).eps)
    if B.shape[0] < B.shape[1]:
        values, U = _descending_roots(matmul(B, B.T), rounding)
        return U, values, matmul(B.T, U / values)
    values, V = _descending_roots(matmul(B.T, B), rounding)
    return matmul(B, V / values), values, V


def _descending_roots(A: Array, rounding: float) -> tuple[Array, Array]:
    """Return square roots of the eigenvalues of A above rounding, and their vectors.

    Regularised correlations are at most 1, so rounding is absolute.
    """
    xp = namespace(A)
    values, vectors = eigh(A)
    keep = values > rounding
    return xp.sqrt(xp.flip(values[keep], axis=0)), xp.flip(vectors[:, keep], axis=1)


def _choose_signs(directions: Array) -> Array:
    """Return ±1 for every column, which makes the column's largest entry positive.

    The sign of an eigenvector is arbitrary; this makes it the same on all machines.
    """
    xp = namespace(directions)
    largest = xp.argmax(xp.abs(directions), axis=0)
    columns = xp.arange(directions.shape[1], device=directions.device)
    return xp.where(directions[largest, columns] < 0, -1.0, 1.0)
