import sys
import threading
import time

import numpy as np
import pytest
import scipy.special

from tagkin import arrays
from tagkin.arrays import routines


@pytest.mark.parametrize("n", [1, 17, 256, 600])
def test_mirror_lower(n, as_array):
    A = np.random.default_rng(0).standard_normal((n, n))
    expected = np.tril(A) + np.tril(A, -1).T
    assert (np.asarray(arrays.mirror_lower(as_array(A.copy()))) == expected).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_clip(dtype, as_array):
    given = np.array([[-3, -1, 0], [1, 2, 7]], dtype=dtype)
    values = as_array(given.copy())
    for low, high in ((-1, 2), (0, None), (None, 1)):
        found = arrays.clip(values, low, high)
        least, most = -np.inf if low is None else low, np.inf if high is None else high
        expected = [[min(max(x, least), most) for x in row] for row in given.tolist()]
        assert np.asarray(found).tolist() == expected, (low, high)
        assert found.dtype == values.dtype
    assert np.asarray(values).tolist() == given.tolist(), "they are left alone"
    if dtype == np.float32:
        ends = as_array(np.array([-np.inf, np.inf, np.nan], dtype=dtype))
        np.testing.assert_array_equal(np.asarray(arrays.clip(ends, 0, None)), [0, np.inf, np.nan])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_add_gram_adds_to_the_lower_triangle(dtype):
    rng = np.random.default_rng(0)
    K = rng.standard_normal((40, 600)).astype(dtype)[:, :300]  # not contiguous; three panels
    total = rng.standard_normal((300, 300)).astype(dtype)
    lower = np.tril_indices(300)
    expected = total[lower].astype(float) + (K.T.astype(float) @ K)[lower]
    arrays.add_gram(total, K)
    tolerance = 2e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(total[lower], expected, rtol=tolerance, atol=10 * tolerance)


def test_factorisations(as_array):
    A = np.random.default_rng(0).standard_normal((9, 5))
    B = np.eye(5)
    spd = A.T @ A
    L = arrays.cholesky(as_array(spd))
    np.testing.assert_allclose(L @ L.T, spd, atol=1e-12)
    np.testing.assert_allclose(L @ arrays.solve_triangular(L, as_array(B)), B, atol=1e-12)
    solved = arrays.solve_triangular(L, as_array(B), transposed=True)
    np.testing.assert_allclose(L.T @ solved, B, atol=1e-12)
    assert arrays.cholesky(as_array(-spd)) is None
    overwritten = arrays.cholesky(as_array(spd.copy()), overwrite=True)
    np.testing.assert_allclose(overwritten, L, atol=1e-12)


def test_factors_and_products_of_the_lower_triangle(as_array):
    A = np.random.default_rng(0).standard_normal((300, 20))
    products = np.asarray(arrays.lower_products(as_array(A)))
    expected = A @ A.T
    lower = np.tril_indices(300)
    np.testing.assert_allclose(products[lower], expected[lower], atol=1e-12)
    expected[np.diag_indices(300)] += 1
    if isinstance(as_array(A), np.ndarray):  # torch reads the lower triangle alone, by its nature
        given = np.tril(expected) + np.triu(np.full((300, 300), np.nan), 1)
    else:
        given = expected
    for overwrite in (False, True):
        L = arrays.cholesky(as_array(given.copy()), overwrite=overwrite, lower_only=True)
        np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(expected), atol=1e-12)
    B = A[:, :3]
    half = arrays.solve_triangular(L, as_array(B))
    solved = arrays.solve_triangular(L, half, transposed=True)
    np.testing.assert_allclose(solved, np.linalg.solve(expected, B), atol=1e-12)
    assert arrays.cholesky(as_array(-expected), lower_only=True) is None


@pytest.mark.parametrize("condition", [1e1, 1e3, 1e5])
@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
def test_a_refined_solution_is_that_of_float64(condition, unit):
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.standard_normal((200, 200)))[0]
    A = (vectors * np.geomspace(1, condition, 200)) @ vectors.T
    A = (A + A.T) * unit**2
    B = unit * rng.standard_normal((200, 4))
    found = arrays.solve_refined(np.tril(A) + np.triu(np.full_like(A, np.nan), 1), B)
    expected = np.linalg.solve(A, B)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-15 * condition + 1e-13)


@pytest.mark.parametrize("condition", [1e9, 1e14])
def test_what_float32_cannot_solve_is_not_refined(condition):
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.standard_normal((200, 200)))[0]
    A = (vectors * np.geomspace(1, condition, 200)) @ vectors.T
    assert arrays.solve_refined((A + A.T) / 2, np.ones((200, 2))) is None
    assert arrays.solve_refined(-np.eye(5), np.ones((5, 1))) is None
    assert arrays.solve_refined(np.full((5, 5), np.nan), np.ones((5, 1))) is None
    np.testing.assert_array_equal(arrays.solve_refined(np.eye(5), np.zeros((5, 2))), 0)


def test_kth_largest_counts_and_products(as_array):
    rows = np.random.default_rng(0).integers(0, 9, (6, 30)).astype(float)
    for k in (1, 7, 30):
        expected = np.sort(rows, axis=1)[:, -k, None]
        np.testing.assert_array_equal(np.asarray(arrays.kth_largest(as_array(rows), k)), expected)
    values = as_array(np.array([3, 1, 3, 0]))
    np.testing.assert_array_equal(np.asarray(arrays.bincount(values, 5)), [1, 1, 0, 2, 0])
    out = as_array(np.empty((6, 6)))
    arrays.matmul(as_array(rows), as_array(rows).T, out)
    np.testing.assert_allclose(np.asarray(out), rows @ rows.T)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_expit_and_logit_are_those_of_scipy(dtype, rtol):
    values = np.linspace(-80, 80, 2001, dtype=dtype)
    found = arrays.expit(values)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, scipy.special.expit(values), rtol=rtol)
    assert arrays.expit(np.array([-1e4, 1e4], dtype=dtype)).tolist() == [0, 1]
    shares = np.linspace(1e-6, 1 - 1e-6, 101)
    np.testing.assert_allclose(arrays.logit(shares), scipy.special.logit(shares), rtol=1e-9)
    assert arrays.expit(0.0) == 0.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (1, 5), (7, 1), (40, 33)])
def test_routines_take_matrices_however_their_rows_lie(shape, dtype):
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
        total = np.eye(r, dtype=dtype)
        arrays.add_gram(total, K)
        np.testing.assert_allclose(np.tril(total), np.tril(np.eye(r) + K.T @ K), **close)
        products = np.asarray(arrays.lower_products(K))
        np.testing.assert_allclose(np.tril(products), np.tril(K @ K.T), **close)
        spd = (K.T @ K + r * np.eye(r)).astype(dtype)
        L = np.asarray(arrays.cholesky(spd))
        assert L.dtype == dtype
        np.testing.assert_allclose(L, np.linalg.cholesky(spd), **close)
        for triangle in (L, np.asfortranarray(L)):
            half = arrays.solve_triangular(triangle, K.T)
            np.testing.assert_allclose(L @ half, K.T, **close)
            one = arrays.solve_triangular(triangle, np.ones(r, dtype=dtype), transposed=True)
            assert one.dtype == dtype
            np.testing.assert_allclose(L.T @ one, np.ones(r), **close)
        np.testing.assert_allclose(spd, K.T @ K + r * np.eye(r), **close)  # still the caller's
        np.testing.assert_allclose(routines.lower_times(np.tril(spd), K.T), spd @ K.T, **close)


def test_other_threads_go_on_meanwhile():
    """While no thread has to give way, another goes on only where a routine lets it."""
    A = np.random.default_rng(0).standard_normal((1000, 1000))
    spd = A @ A.T + 1000 * np.eye(1000)
    counted, enough = 0, threading.Event()

    def count():
        nonlocal counted
        while not enough.is_set():
            counted += 1
            time.sleep(0)

    thread, interval = threading.Thread(target=count), sys.getswitchinterval()
    thread.start()
    sys.setswitchinterval(1000)
    try:
        for _ in range(500):  # on a busy machine, it may not get to it the first time
            work = spd.copy()
            before = counted
            assert routines.factor_lower(work)
            if went_on := counted > before:
                break
    finally:
        sys.setswitchinterval(interval)
        enough.set()
        thread.join()
    assert went_on


def test_whole_numbers_are_factored_as_float64():
    A = np.array([[4, 2], [2, 5]])
    np.testing.assert_allclose(arrays.cholesky(A), [[2, 0], [1, 2]], atol=1e-15)
    assert A.dtype == int
