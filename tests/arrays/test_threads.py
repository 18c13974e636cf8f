import contextlib
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from tagkin import FeatureAnnotator, SemanticSpace, arrays
from tagkin.arrays import linalg, threads
from tagkin.arrays.threads import blas_threads, blas_threads_for
from tagkin.paper import TagProp
from tests.conftest import make_collection


def in_use(user_api="blas"):
    """The numbers of threads that the libraries of BLAS use now, each once."""
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == user_api}


def n_cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def in_use_by_all():
    """The same of libraries whose threads all threads share; with OpenMP each has a number."""
    libraries = [info for info in threadpool_info() if info["user_api"] == "blas"]
    return {info["num_threads"] for info in libraries if info.get("threading_layer") != "openmp"}


@pytest.fixture
def four():
    """BLAS with four threads, whatever the machine has, of all libraries that are loaded by now."""
    threads.find_libraries_again()
    with threadpool_limits(4, "blas"):
        yield


# --- limits ------------------------------------------------------------------------------


def test_a_limit_holds_for_every_blas_and_ends_with_its_block(four):
    assert len([info for info in threadpool_info() if info["user_api"] == "blas"]) >= 1
    with blas_threads(3):
        assert in_use() == {3}
        with blas_threads(1):
            assert in_use() == {1}
            with blas_threads(2):
                assert in_use() == {1}
        assert in_use() == {3}
    assert in_use() == {4}


def test_a_limit_holds_for_a_blas_that_comes_later():
    """In a command, SciPy's is loaded when the first triangular system is solved."""
    program = """
import numpy as np
from tagkin.arrays.linalg import solve_triangular
from tagkin.arrays.threads import blas_threads
from threadpoolctl import threadpool_info
def in_use():
    return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]
with blas_threads(1):
    n_before = len(in_use())
    solve_triangular(np.eye(3), np.eye(3))
    inside = in_use()
print(n_before, *inside, *in_use())
"""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    n_before, *numbers = map(int, ran.stdout.split())
    inside, after = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
    assert len(inside) >= n_before
    assert set(inside) == {1}
    assert set(after) == {min(2, n_cores())}  # OpenBLAS takes no more than there are


def test_a_limit_does_not_raise_what_was_set():
    with threadpool_limits(2, "blas"), blas_threads(8):
        assert in_use() == {2}


def test_after_an_error_all_is_as_before(four):
    for limit in (blas_threads(1), blas_threads_for(1)):
        with contextlib.suppress(ZeroDivisionError), limit:
            assert in_use() == {1}
            raise ZeroDivisionError
        assert in_use() == {4}


@pytest.mark.parametrize("first_out", [0, 1])
def test_the_least_limit_holds_while_threads_are_inside(four, first_out):
    """Whoever leaves first: alone, each would put back what the other had set."""
    limits = (1, 2)
    may_leave = [threading.Event() for _ in limits]
    entered = [threading.Event() for _ in limits]

    def hold(i):
        with blas_threads(limits[i]):
            entered[i].set()
            assert may_leave[i].wait(60)

    with ThreadPoolExecutor(2) as pool:
        futures = []
        for i, expected in ((1, {2}), (0, {1})):
            futures.insert(0, pool.submit(hold, i))
            assert entered[i].wait(60)
            assert in_use_by_all() == expected
        may_leave[first_out].set()
        futures[first_out].result(60)
        assert in_use_by_all() == {limits[1 - first_out]}
        may_leave[1 - first_out].set()
        futures[1 - first_out].result(60)
        assert in_use() == {4}


def test_many_threads_at_once_leave_what_they_found(four):
    together = threading.Barrier(8)
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers

    def use(i):
        together.wait(60)
        for _ in range(50):
            with blas_threads(1 + i % 3):
                assert max(in_use_now()) <= 1 + i % 3

    def in_use_now():
        return [library.num_threads for library in libraries]

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(use, i) for i in range(8)]:
            future.result(60)
    assert in_use() == {4}


def test_searches_side_by_side_leave_what_they_found(four):
    """A search spreads its own work and holds BLAS at one thread meanwhile."""
    inside = threading.Barrier(2)

    def search():
        threads.run_in_threads(lambda rows: inside.wait(60), 8, 1)

    with blas_threads(1), ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(search) for _ in range(2)]:
            future.result(60)
        assert in_use() == {1}
    assert in_use() == {4}


@pytest.fixture
def libraries():
    """They are looked for again after the test, when nothing stands for them any more."""
    yield
    threads.find_libraries_again()


def test_of_a_blas_with_openmp_each_thread_limits_its_own(libraries, monkeypatch):
    """scikit-learn's OpenMP stands for that of a BLAS."""
    pytest.importorskip("sklearn.cluster")
    openmp = ThreadpoolController().select(user_api="openmp").lib_controllers[:1]
    if not openmp:
        pytest.skip("scikit-learn works without OpenMP here")
    openmp[0].threading_layer = "openmp"

    class Controller:
        """Finds it as the only BLAS."""

        lib_controllers = openmp

        def select(self, **_):
            return self

    monkeypatch.setattr(threads, "ThreadpoolController", Controller)
    threads.find_libraries_again()

    def n_threads():
        return openmp[0].num_threads

    with threadpool_limits(4, "openmp"), ThreadPoolExecutor(1) as other:
        there = other.submit(n_threads).result(60)
        with blas_threads(2):
            assert n_threads() == 2
            assert other.submit(n_threads).result(60) == there
            with blas_threads(3):
                assert n_threads() == 2
        assert n_threads() == 4


# --- how many ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "threads"), [(0, 1), (1, 1), (2**29, 1), (2**30 - 1, 1), (2**30, 2), (2**40, 4)]
)
def test_work_gets_as_many_threads_as_it_keeps_busy(four, size, threads):
    with blas_threads_for(size):
        assert in_use() == {threads}


@pytest.fixture
def asked(monkeypatch):
    """Sizes that products and factorisations ask threads for."""
    sizes = []

    def noted(size):
        sizes.append(size)
        return blas_threads_for(size)

    monkeypatch.setattr(linalg, "blas_threads_for", noted)
    return sizes


def test_products_and_factors_ask_by_their_size(asked):
    A, v = np.ones((30, 20)), np.ones(20)
    S = A.T @ A + np.eye(20)
    linalg.matmul(A, A.T)
    linalg.matmul(A, A.T, np.empty((30, 30)))
    assert asked == [30 * 20 * 30] * 2
    asked.clear()
    np.testing.assert_array_equal(linalg.matmul(A, v), np.full(30, 20.0))
    np.testing.assert_array_equal(linalg.matmul(v, A.T), np.full(30, 20.0))
    assert asked == [30 * 20] * 2
    asked.clear()
    linalg.solve_triangular(linalg.cholesky(S), A.T)
    assert asked == [20**3 // 6, 20 * 20 * 30 // 2]
    assert linalg.matmul(np.ones((0, 3)), np.ones((3, 2))).shape == (0, 2)
    assert (linalg.matmul(np.ones((2, 0)), np.ones((0, 3))) == np.zeros((2, 3))).all()


def test_a_factor_of_a_thousand_rows_stays_with_one_thread(four, monkeypatch):
    """Its steps are short: with more, threads wait longer for each other than they work."""
    seen = []

    def watch(function, *args, **options):
        seen.append(in_use())
        return function(*args, **options)

    for module, name in ((scipy.linalg.lapack, "dpotrf"), (np.linalg, "eigh")):
        monkeypatch.setattr(module, name, partial(watch, getattr(module, name)))
    A = np.eye(1000)
    linalg.cholesky(A)
    linalg.eigh(A[:300, :300])
    assert seen == [{1}, {1}]


def test_blas_gets_its_threads_back_when_learning_stops_early(four):
    """Also while somebody keeps the error, as interactive sessions do."""
    rng = np.random.default_rng(0)
    Y = rng.random((300, 3)) < 0.4
    X = np.concatenate([Y + rng.random(Y.shape), np.zeros((300, 12_000))], axis=1)

    def stop(what, done, total):
        if done:
            assert in_use() == {1}  # folds are learned from at the same time
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupt:
        FeatureAnnotator().fit(X, Y, groups=np.arange(300), progress=stop)
    assert interrupt.tb is not None
    assert in_use() == {4}


# --- the same answers ----------------------------------------------------------------------


def test_the_number_of_threads_changes_rounding_alone():
    X, Y, X_new = make_collection(n=400)
    places, scores = [], []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads, "blas"):
            space = SemanticSpace(random_state=0).fit(X, Y)
            places.append(space.transform(X_new))
            method = TagProp(10).fit(space.transform(X), Y)
            scores.append(method.decision_function(places[-1]))
    for embeddings in places[1:]:
        np.testing.assert_allclose(embeddings, places[0], atol=1e-9)
    for again in scores[1:]:
        np.testing.assert_allclose(again, scores[0], atol=1e-6)


# --- work that is spread here --------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n_rows", [1, 5, 100])
def test_work_in_threads_covers_every_row_once_under_its_budget(n_threads, n_rows):
    seen, budgets = np.zeros(n_rows, dtype=int), set()

    def work(rows):
        assert rows.stop - rows.start <= arrays.block_rows(10)
        seen[rows] += 1
        budgets.add(arrays.block_rows(1))

    with threadpool_limits(n_threads, "blas"), arrays.memory_budget(300):
        threads.run_in_threads(work, n_rows, 10)
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
            threads.run_in_threads(work, 10, 1)
        assert [info["num_threads"] for info in threadpool_info()] == before


@pytest.mark.parametrize("n_threads", [1, 2, 8])
def test_results_come_in_their_order_whichever_is_ready_first(n_threads):
    """With two threads the second task has to be done before the first one is."""
    ready, budgets = threading.Event(), []

    def first():
        assert n_threads != 2 or ready.wait(60)
        budgets.append(arrays.block_rows(1))
        return 1

    def second():
        ready.set()
        return 2

    with threadpool_limits(n_threads, "blas"), arrays.memory_budget(300):
        results = list(threads.run_tasks([first, second, lambda: 3]))
    assert results == [1, 2, 3]
    assert budgets == [150 if n_threads == 2 else 300]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_parallel_tasks_get_one_thread_of_blas_each(n_threads):
    together = threading.Barrier(n_threads)

    def task(number):
        together.wait(60)  # all threads are at work at the same time
        assert n_threads == 1 or in_use_by_all() <= {1}
        return number

    with threadpool_limits(n_threads, "blas"):
        assert threads.run_parallel([partial(task, number) for number in range(4)]) == [0, 1, 2, 3]
        assert threads.run_parallel([]) == []


def test_an_error_of_a_task_comes_out():
    def fails():
        raise RuntimeError("as it should")

    with threadpool_limits(2, "blas"):
        before = [info["num_threads"] for info in threadpool_info()]
        results = threads.run_tasks([lambda: 1, fails, lambda: 3])
        assert next(results) == 1
        with pytest.raises(RuntimeError, match="as it should"):
            next(results)
        assert [info["num_threads"] for info in threadpool_info()] == before


def test_a_thread_has_memory_for_a_row():
    """Rows that fill the budget come one after the other, however many threads there are."""
    running, most = [], []

    def work(rows):
        running.append(rows)
        time.sleep(0.005)
        most.append(len(running))
        running.pop()

    with threadpool_limits(8, "blas"), arrays.memory_budget(100):
        threads.run_in_threads(work, 20, 60)
    assert max(most) == 1
