"""Sums over images, each thread its share of them."""

import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_limits

from tagkin import memory_budget
from tagkin.arrays import threads
from tagkin.errors import InvalidInput
from tagkin.kernels import RBF, ArcCosine, Linear
from tagkin.space import moments
from tagkin.space.moments import Moments, first_sums
from tagkin.space.space import Landmarks

N, D, R, Q = 230, 12, 20, 7
SUMS = ("kernel_sum", "text_sum", "kernel_gram", "cross", "text_gram")


@pytest.fixture
def eager(monkeypatch):
    """Three threads, even for little work."""
    monkeypatch.setattr(threads, "ENOUGH", 1000)
    with threadpool_limits(3, "blas"):
        yield


@pytest.fixture
def shares(monkeypatch):
    """How many threads had a share of the rows, for each time that sums were taken."""
    parts = []

    def watch(tasks, n_threads):
        parts.append(len(tasks))
        return threads.run_parallel(tasks, n_threads)

    monkeypatch.setattr(moments, "run_parallel", watch)
    return parts


def problem(dtype, kernel):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)).astype(dtype)
    text = (rng.random((N, Q)) < 0.3).astype(np.float64)
    landmarks = Landmarks(kernel, X[::11][:R].copy(), None)
    return X, text, landmarks, landmarks.mean_columns(X[:50])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", [ArcCosine(), RBF(gamma=0.1)], ids=repr)
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-5), (np.float64, 1e-12)])
def test_sums_of_threads_are_the_sums(dtype, rtol, kernel, sparse, eager, shares):
    X, text, landmarks, shift = problem(dtype, kernel)
    given = scipy.sparse.csr_array(text) if sparse else text
    with memory_budget(3 * 8 * (R + D) * 16):  # blocks of 16 rows
        moments = Moments.of(X, given, landmarks, shift)
        again = Moments.of(X, given, landmarks, shift)
    assert shares == [3] * 2
    K = kernel(X.astype(np.float64), landmarks.points.astype(np.float64)) - shift
    expected = {
        "kernel_sum": K.sum(axis=0),
        "text_sum": text.sum(axis=0),
        "kernel_gram": K.T @ K,
        "cross": K.T @ text,
        "text_gram": text.T @ text,
    }
    assert moments.count == N
    for name in SUMS:
        largest = np.abs(expected[name]).max()
        np.testing.assert_allclose(
            getattr(moments, name), expected[name], rtol=0, atol=rtol * largest
        )
        # which thread is first has no say
        np.testing.assert_array_equal(getattr(again, name), getattr(moments, name))


def test_given_columns_are_summed_by_threads_as_well(eager, shares):
    X, text, landmarks, shift = problem(np.float32, ArcCosine())
    K = landmarks.columns(X, less=shift)
    moments = Moments.of_columns(K, text, shift)
    assert shares == [3]
    exact = K.astype(np.float64)
    np.testing.assert_allclose(moments.kernel_gram, exact.T @ exact, atol=1e-5)
    np.testing.assert_allclose(moments.cross, exact.T @ text, atol=1e-4)


def test_one_thread_where_memory_would_not_do_for_more(eager, shares):
    X, text, landmarks, shift = problem(np.float32, ArcCosine())
    with memory_budget(2 * R * (R + Q) - 1):
        moments = Moments.of(X, text, landmarks, shift)
    assert shares == [1]
    K = landmarks.columns(X, less=shift).astype(np.float64)
    np.testing.assert_allclose(moments.kernel_gram, K.T @ K, atol=1e-5)


def test_a_thread_names_the_row_that_is_not_finite(eager):
    X, text, landmarks, shift = problem(np.float32, ArcCosine())
    X[201, 3] = np.nan
    with pytest.raises(InvalidInput, match="201"):
        Moments.of(X, text, landmarks, shift)


@pytest.mark.parametrize("duplicates", [0, 3])
def test_first_sums_are_by_independent_landmarks(duplicates, eager, shares):
    X, text, landmarks, _ = problem(np.float32, ArcCosine())
    points = np.concatenate([landmarks.points, landmarks.points[:duplicates]])
    given = Landmarks(ArcCosine(), points[::-1].copy(), np.arange(len(points)))
    columns, gram, sums = first_sums(X, text, given)
    assert shares == [3]
    assert len(columns.points) == R
    assert len(np.unique(columns.points, axis=0)) == R
    np.testing.assert_allclose(gram, ArcCosine()(columns.points.astype(np.float64)), atol=1e-6)
    K = ArcCosine()(X.astype(np.float64), columns.points.astype(np.float64)) - sums.shift
    np.testing.assert_allclose(sums.kernel_gram, K.T @ K, atol=1e-4)
    np.testing.assert_allclose(sums.cross, K.T @ text, atol=1e-4)
    np.testing.assert_allclose(sums.kernel_mean, (K + sums.shift).mean(axis=0), atol=1e-6)
    np.testing.assert_array_equal(points[::-1][columns.indices], columns.points)


def test_landmarks_beyond_the_rank_of_a_kernel_are_left_out_first(eager):
    X, text, _, _ = problem(np.float64, Linear())
    given = Landmarks(Linear(), X[:R].copy(), None)
    columns, gram, sums = first_sums(X, text, given)
    assert columns.points.shape == (D, D)
    assert gram.shape == sums.kernel_gram.shape == (D, D)
