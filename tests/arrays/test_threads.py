import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tagkin import arrays


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
