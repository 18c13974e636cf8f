import numpy as np
import pytest

from tagkin.kernels import ArcCosine
from tagkin.space.regression import Root, from_kernel, from_moments
from tests.conftest import make_collection
from tests.dense import dense_space


def centred(A):
    return A - A.mean(axis=0)


def problem(seed=0):
    X, Y, _ = make_collection(n=80, seed=seed)
    K = ArcCosine()(X)
    return K, Y


def primal(kernel_gram, landmark_gram, cross, text_gram, kappa, **options):
    visual = Root.of_visual(kernel_gram, landmark_gram, kappa)
    return from_moments(visual, cross, text_gram, kappa, **options)


@pytest.mark.parametrize("kappa", [0.01, 0.5, 10.0])
def test_both_forms_are_the_dense_equation(kappa, as_array):
    K, Y = problem()
    dense = dense_space(K, K[:5], Y @ Y.T, kappa, 6)
    half = centred(K)
    text = centred(Y)
    for rotated in (True, False):
        sums = half.T @ half, K, half.T @ text, text.T @ text
        for solution in (
            primal(*map(as_array, sums), kappa, rotated=rotated),
            from_kernel(
                as_array(half - half.mean(axis=1)[:, None]), as_array(text), kappa, rotated=rotated
            ),
        ):
            psi = half @ np.asarray(solution.coefficients)
            np.testing.assert_allclose(psi @ psi.T, dense.psi @ dense.psi.T, atol=1e-10)
            assert solution.largest == pytest.approx(dense.correlations[0], rel=0.05)
            if rotated:
                np.testing.assert_allclose(solution.correlations, dense.correlations, atol=1e-10)


def test_text_norms_are_those_of_the_projections():
    K, Y = problem()
    half, text, kappa = centred(K), centred(Y), 0.5
    G = text.T @ text
    regression = primal(half.T @ half, K, half.T @ text, G.copy(), kappa)
    visual = half @ regression.coefficients
    # the text direction that goes with a visual one: z ∝ (G+κI)⁻¹ Cᵀ w, zᵀ(G+κI)z = 1
    z = np.linalg.solve(G + kappa * np.eye(6), text.T @ visual)
    z /= np.sqrt((z * ((G + kappa * np.eye(6)) @ z)).sum(axis=0))
    np.testing.assert_allclose(regression.text_norms, np.linalg.norm(text @ z, axis=0), rtol=1e-9)


def test_fewer_landmarks_than_labels():
    K, Y = problem()
    half, text = centred(K[:, :4]), centred(Y)
    regression = primal(half.T @ half, K[:4, :4], half.T @ text, text.T @ text, 0.5)
    assert regression.correlations.shape == (4,)
    A = half.T @ half + 0.5 * K[:4, :4]
    G = text.T @ text + 0.5 * np.eye(6)
    C = half.T @ text
    squares = np.linalg.eigvals(np.linalg.solve(A, C @ np.linalg.solve(G, C.T)))
    np.testing.assert_allclose(
        regression.correlations, np.sqrt(np.sort(squares.real)[::-1]), atol=1e-10
    )


def test_a_singular_matrix_has_a_root(as_array):
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((10, 4))
    A = basis @ basis.T
    A -= 1e-15 * np.eye(10)  # rounding has made it slightly indefinite
    B = basis @ rng.standard_normal((4, 3))
    root = Root.of(as_array(A))
    solved = np.asarray(root.half_transposed(root.half(as_array(B))))
    np.testing.assert_allclose(A @ solved, B, atol=1e-9)
    np.testing.assert_allclose(solved, np.linalg.pinv(A, rcond=1e-10) @ B, atol=1e-9)


def test_rounding_in_the_sums_does_not_take_directions_away(as_array):
    """Sums so rounded that the Cholesky factor fails still give nearly the same solution."""
    rng = np.random.default_rng(0)
    S, X = rng.standard_normal((40, 3)), rng.standard_normal((500, 3))
    gram, half = np.exp(S @ S.T / 3), centred(np.exp(X @ S.T / 3))  # smooth: tiny eigenvalues
    exact = half.T @ half
    noise = 3e-5 * rng.standard_normal((40, 40))
    rounded = exact + noise + noise.T
    assert np.linalg.eigvalsh(rounded + 0.5 * gram).min() < 0
    text = centred((X > 0.5).astype(float))
    arguments = (gram, half.T @ text, text.T @ text)
    regression = primal(as_array(rounded), *map(as_array, arguments), 0.5)
    expected = primal(exact, *(part.copy() for part in arguments), 0.5)
    np.testing.assert_allclose(regression.correlations, expected.correlations, rtol=1e-2)
    psi, reference = (half @ np.asarray(d.coefficients) for d in (regression, expected))
    np.testing.assert_allclose(psi @ psi.T, reference @ reference.T, atol=1e-2)


def test_directions_that_no_label_takes_are_left_out(as_array):
    Y = np.eye(4)[np.random.default_rng(0).integers(0, 4, 50)]
    text = np.concatenate([centred(Y), np.zeros((50, 1))], axis=1)
    G = text.T @ text
    root = Root.of_text(as_array(G.copy()), 0.5)
    halves = np.asarray(root.half(as_array(np.eye(5))))
    assert halves.shape == (3, 5)
    values, vectors = np.linalg.eigh(G)
    vectors = vectors[:, -3:] / np.sqrt(values[-3:] + 0.5)
    np.testing.assert_allclose(halves.T @ halves, vectors @ vectors.T, atol=1e-12)


@pytest.mark.parametrize("smallest", [1e-2, 1e-12])  # the latter is nothing in float32
def test_a_root_in_float32_where_it_has_one(smallest):
    """To solve with, to 1e-4; in float64, to 1e-4 of an error that float32 cannot see."""
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((12, 12)))
    values = np.geomspace(smallest, 1.0, 12)
    whole = (turn * values) @ turn.T
    exact = (turn / values) @ turn.T
    root = Root.of_visual(whole - 0.5 * np.eye(12), np.eye(12), 0.5, single=True)
    product = root.half_transposed(root.half(np.eye(12)))
    assert product.dtype == (np.float32 if smallest == 1e-2 else np.float64)
    np.testing.assert_allclose(product, exact, atol=1e-3 * np.abs(exact).max())
