"""How many threads BLAS works with, and work that is spread over threads here."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from threadpoolctl import ThreadpoolController

from tagkin.arrays.blocks import block_rows, bytes_allowed, memory_budget, row_blocks
from tagkin.arrays.device import on_accelerator
from tagkin.arrays.namespaces import Array

__all__ = ["one_host_thread", "run_in_threads"]


@functools.cache  # looking for the libraries takes milliseconds
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def one_host_thread(array: Array) -> contextlib.AbstractContextManager[Any]:
    """One thread of BLAS while small matrices on the host serve an array on a device.

    With many, they would wait for each other longer than they work.
    """
    return _blas().limit(limits=1) if on_accelerator(array) else contextlib.nullcontext()


def run_in_threads(
    work: Callable[[slice], None], n_rows: int, bytes_per_row: int, most_rows: int
) -> None:
    """Do `work` for consecutive slices of at most so many rows, on as many threads as BLAS uses.

    Each thread gets its share of the memory budget and one thread of BLAS: the work between
    matrix products, which BLAS does not spread, is spread as well. For NumPy arrays.
    """
    n_threads = max((library.num_threads for library in _blas().lib_controllers), default=1)
    if n_threads == 1 or n_rows < 2 * n_threads:
        for rows in row_blocks(n_rows, max(bytes_per_row, bytes_allowed() // most_rows)):
            work(rows)
        return
    with memory_budget(max(1, bytes_allowed() // n_threads)):
        step = min(block_rows(bytes_per_row), most_rows, -(-n_rows // n_threads))
        blocks = [slice(i, min(i + step, n_rows)) for i in range(0, n_rows, step)]
        contexts = [contextvars.copy_context() for _ in blocks]  # the budget goes along
    with _blas().limit(limits=1), ThreadPoolExecutor(n_threads) as pool:
        for _ in pool.map(lambda context, rows: context.run(work, rows), contexts, blocks):
            pass
