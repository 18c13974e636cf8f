"""Threads: limits of BLAS, and the executor that runs all parallel tasks.

The threads of BLAS wait for each other many times in a product, in a busy loop. Several threads are
faster if each has work for some milliseconds between these waits. With less work, a product on a
busy machine can take hundreds of times as long with two threads as with one. So every product and
every factorisation gets as many threads as it keeps busy (`blas_threads_for`).

NumPy and SciPy each bring their own BLAS; both are limited. The threads of torch are not.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import math
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from threadpoolctl import ThreadpoolController

from tagkin.arrays.blocks import block_rows, bytes_allowed, memory_budget

if TYPE_CHECKING:
    from threadpoolctl import LibController

__all__ = [
    "ENOUGH",
    "blas_threads",
    "blas_threads_for",
    "find_libraries_again",
    "n_threads_for",
    "run_in_threads",
    "run_parallel",
    "run_tasks",
]

T = TypeVar("T")

ENOUGH = 2**29  # multiplications that keep a thread busy: 10 ms or more


@functools.cache  # finding the libraries takes milliseconds
def _libraries(*, shared: bool) -> list[LibController]:
    """Return BLAS libraries whose number of threads is shared, or separate for each thread."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return [
        library
        for library in libraries
        if shared == (getattr(library, "threading_layer", None) != "openmp")
    ]


def find_libraries_again() -> None:
    """Limit new BLAS libraries, too; call it after importing a package that brings its own."""
    _libraries.cache_clear()
    _limits.add_libraries(_libraries(shared=True))


def _n_blas_threads() -> int:
    libraries = _libraries(shared=True) + _libraries(shared=False)
    return max((library.num_threads for library in libraries), default=1)


def _set_threads(library: LibController, n_threads: int) -> None:
    # since 3.8, threadpoolctl obeys a single thread and ignores others until it is released
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(n_threads)
    release(force=True)


class _Limits:
    """The limits that the threads of this process have set; the least applies.

    BLAS has one number of threads for the whole process. If each thread restored the number that it
    found, a thread could restore the limit of another thread that has already left. So the first to
    enter notes the number, and the last to leave restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside: list[int] = []
        self._least = math.inf
        self._before: list[tuple[LibController, int]] = []

    def enter(self, limit: int) -> None:
        """Add a limit."""
        with self._lock:
            if not self._inside:
                libraries = _libraries(shared=True)
                self._before = [(library, library.num_threads) for library in libraries]
            self._inside.append(limit)
            self._apply()

    def leave(self, limit: int) -> None:
        """Remove a limit."""
        with self._lock:
            self._inside.remove(limit)
            self._apply()

    def add_libraries(self, libraries: list[LibController]) -> None:
        """Limit libraries that were loaded after the first thread entered."""
        with self._lock:
            known = {library.filepath for library, _ in self._before}
            for library in libraries:
                if self._inside and library.filepath not in known:
                    before = library.num_threads
                    self._before.append((library, before))
                    _set_threads(library, int(min(before, self._least)))

    def _apply(self) -> None:
        previous, self._least = self._least, min(self._inside, default=math.inf)
        for library, before in self._before:
            n_threads = min(before, self._least)
            if n_threads != min(before, previous):
                _set_threads(library, int(n_threads))


_limits = _Limits()


class blas_threads:  # noqa: N801 (used as a function; a generator takes twice as long)
    """Use at most `at_most` BLAS threads in the whole process while any thread is inside.

    If several limits are active, the least applies. The last thread to leave restores the number
    from before the first limit. (With a BLAS that uses OpenMP, only the current thread is limited.)
    """

    def __init__(self, at_most: int):
        self._at_most = at_most
        self._own: list[tuple[LibController, int]] = []

    def __enter__(self) -> None:
        self._own = [(library, library.num_threads) for library in _libraries(shared=False)]
        _limits.enter(self._at_most)
        for library, before in self._own:
            _set_threads(library, min(before, self._at_most))

    def __exit__(self, *_: object) -> None:
        for library, before in self._own:
            _set_threads(library, before)
        _limits.leave(self._at_most)


def blas_threads_for(multiplications: int) -> blas_threads:
    """Use as many BLAS threads as a product of this many multiplications keeps busy.

    The product of an n×k and a k×m matrix takes n k m multiplications. If there are several
    products, pass the number of the largest.
    """
    return blas_threads(max(1, multiplications // ENOUGH))


def n_threads_for(multiplications: int) -> int:
    """Return the number of threads that the multiplications keep busy, at most BLAS's number."""
    return max(1, min(multiplications // ENOUGH, _n_blas_threads()))


def run_in_threads(work: Callable[[slice], None], n_rows: int, bytes_per_row: int) -> None:
    """Run `work` on slices of the rows, on as many threads as BLAS uses and have memory for a row.

    Each thread gets its share of the memory budget; see `run_parallel`. For NumPy arrays.
    """
    n_threads = max(1, min(_n_blas_threads(), bytes_allowed() // bytes_per_row))
    if n_rows < 2 * n_threads:
        n_threads = 1
    with memory_budget(max(1, bytes_allowed() // n_threads)):
        most_rows = block_rows(bytes_per_row)
    # blocks of equal size, because work on a small last one would be slow
    n_blocks = min(n_rows, n_threads * -(-n_rows // (n_threads * most_rows)))
    bounds = [n_rows * block // n_blocks for block in range(n_blocks)] + [n_rows]
    blocks = [slice(*pair) for pair in itertools.pairwise(bounds)]
    run_parallel([functools.partial(work, rows) for rows in blocks], n_threads)


def run_parallel(tasks: Sequence[Callable[[], T]], n_threads: int | None = None) -> list[T]:
    """Run tasks on `n_threads` threads, by default as many as BLAS uses; return their results.

    Each thread gets its share of the memory budget and one BLAS thread. For NumPy arrays.
    """
    n_threads = min(_n_blas_threads() if n_threads is None else n_threads, len(tasks))
    return list(_run_in_order(tasks, n_threads))


def run_tasks(tasks: Sequence[Callable[[], T]]) -> Generator[T]:
    """Yield task results in order, in parallel when that is faster.

    Fewer tasks than BLAS has threads run one after the other, each with all threads. BLAS gets
    its threads back when the generator ends: close it if you may stop early. For NumPy arrays.
    """
    n_threads = _n_blas_threads()
    return _run_in_order(tasks, n_threads if len(tasks) >= n_threads else 1)


def _run_in_order(tasks: Sequence[Callable[[], T]], n_threads: int) -> Generator[T]:
    """Yield task results in order; see `run_parallel`."""
    if n_threads <= 1:
        yield from (task() for task in tasks)
        return
    limited = [_with_one_thread(task, n_threads) for task in tasks]
    with blas_threads(1), ThreadPoolExecutor(n_threads) as pool:
        running = [pool.submit(task) for task in limited]
        try:
            for future in running:
                yield future.result()
        finally:  # on failure, or if the caller stops early
            for future in running:
                future.cancel()


def _with_one_thread(task: Callable[[], T], n_threads: int) -> Callable[[], T]:
    """Give a task one BLAS thread and its share of the memory budget among `n_threads`."""
    with memory_budget(max(1, bytes_allowed() // n_threads)):
        context = contextvars.copy_context()  # with this budget

    def run() -> T:
        with blas_threads(1):
            return context.run(task)

    return run
