"""Temporary blocks under a memory budget."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import math
from collections.abc import Callable, Iterator
from numbers import Real
from typing import ParamSpec, TypeVar

from tagkin.arrays.namespaces import Array, is_tensor
from tagkin.errors import InvalidInput

__all__ = [
    "block_rows",
    "bytes_allowed",
    "cached_rows",
    "device_budget",
    "is_out_of_memory",
    "memory_budget",
    "release_cached",
    "row_blocks",
    "smaller_blocks_when_full",
]

P = ParamSpec("P")
T = TypeVar("T")

# On the host, a fit takes half as long again with 4 MiB, and a tenth less with 2 GiB.
_DEFAULT_BUDGET = 128 * 2**20
_budget: contextvars.ContextVar[int | None] = contextvars.ContextVar("budget", default=None)
_SHARE = 8  # an eighth of the free memory is for temporary blocks; the rest, for results
_MOST = 4 * 2**30  # larger blocks are not faster
_CACHE = 2**18  # bytes of an array that passes over it find in a core's cache


@contextlib.contextmanager
def memory_budget(n_bytes: int) -> Iterator[None]:
    """Limit the size of temporary blocks within a ``with`` statement.

    The limit affects speed and memory, and results only by rounding. By default, blocks take 128
    MiB on the host, and on a device an eighth of the free memory, at most 4 GiB.

    Examples
    --------
    >>> import numpy as np
    >>> import tagkin
    >>> X, Y = np.eye(50), np.eye(50, 3)
    >>> with tagkin.memory_budget(2**20):  # blocks of at most a mebibyte
    ...     space = tagkin.SemanticSpace().fit(X, Y)
    """
    if not isinstance(n_bytes, Real) or not 1 <= n_bytes < math.inf:
        raise InvalidInput(f"n_bytes must be a positive number of bytes; found {n_bytes!r}.")
    token = _budget.set(int(n_bytes))
    try:
        yield
    finally:
        _budget.reset(token)


def bytes_allowed(where: Array | None = None) -> int:
    """Return the bytes that temporary blocks may take, on the device of `where` or on the host."""
    budget = _budget.get()
    if budget is None and where is not None:
        budget = device_budget(where)
    return _DEFAULT_BUDGET if budget is None else budget


def block_rows(bytes_per_row: int, where: Array | None = None) -> int:
    """Return how many rows of this size fit the memory budget (at least one).

    Blocks are on the device of the array `where`, or on the host without it.
    """
    return max(1, bytes_allowed(where) // max(1, bytes_per_row))


def cached_rows(bytes_per_row: int) -> int:
    """Return how many rows of this size fit in a core's cache (at least one)."""
    return max(1, _CACHE // max(1, bytes_per_row))


def row_blocks(n_rows: int, bytes_per_row: int, where: Array | None = None) -> Iterator[slice]:
    """Yield consecutive slices over `n_rows` rows, each of at most `block_rows`."""
    step = block_rows(bytes_per_row, where)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def smaller_blocks_when_full(function: Callable[P, T]) -> Callable[P, T]:
    """Call a function again with smaller blocks if a device runs out of memory.

    The function must not change its arguments.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        budget = _budget.get()
        while True:
            try:
                with contextlib.nullcontext() if budget is None else memory_budget(budget):
                    return function(*args, **kwargs)
            except RuntimeError as error:
                if not is_out_of_memory(error) or (budget is not None and budget < 2**20):
                    raise
            release_cached()  # outside the handler, which would keep the blocks alive
            budget = (2**30 if budget is None else budget) // 4

    return call


def device_budget(array: Array) -> int | None:
    """Return the bytes for temporary blocks on the array's device, or None if unknown."""
    if not is_tensor(array) or array.device.type != "cuda":
        return None
    import torch

    free, _ = torch.cuda.mem_get_info(array.device)
    # memory that torch holds for later tensors is free; one call for all numbers is faster
    held = torch.cuda.memory_stats_as_nested_dict(array.device)
    for sign, kind in ((1, "reserved_bytes"), (-1, "allocated_bytes")):
        free += sign * held.get(kind, {}).get("all", {}).get("current", 0)
    return max(2**20, min(_MOST, free // _SHARE))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this is torch's error of a full device."""
    return type(error).__name__ == "OutOfMemoryError" and isinstance(error, RuntimeError)


def release_cached() -> None:
    """Return memory that torch holds for later to the device."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
