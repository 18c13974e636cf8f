"""Gram matrices KᵀK of many rows: half the products, and float64 sums of float32 ones."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from tagkin.arrays import (
    Array,
    add_gram,
    each_tile,
    matmul,
    mirror_lower,
    namespace,
    on_accelerator,
)

__all__ = [
    "LONGEST",
    "LONGEST_THERE",
    "LowerGram",
    "gram",
    "take_lower",
    "tall_product",
    "zeros_apart",
]

LONGEST = 16_384  # rows; float32 sums over more would round too much
_PART, _APART = 1024, 16
# On a device: rows whose products are added up there (tensor cores cut off what they add, always
# downwards), columns of KᵀK at a time, and entries of products side by side.
LONGEST_THERE, _PANEL, _SIDE_BY_SIDE = 4096, 512, 2**26


def zeros_apart(r: int, dtype: np.dtype) -> np.ndarray:
    """Zeros (r×r) with rows apart: those of a power of two would share a part of the cache."""
    return np.zeros((r, r + _APART), dtype=dtype)[:, :r]


def take_lower(total: np.ndarray, part: np.ndarray, rows: slice) -> None:
    """Add some rows of the lower triangle of `part` to the total (r×r), and set them to zero."""
    total[rows, : rows.stop] += part[rows, : rows.stop]
    part[rows, : rows.stop] = 0


def gram(A: Array) -> Array:
    """AᵀA."""
    return tall_product(A, A, _PART) if on_accelerator(A) else matmul(A.T, A)


def tall_product(A: Array, B: Array, longest: int) -> Array:
    """AᵀB of many rows (n×a, n×b): a device does parts of `longest` rows side by side."""
    xp = namespace(A)
    whole = A.shape[0] - A.shape[0] % longest
    product = A[whole:].T @ B[whole:]
    step = longest * max(1, _SIDE_BY_SIDE // math.prod(product.shape))
    for start in range(0, whole, step):
        rows = slice(start, min(start + step, whole))
        left, right = (M[rows].reshape(-1, longest, M.shape[1]) for M in (A, B))
        product += xp.sum(xp.permute_dims(left, (0, 2, 1)) @ right, axis=0)
    return product


class LowerGram:
    """Adds KᵀK of one block of columns after another to a float64 total (r×r).

    The lower triangle is half the work. On the host, float32 products of many rows are added up
    in float32 by BLAS, and those sums in float64.
    """

    def __init__(self, total: Array):
        self._total = total
        self._single: np.ndarray | None = None
        self._rows = 0

    def add(self, K: Array) -> None:
        """Add the rows of K (n×r)."""
        if on_accelerator(K):
            self._add_there(K)
        elif not isinstance(K, np.ndarray):
            self._total += matmul(K.T, K)
        elif K.dtype == np.float64:
            add_gram(np.asarray(self._total), K)
        else:
            if self._single is None:
                self._single = zeros_apart(len(self._total), np.dtype(np.float32))
            for first in range(0, K.shape[0], LONGEST):
                rows = K[first : first + LONGEST]
                if self._rows + rows.shape[0] > LONGEST:
                    self._flush()
                add_gram(self._single, rows)
                self._rows += rows.shape[0]

    def _add_there(self, K: Array) -> None:
        """Add KᵀK on a device in panels of columns, with a little of the upper triangle."""
        for start in range(0, K.shape[1], _PANEL):
            rows, columns = slice(start, start + _PANEL), slice(0, start + _PANEL)
            self._total[rows, columns] += tall_product(K[:, rows], K[:, columns], LONGEST_THERE)

    def _flush(self) -> None:
        if self._single is not None and self._rows:
            each_tile(partial(take_lower, np.asarray(self._total), self._single), len(self._single))
            self._rows = 0

    def finish(self) -> None:
        """Bring the total up to date, and its upper triangle."""
        self._flush()
        self._single = None
        mirror_lower(self._total)
