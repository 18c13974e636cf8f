"""The linear algebra of the semantic space: regularised canonical directions.

The paper's equation (K^V+κI)⁻¹ K^T (K^T+κI)⁻¹ K^V α = λ²α, with K^V = Φ Φᵀ and K^T = T̂ T̂ᵀ
centred, is the singular value decomposition

    (Z+κI)^-½ C (G+κI)^-½ = U Σ Vᵀ,    Z = ΦᵀΦ, C = ΦᵀT̂, G = T̂ᵀT̂,

with λ = Σ and visual directions w = (Z+κI)^-½ u. Any square root serves; a Cholesky factor
is the cheapest. Two forms of it give the same directions:

- `from_moments`, for landmarks S: w is expressed in kernel columns k(·, S) ("ω"), in which
  Z+κI becomes KᵀK + κ k(S, S). Nothing of size N appears.
- `from_kernel`, for every image a landmark: one factor of the N×N matrix K^V+κI.
"""

from __future__ import annotations

from dataclasses import dataclass

from tagkin.arrays import Array, cholesky, eigh, namespace, solve_triangular

__all__ = ["Directions", "Root", "from_kernel", "from_moments"]


@dataclass(frozen=True)
class Directions:
    """Canonical directions of the two views, best correlated first.

    Attributes
    ----------
    correlations : array of shape (m,)
        λ, the regularised canonical correlations, descending; those that are zero up to
        rounding are left out.
    coefficients : array of shape (r, m)
        ω: the projection of an image on direction j is (k(x, S) − mean) ω_j.
    visual_norms, text_norms : arrays of shape (m,)
        Norms of the projections of all training images on each direction of either view.
    """

    correlations: Array
    coefficients: Array
    visual_norms: Array
    text_norms: Array

    @property
    def empirical_correlations(self) -> Array:
        """Correlation of the two projections over the training images, shape (m,)."""
        return self.correlations / (self.visual_norms * self.text_norms)


class Root:
    """A square root of a symmetric positive (semi-)definite matrix, to solve with.

    A Cholesky factor where there is one. A matrix that is singular up to rounding gets its
    eigenvectors instead, with the directions dropped in which it is nothing but rounding: so
    it never fails.
    """

    def __init__(self, A: Array, rounding: float):
        xp = namespace(A)
        self._factor = cholesky(A)
        if self._factor is None:
            values, vectors = eigh(A)
            keep = values > rounding * values[-1]
            self._scaled = vectors[:, keep] / xp.sqrt(values[keep])

    def half(self, B: Array) -> Array:
        """A^-½ B."""
        if self._factor is None:
            return self._scaled.T @ B
        return solve_triangular(self._factor, B)

    def half_transposed(self, B: Array) -> Array:
        """A^-½ᵀ B, so that ``half_transposed(half(B))`` is A⁻¹ B."""
        if self._factor is None:
            return self._scaled @ B
        return solve_triangular(self._factor, B, transposed=True)


def from_moments(
    kernel_gram: Array,
    landmark_gram: Array,
    cross: Array,
    text_gram: Array,
    regularization: float,
    rounding: float,
) -> Directions:
    """Directions from centred sums over the images.

    Parameters
    ----------
    kernel_gram : (r, r), KᵀK of the centred kernel columns K = k(X, S) (N×r)
    landmark_gram : (r, r), k(S, S)
    cross : (r, q), KᵀT̂
    text_gram : (q, q), T̂ᵀT̂
    rounding : float
        Relative precision of the sums.
    """
    xp = namespace(kernel_gram)
    visual = Root(kernel_gram + regularization * landmark_gram, rounding)
    text = Root(_plus_diagonal(text_gram, regularization), rounding)
    B = text.half(visual.half(cross).T).T
    U, correlations, V = _svd(B)
    coefficients = visual.half_transposed(U)
    text_directions = text.half_transposed(V)
    # wᵀ(Z+κI)w = 1 on both sides, so ‖Φw‖² = wᵀZw = 1 − κ‖w‖²
    visual_length = xp.sum(coefficients * (landmark_gram @ coefficients), axis=0)
    return Directions(
        correlations,
        coefficients,
        _root_of_rest(visual_length, regularization),
        _root_of_rest(xp.sum(text_directions**2, axis=0), regularization),
    )


def from_kernel(kernel: Array, text: Array, regularization: float) -> Directions:
    """Directions in the dual form, where every image is a landmark.

    Parameters
    ----------
    kernel : (N, N), the centred visual kernel; overwritten
    text : (N, q), the centred text features
    """
    xp = namespace(kernel)
    eps = float(xp.finfo(kernel.dtype).eps)
    text_root = Root(_plus_diagonal(text.T @ text, regularization), eps)
    whitened = text_root.half(text.T).T
    visual = Root(_plus_diagonal(kernel, regularization), eps)
    # a = (K+κI)⁻¹ T, hence K a = T − κ a
    dual = visual.half_transposed(visual.half(whitened))
    projected = whitened - regularization * dual
    squares = whitened.T @ projected
    correlations, V = _descending_roots((squares + squares.T) / 2, kernel.shape[0])
    coefficients = dual @ (V / correlations)
    projections = projected @ (V / correlations)
    text_directions = text_root.half_transposed(V)
    return Directions(
        correlations,
        coefficients,
        xp.sqrt(xp.sum(projections**2, axis=0)),
        _root_of_rest(xp.sum(text_directions**2, axis=0), regularization),
    )


def _plus_diagonal(A: Array, value: float) -> Array:
    """A with `value` added to its diagonal, in place."""
    index = namespace(A).arange(A.shape[0], device=A.device)
    A[index, index] += value
    return A


def _root_of_rest(squared_length: Array, regularization: float) -> Array:
    xp = namespace(squared_length)
    eps = float(xp.finfo(squared_length.dtype).eps)
    return xp.sqrt(xp.clip(1.0 - regularization * squared_length, eps, None))


def _svd(B: Array) -> tuple[Array, Array, Array]:
    """Singular vectors and values of B (r×q), through the Gram matrix of its shorter side."""
    if B.shape[0] < B.shape[1]:
        values, U = _descending_roots(B @ B.T, B.shape[1])
        return U, values, B.T @ (U / values)
    values, V = _descending_roots(B.T @ B, B.shape[0])
    return B @ (V / values), values, V


def _descending_roots(A: Array, size: int) -> tuple[Array, Array]:
    """Square roots of the eigenvalues of A that are above rounding, and their vectors.

    No regularised correlation exceeds 1, so rounding is absolute. A vector's largest entry
    is positive, which makes its sign the same everywhere.
    """
    xp = namespace(A)
    values, vectors = eigh(A)
    keep = values > max(size, A.shape[0]) * float(xp.finfo(A.dtype).eps)
    values = xp.flip(values[keep], axis=0)
    vectors = xp.flip(vectors[:, keep], axis=1)
    largest = xp.argmax(xp.abs(vectors), axis=0)
    signs = xp.sign(vectors[largest, xp.arange(vectors.shape[1], device=vectors.device)])
    return xp.sqrt(values), vectors * signs
