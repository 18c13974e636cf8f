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
from tagkin.space.landmarks import Landmarks
from tagkin.space.moments import Moments, first_sums, sums_and_gram
from tagkin.space.solution import solve, solve_from_images

N, D, R, Q = 230, 12, 20, 7
SUMS = ("kernel_sum", "text_sum", "kernel_gram", "cross", "text_gram")


@pytest.fixture
def eager(monkeypatch):
    """Three threads, and as many where there is less work than pays; few rows between flushes."""
    monkeypatch.setattr(threads, "ENOUGH", 1000)
    monkeypatch.setattr(moments, "LONGEST", 40)
    with threadpool_limits(3, "blas"):
        yield


@pytest.fixture(params=[False, True], ids=["by rows", "by columns"])
def layout(request, monkeypatch):
    """Kernel columns where entries of a row lie side by side, and where those of a column do."""
    monkeypatch.setattr(moments, "_ON_X86", request.param)
    return request.param


@pytest.fixture
def shares(monkeypatch):
    """How many threads had a share of the rows, for each time that sums were taken."""
    found = []

    def noted(tasks, n_threads, beside):
        found.append(len(tasks))
        threads.side_by_side(tasks, n_threads, beside)

    monkeypatch.setattr(moments, "side_by_side", noted)
    return found


def problem(dtype, kernel):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)).astype(dtype)
    text = (rng.random((N, Q)) < 0.3).astype(np.float64)
    landmarks = Landmarks(kernel, X[::11][:R].copy(), None)
    return X, text, landmarks, landmarks.mean_columns(X[:50])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", [ArcCosine(), RBF(gamma=0.1)], ids=repr)
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-5), (np.float64, 1e-12)])
def test_sums_of_threads_are_the_sums(dtype, rtol, kernel, sparse, eager, shares, layout):
    X, text, landmarks, shift = problem(dtype, kernel)
    given = scipy.sparse.csr_array(text) if sparse else text
    with memory_budget(3 * 8 * (R + D) * 16):  # blocks of 16 rows
        found = Moments.of(X, given, landmarks, shift)
        again = Moments.of(X, given, landmarks, shift)
    assert shares == [3] * 2  # 230 rows, 40 at most of each of three at a time
    K = kernel(X.astype(np.float64), landmarks.points.astype(np.float64)) - shift
    expected = {
        "kernel_sum": K.sum(axis=0),
        "text_sum": text.sum(axis=0),
        "kernel_gram": K.T @ K,
        "cross": K.T @ text,
        "text_gram": text.T @ text,
    }
    assert found.count == N
    for name in SUMS:
        largest = np.abs(expected[name]).max()
        np.testing.assert_allclose(
            getattr(found, name), expected[name], rtol=0, atol=rtol * largest
        )
        # which thread is first has no say
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))


def test_given_columns_are_summed_by_threads_as_well(eager, shares):
    X, text, landmarks, shift = problem(np.float32, ArcCosine())
    K = landmarks.columns(X, less=shift)
    found = Moments.of_columns(K, text, shift)
    assert shares == [3]
    exact = K.astype(np.float64)
    np.testing.assert_allclose(found.kernel_gram, exact.T @ exact, atol=1e-5)
    np.testing.assert_allclose(found.cross, exact.T @ text, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (1, 6), (40, 7)])
@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
def test_a_sparse_matrix_has_the_entries_of_the_dense_one(share, shape):
    rng = np.random.default_rng(0)
    text = rng.standard_normal(shape) * (rng.random(shape) < share)
    for given in (text, np.asfortranarray(text), text[:, ::-1]):
        found = moments._as_sparse(given)
        assert found.has_canonical_format
        assert found.nnz == np.count_nonzero(given)
        np.testing.assert_array_equal(found.toarray(), given)


@pytest.mark.parametrize("n_labels", [1, 32, 33, 200])
def test_how_kernel_columns_lie_depends_on_the_labels(n_labels, layout):
    """One thread; labels that few images carry, so that their products are sparse by rows."""
    X, _, landmarks, shift = problem(np.float32, ArcCosine())
    text = np.zeros((N, n_labels))
    text[np.arange(N), np.arange(N) % n_labels] = 1
    seen = []
    with memory_budget(8 * (R + D) * 50):
        found = Moments.of(
            X, text, landmarks, shift, seen=lambda _, K: seen.append(K.strides[0] < K.strides[1])
        )
    assert len(seen) == 5
    assert set(seen) == {layout and n_labels <= 32}
    K = landmarks.columns(X, less=shift).astype(np.float64)
    np.testing.assert_allclose(found.cross, K.T @ text, rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.kernel_sum, K.sum(axis=0), rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.kernel_gram, K.T @ K, rtol=0, atol=1e-4)


def test_one_thread_where_memory_would_not_do_for_more(eager, shares):
    X, text, landmarks, shift = problem(np.float32, ArcCosine())
    with memory_budget(3 * R * R * 4 - 1):
        found = Moments.of(X, text, landmarks, shift)
    assert shares == []
    K = landmarks.columns(X, less=shift).astype(np.float64)
    np.testing.assert_allclose(found.kernel_gram, K.T @ K, atol=1e-5)


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
    kept, gram, found = first_sums(X, text, given)
    assert shares == [3]
    assert len(kept.points) == R
    assert len(np.unique(kept.points, axis=0)) == R
    np.testing.assert_allclose(gram, ArcCosine()(kept.points.astype(np.float64)), atol=1e-6)
    K = ArcCosine()(X.astype(np.float64), kept.points.astype(np.float64)) - found.shift
    np.testing.assert_allclose(found.kernel_gram, K.T @ K, atol=1e-4)
    np.testing.assert_allclose(found.cross, K.T @ text, atol=1e-4)
    np.testing.assert_allclose(found.kernel_mean, (K + found.shift).mean(axis=0), atol=1e-6)
    np.testing.assert_array_equal(points[::-1][kept.indices], kept.points)


def test_landmarks_beyond_the_rank_of_a_kernel_are_left_out_first(eager):
    X, text, _, _ = problem(np.float64, Linear())
    given = Landmarks(Linear(), X[:R].copy(), None)
    kept, gram, found = first_sums(X, text, given)
    assert kept.points.shape == (D, D)
    assert gram.shape == found.kernel_gram.shape == (D, D)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_landmarks_among_the_images_have_their_kernel_in_the_columns(
    dtype, atol, eager, shares, layout
):
    X, text, _, _ = problem(dtype, ArcCosine())
    indices = np.random.default_rng(1).permutation(N)[:R]  # in no order
    landmarks = Landmarks(ArcCosine(), X[indices], indices)
    sums, gram = sums_and_gram(X, text, landmarks)
    assert shares == [3]
    expected = ArcCosine()(X[indices].astype(np.float64))
    np.testing.assert_allclose(gram, expected, rtol=0, atol=atol)
    assert (gram == gram.T).all()  # one triangle is a copy of the other
    assert (np.diagonal(gram) == 1).all()  # set, not computed
    alone = Moments.of(X, text, landmarks, sums.shift)
    for name in SUMS:  # the same products, in memory of another place
        np.testing.assert_allclose(getattr(sums, name), getattr(alone, name), rtol=0, atol=N * atol)


@pytest.mark.parametrize("kernel", [ArcCosine(), ArcCosine(normalized=False), RBF(gamma=0.1)])
@pytest.mark.parametrize("dependent", [0, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_space_is_solved_by_independent_landmarks(dtype, dependent, kernel, monkeypatch):
    """Equal images and zeros are left out, as by looking at landmarks before summing up."""
    X, text, _, _ = problem(dtype, kernel)
    indices = np.arange(R)
    X[1 : 1 + dependent] = X[0]
    if dependent and isinstance(kernel, ArcCosine):
        X[2] = 0
    given = Landmarks(kernel, X[indices], indices)
    looked = []
    independent_rows = Landmarks.independent_rows
    monkeypatch.setattr(
        Landmarks, "independent_rows", lambda self: looked.append(self) or independent_rows(self)
    )
    kept, sums, found = solve_from_images(X, text, given, regularization=0.5)
    assert bool(looked) == bool(dependent)
    assert len(kept.points) == R - dependent
    fewer, gram, few_sums = first_sums(X, text, given)
    np.testing.assert_array_equal(kept.indices, fewer.indices)
    expected = solve(fewer, few_sums, gram, regularization=0.5)
    atol = 1e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(found.correlations, expected.correlations, rtol=0, atol=atol)
    psi, reference = (kept.columns(X) @ s.coefficients @ s.readout for s in (found, expected))
    np.testing.assert_allclose(psi, reference, rtol=0, atol=atol)
    assert sums.count == N
