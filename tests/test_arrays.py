import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_info, threadpool_limits

from tagkin import arrays, memory_budget
from tagkin.errors import InvalidInput
from tests.conftest import needs_torch


def test_row_blocks_cover_all_rows_within_the_budget():
    with memory_budget(1000):
        blocks = list(arrays.row_blocks(23, 300))
    assert [b.stop - b.start for b in blocks] == [3] * 7 + [2]
    assert np.concatenate([np.arange(23)[b] for b in blocks]).tolist() == list(range(23))


def test_a_row_larger_than_the_budget_is_a_block_of_its_own():
    with memory_budget(10):
        assert len(list(arrays.row_blocks(4, 300))) == 4


def test_the_budget_ends_with_its_block():
    before = arrays.block_rows(1)
    with memory_budget(7):
        assert arrays.block_rows(1) == 7
    assert arrays.block_rows(1) == before
    with pytest.raises(InvalidInput, match="positive"), memory_budget(0):
        pass


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("float64", "float64"),
        ("int64", "float64"),
        ("float32", "float32"),
        ("float16", "float32"),
        ("int8", "float32"),
        ("bool", "float32"),
    ],
)
def test_blocks_are_float32_where_that_loses_nothing(given, used, as_array):
    block = arrays.as_block(as_array(np.ones((2, 3), dtype=given)))
    assert str(block.dtype).endswith(used)


@pytest.mark.parametrize("n", [1, 17, 256, 600])
def test_mirror_lower(n, as_array):
    A = np.random.default_rng(0).standard_normal((n, n))
    expected = np.tril(A) + np.tril(A, -1).T
    assert (np.asarray(arrays.mirror_lower(as_array(A.copy()))) == expected).all()


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


@needs_torch
def test_mixed_kinds_are_refused():
    import torch

    with pytest.raises(InvalidInput, match="NumPy arrays and torch tensors in one call"):
        arrays.namespace(np.ones(3), torch.ones(3))
    with pytest.raises(InvalidInput, match="different devices: cpu, meta"):
        arrays.namespace(torch.ones(3), torch.ones(3, device="meta"))


@needs_torch
def test_torch_input_is_checked():
    import torch

    with pytest.raises(InvalidInput, match="Expected 2D tensor for X"):
        arrays.check_features(torch.ones(3))
    with pytest.raises(InvalidInput, match="Complex"):
        arrays.check_features(torch.ones((3, 2), dtype=torch.complex64))
    with pytest.raises(InvalidInput, match=r"0 sample\(s\)"):
        arrays.check_features(torch.ones((0, 2)))
    with pytest.raises(InvalidInput, match="Expected 2D tensor for Y"):
        arrays.check_label_matrix(torch.ones((3, 2, 2)), 3)
    with pytest.raises(InvalidInput, match="one column a class"):
        arrays.check_label_matrix(torch.arange(3), 3)
    with pytest.raises(InvalidInput, match="X is a sparse torch tensor"):
        arrays.check_features(torch.ones((3, 2)).to_sparse())
    with pytest.raises(InvalidInput, match=r"Input Y contains NaN or infinity in row 1\."):
        arrays.check_label_matrix(torch.tensor([[0.0], [float("nan")]]), 2)
    assert arrays.check_label_matrix(torch.tensor([0, 1, 1]), 3).shape == (3, 1)
    assert arrays.to_numpy(torch.ones(2, dtype=torch.bfloat16)).dtype == np.float32


def test_memory_maps_are_not_read_when_checked(tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float16, shape=(9, 4))
    checked = arrays.check_features(X)
    assert np.shares_memory(checked, X)
    assert checked.dtype == np.float16


def test_labels_keep_their_form():
    Y = scipy.sparse.coo_array(np.eye(3))
    assert arrays.check_label_matrix(Y, 3).format == "csr"
    assert arrays.check_label_matrix([[1, 0], [0, 1]], 2).shape == (2, 2)
    with pytest.raises(InvalidInput, match="4 rows in X and 3 in Y"):
        arrays.check_label_matrix(Y, 4)


# --- what the array API does not have ----------------------------------------------------


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


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n_rows", [1, 5, 100])
def test_work_in_threads_covers_every_row_once_under_its_budget(n_threads, n_rows):
    seen, budgets = np.zeros(n_rows, dtype=int), set()

    def work(rows):
        assert rows.stop - rows.start <= 8
        seen[rows] += 1
        budgets.add(arrays.block_rows(1))

    with threadpool_limits(n_threads, "blas"), arrays.memory_budget(300):
        arrays.run_in_threads(work, n_rows, 10, most_rows=8)
    assert (seen == 1).all()
    assert budgets <= {300, 100}
    if n_rows == 100:
        assert budgets == {300 // n_threads}


def test_an_error_in_a_thread_comes_out_and_blas_gets_its_threads_back():
    def work(rows):
        raise RuntimeError("as it should")

    with threadpool_limits(2, "blas"):
        before = [info["num_threads"] for info in threadpool_info()]
        with pytest.raises(RuntimeError, match="as it should"):
            arrays.run_in_threads(work, 10, 1, most_rows=2)
        assert [info["num_threads"] for info in threadpool_info()] == before
