"""Regularised logistic regression of many labels on one set of kernel columns.

For each label t it minimises, over w and an intercept b that is not regularised,

    Σᵢ ℓ(mᵢ) + λ/2 ‖w‖²,    m = (C − c̄) T w + b,

C (N×r) are kernel columns of the images against r landmarks, and the inner products of the
features C T are the kernel. Labels are independent problems. Conjugate gradients solve them
together, with two products with these features per step for any number of labels.

A label belongs on an image with probability σ(m). A label that belongs was forgotten with
probability e, unless a person checked the image. So ℓ is

    −log σ(m)                                      if the image has the label,
    −log(1 − σ(m))                                 if the label was rejected,
    −log(1 − (1 − e) σ(m))                         if the label was not observed,

and dℓ/dm = σ(m) − z with z the probability that the label belongs: 1, 0, and σ(m + log e) if the
label was not observed. With e = 0 this is logistic regression. If the image is incomplete and
nothing is known of the label, dℓ/dm = ω (σ(m) − p): p is the expected label, ω its weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse
from array_api_compat import device

from tagkin.arrays import Array, block_rows, like, namespace, on_accelerator, to_numpy
from tagkin.arrays.blocks import bytes_allowed, cached_rows
from tagkin.transfer.logistic_features import Basis, Columns, Features

__all__ = ["LogisticFit", "Targets", "Unknown", "fit_logistic"]


class LogisticFit(NamedTuple):
    """Scores are ``C @ coef + intercept``."""

    coef: np.ndarray
    """Shape (r, D), in float64."""
    intercept: np.ndarray
    """Shape (D,)."""
    n_steps: int
    """Steps of the slowest labels."""


def fit_logistic(
    columns: Columns,
    basis: Basis,
    targets: Targets,
    regularization: float,
    *,
    forgotten: float = 0.0,
    tolerance: float = 1e-2,
) -> LogisticFit:
    """Fit coefficients for labels (N×D); each label is on some images but not on all.

    Parameters
    ----------
    forgotten : float
        e: the share of images without the label among those that it belongs on.
    tolerance : float
        A label is solved when its gradient, in the metric of the preconditioner, is at most this
        share of its first gradient.
    """
    r, (n, d) = basis.mean.shape[0], targets.labels.shape
    share = _shares(targets)
    coef, intercept, n_steps = np.zeros((r, d)), np.log(share) - np.log1p(-share), 0
    # of each N×labels array; further labels are solved in a later block
    width = max(1, 2 * bytes_allowed(basis.mean) // (4 * n))
    features = Features(columns, basis)
    if forgotten == 0 and targets.unknown is None:  # a rejection is like an absent label
        targets = replace(targets, rejected=None)
    for block in (slice(start, start + width) for start in range(0, d, width)):
        part = targets if width >= d else targets.of_labels(block)
        problem = _Problem(features, part, regularization, forgotten)
        coef[:, block], intercept[block], steps = problem.solve(intercept[block], tolerance)
        n_steps = max(n_steps, steps)
    return LogisticFit(coef, intercept, n_steps)


@dataclass(frozen=True)
class Unknown:
    """Labels that incomplete images neither have nor reject.

    Their loss is that of the expected label, with a weight.
    """

    weights: np.ndarray
    """Weight of each image's absent labels, shape (N,): 1 if it is complete."""
    expected: scipy.sparse.csr_array
    """Expected probability of each label, shape (N, D); 0 for complete images."""

    def of_labels(self, columns: slice | np.ndarray) -> Unknown:
        """Return the weights and expectations of some labels."""
        return Unknown(self.weights, self.expected[:, columns].tocsr())


@dataclass(frozen=True)
class Targets:
    """Labels to fit: present, rejected, unknown, or else presumed absent."""

    labels: scipy.sparse.csr_array
    """Labels of the images, shape (N, D)."""
    rejected: scipy.sparse.csr_array | None = None
    """Nonzero for labels known not to belong, shape (N, D). No image has a rejected label."""
    unknown: Unknown | None = None
    """The labels of incomplete images."""

    def of_labels(self, columns: slice | np.ndarray) -> Targets:
        """Return the targets of some labels."""
        return Targets(
            self.labels[:, columns].tocsr(),
            None if self.rejected is None else self.rejected[:, columns].tocsr(),
            None if self.unknown is None else self.unknown.of_labels(columns),
        )


def _shares(targets: Targets) -> np.ndarray:
    """Return the share of images with each label, including expected labels, shape (D,)."""
    labels, rejected, unknown = targets.labels, targets.rejected, targets.unknown
    n, d = labels.shape
    present = np.bincount(labels.indices, minlength=d).astype(float)
    if unknown is None:
        return present / n
    lost = 1 - unknown.weights
    known = n - lost.sum()
    for observed in (labels, rejected):
        if observed is not None:  # an observed label of an incomplete image has weight 1
            known = known + np.asarray((observed > 0).astype(float).T @ lost).ravel()
    scaled = unknown.expected.multiply(unknown.weights[:, None])
    total = present + np.asarray(scaled.sum(axis=0)).ravel()
    return np.clip(total / np.maximum(known, 1), 0.5 / n, 1 - 0.5 / n)


@dataclass(frozen=True)
class _ObservedLabels:
    """Observed labels (N×B): present or rejected."""

    images: Array
    labels: Array
    """Images, ascending, and labels of the observations, shape (m,)."""
    present: Array
    """1 for present, 0 for rejected labels, shape (m,)."""
    ends: np.ndarray
    """Number of observations before each image, shape (N + 1,)."""

    @classmethod
    def of(
        cls,
        labels: scipy.sparse.csr_array,
        rejected: scipy.sparse.csr_array | None,
        reference: Array,
    ) -> _ObservedLabels:
        """Collect labels and rejections (N×B), with the device and precision of `reference`."""
        observed = labels if rejected is None else scipy.sparse.csr_array(labels + rejected)
        images = np.repeat(np.arange(observed.shape[0]), np.diff(observed.indptr))
        present = np.ones(observed.nnz)
        if rejected is not None:
            present = np.asarray(labels[images, observed.indices]).ravel() > 0
        xp = namespace(reference)
        positions = [
            xp.asarray(part, device=device(reference)) for part in (images, observed.indices)
        ]
        return cls(positions[0], positions[1], like(present, reference), observed.indptr)

    def put(self, errors: Array, p: Array, rows: slice) -> None:
        """Set the errors (n×B) of observed labels to p minus the observation, in place."""
        entries = slice(int(self.ends[rows.start]), int(self.ends[rows.stop]))
        positions = self.images[entries] - rows.start, self.labels[entries]
        errors[positions] = p[positions] - self.present[entries]

    def put_bends(self, bends: Array, p: Array, rows: slice) -> None:
        """Set the second derivatives (n×B) of observed labels, in place."""
        entries = slice(int(self.ends[rows.start]), int(self.ends[rows.stop]))
        positions = self.images[entries] - rows.start, self.labels[entries]
        bends[positions] = p[positions] * (1 - p[positions])


class _Problem:
    """Labels (N×B) that are solved together."""

    def __init__(
        self,
        features: Features,
        targets: Targets,
        regularization: float,
        forgotten: float,
    ):
        self.features, self.reference = features, features.reference
        self.targets = targets
        self.regularization, self.forgotten = regularization, forgotten
        self.observed = _ObservedLabels.of(targets.labels, targets.rejected, self.reference)
        share = _shares(targets)
        spread = share * (1 - share)
        self.metric = spread * features.squares[:, None] + regularization  # (p, B)
        self.metric_b = targets.labels.shape[0] * spread

    def solve(self, intercept: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray, int]:
        """Return coefficients (r×B) for the columns, intercepts (B,), and the number of steps."""
        p, width = self.metric.shape
        w, b = np.zeros((p, width)), intercept.copy()
        xp = namespace(self.reference)
        levels = xp.broadcast_to(like(b, self.reference), self.targets.labels.shape)
        margins = xp.asarray(levels, copy=True)  # for coefficients of 0
        # upper bound of d²ℓ/dm² (N×B) at the margins of the last gradient
        self.bends = xp.empty_like(margins)
        direction_w, direction_b = np.zeros_like(w), np.zeros_like(b)
        before, first, old = np.ones(width), None, None
        done_w, done_b, left = np.zeros_like(w), np.zeros_like(b), np.arange(width)
        step = 0
        for step in range(1, 101):  # noqa: B007 (its last value is returned)
            gw, gb = self._gradient(margins, w)
            zw, zb = gw / self.metric, gb / self.metric_b
            size = (gw * zw).sum(axis=0) + gb * zb
            first = size if first is None else first
            open_ = size > tolerance**2 * first
            if not open_.any():
                break
            if not open_.all():  # solved labels cost no more work
                done_w[:, left], done_b[left] = w, b
                left, columns = left[open_], np.flatnonzero(open_)
                margins = self._restrict(columns, margins)
                w, gw, zw, direction_w = (part[:, columns] for part in (w, gw, zw, direction_w))
                b, gb, zb, direction_b = (part[columns] for part in (b, gb, zb, direction_b))
                size, first, before = (part[columns] for part in (size, first, before))
                old = None if old is None else (old[0][:, columns], old[1][columns])
            turn = np.zeros(len(left))
            if old is not None:  # Polak and Ribière's rule, restarted if it points back
                turn = (((gw - old[0]) * zw).sum(axis=0) + (gb - old[1]) * zb) / before
            turn = np.maximum(turn, 0)
            direction_w, direction_b = turn * direction_w - zw, turn * direction_b - zb
            uphill = (direction_w * gw).sum(axis=0) + direction_b * gb >= 0
            direction_w[:, uphill], direction_b[uphill] = -zw[:, uphill], -zb[uphill]
            old, before = (gw, gb), np.maximum(size, 1e-300)
            along = self.features.margins(direction_w, direction_b)
            uphill_by = (direction_w * gw).sum(axis=0) + direction_b * gb
            length = self._line_minimum(margins, along, w, direction_w, uphill_by)
            w += length * direction_w
            b += length * direction_b
            for rows in self._row_blocks():
                margins[rows] += like(length, margins) * along[rows]
        done_w[:, left], done_b[left] = w, b
        return *self.features.of_columns(done_w, done_b), step

    def _restrict(self, columns: np.ndarray, margins: Array) -> Array:
        """Continue with these labels only; return their columns of the margins (N×B)."""
        self.targets = self.targets.of_labels(columns)
        self.observed = _ObservedLabels.of(
            self.targets.labels, self.targets.rejected, self.reference
        )
        self.metric, self.metric_b = self.metric[:, columns], self.metric_b[columns]
        xp = namespace(margins)
        index = xp.asarray(columns, device=margins.device)
        self.bends = xp.take(self.bends, index, axis=1)
        return xp.take(margins, index, axis=1)

    def _gradient(self, margins: Array, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        xp = namespace(margins)

        def errors_of(rows: slice) -> tuple[Array, np.ndarray]:
            errors, total = xp.empty_like(margins[rows]), np.zeros(w.shape[1])
            for part in self._row_blocks(rows):
                inside = slice(part.start - rows.start, part.stop - rows.start)
                errors[inside], self.bends[part] = self._errors(margins[part], part)
                total += _column_sums(errors[inside])
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
        """Return the step length (B,) of least loss, by two of Newton's steps.

        The second derivatives are upper bounds, so steps are rather too short than too long.
        `uphill_by` (B,) is the slope at the start.
        """
        slope, bend = (w * direction).sum(axis=0), (direction * direction).sum(axis=0)
        curvature = self._curvature_along(along) + self.regularization * bend
        length = -uphill_by / np.maximum(curvature, 1e-300)
        first, second = self._derivatives_along(margins, along, length)
        first += self.regularization * (slope + length * bend)
        second += self.regularization * bend
        newton = length - first / np.maximum(second, 1e-300)
        # Beyond the minimum the loss may bend less than before it, and Newton's step may lead back
        # to its start. Near a bound, take the zero of the line between both slopes.
        beyond = first >= 0
        straight = length * uphill_by / np.minimum(uphill_by - first, -1e-300)
        near = (newton < straight / 4) | (newton > (straight + 3 * length) / 4)
        return np.where(beyond & near, straight, np.maximum(newton, np.where(beyond, 0, length)))

    def _curvature_along(self, along: Array) -> np.ndarray:
        """Return second derivatives (B,) of the loss along a direction, at the last gradient."""
        second = np.zeros(along.shape[1])
        for rows in self._row_blocks():
            v = along[rows]
            second += _column_sums(self.bends[rows] * v * v)
        return second

    def _derivatives_along(
        self, margins: Array, along: Array, length: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return first and second derivatives (B,) of the loss at `length` along a direction."""
        first, second = np.zeros(len(length)), np.zeros(len(length))
        far = like(length, margins)
        for rows in self._row_blocks():
            v = along[rows]
            errors, bends = self._errors(margins[rows] + far * v, rows)
            first += _column_sums(errors * v)
            second += _column_sums(bends * v * v)
        return first, second

    def _errors(self, margins: Array, rows: slice) -> tuple[Array, Array]:
        """Return dℓ/dm and an upper bound of d²ℓ/dm² (n×B).

        The loss of an unobserved label of a complete image bends less than the bound.
        """
        xp = namespace(margins)
        with np.errstate(over="ignore"):  # 1 / (1 + ∞) = 0 is right
            odds_against = xp.exp(-margins)
        p = 1 / (1 + odds_against)
        errors = xp.asarray(p, copy=True)
        if self.forgotten:  # an unobserved label belongs with probability σ(m + log e)
            errors -= self.forgotten / (self.forgotten + odds_against)
        bends = p * (1 - p)
        if self.targets.unknown is not None:
            self._put_unknown(self.targets.unknown, errors, bends, p, rows)
            self.observed.put_bends(bends, p, rows)
        self.observed.put(errors, p, rows)
        return errors, bends

    def _put_unknown(
        self, unknown: Unknown, errors: Array, bends: Array, p: Array, rows: slice
    ) -> None:
        """Set the derivatives (n×B) of incomplete images: weight × (p − expected), in place."""
        weights = unknown.weights[rows]
        incomplete = np.flatnonzero(weights < 1)
        if not len(incomplete):
            return
        expected = unknown.expected[rows][incomplete].toarray()
        xp = namespace(errors)
        at = xp.asarray(incomplete, device=device(errors))
        scale = like(weights[incomplete][:, None], errors)
        errors[at] = scale * (p[at] - like(expected, errors))
        bends[at] = scale * bends[at]

    def _row_blocks(self, among: slice | None = None) -> Iterator[slice]:
        """Yield blocks of images that fit in a core's cache."""
        n, width = self.targets.labels.shape
        among = slice(0, n) if among is None else among
        step = block_rows(32 * width, self.reference)
        if not on_accelerator(self.reference):
            step = min(step, cached_rows(4 * width))
        for start in range(among.start, among.stop, step):
            yield slice(start, min(start + step, among.stop))


def _column_sums(values: Array) -> np.ndarray:
    """Return the column sums (B,) in float64. Blocks on the host are short enough for float32."""
    xp = namespace(values)
    dtype = xp.float64 if on_accelerator(values) else values.dtype
    return np.asarray(to_numpy(xp.sum(values, axis=0, dtype=dtype)), dtype=np.float64)
