"""Learn the rates of wrong and of missing labels, from sums over images.

Most labels are rare, so the sigmoids of all labels share a prior. A label's log-odds are summarised
in at most 128 groups of neighbouring ranks. Everything else is computed from these tables (D, G),
whatever the number of images.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from tagkin.arrays import Array, expit, row_blocks
from tagkin.arrays.blocks import cached_rows
from tagkin.arrays.labels import check_pair, count_below, read_scores
from tagkin.arrays.threads import run_parallel
from tagkin.calibration.label_errors import LabelErrors

__all__ = [
    "ERRORS",
    "ErrorNumbers",
    "Expected",
    "ScoreTable",
    "estimate_label_errors",
    "expect_errors",
    "summarize",
]


@dataclass(frozen=True)
class ErrorNumbers:
    """Numbers of the estimate of label errors."""

    groups: int = 128
    """Groups of ranks that a label's images are summarised in, at most."""
    most: float = 0.95
    """Largest share of wrong and of missing labels."""
    prior: int = 100
    """Labels that are added with the shares of errors below, so few labels do not give an extreme
    share. A label's own errors are shrunk to its expectation with the same weight. Labels on fewer
    images fit the sigmoid worst and would dominate, so only labels on this many images decide
    whether wrong labels fall on all labels equally often."""
    prior_wrong: float = 0.06
    """Their share of wrong labels, and the share at first. Models that learned from wrong labels
    explain some of them, so the likelihood alone finds half of them or fewer."""
    prior_missing: float = 0.01
    """The same for missing labels."""
    clearly: float = 10.0
    """Log-likelihood that this must gain."""
    most_rounds: int = 200
    settled: float = 1e-4
    """Relative change of the shares in the last round."""
    farthest: float = 16.0
    """Most rounds to extrapolate at once."""
    longest: float = 0.5
    """Most that a round changes a slope or an intercept, because it checks no loss."""


ERRORS = ErrorNumbers()
_TINY = float(np.finfo(np.float64).tiny)  # quotients and logarithms stay finite


@dataclass(frozen=True)
class ScoreTable:
    """Images of each label in groups by score, highest first: arrays of shape (D, G).

    A group may be empty; images with equal scores are in one group.
    """

    mean: np.ndarray  # mean score
    count: np.ndarray  # number of images
    positives: np.ndarray  # number of images with the label


@dataclass(frozen=True)
class Expected:
    """Expected numbers of wrong and missing labels, and derivatives of the loss.

    The loss is the negative log-likelihood of the sigmoids, with the labels expected to belong as
    the truth and without a prior.
    """

    wrong: np.ndarray
    """Images (D,) that have the label and should not."""
    missing: np.ndarray
    """Images (D,) that should have the label and do not."""
    belonging: np.ndarray
    """Images (D,) that should have the label."""
    gradient: np.ndarray
    """Gradient of the loss, shape (D, 2)."""
    curvature: np.ndarray
    """Hessian of the loss, shape (D, 2, 2)."""


def expect_errors(
    table: ScoreTable, sigmoids: np.ndarray, wrong_rates: np.ndarray, missing_rates: np.ndarray
) -> Expected:
    """Compute expectations if labels belong with σ(αₜ z + βₜ) and have these rates (D,).

    The table has the images of D labels, grouped by log-odds z (D, G).
    """
    n_labels, n_groups = table.mean.shape
    sums = np.empty((7, n_labels))
    step = cached_rows(8 * 8 * n_groups)
    for start in range(0, n_labels, step):
        block = slice(start, start + step)
        a, e = wrong_rates[block, None], missing_rates[block, None]
        z, count, present = (part[block] for part in (table.mean, table.count, table.positives))
        # odds against a label, u = (1 − q)/q: its probability to be wrong if present is
        # u a/(u a + 1 − e), and to be missing if absent e/(e + u (1 − a))
        u = np.exp(np.clip(-sigmoids[block, :1] * z - sigmoids[block, 1:], -690, 690))
        q = 1 / (1 + u)
        wrong = u * a
        wrong *= present / (wrong + (1 - e))
        missing = (count - present) * e
        u *= 1 - a
        missing /= u + e
        weight = count * q
        excess = weight - present  # over the images where the label belongs
        excess += wrong
        excess -= missing
        weight *= 1 - q
        bent = weight * z
        sums[[0, 1, 3, 5, 6], block] = [
            part.sum(axis=1) for part in (wrong, missing, excess, bent, weight)
        ]
        sums[[2, 4], block] = [np.einsum("tg,tg->t", part, z) for part in (excess, bent)]
    n_wrong, n_missing, g_slope, g_intercept, c_slope, c_both, c_intercept = sums
    curvature = np.stack([c_slope, c_both, c_both, c_intercept], axis=1).reshape(-1, 2, 2)
    gradient = np.stack([g_slope, g_intercept], axis=1)
    n_belonging = table.positives.sum(axis=1) - n_wrong + n_missing
    return Expected(n_wrong, n_missing, n_belonging, gradient, curvature)


def estimate_label_errors(Z: Array, Y: Array) -> LabelErrors:
    """Learn from held-out log-odds Z (n×D), finite, and labels Y (n×D, dense or sparse).

    The log-odds come from models that have not seen the image, but were fitted to labels with the
    same errors. Slopes and intercepts of all labels share a normal prior, which is learned, too.
    Expectation maximisation maximises the likelihood of the present labels. Each label's rates are
    shrunk towards expectations from all labels. These are that the same share of each label is
    missing, and that wrong labels fall on labels in proportion to their frequency. If labels with
    many images clearly show it, wrong labels fall on all labels equally often instead.

    The tails of z matter. Log-odds must keep falling for unsupported labels, because a floor looks
    like wrong labels, and plateaus hide errors.

    Parameters
    ----------
    Z : array of shape (n, D)
        Held-out log-odds, finite.
    Y : array or sparse matrix of shape (n, D)
        Labels.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.calibration import estimate_label_errors
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(-1, 4, (5000, 5))
    >>> belongs = rng.random(Z.shape) < 1 / (1 + np.exp(-Z))
    >>> there = belongs & (rng.random(Z.shape) < 0.9)
    >>> errors = estimate_label_errors(Z, there)
    >>> round(errors.missing_share, 2), round(errors.wrong_share, 2)
    (0.1, 0.0)
    """
    labels, Z = check_pair(Y, Z, ("Y", "Z"))
    table = summarize(Z, labels)
    n_present = table.positives.sum(axis=1)
    n_absent = Z.shape[0] - n_present  # images that can get the label wrongly
    is_frequent = n_present >= ERRORS.prior
    # by frequency or, if there are frequent labels to tell, equally often
    expectations = [n_present * n_absent, *([n_absent] if is_frequent.any() else [])]
    best, *others = run_parallel([partial(_maximize, table, weights) for weights in expectations])
    for evenly in others:
        gain = evenly.likelihoods(table) - best.likelihoods(table)
        best = evenly if gain[is_frequent].sum() > ERRORS.clearly else best
    expected = best.expected(table)
    slopes, intercepts = best.sigmoids.T.copy()
    return LabelErrors(
        slopes,
        intercepts,
        best.wrong_rates,
        best.missing_rates,
        float(expected.wrong.sum() / max(n_present.sum(), 1)),
        float(expected.missing.sum() / max(expected.belonging.sum(), 1)),
    )


def summarize(S: Array, labels: csr_array) -> ScoreTable:
    """Group every label's images by rank: one by one at the top, wider further down."""
    n, n_labels = S.shape
    # positives are at the top: group sizes grow with the rank
    ends = np.unique(np.ceil(np.geomspace(1, n, ERRORS.groups)).astype(np.intp))
    tables = np.empty((3, n_labels, len(ends)))
    by_label = csr_array(labels.T)
    for columns in row_blocks(n_labels, 40 * n + 64 * labels.nnz // n_labels):
        scores = np.ascontiguousarray(read_scores(S, slice(None), columns=columns, finite=True).T)
        tables[:, columns] = _summarize_rows(scores, by_label[columns], ends)
    return ScoreTable(*tables)


def _summarize_rows(scores: np.ndarray, positives: csr_array, ends: np.ndarray) -> np.ndarray:
    """Return the three tables for a block of labels; rows are labels."""
    n_rows, n = scores.shape
    shape = n_rows, len(ends)
    ascending = np.sort(scores, axis=1)
    lowest = ascending[:, n - ends]
    row = np.repeat(np.arange(n_rows), len(ends))
    # a group ends where its lowest score does, not between equal scores
    start = count_below(ascending, row, lowest.ravel()).reshape(shape)
    count = np.diff(n - start, axis=1, prepend=0)
    sums = np.zeros((n_rows, n + 1))
    np.cumsum(ascending, axis=1, dtype=np.float64, out=sums[:, 1:])
    total = np.diff(sums[:, -1:] - np.take_along_axis(sums, start, axis=1), axis=1, prepend=0)
    highest = np.take_along_axis(ascending, np.minimum(start + np.maximum(count, 1), n) - 1, axis=1)
    mean = np.clip(total / np.maximum(count, 1), lowest, highest)  # exact for equal scores

    row = np.repeat(np.arange(n_rows), np.diff(positives.indptr))
    reached = count_below(lowest[:, ::-1], row, scores[row, positives.indices], or_equal=True)
    group = row * len(ends) + len(ends) - reached
    n_positives = np.bincount(group, minlength=n_rows * len(ends)).reshape(shape)
    return np.stack([mean, count, n_positives])


class _Prior(NamedTuple):
    """The normal prior of the sigmoids of all labels, at first around the log-odds themselves."""

    mean: np.ndarray
    """Slope and intercept, shape (2,)."""
    precision: np.ndarray
    """Shape (2, 2)."""

    @classmethod
    def of(cls, sigmoids: np.ndarray, curvature: np.ndarray) -> _Prior:
        """Return the most likely prior of sigmoids (D, 2) with curvature (D, 2, 2)."""
        n_labels = len(sigmoids)
        # one more label, with unit variance around (1, 0), regularises a vocabulary of one label
        mean = (sigmoids.sum(axis=0) + np.array([1, 0])) / (n_labels + 1)
        offset = sigmoids - mean
        (a, b), (_, c) = curvature.transpose(1, 2, 0)
        inverses = np.stack([c, -b, -b, a]) / (a * c - b * b)
        spread = offset.T @ offset + inverses.sum(axis=1).reshape(2, 2)
        return cls(mean, np.linalg.inv((spread + np.eye(2)) / (n_labels + 1)))


@dataclass(frozen=True)
class _Model:
    """Sigmoids (D, 2), and the rates of errors (D,)."""

    sigmoids: np.ndarray
    wrong_rates: np.ndarray
    missing_rates: np.ndarray

    def coordinates(self) -> np.ndarray:
        """Return the sigmoids and the logarithms of the rates, (D, 4)."""
        rates = np.stack([self.wrong_rates, self.missing_rates], axis=1)
        return np.hstack([self.sigmoids, np.log(np.maximum(rates, _TINY))])

    def at(self, coordinates: np.ndarray) -> _Model:
        """Return the model at these coordinates; rates of 0 stay 0."""
        wrong, missing = np.exp(np.minimum(coordinates[:, 2:], np.log(ERRORS.most))).T
        return _Model(
            coordinates[:, :2],
            np.where(self.wrong_rates > 0, wrong, 0),
            np.where(self.missing_rates > 0, missing, 0),
        )

    def expected(self, table: ScoreTable) -> Expected:
        """Return the expected numbers of wrong and missing labels."""
        return expect_errors(table, self.sigmoids, self.wrong_rates, self.missing_rates)

    def likelihoods(self, table: ScoreTable) -> np.ndarray:
        """Return the log-likelihood of each label's images, (D,)."""
        q = expit(self.sigmoids[:, :1] * table.mean + self.sigmoids[:, 1:])
        p = (1 - q) * self.wrong_rates[:, None] + q * (1 - self.missing_rates[:, None])
        p = np.clip(p, _TINY, 1 - 1e-16)
        absent = table.count - table.positives
        likelihood = table.positives * np.log(p) + absent * np.log1p(-p)
        return np.asarray(likelihood.sum(axis=1))


def _maximize(table: ScoreTable, weights: np.ndarray) -> _Model:
    """Run expectation maximisation; wrong labels are expected in proportion to `weights`."""
    n = table.count.sum(axis=1)
    there = table.positives.sum(axis=1)
    weights = weights / max(weights.sum(), 1)
    rates = ERRORS.prior_wrong * there.sum() * weights / np.maximum(n - there, 1)
    rates = np.minimum(rates, ERRORS.most * there / n)
    sigmoids, prior = np.tile([1.0, 0.0], (len(n), 1)), _Prior(np.array([1.0, 0.0]), np.eye(2))
    model = _Model(sigmoids, rates, np.full(len(n), ERRORS.prior_missing))
    before, path = np.zeros(2), [model]
    for _ in range(ERRORS.most_rounds):
        expected = model.expected(table)
        belonging = expected.belonging
        wrong_share = _pool_share(expected.wrong, there, ERRORS.prior_wrong)
        wrong = _shrink(expected.wrong, wrong_share * there.sum() * weights)
        missing_share = _pool_share(expected.missing, belonging, ERRORS.prior_missing)
        missing = _shrink(expected.missing, missing_share * belonging)
        # one step suffices, because the next round continues from it
        gradient = expected.gradient + (model.sigmoids - prior.mean) @ prior.precision
        curvature = expected.curvature + prior.precision
        sigmoids = _newton_step(model.sigmoids, gradient, curvature)
        prior = _Prior.of(sigmoids, curvature)
        model = _Model(
            sigmoids,
            np.minimum(wrong / np.maximum(n - belonging, 1), ERRORS.most * there / n),
            np.minimum(missing / np.maximum(belonging, 1e-9), ERRORS.most),
        )
        shares = np.array([expected.wrong.sum(), expected.missing.sum()])
        if np.all(np.abs(shares - before) <= ERRORS.settled * shares + 1e-9 * there.sum()):
            break
        before, path = shares, [*path, model]
        if len(path) == 3:
            model = extrapolate(*path)
            path = [model]
    return model


def extrapolate(first: _Model, second: _Model, third: _Model) -> _Model:
    """Extrapolate from three consecutive models.

    Consecutive rounds change the model by similar small steps, r and r + v. Varadhan and Roland
    (2008) move from the first model by 2s r + s² v with s = ‖r‖/‖v‖, here with logarithmic rates.
    """
    x, y, z = (model.coordinates() for model in (first, second, third))
    r, v = y - x, (z - y) - (y - x)
    length = float(np.linalg.norm(v))
    s = min(ERRORS.farthest, float(np.linalg.norm(r)) / length) if length > 0 else 1.0
    return third if s <= 1 else third.at(x + 2 * s * r + s * s * v)


def _pool_share(errors: np.ndarray, labels: np.ndarray, prior: float) -> float:
    """Return the share of errors over all labels, including those of the prior."""
    total = errors.sum() + prior * ERRORS.prior
    return float(total / (labels.sum() + ERRORS.prior))


def _shrink(errors: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the posterior mean of Poisson counts, with a gamma prior of mean `expected`."""
    return expected * (errors + ERRORS.prior) / (expected + ERRORS.prior)


def _newton_step(sigmoids: np.ndarray, gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """Return sigmoids (D, 2) after a bounded Newton step; slopes stay at 0 or above.

    `gradient` (D, 2) and `curvature` (D, 2, 2) are the gradient and the Hessian of the loss.
    """
    (a, b), (_, c) = curvature.transpose(1, 2, 0)
    g, h = gradient.T
    step = np.stack([c * g - b * h, a * h - b * g], axis=1) / (a * c - b * b)[:, None]
    held = (sigmoids[:, 0] == 0) & (g > 0)
    step[held, 0] = 0
    step[held, 1] = h[held] / c[held]
    longest = np.maximum(np.abs(step).max(axis=1, keepdims=True), ERRORS.longest)
    new = sigmoids - step * (ERRORS.longest / longest)
    new[:, 0] = np.maximum(new[:, 0], 0)
    return new
