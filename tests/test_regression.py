import numpy as np
import pytest

from tagkin import memory_budget
from tagkin._regression import Root, from_kernel, from_moments, ridge_solve
from tagkin.kernels import arc_cosine_kernel
from tests.conftest import make_collection
from tests.dense import dense_space


def centred(A):
    return A - A.mean(axis=0)


def problem(seed=0):
    X, Y, _ = make_collection(n=80, seed=seed)
    K = arc_cosine_kernel(X)
    return K, Y


@pytest.mark.parametrize("kappa", [0.01, 0.5, 10.0])
def test_both_forms_are_the_dense_equation(kappa, as_array):
    K, Y = problem()
    dense = dense_space(K, K[:5], Y @ Y.T, kappa, 6)
    half = centred(K)
    text = centred(Y)
    primal = from_moments(
        *map(as_array, (half.T @ half, K, half.T @ text, text.T @ text)), kappa, 1e-15
    )
    dual = from_kernel(as_array(half - half.mean(axis=1)[:, None]), as_array(text), kappa)
    for found in (primal, dual):
        np.testing.assert_allclose(found.correlations, dense.correlations, atol=1e-10)
        psi = half @ np.asarray(found.coefficients) * dense.correlations
        np.testing.assert_allclose(psi @ psi.T, dense.psi @ dense.psi.T, atol=1e-10)
        np.testing.assert_allclose(
            found.visual_norms,
            np.linalg.norm(half @ np.asarray(found.coefficients), axis=0),
            rtol=1e-7,
        )


def test_empirical_correlations_are_those_of_the_projections():
    K, Y = problem()
    half, text, kappa = centred(K), centred(Y), 0.5
    found = from_moments(half.T @ half, K, half.T @ text, text.T @ text, kappa, 1e-15)
    visual = half @ found.coefficients
    # the text direction that goes with a visual one: z ∝ (G+κI)⁻¹ Cᵀ w
    z = np.linalg.solve(text.T @ text + kappa * np.eye(6), text.T @ visual)
    expected = [np.corrcoef(visual[:, j], text @ z[:, j])[0, 1] for j in range(6)]
    np.testing.assert_allclose(found.empirical_correlations, expected, atol=1e-9)


def test_fewer_landmarks_than_labels():
    K, Y = problem()
    half, text = centred(K[:, :4]), centred(Y)
    found = from_moments(half.T @ half, K[:4, :4], half.T @ text, text.T @ text, 0.5, 1e-15)
    assert found.correlations.shape == (4,)
    A = half.T @ half + 0.5 * K[:4, :4]
    G = text.T @ text + 0.5 * np.eye(6)
    C = half.T @ text
    squares = np.linalg.eigvals(np.linalg.solve(A, C @ np.linalg.solve(G, C.T)))
    np.testing.assert_allclose(found.correlations, np.sqrt(np.sort(squares.real)[::-1]), atol=1e-10)


def test_a_singular_matrix_has_a_root(as_array):
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((10, 4))
    A = basis @ basis.T
    A -= 1e-13 * np.eye(10)  # rounding has made it slightly indefinite
    B = basis @ rng.standard_normal((4, 3))
    root = Root(as_array(A), 1e-10)
    solved = np.asarray(root.half_transposed(root.half(as_array(B))))
    np.testing.assert_allclose(A @ solved, B, atol=1e-9)
    np.testing.assert_allclose(solved, np.linalg.pinv(A, rcond=1e-10) @ B, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_ridge_solve_is_a_dense_solve(dtype, scale, as_array):
    """Also where K+κI is so ill conditioned that float32 alone would keep two digits."""
    K, Y = problem()
    K = (scale * K).astype(dtype)
    expected = np.linalg.solve(K.astype(np.float64) + 0.05 * np.eye(80), Y)
    with memory_budget(10_000):
        found = np.asarray(ridge_solve(as_array(K.copy()), 0.05, as_array(Y)))
    # adding κ to a float32 diagonal rounds it
    tolerance = 1e-10 if dtype == np.float64 else 2e-7 * scale / 0.05
    assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()


def test_ridge_solve_falls_back_where_float32_cannot_factor():
    K, Y = problem()
    K = (1e7 * K).astype(np.float32)
    K[0] = K[1]
    K[:, 0] = K[:, 1]
    A = K.astype(np.float64)
    A[np.diag_indices(80)] = (K.diagonal() + np.float32(0.5)).astype(np.float64)
    # equal rows 0 and 1: solvable where the right-hand sides are equal there
    Y[0] = Y[1]
    found = ridge_solve(K, 0.5, Y)
    assert np.abs(A @ found - Y).max() < 1e-3
