import numpy as np
import pytest
import scipy.special

from tagkin import arrays
from tagkin.arrays import linalg


def test_factorisations(as_array):
    A = np.random.default_rng(0).standard_normal((9, 5))
    B = np.eye(5)
    spd = A.T @ A
    L = linalg.cholesky(as_array(spd))
    np.testing.assert_allclose(L @ L.T, spd, atol=1e-12)
    np.testing.assert_allclose(L @ linalg.solve_triangular(L, as_array(B)), B, atol=1e-12)
    solved = linalg.solve_triangular(L, as_array(B), transposed=True)
    np.testing.assert_allclose(L.T @ solved, B, atol=1e-12)
    assert linalg.cholesky(as_array(-spd)) is None


def test_a_factor_reads_the_lower_triangle(as_array):
    A = np.random.default_rng(0).standard_normal((300, 20))
    expected = A @ A.T + np.eye(300)
    given = np.tril(expected) + np.triu(np.full((300, 300), 7.0), 1)
    L = linalg.cholesky(as_array(given))
    np.testing.assert_allclose(np.asarray(L), np.linalg.cholesky(expected), atol=1e-12)
    B = A[:, :3]
    half = linalg.solve_triangular(L, as_array(B))
    solved = linalg.solve_triangular(L, half, transposed=True)
    np.testing.assert_allclose(np.asarray(solved), np.linalg.solve(expected, B), atol=1e-12)


def test_a_pivoted_factor_is_a_root_of_low_rank():
    A = np.random.default_rng(0).standard_normal((30, 6))
    R, pivots = linalg.pivoted_cholesky(A @ A.T, 1e-9)
    assert R.shape == (30, 6)
    np.testing.assert_allclose(R @ R.T, A @ A.T, atol=1e-10)
    np.testing.assert_array_equal(R[pivots], np.tril(R[pivots]))


def test_products_are_written_where_they_are_wanted(as_array):
    rows = np.random.default_rng(0).integers(0, 9, (6, 30)).astype(float)
    out = as_array(np.empty((6, 6)))
    linalg.matmul(as_array(rows), as_array(rows).T, out)
    np.testing.assert_allclose(np.asarray(out), rows @ rows.T)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_expit_and_logit_are_those_of_scipy(dtype, rtol):
    values = np.linspace(-80, 80, 2001, dtype=dtype)
    probabilities = arrays.expit(values)
    assert probabilities.dtype == dtype
    np.testing.assert_allclose(probabilities, scipy.special.expit(values), rtol=rtol)
    assert arrays.expit(np.array([-1e4, 1e4], dtype=dtype)).tolist() == [0, 1]
    shares = np.linspace(1e-6, 1 - 1e-6, 101)
    np.testing.assert_allclose(arrays.logit(shares), scipy.special.logit(shares), rtol=1e-9)
    assert arrays.expit(0.0) == 0.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (1, 5), (7, 1), (40, 33)])
def test_factors_take_matrices_however_their_rows_lie(shape, dtype):
    """Against NumPy, for few rows, none, every second one, and columns of a wider matrix."""
    n, r = shape
    wide = np.random.default_rng(0).standard_normal((2 * n, 3 * r)).astype(dtype)
    close = {"rtol": 0, "atol": 1e-4 if dtype == np.float32 else 1e-12}
    by_columns = np.asfortranarray(wide[:, :r])
    for K in (
        wide[::2, :r],
        wide[:n, r : 2 * r],
        wide[:n, ::3],
        np.asfortranarray(wide[:n, :r]),
        by_columns[n:],
    ):
        spd = (K.T @ K + r * np.eye(r)).astype(dtype)
        L = np.asarray(linalg.cholesky(spd))
        assert L.dtype == dtype
        np.testing.assert_allclose(L, np.linalg.cholesky(spd), **close)
        for triangle in (L, np.asfortranarray(L)):
            half = linalg.solve_triangular(triangle, K.T)
            np.testing.assert_allclose(L @ half, K.T, **close)
            solution = linalg.solve_triangular(triangle, np.ones(r, dtype=dtype), transposed=True)
            assert solution.dtype == dtype
            np.testing.assert_allclose(L.T @ solution, np.ones(r), **close)
        np.testing.assert_allclose(spd, K.T @ K + r * np.eye(r), **close)  # still the caller's


def test_whole_numbers_are_factored_as_float64():
    A = np.array([[4, 2], [2, 5]])
    np.testing.assert_allclose(linalg.cholesky(A), [[2, 0], [1, 2]], atol=1e-15)
    assert A.dtype == int
