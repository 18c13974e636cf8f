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
from tagkin.arrays.linalg import in_tf32, matmul
from tagkin.arrays.namespaces import LabelMatrix, is_sparse
from tagkin.arrays.threads import n_threads_for, run_parallel
from tagkin.records.forms import storable
from tagkin.records.rules import Floats, Number, Whole
from tagkin.space.space import Landmarks

__all__ = ["Moments", "first_sums"]

_Columns: TypeAlias = Callable[[slice], Array]

# A dense product does about 10 times the multiplications a second of a sparse one.
_SPARSE_PAYS_BELOW = 0.1
_PART = 1024  # rows that are summed in float32; these sums are added in float64
_LONGEST = 16_384  # rows; float32 sums of products over more rows would round too much
# On a device: rows whose products are added there (tensor cores truncate sums downwards), columns
# of KᵀK at a time, and entries of products at a time.
_LONGEST_THERE, _PANEL, _AT_ONCE = 4096, 512, 2**26
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

        def columns(rows: slice) -> Array:
            return landmarks.columns(X[rows], rows=range(rows.start, rows.stop), less=shift)

        r, d = landmarks.points.shape
        if weights is None:
            return cls._sum_blocks(columns, X, text, shift, 8 * (r + d))
        roots = np.sqrt(weights)

        def weighted(rows: slice) -> Array:
            K = columns(rows)
            return K * like(roots[rows], K)[:, None]

        wide = _weigh_text(text, roots, shift)
        sums = cls._sum_blocks(weighted, X, wide, shift, 8 * (r + d))
        # products of the last text feature, √ω, are the sums of all others
        return replace(
            sums,
            weight=float(sums.text_gram[-1, -1]),
            kernel_sum=sums.cross[:, -1],
            text_sum=sums.text_gram[-1, :-1],
            cross=sums.cross[:, :-1],
            text_gram=sums.text_gram[:-1, :-1],
        )

    @classmethod
    def of_columns(cls, columns: Array, text: LabelMatrix, shift: Array) -> Moments:
        """Sum as `of` does, given the kernel columns (n×r) minus the shift."""
        return cls._sum_blocks(
            lambda rows: columns[rows], columns, text, shift, 8 * columns.shape[1]
        )

    @classmethod
    def _sum_blocks(
        cls, columns: _Columns, where: Array, text: LabelMatrix, shift: Array, bytes_per_row: int
    ) -> Moments:
        """Sum blocks of rows of arrays on the device of `where`.

        Each thread sums its own rows. The sums are added in the order of the rows, so they depend
        on the number of threads only.
        """
        text = _make_sparse_if_faster(text)
        n, r, q = where.shape[0], shift.shape[0], text.shape[1]
        total = cls.zeros(shift, q)
        n_threads = 1
        if isinstance(where, np.ndarray) and 8 * r * (r + q) <= 4 * bytes_allowed():
            n_threads = n_threads_for(n * r * r // 2)
        bounds = [n * part // n_threads for part in range(n_threads + 1)]
        parts = [slice(*pair) for pair in itertools.pairwise(bounds)]

        longest = n if on_accelerator(where) else _LONGEST

        def sum_up(part: slice, sums: Moments) -> Moments:
            for block in row_blocks(part.stop - part.start, bytes_per_row, where):
                for start in range(block.start, block.stop, longest):
                    stop = min(start + longest, block.stop)
                    rows = slice(part.start + start, part.start + stop)
                    sums._add_block(columns(rows), text[rows])
            return sums

        others = [cls.zeros(shift, q) for _ in parts[1:]]
        tasks = [partial(sum_up, *pair) for pair in zip(parts, [total, *others], strict=True)]
        for sums in run_parallel(tasks, n_threads)[1:]:
            total.add(sums)
        if is_sparse(text):
            total._add_sparse_text(text)
        if on_accelerator(where):
            xp = namespace(total.kernel_gram)
            lower = total.kernel_gram
            total.kernel_gram = xp.tril(lower) + xp.tril(lower, k=-1).T
        return total

    def _add_block(self, K: Array, text: LabelMatrix) -> None:
        """Add kernel columns K (n×r), minus the shift, and text features (n×q).

        `_add_sparse_text` adds the sums of sparse text features alone.
        """
        self.count += K.shape[0]
        self.weight += K.shape[0]
        if not is_sparse(text):
            exact = like(text, self.text_sum)
            self.text_sum += namespace(exact).sum(exact, axis=0)
            self.text_gram += _tall_product(exact, exact, _PART)
        if on_accelerator(K):
            self._add_on_device(K, like(text, K))
            return
        self.kernel_gram += matmul(K.T, K)
        ones = namespace(K).ones(min(_PART, K.shape[0]), dtype=K.dtype, device=K.device)
        for first in range(0, K.shape[0], _PART):  # float32 sums of few rows, added in float64
            rows = K[first : first + _PART]
            self.kernel_sum += matmul(ones[: rows.shape[0]], rows)
        few = is_sparse(text) and text.nnz < _SPARSE_PAYS_BELOW * math.prod(text.shape)
        if few and isinstance(K, np.ndarray):
            self.cross += (text.T.astype(K.dtype) @ K).T
        else:
            self.cross += matmul(K.T, like(text, K))

    def _add_on_device(self, K: Array, text: Array) -> None:
        """Add KᵀK in panels of its lower triangle, and KᵀT̂ with the sums of K by one product.

        The upper triangle of KᵀK is filled at the end.
        """
        xp = namespace(K)
        n, q = text.shape
        for start in range(0, K.shape[1], _PANEL):
            rows, columns = slice(start, start + _PANEL), slice(0, start + _PANEL)
            self.kernel_gram[rows, columns] += _tall_product(
                K[:, rows], K[:, columns], _LONGEST_THERE
            )
        # a multiple of four columns, because other products are slow
        ones = xp.ones((n, 4 - q % 4), dtype=K.dtype, device=K.device)
        sums = _tall_product(K, xp.concat([text, ones], axis=1), _LONGEST_THERE)
        self.cross += sums[:, :q]
        self.kernel_sum += sums[:, q]

    def _add_sparse_text(self, text: scipy.sparse.csr_array) -> None:
        """Add Σt and T̂ᵀT̂ of sparse text features (n×q)."""
        for rows in row_blocks(text.shape[0], 256 * (1 + text.nnz // text.shape[0])):
            block = text[rows].astype(np.float64)
            self.text_sum += like(np.asarray(block.sum(axis=0)).ravel(), self.text_sum)
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
        """Return Σ (k − k̄)(k − k̄)ᵀ, shape (r, r).

        Sums of products in TF32 are off by a matrix of norm 2⁻²² ‖KᵀK‖ at most (measured: half of
        that). This norm is added to the diagonal to keep the matrix positive definite.
        """
        s = self.kernel_sum
        gram = self.kernel_gram - s[:, None] * (s[None, :] / self.weight)
        if in_tf32(gram):
            i = namespace(gram).arange(gram.shape[0], device=gram.device)
            gram[i, i] += 2.0**-22 * _estimate_norm(gram)
        return gram

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
    landmarks, gram = landmarks.independent()
    return landmarks, gram, Moments.of(X, text, landmarks, landmarks.mean_columns(X), weights)


def _weigh_text(text: LabelMatrix, roots: np.ndarray, shift: Array) -> LabelMatrix:
    """Return text features (n×q) times √ω, and √ω as one more, in float64 where the shift is."""
    text = _make_sparse_if_faster(text)
    if is_sparse(text):
        column = scipy.sparse.csr_array(roots[:, None])
        return scipy.sparse.hstack([text.multiply(roots[:, None]), column], format="csr")
    column = like(roots, shift)[:, None]
    return namespace(shift).concat([like(text, shift) * column, column], axis=1)


def _make_sparse_if_faster(text: LabelMatrix) -> LabelMatrix:
    """Return text features as a sparse matrix if they are on the host and most are zero."""
    if not isinstance(text, np.ndarray):
        return text
    sample = text[:: -(-len(text) // 4096)]
    if np.count_nonzero(sample) >= _SPARSE_PAYS_BELOW * sample.size:
        return text
    return scipy.sparse.csr_array(text)


def _tall_product(A: Array, B: Array, longest: int) -> Array:
    """Return AᵀB of many rows (n×a, n×b); a device multiplies parts of `longest` rows at once."""
    if not on_accelerator(A):
        return matmul(A.T, B)
    xp = namespace(A)
    whole = A.shape[0] - A.shape[0] % longest
    product = A[whole:].T @ B[whole:]
    step = longest * max(1, _AT_ONCE // math.prod(product.shape))
    for start in range(0, whole, step):
        rows = slice(start, min(start + step, whole))
        left, right = (M[rows].reshape(-1, longest, M.shape[1]) for M in (A, B))
        product += xp.sum(xp.permute_dims(left, (0, 2, 1)) @ right, axis=0)
    return product


def _estimate_norm(A: Array) -> Array:
    """Return the largest eigenvalue of a symmetric matrix to a few percent, by power iteration."""
    xp = namespace(A)
    v = xp.ones(A.shape[0], dtype=A.dtype, device=A.device)
    for _ in range(12):
        v = A @ (v / xp.linalg.vector_norm(v))
    return xp.linalg.vector_norm(v)
