"""Regularised logistic regression of many labels on one set of kernel columns.

For each label t it minimises, over w and an intercept b that is not regularised,

    Σᵢ ℓ(mᵢ) + λ/2 ‖w‖²,    m = (C − c̄) T w + b,

C (N×r) being kernel columns of the images against r landmarks, and C T features whose inner
products are the kernel. Labels are independent problems, solved side by side by conjugate
gradients: two products with these features per step, whatever the number of labels.

A label belongs on an image with probability σ(m). Where it does, it was forgotten with
probability e, unless somebody looked. So ℓ is

    −log σ(m)                                      where the image carries the label,
    −log(1 − σ(m))                                 where it was rejected,
    −log(1 − (1 − e) σ(m))                         where nothing was said,

and dℓ/dm = σ(m) − z, z being the probability that the label belongs: 1, 0, and, where nothing was
said, σ(m + log e). With e = 0 this is logistic regression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse
from array_api_compat import device

from tagkin.arrays import (
    Array,
    block_rows,
    eigh,
    like,
    matmul,
    namespace,
    on_accelerator,
    solve_triangular,
    to_numpy,
)

__all__ = ["Basis", "Columns", "LogisticFit", "fit_logistic", "orthogonal_basis"]

_LABEL_BYTES = 2**28  # of each of the few N×labels arrays: labels beyond are solved after these
_LINE_STEPS = 2
_CACHED = 2**17  # pairs of images and labels
_GO_ON = 0.75  # share of labels not yet done, from which on the others are put aside
_HELD = 2**30  # bytes of features that are kept while learning; more are made anew for each product


class Columns(Protocol):
    """Kernel columns (N×r), a block of images at a time, made anew every time."""

    n_images: int
    dtype: Any
    """Floating dtype of the columns."""

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Consecutive rows and their columns (n×r)."""
        ...


@dataclass(frozen=True)
class Basis:
    """Directions T (r×p) in which features are uncorrelated, as far as a sample of images says."""

    directions: Array
    """T, so that the features are (C − c̄) T."""
    mean: Array
    """c̄ (r,), in the sample."""
    squares: np.ndarray
    """Sums of squares of each feature over all N images, as estimated, shape (p,)."""


class LogisticFit(NamedTuple):
    """Scores are ``C @ coef + intercept``."""

    coef: np.ndarray
    """Shape (r, D), in float64."""
    intercept: np.ndarray
    """Shape (D,)."""
    n_steps: int
    """Steps taken for the labels that took longest."""


def orthogonal_basis(sample: Array, gram_factor: Array, n_images: int, least: float) -> Basis:
    """Directions from the columns (n×r) of a sample, given L with L Lᵀ = k(S, S).

    Those along which the sum of squares over all images is below `least` are left out. They are
    orthogonal in float64, and uncorrelated in the precision of the sample.
    """
    xp = namespace(sample)
    mean = xp.mean(sample, axis=0, dtype=xp.float64)
    identity = xp.eye(gram_factor.shape[0], dtype=xp.float64, device=gram_factor.device)
    inverse = solve_triangular(gram_factor, identity, transposed=True)  # L⁻ᵀ
    features = matmul(sample - like(mean, sample), like(inverse, sample))
    products = xp.astype(matmul(features.T, features), xp.float64)
    squares, vectors = eigh(products * (n_images / sample.shape[0]))
    kept = to_numpy(squares) > least
    if not kept.any():
        kept[-1] = True
    index = xp.asarray(np.flatnonzero(kept), device=sample.device)
    return Basis(matmul(inverse, vectors[:, index]), mean, to_numpy(squares)[kept])


def fit_logistic(
    columns: Columns,
    basis: Basis,
    labels: scipy.sparse.csr_array,
    regularization: float,
    *,
    forgotten: float = 0.0,
    rejected: scipy.sparse.csr_array | None = None,
    tolerance: float = 1e-2,
    max_steps: int = 100,
) -> LogisticFit:
    """Coefficients for labels (N×D), each of which is on some images and not on all.

    Parameters
    ----------
    forgotten : float
        e: of the images that a label belongs on, the share that does not carry it.
    rejected : CSR array of shape (N, D), optional
        Not 0 where a label is known not to belong; none that an image carries.
    tolerance : float
        A label is done when the gradient, in the metric of the preconditioner, has come down to
        this share of what it was at first.
    """
    r, (n, d) = basis.mean.shape[0], labels.shape
    share = np.bincount(labels.indices, minlength=d) / n
    coef, intercept, n_steps = np.zeros((r, d)), np.log(share) - np.log1p(-share), 0
    width = max(1, _LABEL_BYTES // (4 * n))
    features = _Features(columns, basis)
    for some in (slice(start, start + width) for start in range(0, d, width)):
        refused = None if rejected is None or forgotten == 0 else rejected[:, some].tocsr()
        those = labels if width >= d else labels[:, some]
        problem = _Problem(features, those, refused, regularization, forgotten)
        coef[:, some], intercept[some], steps = problem.solved(
            intercept[some], tolerance, max_steps
        )
        n_steps = max(n_steps, steps)
    return LogisticFit(coef, intercept, n_steps)


class _Features:
    """(C − c̄) T, shape (N, p): kept where memory allows, for they are fewer than the columns.

    Else products are with the columns, and with T before or after.
    """

    def __init__(self, columns: Columns, basis: Basis):
        self.n_images, self._columns, self.squares = columns.n_images, columns, basis.squares
        xp = namespace(basis.directions)
        # the columns are no more precise than that
        self._directions = xp.astype(basis.directions, columns.dtype)
        self._mean = like(basis.mean, self._directions)
        self._exact = to_numpy(basis.directions).astype(np.float64), to_numpy(basis.mean)
        size = 4 * self.n_images * self._directions.shape[1]
        self._kept: list[tuple[slice, Array]] | None = None
        if size <= _HELD or on_accelerator(self._directions):
            self._kept = [
                (rows, matmul(C - self._mean, self._directions)) for rows, C in columns.blocks()
            ]

    @property
    def reference(self) -> Array:
        """An array of the kind, on the device and in the precision of the features."""
        return self._directions

    def margins(self, w: np.ndarray, b: np.ndarray) -> Array:
        """(C − c̄) T w + b, shape (N, B)."""
        xp = namespace(self.reference)
        coef, offset = like(w, self.reference), like(b, self.reference)
        if self._kept is None:
            coef = matmul(self._directions, coef)
            offset = offset - matmul(self._mean[None], coef)[0]
        shape = self.n_images, coef.shape[1]
        out = xp.empty(shape, dtype=coef.dtype, device=device(coef))
        for rows, block in self._blocks():
            matmul(block, coef, out=out[rows])
            out[rows] += offset
        return out

    def gradient(
        self, errors: Callable[[slice], tuple[Array, np.ndarray]], n_labels: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sums (p×B) of errors times features, and those (B,) of errors.

        `errors` gives those of some images (n×B), and their sums.
        """
        n_columns = self._directions.shape[0 if self._kept is None else 1]
        by_column, total = np.zeros((n_columns, n_labels)), np.zeros(n_labels)
        for rows, block in self._blocks():
            those, sums = errors(rows)
            by_column += to_numpy(matmul(block.T, those))
            total += sums
        if self._kept is not None:
            return by_column, total
        centred = by_column - np.outer(to_numpy(self._mean), total)
        return to_numpy(matmul(self._directions.T, like(centred, self.reference))), total

    def of_columns(self, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (r×B) and intercepts (B,) for the columns themselves."""
        directions, mean = self._exact
        coef = directions @ w
        return coef, b - mean @ coef

    def _blocks(self) -> Iterable[tuple[slice, Array]]:
        return self._columns.blocks() if self._kept is None else self._kept


@dataclass(frozen=True)
class _Said:
    """Where something was said of a label (N×B): it is there, or somebody rejected it."""

    images: Array
    labels: Array
    """Of which images, ascending, and of which labels, shape (m,)."""
    present: Array
    """1 where the label is there, 0 where it was rejected, shape (m,)."""
    ends: np.ndarray
    """How many there are before each image, shape (N + 1,)."""

    @classmethod
    def of(
        cls,
        labels: scipy.sparse.csr_array,
        rejected: scipy.sparse.csr_array | None,
        reference: Array,
    ) -> _Said:
        """Of labels and rejections (N×B), on the device and in the precision of `reference`."""
        said = labels if rejected is None else scipy.sparse.csr_array(labels + rejected)
        images = np.repeat(np.arange(said.shape[0]), np.diff(said.indptr))
        present = np.ones(said.nnz)
        if rejected is not None:
            present = np.asarray(labels[images, said.indices]).ravel() > 0
        xp = namespace(reference)
        where = [xp.asarray(part, device=device(reference)) for part in (images, said.indices)]
        return cls(where[0], where[1], like(present, reference), said.indptr)

    def put(self, errors: Array, p: Array, rows: slice) -> None:
        """Where something was said of some of the images, p less what was said (n×B), in place."""
        some = slice(int(self.ends[rows.start]), int(self.ends[rows.stop]))
        where = self.images[some] - rows.start, self.labels[some]
        errors[where] = p[where] - self.present[some]


class _Problem:
    """The labels (N×B) that are solved side by side."""

    def __init__(
        self,
        features: _Features,
        labels: scipy.sparse.csr_array,
        rejected: scipy.sparse.csr_array | None,
        regularization: float,
        forgotten: float,
    ):
        self.features, self.reference = features, features.reference
        self.labels, self.rejected = labels.tocsr(), rejected
        self.regularization, self.forgotten = regularization, forgotten
        self.said = _Said.of(self.labels, rejected, self.reference)
        self.bends: Any = None  # d²ℓ/dm² (N×B) at the margins of the last gradient, at most
        share = np.bincount(labels.indices, minlength=labels.shape[1]) / labels.shape[0]
        spread = share * (1 - share)
        self.metric = spread * features.squares[:, None] + regularization  # (p, B)
        self.metric_b = labels.shape[0] * spread

    def solved(
        self, intercept: np.ndarray, tolerance: float, max_steps: int
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Coefficients (r×B) for the columns, intercepts (B,), and how many steps it took."""
        p, width = self.metric.shape
        w, b = np.zeros((p, width)), intercept.copy()
        margins = self._at_first(b)
        direction_w, direction_b = np.zeros_like(w), np.zeros_like(b)
        before, first, old = np.ones(width), None, None
        done_w, done_b, left = np.zeros_like(w), np.zeros_like(b), np.arange(width)
        step = 0
        for step in range(1, max_steps + 1):  # noqa: B007 (its last value is told)
            gw, gb = self._gradient(margins, w)
            zw, zb = gw / self.metric, gb / self.metric_b
            size = (gw * zw).sum(axis=0) + gb * zb
            first = size if first is None else first
            open_ = size > tolerance**2 * first
            if not open_.any():
                break
            if np.count_nonzero(open_) <= _GO_ON * len(open_):  # the others cost no more work
                done_w[:, left], done_b[left] = w, b
                left, some = left[open_], np.flatnonzero(open_)
                margins = self._keep(some, margins)
                w, gw, zw, direction_w = (part[:, some] for part in (w, gw, zw, direction_w))
                b, gb, zb, direction_b = (part[some] for part in (b, gb, zb, direction_b))
                size, first, before, open_ = (part[some] for part in (size, first, before, open_))
                old = None if old is None else (old[0][:, some], old[1][some])
            turn = np.zeros(len(left))
            if old is not None:  # Polak and Ribière's rule, begun anew where it points back
                turn = (((gw - old[0]) * zw).sum(axis=0) + (gb - old[1]) * zb) / before
            turn = np.maximum(turn, 0)
            direction_w, direction_b = turn * direction_w - zw, turn * direction_b - zb
            uphill = (direction_w * gw).sum(axis=0) + direction_b * gb >= 0
            direction_w[:, uphill], direction_b[uphill] = -zw[:, uphill], -zb[uphill]
            direction_w[:, ~open_], direction_b[~open_] = 0, 0
            old, before = (gw, gb), np.maximum(size, 1e-300)
            along = self.features.margins(direction_w, direction_b)
            uphill_by = (direction_w * gw).sum(axis=0) + direction_b * gb
            length = self._line_minimum(margins, along, w, direction_w, uphill_by)
            w += length * direction_w
            b += length * direction_b
            for rows in self._rows():
                margins[rows] += like(length, margins) * along[rows]
        done_w[:, left], done_b[left] = w, b
        return *self.features.of_columns(done_w, done_b), step

    def _at_first(self, intercept: np.ndarray) -> Array:
        """Margins (N×B) where all coefficients are zero."""
        xp = namespace(self.reference)
        b = like(intercept, self.reference)
        return xp.asarray(xp.broadcast_to(b, self.labels.shape), copy=True)

    def _keep(self, some: np.ndarray, margins: Array) -> Array:
        """Go on with some of the labels; their columns of the margins (N×B)."""
        self.labels = self.labels[:, some]
        self.rejected = None if self.rejected is None else self.rejected[:, some]
        self.said = _Said.of(self.labels, self.rejected, self.reference)
        self.metric, self.metric_b = self.metric[:, some], self.metric_b[some]
        xp = namespace(margins)
        index = xp.asarray(some, device=margins.device)
        self.bends = xp.take(self.bends, index, axis=1)
        return xp.take(margins, index, axis=1)

    def _gradient(self, margins: Array, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        xp = namespace(margins)
        if self.bends is None:
            self.bends = xp.empty_like(margins)

        def errors_of(rows: slice) -> tuple[Array, np.ndarray]:
            errors, total = xp.empty_like(margins[rows]), np.zeros(w.shape[1])
            for some in self._rows(rows):
                here = slice(some.start - rows.start, some.stop - rows.start)
                errors[here], p = self._errors(margins[some], some)
                self.bends[some] = p * (1 - p)
                total += _column_sums(errors[here])
            return errors, total

        gradient, total = self.features.gradient(errors_of, w.shape[1])
        return gradient + self.regularization * w, total

    def _line_minimum(
        self,
        margins: Array,
        along: Array,
        w: np.ndarray,
        direction: np.ndarray,
        uphill_by: np.ndarray,
    ) -> np.ndarray:
        """How far to go (B,): Newton's steps, kept between known bounds.

        They are as for a convex function; where nothing was said it bends less, never more.
        `uphill_by` (B,) is the slope at the start.
        """
        slope, bend = (w * direction).sum(axis=0), (direction * direction).sum(axis=0)
        length = np.zeros(w.shape[1])
        low, high = np.zeros_like(length), np.full_like(length, np.inf)
        falls, rises = uphill_by, np.zeros_like(length)  # how steep it is at either bound
        for step in range(_LINE_STEPS):
            if step == 0:
                first, second = uphill_by, self._bend_along(along)
            else:
                first, second = self._along(margins, along, length)
                first += self.regularization * (slope + length * bend)
            second += self.regularization * bend
            below = first < 0
            low, falls = np.where(below, length, low), np.where(below, first, falls)
            high, rises = np.where(below, high, length), np.where(below, rises, first)
            newton = length - first / np.maximum(second, 1e-300)
            # Beyond the minimum the loss may bend less than before it, and Newton's step lead back
            # to where it came from: near a bound, rather where a straight slope between both is 0.
            straight = low + (high - low) * falls / np.minimum(falls - rises, -1e-300)
            near = (newton < (3 * low + straight) / 4) | (newton > (straight + 3 * high) / 4)
            length = np.where(np.isfinite(high) & near, straight, np.maximum(newton, low))
        return length

    def _bend_along(self, along: Array) -> np.ndarray:
        """Second derivatives (B,) of the loss along a direction, at the last gradient."""
        second = np.zeros(along.shape[1])
        for rows in self._rows():
            v = along[rows]
            second += _column_sums(self.bends[rows] * v * v)
        return second

    def _along(
        self, margins: Array, along: Array, length: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives (B,) of the loss at so far along a direction."""
        first, second = np.zeros(len(length)), np.zeros(len(length))
        far = like(length, margins)
        for rows in self._rows():
            v = along[rows]
            errors, p = self._errors(margins[rows] + far * v, rows)
            first += _column_sums(errors * v)
            # where nothing was said the loss bends less: this is the most that it does
            second += _column_sums(p * (1 - p) * v * v)
        return first, second

    def _errors(self, margins: Array, rows: slice) -> tuple[Array, Array]:
        """dℓ/dm (n×B), and the logistic function of the margins."""
        xp = namespace(margins)
        with np.errstate(over="ignore"):  # of a certain no: 1 / (1 + ∞) is 0
            odds_against = xp.exp(-margins)
        p = 1 / (1 + odds_against)
        errors = xp.asarray(p, copy=True)
        if self.forgotten:  # where nothing was said it belongs with probability σ(m + log e)
            errors -= self.forgotten / (self.forgotten + odds_against)
        self.said.put(errors, p, rows)
        return errors, p

    def _rows(self, among: slice | None = None) -> Iterator[slice]:
        """A few of the images at a time: what is done with them stays in a core's cache."""
        n, width = self.labels.shape
        among = slice(0, n) if among is None else among
        step = block_rows(32 * width, self.reference)
        if not on_accelerator(self.reference):
            step = min(step, max(1, _CACHED // width))
        for start in range(among.start, among.stop, step):
            yield slice(start, min(start + step, among.stop))


def _column_sums(values: Array) -> np.ndarray:
    """Sums (B,) of each column, in float64; on the host of so few that they may be float32."""
    xp = namespace(values)
    dtype = xp.float64 if on_accelerator(values) else values.dtype
    return np.asarray(to_numpy(xp.sum(values, axis=0, dtype=dtype)), dtype=np.float64)
