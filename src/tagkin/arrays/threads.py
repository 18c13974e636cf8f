"""Threads: how many BLAS may use, and the executors that run tasks at the same time.

Threads of BLAS meet many times in one product, and wait for each other in a busy loop. That pays
if each has work for some milliseconds. With less, a product on a busy machine takes hundreds of
times as long with two threads as with one. So every product and every factorisation gets as many
threads as it keeps busy (`blas_threads_for`).

NumPy and SciPy each bring a BLAS of their own; both are limited. torch has threads of its own.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import math
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController, threadpool_limits

from tagkin.arrays.blocks import block_rows, bytes_allowed, memory_budget

__all__ = [
    "ENOUGH",
    "blas_threads",
    "blas_threads_for",
    "find_libraries_again",
    "n_threads_for",
    "one_thread",
    "run_in_threads",
    "run_parallel",
    "run_tasks",
]

T = TypeVar("T")

ENOUGH = 2**29  # multiplications that keep a thread busy: 10 ms or more


@functools.cache  # looking for the libraries takes milliseconds
def _libraries(*, shared: bool) -> list[Any]:
    """Libraries of BLAS whose threads all threads share, or of which each thread has its own."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return [
        library
        for library in libraries
        if shared == (getattr(library, "threading_layer", None) != "openmp")
    ]


def find_libraries_again() -> None:
    """Look for libraries of BLAS anew: call it after importing a package that brings its own.

    Limits that are in force hold for those that are found now, too.
    """
    _libraries.cache_clear()
    _limits.take_in(_libraries(shared=True))


def _n_blas_threads() -> int:
    libraries = _libraries(shared=True) + _libraries(shared=False)
    return max((library.num_threads for library in libraries), default=1)


def _set_threads(library: Any, n_threads: int) -> None:
    # since 3.8, threadpoolctl obeys one thread and is silent to the others, until it is freed
    free = getattr(library, "clear_controlling_thread", lambda force: None)
    free(force=True)
    library.set_num_threads(n_threads)
    free(force=True)


class _Limits:
    """The limits that are in force in all threads of the process; the least of them holds.

    The number of threads of BLAS is one for the whole process. Threads that leave in another
    order than they came would, each by itself, put back what another had set. So the first one
    in notes what was set, and the last one out puts it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside: list[int] = []
        self._before: list[tuple[Any, int]] = []

    def enter(self, limit: int) -> None:
        """Note a limit."""
        with self._lock:
            if not self._inside:
                libraries = _libraries(shared=True)
                self._before = [(library, library.num_threads) for library in libraries]
            least = self._least()
            self._inside.append(limit)
            if limit < least:
                self._change(least, limit)

    def leave(self, limit: int) -> None:
        """Strike it out."""
        with self._lock:
            self._inside.remove(limit)
            least = self._least()
            if limit < least:
                self._change(limit, least)

    def take_in(self, libraries: list[Any]) -> None:
        """Limit libraries that were not there when the first one came."""
        with self._lock:
            known = {library.filepath for library, _ in self._before}
            for library in libraries:
                if self._inside and library.filepath not in known:
                    before = library.num_threads
                    self._before.append((library, before))
                    _set_threads(library, int(min(before, self._least())))

    def _least(self) -> float:
        return min(self._inside, default=math.inf)

    def _change(self, was: float, least: float) -> None:
        for library, before in self._before:
            if min(before, least) != min(before, was):
                _set_threads(library, int(min(before, least)))


_limits = _Limits()


class blas_threads:  # noqa: N801 (it is used as a function; one with `yield` takes twice as long)
    """At most so many threads of BLAS in the whole process, as long as any thread is inside.

    Where several threads are inside, or one of them in several of these, the least limit holds.
    The last one out puts back what was set when the first one came. (Of a BLAS that works with
    OpenMP each thread has a number of its own, and only that is limited.)
    """

    def __init__(self, at_most: int):
        self._at_most = at_most
        self._own: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        self._own = [(library, library.num_threads) for library in _libraries(shared=False)]
        _limits.enter(self._at_most)
        for library, before in self._own:
            _set_threads(library, min(before, self._at_most))

    def __exit__(self, *_: object) -> None:
        for library, before in self._own:
            _set_threads(library, before)
        _limits.leave(self._at_most)


def blas_threads_for(multiplications: int) -> contextlib.AbstractContextManager[None]:
    """BLAS with as many threads as a product of so many multiplications keeps busy.

    An n×k matrix times a k×m one has n k m of them. Around several products, it is the number
    of the largest.
    """
    return blas_threads(max(1, multiplications // ENOUGH))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread of BLAS, and one of OpenMP, whose number each thread has for itself."""
    with blas_threads(1), threadpool_limits(1, "openmp"):
        yield


def run_in_threads(
    work: Callable[[slice], None], n_rows: int, bytes_per_row: int, most_rows: int
) -> None:
    """Run `work` on slices of at most `most_rows` rows, on as many threads as BLAS uses.

    See `run_parallel` for what each thread gets. For NumPy arrays.
    """
    n_threads = _n_blas_threads()
    if n_rows < 2 * n_threads:
        n_threads = 1
    with memory_budget(max(1, bytes_allowed() // n_threads)):
        most_rows = min(block_rows(bytes_per_row), most_rows)
    # as many rows in each: work on the few that were left over would be slow
    n_blocks = n_threads * -(-n_rows // (n_threads * most_rows))
    bounds = [n_rows * block // n_blocks for block in range(n_blocks)] + [n_rows]
    blocks = [slice(*pair) for pair in itertools.pairwise(bounds)]
    run_parallel([functools.partial(work, rows) for rows in blocks], n_threads)


def n_threads_for(multiplications: int) -> int:
    """Threads that so many multiplications keep busy, at most those that BLAS may take."""
    return max(1, min(multiplications // ENOUGH, _n_blas_threads()))


def run_parallel(tasks: Sequence[Callable[[], T]], n_threads: int | None = None) -> list[T]:
    """Run tasks on `n_threads` threads, by default as many as BLAS uses; return their results.

    Each thread gets its share of the memory budget and one thread of BLAS. For NumPy arrays.
    """
    n_threads = min(_n_blas_threads() if n_threads is None else n_threads, len(tasks))
    if n_threads <= 1:
        return [task() for task in tasks]
    return list(_run_in_order(tasks, n_threads))


def run_tasks(tasks: Sequence[Callable[[], T]]) -> Generator[T]:
    """Yield task results in order, in parallel when that is faster.

    That is with at least as many tasks as BLAS uses threads. With fewer, one after the other has
    all threads. BLAS gets its threads back when the generator ends: close it if you may stop
    early. For NumPy arrays.
    """
    n_threads = _n_blas_threads()
    if n_threads > 1 and len(tasks) >= n_threads:
        yield from _run_in_order(tasks, n_threads)
    else:
        for task in tasks:
            yield task()


def _with_one_thread(task: Callable[[], T], n_threads: int) -> Callable[[], T]:
    """Give a task one thread of BLAS and its share of the memory budget among `n_threads`."""
    with memory_budget(max(1, bytes_allowed() // n_threads)):
        context = contextvars.copy_context()  # which has the budget

    def run() -> T:
        with blas_threads(1):
            return context.run(task)

    return run


def _run_in_order(tasks: Sequence[Callable[[], T]], n_threads: int) -> Generator[T]:
    """Yield task results in order; see `run_parallel`."""
    alone = [_with_one_thread(task, n_threads) for task in tasks]
    with blas_threads(1), ThreadPoolExecutor(n_threads) as pool:
        running = [pool.submit(task) for task in alone]
        try:
            for future in running:
                yield future.result()
        finally:  # on failure, or if the caller stops early
            for future in running:
                future.cancel()
