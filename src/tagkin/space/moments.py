"""Sums over images, from which the semantic space is solved: they add, subtract and stream.

With K = k(X, S) − 1 shiftᵀ (N×r, kernel columns of the landmarks, less an estimate of their
mean) and text features T̂ (N×q), the sums are N, Σk, Σt, KᵀK, KᵀT̂ and T̂ᵀT̂, all float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.arrays import (
    Array,
    add_gram,
    diagonal_of,
    in_tf32,
    like,
    matmul,
    mirror_lower,
    namespace,
    on_accelerator,
    row_blocks,
    smaller_blocks_when_full,
)
from tagkin.arrays.deferring import Deferring
from tagkin.space.landmarks import Landmarks

__all__ = ["Moments"]

# A dense product does about 10 times the multiplications a second of a sparse one.
_SPARSE_PAYS_BELOW = 0.1
_LONGEST, _PART = 32_768, 1024  # float32 sums over more rows would round too much
_TILE, _ROWS = 256, 16
# On a device: rows whose products are added up there (tensor cores cut off what they add, always
# downwards), columns of KᵀK at a time, and entries of products side by side.
_LONGEST_THERE, _PANEL, _SIDE_BY_SIDE = 4096, 512, 2**26


@dataclass
class Moments(Deferring):
    """Streaming sums of kernel columns and text features.

    Attributes
    ----------
    count : int
        Images in the sums.
    shift : array of shape (r,)
        What is subtracted from every kernel column before summing. Centring afterwards,
        KᵀK − N k̄ k̄ᵀ, cancels badly in float32 unless k̄ is small.
    kernel_sum : (r,), text_sum : (q,), kernel_gram : (r, r), cross : (r, q), text_gram : (q, q)
    """

    count: int
    shift: Array
    kernel_sum: Array
    text_sum: Array
    kernel_gram: Array
    cross: Array
    text_gram: Array

    @classmethod
    def zeros(cls, shift: Array, n_text: int) -> Moments:
        """Sums over no image."""
        xp = namespace(shift)
        r = shift.shape[0]

        def empty(*shape: int) -> Array:
            return xp.zeros(shape, dtype=xp.float64, device=shift.device)

        return cls(
            count=0,
            shift=shift,
            kernel_sum=empty(r),
            text_sum=empty(n_text),
            kernel_gram=empty(r, r),
            cross=empty(r, n_text),
            text_gram=empty(n_text, n_text),
        )

    @classmethod
    @smaller_blocks_when_full
    def of(cls, X: Array, text: Any, landmarks: Landmarks, shift: Array) -> Moments:
        """Sums over the rows of X (n×d) and text (n×q), in blocks.

        A block is float32 where the features are; its products are added up in float64.
        """

        def columns() -> Iterator[tuple[slice, Array]]:
            for rows in row_blocks(X.shape[0], 8 * (shift.shape[0] + X.shape[1]), X):
                numbers = range(rows.start, rows.stop)
                yield rows, landmarks.columns(X[rows], rows=numbers, less=shift)

        return cls._summed(columns(), text, shift)

    @classmethod
    def of_columns(cls, columns: Array, text: Any, shift: Array) -> Moments:
        """As `of`, given the kernel columns (n×r) less the shift."""
        return cls._summed(iter([(slice(0, columns.shape[0]), columns)]), text, shift)

    @classmethod
    def _summed(cls, blocks: Iterator[tuple[slice, Array]], text: Any, shift: Array) -> Moments:
        moments = cls.zeros(shift, text.shape[1])
        text = _sparse_where_it_pays(text)
        gram = _LowerGram(moments.kernel_gram)
        for rows, K in blocks:
            gram.add(K)
            moments._add_block(K, text[rows])
        gram.finish()
        if scipy.sparse.issparse(text):
            per_row = 256 * (1 + text.nnz // text.shape[0])
            for rows in row_blocks(text.shape[0], per_row):
                moments._add_sparse_text(text[rows].astype(np.float64))
        return moments

    def _add_block(self, K: Array, text: Array) -> None:
        """Add kernel columns K (n×r), less the shift, and text features (n×q).

        KᵀK is for `_LowerGram`, and what sparse text features have among themselves for `of`.
        """
        self.count += K.shape[0]
        if not scipy.sparse.issparse(text):
            exact = like(text, self.text_sum)
            self.text_sum += namespace(exact).sum(exact, axis=0)
            self.text_gram += _gram(exact)
        if on_accelerator(K):
            self._add_cross_there(K, like(text, K))
        else:
            for first in range(0, K.shape[0], _PART):  # float32 sums of few rows, added in float64
                self.kernel_sum += namespace(K).sum(K[first : first + _PART], axis=0)
            self._add_cross(K, text)

    def _add_sparse_text(self, text: Any) -> None:
        """Add the sums that text features (n×q) have among themselves."""
        self.text_sum += like(np.asarray(text.sum(axis=0)).ravel(), self.text_sum)
        gram = (text.T @ text).tocoo()
        if isinstance(self.text_gram, np.ndarray):
            self.text_gram[gram.row, gram.col] += gram.data  # no entry is there twice
        else:
            self.text_gram += like(gram, self.text_gram)

    def _add_cross(self, K: Array, text: Any) -> None:
        few = scipy.sparse.issparse(text) and text.nnz < _SPARSE_PAYS_BELOW * math.prod(text.shape)
        if few and isinstance(K, np.ndarray):
            self.cross += (text.T.astype(K.dtype) @ K).T
        else:
            self.cross += matmul(K.T, like(text, K))

    def _add_cross_there(self, K: Array, text: Array) -> None:
        """Add KᵀT̂ and the sums of K on a device, by one product: a pass over K costs as much."""
        xp = namespace(K)
        n, q = text.shape
        # to a multiple of four, without which products are slow
        ones = xp.ones((n, 4 - q % 4), dtype=K.dtype, device=K.device)
        sums = _tall_product(K, xp.concat([text, ones], axis=1), _LONGEST_THERE)
        self.cross += sums[:, :q]
        self.kernel_sum += sums[:, q]

    def add(self, other: Moments) -> None:
        """Add the sums over other images (with the same shift)."""
        self._combine(other, 1)

    def subtract(self, other: Moments) -> None:
        """Take images out again."""
        self._combine(other, -1)

    def _combine(self, other: Moments, sign: int) -> None:
        self.count += sign * other.count
        for name in ("kernel_sum", "text_sum", "kernel_gram", "cross", "text_gram"):
            total, part = getattr(self, name), getattr(other, name)
            if sign > 0:
                total += part
            else:
                total -= part

    def holds(self, other: Moments) -> bool:
        """Whether the images of `other` can be among these: no sum of squares is exceeded."""
        xp = namespace(self.shift)
        for mine, theirs in (
            (self.text_gram, other.text_gram),
            (self.kernel_gram, other.kernel_gram),
        ):
            here, there = xp.linalg.diagonal(mine), xp.linalg.diagonal(theirs)
            if bool(xp.any(there > here * (1 + 1e-6) + 1e-12 * xp.max(here))):
                return False
        return other.count <= self.count

    # The centred forms: Σ (k − k̄)(k − k̄)ᵀ and so on.

    @property
    def kernel_mean(self) -> Array:
        """Mean of k(x, S) over the images, shape (r,)."""
        return self.shift + self.kernel_sum / self.count

    def centred_kernel_gram(self) -> Array:
        """(r, r).

        Sums of products in TF32 are off by a matrix of norm 2⁻²² ‖KᵀK‖ at most (seen: half of
        that). That much is added to the diagonal, or it might not be positive definite.
        """
        s, xp = self.kernel_sum, namespace(self.kernel_gram)
        gram = xp.asarray(self.kernel_gram, copy=True)
        step = gram.shape[0] if on_accelerator(gram) else _ROWS  # that stay in a core's cache
        for start in range(0, gram.shape[0], step):
            part = slice(start, start + step)
            gram[part] -= s[part, None] * (s[None, :] / self.count)
        if in_tf32(gram):
            diagonal = diagonal_of(gram)
            diagonal += 2.0**-22 * _norm(gram)
        return gram

    def centred_cross(self) -> Array:
        """(r, q)."""
        return self.cross - self.kernel_sum[:, None] * (self.text_sum[None, :] / self.count)

    def centred_text_gram(self) -> Array:
        """(q, q)."""
        t = self.text_sum
        return self.text_gram - t[:, None] * (t[None, :] / self.count)


def _gram(A: Array) -> Array:
    """AᵀA."""
    return _tall_product(A, A, _PART) if on_accelerator(A) else matmul(A.T, A)


def _tall_product(A: Array, B: Array, longest: int) -> Array:
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


class _LowerGram:
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
            _add_lower_gram(self._total, K)
        elif not isinstance(K, np.ndarray):
            self._total += matmul(K.T, K)
        elif K.dtype == np.float64:
            add_gram(np.asarray(self._total), K)
        else:
            if self._single is None:
                self._single = np.zeros(self._total.shape, dtype=np.float32)
            for first in range(0, K.shape[0], _LONGEST // 2):
                rows = K[first : first + _LONGEST // 2]
                if self._rows + rows.shape[0] > _LONGEST // 2:
                    self._flush()
                add_gram(self._single, rows)
                self._rows += rows.shape[0]

    def _flush(self) -> None:
        if self._single is not None and self._rows:
            for start in range(0, len(self._single), _TILE):
                stop = start + _TILE
                self._total[start:stop, :stop] += self._single[start:stop, :stop]
            self._single[:] = 0
            self._rows = 0

    def finish(self) -> None:
        """Bring the total up to date, and its upper triangle."""
        self._flush()
        self._single = None
        mirror_lower(self._total)


def _add_lower_gram(total: Array, K: Array) -> None:
    """Add the lower triangle of KᵀK, and some of the upper one, on a device.

    In panels of columns that is little more than half the work.
    """
    for start in range(0, K.shape[1], _PANEL):
        stop = min(start + _PANEL, K.shape[1])
        panel = _tall_product(K[:, start:stop], K[:, :stop], _LONGEST_THERE)
        total[start:stop, :stop] += panel


def _sparse_where_it_pays(text: Any) -> Any:
    """Text features as a sparse matrix, if they are on the host and most are zero."""
    if not isinstance(text, np.ndarray):
        return text
    some = text[:: -(-len(text) // 4096)]
    if np.count_nonzero(some) >= _SPARSE_PAYS_BELOW * some.size:
        return text
    return scipy.sparse.csr_array(text)


def _norm(A: Array) -> Array:
    """The largest eigenvalue of a symmetric matrix, to some percent, by power iteration."""
    xp = namespace(A)
    v = xp.ones(A.shape[0], dtype=A.dtype, device=A.device)
    for _ in range(12):
        v = A @ (v / xp.linalg.vector_norm(v))
    return xp.linalg.vector_norm(v)
