"""Learn the rates of wrong and of missing labels, from sums over images."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tagkin.arrays import Array, expit
from tagkin.arrays.labels import check_pair
from tagkin.arrays.threads import run_parallel
from tagkin.calibration.label_errors import LabelErrors, probability_missing, probability_wrong
from tagkin.calibration.pooling import Prior, ScoreTable, newton_step, summarize

__all__ = ["ERRORS", "ErrorNumbers", "Expected", "estimate_label_errors", "expect_errors"]


@dataclass(frozen=True)
class ErrorNumbers:
    """Numbers of the estimate of label errors."""

    start: float = 0.03
    """Initial share of wrong and of missing labels."""
    most: float = 0.95
    """Largest share of wrong and of missing labels."""
    prior_errors: int = 100
    """A label's own errors are shrunk towards its expectation with the weight of these errors."""
    prior_labels: int = 100
    """Labels with a share `prior_share` of errors that are added, so few labels do not give an
    extreme share."""
    prior_share: float = 0.01
    frequent: int = 100
    """Images. Rarer labels fit the sigmoid worst and would dominate, so only labels on this many
    images decide whether wrong labels fall on all labels equally often."""
    clearly: float = 10.0
    """Log-likelihood that this must gain."""
    most_rounds: int = 200
    settled: float = 1e-4
    """Relative change of the shares in the last round."""
    farthest: float = 16.0
    """Most rounds to extrapolate at once."""
    least: float = 1e-300
    """Least probability that a label belongs: quotients and logarithms stay finite."""
    least_rate: float = 1e-12
    """Least rate of errors while rounds are extrapolated, in logarithms."""
    cached: int = 2**14
    """Groups of images in a block that fits in a core's cache."""


ERRORS = ErrorNumbers()


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
    step = max(1, ERRORS.cached // n_groups)
    for start in range(0, n_labels, step):
        block = slice(start, start + step)
        rates = wrong_rates[block, None], missing_rates[block, None]
        z, count, present = (part[block] for part in (table.mean, table.count, table.positives))
        q = expit(sigmoids[block, :1] * z + sigmoids[block, 1:])
        inside = np.clip(q, ERRORS.least, 1 - 1e-16)  # quotients stay finite if a rate is 0
        wrong = present * probability_wrong(inside, *rates)
        missing = (count - present) * probability_missing(inside, *rates)
        weight = count * q
        excess = weight - (present - wrong + missing)  # over the images where the label belongs
        weight *= 1 - q
        bent = weight * z
        parts = wrong, missing, excess * z, excess, bent * z, bent, weight
        sums[:, block] = [part.sum(axis=1) for part in parts]
    n_wrong, n_missing, g_slope, g_intercept, c_slope, c_both, c_intercept = sums
    curvature = np.stack([c_slope, c_both, c_both, c_intercept], axis=1).reshape(-1, 2, 2)
    gradient = np.stack([g_slope, g_intercept], axis=1)
    n_belonging = table.positives.sum(axis=1) - n_wrong + n_missing
    return Expected(n_wrong, n_missing, n_belonging, gradient, curvature)


def estimate_label_errors(Z: Array, Y: Array) -> LabelErrors:
    """Learn from held-out log-odds Z (n×D), finite, and labels Y (n×D, dense or sparse).

    The log-odds come from models that have not seen the image, but were fitted to labels with the
    same errors. Slopes and intercepts are shrunk as in `fit_calibration`. Expectation maximisation
    maximises the likelihood of the present labels. Each label's rates are shrunk towards
    expectations from all labels. These are that the same share of each label is missing, and that
    wrong labels fall on labels in proportion to their frequency. If labels with many images clearly
    show it, wrong labels fall on all labels equally often instead.

    The tails of z matter. Log-odds must keep falling for unsupported labels, because a floor looks
    like wrong labels. Plateaus of isotonic regression hide errors.

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
    tasks = [partial(_maximize, table, weights) for weights in (n_present * n_absent, n_absent)]
    by_frequency, evenly = run_parallel(tasks)
    gain = (evenly.likelihoods(table) - by_frequency.likelihoods(table))[
        n_present >= ERRORS.frequent
    ]
    best = evenly if gain.sum() > ERRORS.clearly else by_frequency
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


@dataclass(frozen=True)
class _Model:
    """Sigmoids (D, 2), and the rates of errors (D,)."""

    sigmoids: np.ndarray
    wrong_rates: np.ndarray
    missing_rates: np.ndarray

    def coordinates(self) -> np.ndarray:
        """Return the sigmoids and the logarithms of the rates, (D, 4)."""
        rates = np.stack([self.wrong_rates, self.missing_rates], axis=1)
        return np.hstack([self.sigmoids, np.log(np.maximum(rates, ERRORS.least_rate))])

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
        p = np.clip(p, ERRORS.least, 1 - 1e-16)
        absent = table.count - table.positives
        likelihood = table.positives * np.log(p) + absent * np.log1p(-p)
        return np.asarray(likelihood.sum(axis=1))


def _maximize(table: ScoreTable, weights: np.ndarray) -> _Model:
    """Run expectation maximisation; wrong labels are expected in proportion to `weights`."""
    n = table.count.sum(axis=1)
    there = table.positives.sum(axis=1)
    weights = weights / max(weights.sum(), 1)
    rates = ERRORS.start * there.sum() * weights / np.maximum(n - there, 1)
    rates = np.minimum(rates, ERRORS.most * there / n)
    sigmoids, prior = np.tile([1.0, 0.0], (len(n), 1)), Prior()
    model = _Model(sigmoids, rates, np.full(len(n), ERRORS.start))
    before, path = np.zeros(2), [model]
    for _ in range(ERRORS.most_rounds):
        expected = model.expected(table)
        belonging = expected.belonging
        wrong = _shrink(expected.wrong, _pool_share(expected.wrong, there) * there.sum() * weights)
        missing = _shrink(expected.missing, _pool_share(expected.missing, belonging) * belonging)
        # one step suffices, because the next round continues from it
        gradient, curvature = prior.added(expected.gradient, expected.curvature, model.sigmoids)
        sigmoids = newton_step(model.sigmoids, gradient, curvature)
        prior = Prior.of(sigmoids, curvature)
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


def _pool_share(errors: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of errors over all labels, including the prior labels."""
    total = errors.sum() + ERRORS.prior_share * ERRORS.prior_labels
    return float(total / (labels.sum() + ERRORS.prior_labels))


def _shrink(errors: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the posterior mean of Poisson counts, with a gamma prior of mean `expected`."""
    return expected * (errors + ERRORS.prior_errors) / (expected + ERRORS.prior_errors)
