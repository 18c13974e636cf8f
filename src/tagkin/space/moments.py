"""Sums over images, from which the semantic space is solved: they add, subtract and stream.

With K = k(X, S) − 1 shiftᵀ (N×r, kernel columns of the landmarks, less an estimate of their
mean) and text features T̂ (N×q), the sums are N, Σk, Σt, KᵀK, KᵀT̂ and T̂ᵀT̂, all float64.
"""

from __future__ import annotations

import itertools
import math
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.arrays import (
    Array,
    Turns,
    add_gram,
    as_block,
    diagonal_of,
    each_tile,
    in_tf32,
    like,
    matmul,
    mirror_lower,
    namespace,
    on_accelerator,
    row_blocks,
    side_by_side,
    smaller_blocks_when_full,
)
from tagkin.arrays.deferring import Deferring
from tagkin.space.columns import ColumnBlocks
from tagkin.space.gram import (
    LONGEST,
    LONGEST_THERE,
    LowerGram,
    gram,
    take_lower,
    tall_product,
    zeros_apart,
)
from tagkin.space.landmarks import Landmarks

__all__ = ["Moments", "first_sums", "sums_and_gram"]

# A dense product does about 10 times the multiplications a second of a sparse one.
_SPARSE_PAYS_BELOW = 0.1
# On x86-64 OpenBLAS makes KᵀK a tenth sooner where the entries of a column lie side by side (it
# puts K into its own order first). Products with sparse labels then have to be dense ones, which up
# to so many labels take less than is gained.
_ON_X86 = platform.machine().lower() in ("x86_64", "amd64")
_FEW_LABELS, _LANDMARKS_A_LABEL = 32, 32
_PART = 1024  # rows of float32 sums, which are added up in float64
_ROWS = 16
_SUMS = ("kernel_sum", "text_sum", "kernel_gram", "cross", "text_gram")


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
    def of(
        cls,
        X: Array,
        text: Any,
        landmarks: Landmarks,
        shift: Array,
        beside: Callable[[], None] | None = None,
        seen: Callable[[slice, Array], None] | None = None,
    ) -> Moments:
        """Sums over the rows of X (n×d) and text (n×q), in blocks.

        A block is float32 where the features are; its products are added up in float64. `beside`
        is called once, meanwhile where several threads are at work, and `seen` with some rows and
        their kernel columns, less the shift, by any of them.
        """
        r, d = landmarks.points.shape
        columns_of = landmarks.columns_less(shift)

        def columns(rows: slice, memory: np.ndarray | None) -> Array:
            K = columns_of(X[rows], range(rows.start, rows.stop), memory)
            if seen is not None:
                seen(rows, K)
            return K

        dtype = namespace(X).result_type(as_block(X[:1], finite=False), landmarks.points)
        text = _sparse_where_it_pays(text)
        by_columns = _ON_X86 and dtype == np.float32 and _has_few_labels(text, r)
        blocks = ColumnBlocks(columns, X, (X.shape[0], r), dtype, 8 * (r + d), by_columns)
        return cls._summed(blocks, text, shift, beside)

    @classmethod
    def of_columns(cls, columns: Array, text: Any, shift: Array) -> Moments:
        """As `of`, given the kernel columns (n×r) less the shift."""
        n, r = columns.shape
        given = ColumnBlocks(lambda rows, _: columns[rows], columns, (n, r), columns.dtype, 0)
        return cls._summed(given, _sparse_where_it_pays(text), shift)

    @classmethod
    def _summed(
        cls,
        blocks: ColumnBlocks,
        text: Any,
        shift: Array,
        beside: Callable[[], None] | None = None,
    ) -> Moments:
        moments = cls.zeros(shift, text.shape[1])
        meanwhile = [] if beside is None else [beside]
        if scipy.sparse.issparse(text):
            meanwhile.append(partial(moments._add_sparse_text, text))
        n_lanes = blocks.n_lanes(text)
        if n_lanes > 1:
            moments._add_in_lanes(blocks, text, n_lanes, meanwhile)
        else:
            for task in meanwhile:
                task()
            lower = LowerGram(moments.kernel_gram)
            for rows, K in blocks.of(slice(0, blocks.shape[0])):
                lower.add(K)
                moments._add_block(K, text[rows])
            lower.finish()
        return moments

    def _add_in_lanes(
        self, blocks: ColumnBlocks, text: Any, n_lanes: int, beside: list[Callable[[], None]]
    ) -> None:
        """Add all rows, each thread its share: products, and what is done to them in between.

        What is done beside has a thread of its own. Each lane has sums of its own, which are added
        in their order: the same number of threads gives the same sums, whichever is first.
        """
        n, r = blocks.shape
        lanes = [Moments.zeros(self.shift, text.shape[1]) for _ in range(n_lanes)]
        for lane in lanes:
            lane.kernel_gram = zeros_apart(r, blocks.dtype)
        n_parts = -(-n // (n_lanes * LONGEST))  # of a lane
        bounds = [n * part // (n_lanes * n_parts) for part in range(n_lanes * n_parts + 1)]
        parts = [slice(*pair) for pair in itertools.pairwise(bounds)]
        turns, total = Turns(n_lanes), np.asarray(self.kernel_gram)

        def sum_up(number: int) -> None:
            lane, first = lanes[number], number * n_parts
            single = np.asarray(lane.kernel_gram)
            with turns.taken_by(number):
                for part in range(first, first + n_parts):
                    if part > first:
                        with turns.next_of(number):
                            each_tile(partial(take_lower, total, single), r)
                    for rows, K in blocks.of(parts[part]):
                        add_gram(single, np.asarray(K))
                        lane._add_block(K, text[rows])

        def collect(rows: slice) -> None:
            for lane in lanes:
                total[rows, : rows.stop] += lane.kernel_gram[rows, : rows.stop]

        side_by_side([partial(sum_up, number) for number in range(n_lanes)], n_lanes, beside)
        each_tile(collect, r)
        mirror_lower(self.kernel_gram)
        for lane in lanes:
            self._combine(lane, 1, but="kernel_gram")

    def _add_block(self, K: Array, text: Any) -> None:
        """Add kernel columns K (n×r), less the shift, and text features (n×q).

        KᵀK is for others, and what sparse text features have among themselves for
        `_add_sparse_text`.
        """
        self.count += K.shape[0]
        if not scipy.sparse.issparse(text):
            exact = like(text, self.text_sum)
            self.text_sum += namespace(exact).sum(exact, axis=0)
            self.text_gram += gram(exact)
        by_columns = isinstance(K, np.ndarray) and K.strides[0] < K.strides[1]
        if on_accelerator(K) or (by_columns and _has_few_labels(text, K.shape[1])):
            self._add_cross_and_sums(K, like(text, K))
            return
        ones = namespace(K).ones(min(_PART, K.shape[0]), dtype=K.dtype, device=K.device)
        for first in range(0, K.shape[0], _PART):  # float32 sums of few rows, added in float64
            some = K[first : first + _PART]
            self.kernel_sum += matmul(ones[: some.shape[0]], some)
        few = scipy.sparse.issparse(text) and text.nnz < _SPARSE_PAYS_BELOW * math.prod(text.shape)
        if few and isinstance(K, np.ndarray):
            self.cross += (text.T.astype(K.dtype) @ K).T
        else:
            self.cross += matmul(K.T, like(text, K))

    def _add_sparse_text(self, text: Any) -> None:
        """Add the sums that sparse text features (n×q) have among themselves."""
        for rows in row_blocks(text.shape[0], 256 * (1 + text.nnz // text.shape[0])):
            some = text[rows].astype(np.float64)
            self.text_sum += like(np.asarray(some.sum(axis=0)).ravel(), self.text_sum)
            gram = (some.T @ some).tocoo()
            if isinstance(self.text_gram, np.ndarray):
                self.text_gram[gram.row, gram.col] += gram.data  # no entry is there twice
            else:
                self.text_gram += like(gram, self.text_gram)

    def _add_cross_and_sums(self, K: Array, text: Array) -> None:
        """Add KᵀT̂ and the sums of K by one product: a pass over K costs as much."""
        xp = namespace(K)
        n, q = text.shape
        # to a multiple of four, without which products are slow
        ones = xp.ones((n, 4 - q % 4), dtype=K.dtype, device=K.device)
        both = xp.concat([text, ones], axis=1)
        there = on_accelerator(K)
        sums = tall_product(K, both, LONGEST_THERE) if there else matmul(K.T, both)
        self.cross += sums[:, :q]
        self.kernel_sum += sums[:, q]

    def some(self, rows: np.ndarray | slice | None) -> Moments:
        """The sums by some of the landmarks alone, or by all for None."""
        if rows is None:
            return self
        return replace(
            self,
            shift=self.shift[rows],
            kernel_sum=self.kernel_sum[rows],
            kernel_gram=self.kernel_gram[rows][:, rows],
            cross=self.cross[rows],
        )

    def add(self, other: Moments) -> None:
        """Add the sums over other images (with the same shift)."""
        if self.count:
            self._combine(other, 1)
            return
        self.count = other.count
        for name in _SUMS:  # nothing to add to
            part, dtype = getattr(other, name), getattr(self, name).dtype
            setattr(self, name, namespace(part).astype(part, dtype, copy=True))

    def subtract(self, other: Moments) -> None:
        """Take images out again."""
        self._combine(other, -1)

    def _combine(self, other: Moments, sign: int, but: str = "") -> None:
        self.count += sign * other.count
        for name in _SUMS:
            if name == but:
                continue
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
        s = self.kernel_sum
        mean = s / self.count
        if isinstance(self.kernel_gram, np.ndarray):
            centred = np.empty_like(self.kernel_gram)
            sums = np.asarray(s), np.asarray(mean)
            each_tile(partial(_less_products, self.kernel_gram, *sums, centred), len(centred))
            return centred
        gram = self.kernel_gram - s[:, None] * mean[None, :]
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


def first_sums(X: Array, text: Any, landmarks: Landmarks) -> tuple[Landmarks, Array, Moments]:
    """Sums over the first images, whose kernel columns give the shift of all to come.

    They are by those landmarks that are independent of each other, which come first, with their
    k(S, S). On several threads, which they are is found meanwhile.
    """
    shared = isinstance(X, np.ndarray) and landmarks.kernel.max_rank(X.shape[1]) == math.inf
    if not shared:  # of a kernel of low rank, they may be far fewer
        landmarks, gram = landmarks.independent()
        return landmarks, gram, Moments.of(X, text, landmarks, landmarks.mean_columns(X))
    found: list[tuple[np.ndarray | None, Array]] = []
    sums = Moments.of(
        X,
        text,
        landmarks,
        landmarks.mean_columns(X),
        beside=lambda: found.append(landmarks.independent_rows()),
    )
    ((kept, gram),) = found
    return landmarks.some(kept), gram, sums.some(kept)


def sums_and_gram(X: np.ndarray, text: Any, landmarks: Landmarks) -> tuple[Moments, Array]:
    """Sums over images that the landmarks are among, and k(S, S): rows of the kernel columns.

    Whether the landmarks are independent of each other is not looked at.
    """
    numbers = np.asarray(landmarks.indices)
    order = np.argsort(numbers)
    numbers = numbers[order]
    gram = np.empty((len(order), len(order)))
    shift = landmarks.mean_columns(X)

    def keep(rows: slice, K: Array) -> None:
        some = slice(*np.searchsorted(numbers, (rows.start, rows.stop)))
        there = numbers[some] - rows.start
        # along columns that lie together, not across them
        among = np.take(K.T, there, axis=1).T if np.asarray(K).T.flags.c_contiguous else K[there]
        for landmark, row in zip(order[some], among, strict=True):
            before = slice(landmark + 1)
            np.add(row[before], shift[before], out=gram[landmark, before])

    sums = Moments.of(X, text, landmarks, shift, seen=keep)
    diagonal_of(gram)[...] = landmarks.kernel.diagonal(landmarks.points)
    return sums, mirror_lower(gram)


def _sparse_where_it_pays(text: Any) -> Any:
    """Text features as a sparse matrix, if they are on the host and most are zero."""
    if not isinstance(text, np.ndarray):
        return text
    some = text[:: -(-len(text) // 4096)]
    if np.count_nonzero(some) >= _SPARSE_PAYS_BELOW * some.size:
        return text
    return _as_sparse(text)


def _has_few_labels(text: Any, r: int) -> bool:
    """Whether a dense product of text features (n×q) with kernel columns (n×r) costs little."""
    q = text.shape[1]
    return not scipy.sparse.issparse(text) or q <= _FEW_LABELS + r // _LANDMARKS_A_LABEL


def _as_sparse(text: np.ndarray) -> Any:
    """As scipy.sparse.csr_array(text), in a third of the time."""
    n, q = text.shape
    found = np.flatnonzero(text != 0)
    whole = scipy.sparse.get_index_dtype(maxval=text.size)
    rows, columns = np.divmod(found.astype(whole), whole(q))
    bounds = np.zeros(n + 1, dtype=whole)
    np.cumsum(np.bincount(rows, minlength=n), out=bounds[1:])
    return scipy.sparse.csr_array((text.reshape(-1)[found], columns, bounds), shape=text.shape)


def _less_products(
    gram: np.ndarray, s: np.ndarray, mean: np.ndarray, out: np.ndarray, rows: slice
) -> None:
    """Some rows of gram − s meanᵀ (r×r), a few at a time, which stay in a core's cache."""
    for start in range(rows.start, rows.stop, _ROWS):
        part = slice(start, min(start + _ROWS, rows.stop))
        np.multiply(s[part, None], mean, out=out[part])
        np.subtract(gram[part], out[part], out=out[part])


def _norm(A: Array) -> Array:
    """The largest eigenvalue of a symmetric matrix, to some percent, by power iteration."""
    xp = namespace(A)
    v = xp.ones(A.shape[0], dtype=A.dtype, device=A.device)
    for _ in range(12):
        v = A @ (v / xp.linalg.vector_norm(v))
    return xp.linalg.vector_norm(v)
