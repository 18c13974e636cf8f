"""Kernel columns of many images, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, bytes_allowed, n_threads_for, row_blocks

__all__ = ["ColumnBlocks"]


@dataclass(frozen=True)
class ColumnBlocks:
    """Kernel columns (n×r), less the shift, a block of rows at a time.

    `columns` makes those of some rows, perhaps in the memory that it is given; `where` is an array
    on whose device they are, and `bytes_per_row` what they take beside their features. In memory,
    the entries of a row lie side by side, or `by_columns` those of a column.
    """

    columns: Callable[[slice, np.ndarray | None], Array]
    where: Array
    shape: tuple[int, int]
    dtype: Any
    bytes_per_row: int
    by_columns: bool = False

    def of(self, rows: slice) -> Iterator[tuple[slice, Array]]:
        """The columns of all of these rows, within the memory budget."""
        start, r = rows.start, self.shape[1]
        memory: np.ndarray | None = None
        for block in row_blocks(rows.stop - start, self.bytes_per_row, self.where):
            n = block.stop - block.start
            if memory is None and self.bytes_per_row and isinstance(self.where, np.ndarray):
                memory = np.empty(n * r, dtype=self.dtype)
            block = slice(start + block.start, start + block.stop)
            yield block, self.columns(block, None if memory is None else self._shaped(memory, n))

    def _shaped(self, memory: np.ndarray, n: int) -> np.ndarray:
        """Memory for the columns of n rows, (n, r)."""
        r = self.shape[1]
        some = memory[: n * r]
        return some.reshape(r, n).T if self.by_columns else some.reshape(n, r)

    def n_lanes(self, text: Any) -> int:
        """Threads that can each have sums of their own, one where memory would not do for all."""
        n, r = self.shape
        if not isinstance(self.where, np.ndarray):
            return 1
        n_threads = n_threads_for(n * r * r // 2)
        q = text.shape[1]
        among_text = 0 if scipy.sparse.issparse(text) else 8 * q * q
        largest = max(r * r * np.dtype(self.dtype).itemsize, 8 * r * q, among_text)
        return n_threads if n_threads * largest <= bytes_allowed() else 1
