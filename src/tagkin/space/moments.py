"""Sums over images from which the semantic space is solved; they can be added and subtracted.

With kernel columns K = k(X, S) − 1 shiftᵀ (N×r), the shift an estimate of their mean, and text
features T̂ (N×q), the sums are N, Σk, Σt, KᵀK, KᵀT̂ and T̂ᵀT̂, all in float64. With weights ω, rows
of K and T̂ are multiplied by √ω, and the sums are Σω, Σωk and Σωt.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, TypeAlias

import numpy as np
import scipy.sparse

from tagkin.arrays import (
    Array,
    like,
    namespace,
    on_accelerator,
    row_blocks,
    smaller_blocks_when_full,
)
from tagkin.arrays.blocks import bytes_allowed
from tagkin.arrays.linalg import matmul
from tagkin.arrays.namespaces import LabelMatrix, is_sparse
from tagkin.arrays.threads import n_threads_for, run_parallel
from tagkin.records.forms import storable
from tagkin.records.rules import Floats, Number, Whole
from tagkin.space.space import Landmarks

__all__ = ["Moments", "first_sums"]

_Columns: TypeAlias = Callable[[slice], Array]

# A dense product does about 10 times the multiplications a second of a sparse one.
_SPARSE_PAYS_BELOW = 0.1
_LONGEST = 16_384  # rows; float32 sums of products over more rows would round too much
_PANEL = 512  # columns of KᵀK at a time on a device: of 4,096, 6 ms on an H200; all at once, 10 ms
_SUMS = ("count", "weight", "kernel_sum", "text_sum", "kernel_gram", "cross", "text_gram")


@storable
@dataclass
class Moments:
    """Streaming sums of kernel columns and text features.

    Attributes
    ----------
    count : int
        Images in the sums.
    weight : float
        Their total weight Σω, which equals `count` without weights.
    shift : array of shape (r,)
        Subtracted from every kernel column before summing. Centring afterwards, KᵀK − N k̄ k̄ᵀ,
        cancels badly in float32 unless k̄ is small.
    kernel_sum : (r,), text_sum : (q,), kernel_gram : (r, r), cross : (r, q), text_gram : (q, q)
    """

    count: Annotated[int, Whole()]
    weight: Annotated[float, Number()]
    shift: Annotated[Array, Floats("r")]
    kernel_sum: Annotated[Array, Floats("r")]
    text_sum: Annotated[Array, Floats("q")]
    kernel_gram: Annotated[Array, Floats("r", "r")]
    cross: Annotated[Array, Floats("r", "q")]
    text_gram: Annotated[Array, Floats("q", "q")]

    @classmethod
    def zeros(cls, shift: Array, n_text: int) -> Moments:
        """Return sums over no image."""
        xp = namespace(shift)
        r = shift.shape[0]

        def empty(*shape: int) -> Array:
            return xp.zeros(shape, dtype=xp.float64, device=shift.device)

        return cls(
            count=0,
            weight=0.0,
            shift=shift,
            kernel_sum=empty(r),
            text_sum=empty(n_text),
            kernel_gram=empty(r, r),
            cross=empty(r, n_text),
            text_gram=empty(n_text, n_text),
        )

    @classmethod
    @smaller_blocks_when_full
    def of(
        cls,
        X: Array,
        text: LabelMatrix,
        landmarks: Landmarks,
        shift: Array,
        weights: np.ndarray | None = None,
    ) -> Moments:
        """Sum over the rows of X (n×d) and text (n×q), in blocks, with weights ω (n,).

        Blocks are float32 if the features are; their products are added in float64.
        """
        roots = None if weights is None else np.sqrt(weights)

        def columns(rows: slice) -> Array:
            K = landmarks.columns(X[rows], rows=range(rows.start, rows.stop), less=shift)
            return K if roots is None else K * like(roots[rows], K)[:, None]

        return cls._sum_blocks(columns, X, text, shift, roots)

    @classmethod
    def of_columns(cls, columns: Array, text: LabelMatrix, shift: Array) -> Moments:
        """Sum as `of` does, given the kernel columns (n×r) minus the shift."""
        return cls._sum_blocks(lambda rows: columns[rows], columns, text, shift)

    @classmethod
    def _sum_blocks(
        cls,
        columns: _Columns,
        where: Array,
        text: LabelMatrix,
        shift: Array,
        roots: np.ndarray | None = None,
    ) -> Moments:
        """Sum blocks of rows of arrays on the device of `where`; `roots` are √ω (n,).

        Each thread sums its own rows. The sums are added in the order of the rows, so they depend
        on the number of threads only.
        """
        text = _make_sparse_if_faster(text)
        (n, d), r, q = where.shape, shift.shape[0], text.shape[1]
        if roots is None:
            roots = np.ones(n)
        else:
            text = _weigh_text(text, roots, shift)
        total = cls.zeros(shift, q)
        n_threads = 1
        if isinstance(where, np.ndarray) and 8 * r * (r + q) <= 4 * bytes_allowed():
            n_threads = n_threads_for(n * r * r // 2)
        bounds = [n * part // n_threads for part in range(n_threads + 1)]
        parts = [slice(*pair) for pair in itertools.pairwise(bounds)]

        def sum_up(part: slice, sums: Moments) -> Moments:
            for block in row_blocks(part.stop - part.start, 8 * (r + d), where):
                for start in range(block.start, block.stop, _LONGEST):
                    stop = min(start + _LONGEST, block.stop)
                    rows = slice(part.start + start, part.start + stop)
                    sums._add_block(columns(rows), text[rows], roots[rows])
            return sums

        others = [cls.zeros(shift, q) for _ in parts[1:]]
        tasks = [partial(sum_up, *pair) for pair in zip(parts, [total, *others], strict=True)]
        for sums in run_parallel(tasks, n_threads)[1:]:
            total.add(sums)
        if is_sparse(text):
            total._add_sparse_text(text, roots)
        if on_accelerator(where):
            xp = namespace(total.kernel_gram)
            lower = total.kernel_gram
            total.kernel_gram = xp.tril(lower) + xp.tril(lower, k=-1).T
        return total

    def _add_block(self, K: Array, text: LabelMatrix, roots: np.ndarray) -> None:
        """Add kernel columns K (n×r), minus the shift, and text features (n×q), times √ω (n,).

        `_add_sparse_text` adds the sums of sparse text features alone.
        """
        self.count += K.shape[0]
        self.weight += float(roots @ roots)
        if not is_sparse(text):
            exact = like(text, self.text_sum)
            self.text_sum += matmul(like(roots, exact), exact)
            self.text_gram += matmul(exact.T, exact)
        self.kernel_sum += matmul(like(roots, K), K)
        if on_accelerator(K):  # the lower triangle alone takes half the products
            for start in range(0, K.shape[1], _PANEL):
                rows, columns = slice(start, start + _PANEL), slice(0, start + _PANEL)
                self.kernel_gram[rows, columns] += matmul(K[:, rows].T, K[:, columns])
        else:
            self.kernel_gram += matmul(K.T, K)
        few = is_sparse(text) and text.nnz < _SPARSE_PAYS_BELOW * math.prod(text.shape)
        if few and isinstance(K, np.ndarray):
            self.cross += (text.T.astype(K.dtype) @ K).T
        else:
            self.cross += matmul(K.T, like(text, K))

    def _add_sparse_text(self, text: scipy.sparse.csr_array, roots: np.ndarray) -> None:
        """Add Σt and T̂ᵀT̂ of sparse text features (n×q), times √ω (n,)."""
        for rows in row_blocks(text.shape[0], 256 * (1 + text.nnz // text.shape[0])):
            block = text[rows].astype(np.float64)
            self.text_sum += like(block.T @ roots[rows], self.text_sum)
            gram = (block.T @ block).tocoo()
            if isinstance(self.text_gram, np.ndarray):
                self.text_gram[gram.row, gram.col] += gram.data  # each entry occurs once
            else:
                self.text_gram += like(gram, self.text_gram)

    def of_first_landmarks(self, r: int) -> Moments:
        """Return the sums for the first r landmarks alone."""
        return replace(
            self,
            shift=self.shift[:r],
            kernel_sum=self.kernel_sum[:r],
            kernel_gram=self.kernel_gram[:r, :r],
            cross=self.cross[:r],
        )

    def add(self, other: Moments) -> None:
        """Add the sums over other images (with the same shift)."""
        for name in _SUMS:
            total = getattr(self, name)
            total += getattr(other, name)
            setattr(self, name, total)

    def subtract(self, other: Moments) -> None:
        """Remove images."""
        for name in _SUMS:
            total = getattr(self, name)
            total -= getattr(other, name)
            setattr(self, name, total)

    def holds(self, other: Moments) -> bool:
        """Return whether the images of `other` can be among these: no sum of squares is larger."""
        xp = namespace(self.shift)
        for mine, theirs in (
            (self.text_gram, other.text_gram),
            (self.kernel_gram, other.kernel_gram),
        ):
            here, there = xp.linalg.diagonal(mine), xp.linalg.diagonal(theirs)
            if bool(xp.any(there > here * (1 + 1e-6) + 1e-12 * xp.max(here))):
                return False
        return other.count <= self.count

    @property
    def kernel_mean(self) -> Array:
        """Mean of k(x, S) over the images, shape (r,)."""
        return self.shift + self.kernel_sum / self.weight

    def centred_kernel_gram(self) -> Array:
        """Return Σ (k − k̄)(k − k̄)ᵀ, shape (r, r)."""
        s = self.kernel_sum
        return self.kernel_gram - s[:, None] * (s[None, :] / self.weight)

    def centred_cross(self) -> Array:
        """Return Σ (k − k̄)(t − t̄)ᵀ, shape (r, q)."""
        return self.cross - self.kernel_sum[:, None] * (self.text_sum[None, :] / self.weight)

    def centred_text_gram(self) -> Array:
        """Return Σ (t − t̄)(t − t̄)ᵀ, shape (q, q)."""
        t = self.text_sum
        return self.text_gram - t[:, None] * (t[None, :] / self.weight)


def first_sums(
    X: Array, text: LabelMatrix, landmarks: Landmarks, weights: np.ndarray | None = None
) -> tuple[Landmarks, Array, Moments]:
    """Return independent landmarks, their k(S, S), and sums over the first images.

    The kernel columns of these images set the shift for all later images.
    """
    landmarks, gram, _ = landmarks.factor()
    return landmarks, gram, Moments.of(X, text, landmarks, landmarks.mean_columns(X), weights)


def _weigh_text(text: LabelMatrix, roots: np.ndarray, shift: Array) -> LabelMatrix:
    """Return text features (n×q) times √ω (n,), in float64 where the shift is."""
    if is_sparse(text):
        return scipy.sparse.csr_array(text.multiply(roots[:, None]))
    return like(text, shift) * like(roots, shift)[:, None]


def _make_sparse_if_faster(text: LabelMatrix) -> LabelMatrix:
    """Return text features as a sparse matrix if they are on the host and most are zero."""
    if not isinstance(text, np.ndarray):
        return text
    sample = text[:: -(-len(text) // 4096)]
    if np.count_nonzero(sample) >= _SPARSE_PAYS_BELOW * sample.size:
        return text
    return scipy.sparse.csr_array(text)
