"""The linear algebra of the semantic space: regularised canonical directions.

The paper's equation (K^V+κI)⁻¹ K^T (K^T+κI)⁻¹ K^V α = λ²α, with K^V = Φ Φᵀ and K^T = T̂ T̂ᵀ
centred, is the singular value decomposition

    (Z+κI)^-½ C (G+κI)^-½ = U Σ Vᵀ,    Z = ΦᵀΦ, C = ΦᵀT̂, G = T̂ᵀT̂,

with λ = Σ and visual directions w = (Z+κI)^-½ u. Any square root serves; a Cholesky factor
is the cheapest. Two forms of it give the same directions:

- `from_moments`, for landmarks S: w is expressed in kernel columns k(·, S) ("ω"), in which
  Z+κI becomes KᵀK + κ k(S, S). Nothing of size N appears.
- `from_kernel`, for every image a landmark: one factor of the N×N matrix K^V + κI.
"""

from __future__ import annotations

from dataclasses import dataclass

from tagkin.arrays import Array, cholesky, eigh, namespace, row_blocks, solve_triangular

__all__ = ["Directions", "Root", "from_kernel", "from_moments", "ridge_solve"]


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
        self._factor = cholesky(A)
        if self._factor is None:
            values, vectors = eigh(A)
            keep = values > rounding * values[-1]
            self._scaled = vectors[:, keep] / namespace(A).sqrt(values[keep])

    @classmethod
    def of_text(cls, gram: Array, regularization: float) -> Root:
        """Root of G + κI on the directions that occur in the text features, G their Gram matrix.

        Duplicate labels, labels on no image or exactly one label an image leave directions in
        which nothing varies; rounding elsewhere would make dimensions of them.
        """
        root = cls.__new__(cls)
        xp = namespace(gram)
        # sums over a million images round to less than this; a label on one image weighs more
        bound = 1e-10 * float(xp.max(xp.linalg.diagonal(gram)))
        plain = cholesky(gram)
        if plain is not None and float(xp.min(xp.linalg.diagonal(plain))) ** 2 > bound:
            root._factor = cholesky(_plus_diagonal(gram, regularization))
            return root
        values, vectors = eigh(gram)
        keep = values > bound
        root._factor = None
        root._scaled = vectors[:, keep] / xp.sqrt(values[keep] + regularization)
        return root

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


def ridge_solve(K: Array, regularization: float, B: Array) -> Array:
    """(K + κI)⁻¹ B for a kernel matrix K (N×N), whose diagonal is overwritten, and B (N×q).

    A float32 kernel is factored in float32, and the solution refined with float64 residuals
    to 1e-7; where that does not converge, and for float64 kernels, the factor is float64.
    """
    xp = namespace(K)
    _plus_diagonal(K, regularization)
    if K.dtype == xp.float32:
        solution = _refined_solve(K, B)
        if solution is not None:
            return solution
    root = Root(xp.astype(K, xp.float64, copy=False), float(xp.finfo(xp.float64).eps))
    return root.half_transposed(root.half(B))


def _refined_solve(A: Array, B: Array, tolerance: float = 1e-7) -> Array | None:
    """A⁻¹ B of a float32 matrix by iterative refinement; None where it does not converge."""
    xp = namespace(A)
    L = cholesky(A)
    if L is None:
        return None
    solution = xp.zeros_like(B)
    residual, last = B, None
    for _ in range(6):
        step = solve_triangular(L, xp.astype(residual, A.dtype))
        step = xp.astype(solve_triangular(L, step, transposed=True), B.dtype)
        solution += step
        size = float(xp.max(xp.abs(step)))
        # steps shrink by a constant factor, so the last two tell what is still missing
        if last is not None and size * (size / last) <= tolerance * float(xp.max(xp.abs(solution))):
            return solution
        residual = xp.empty_like(B)
        for rows in row_blocks(A.shape[0], 256 * A.shape[1]):
            residual[rows] = B[rows] - xp.astype(A[rows], B.dtype) @ solution
        last = size
    return None


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
    text = Root.of_text(text_gram, regularization)
    B = text.half(visual.half(cross).T).T
    U, correlations, V = _svd(B)
    text_directions = text.half_transposed(V)
    coefficients = visual.half_transposed(U) * _signs(text_directions)
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
    kernel : (N, N), the centred visual kernel, float32 or float64; overwritten
    text : (N, q), the centred text features, float64
    """
    xp = namespace(kernel)
    text_root = Root(_plus_diagonal(text.T @ text, regularization), float(xp.finfo(text.dtype).eps))
    whitened = text_root.half(text.T).T
    # a = (K+κI)⁻¹ T, hence K a = T − κ a
    dual = ridge_solve(kernel, regularization, whitened)
    projected = whitened - regularization * dual
    squares = whitened.T @ projected
    eps = float(xp.finfo(kernel.dtype).eps)
    rounding = 8 * eps if kernel.dtype == xp.float32 else kernel.shape[0] * eps
    correlations, V = _descending_roots((squares + squares.T) / 2, rounding)
    text_directions = text_root.half_transposed(V)
    coefficients = dual @ (V / correlations) * _signs(text_directions)
    projections = projected @ (V / correlations)
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
    rounding = max(B.shape) * float(namespace(B).finfo(B.dtype).eps)
    if B.shape[0] < B.shape[1]:
        values, U = _descending_roots(B @ B.T, rounding)
        return U, values, B.T @ (U / values)
    values, V = _descending_roots(B.T @ B, rounding)
    return B @ (V / values), values, V


def _descending_roots(A: Array, rounding: float) -> tuple[Array, Array]:
    """Square roots of the eigenvalues of A that are above rounding, and their vectors.

    No regularised correlation exceeds 1, so rounding is absolute.
    """
    xp = namespace(A)
    values, vectors = eigh(A)
    keep = values > rounding
    return xp.sqrt(xp.flip(values[keep], axis=0)), xp.flip(vectors[:, keep], axis=1)


def _signs(directions: Array) -> Array:
    """±1 for every column: with it, the column's largest entry is positive.

    Eigenvectors have no sign of their own; this gives them the same one everywhere.
    """
    xp = namespace(directions)
    largest = xp.argmax(xp.abs(directions), axis=0)
    columns = xp.arange(directions.shape[1], device=directions.device)
    return xp.where(directions[largest, columns] < 0, -1.0, 1.0)
