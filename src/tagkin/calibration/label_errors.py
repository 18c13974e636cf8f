"""Estimate which labels are wrong or missing, and how many, from held-out log-odds.

A label t belongs on an image with probability q. A label that does not belong is present with
probability aₜ, and a label that belongs is absent with probability eₜ. So it is present with
probability

    p = (1 − q) aₜ + q (1 − eₜ).

As q approaches 0 and 1, p levels off at aₜ and 1 − eₜ. The two rates are learned from this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import numpy as np

from tagkin.arrays import Array, expit, row_blocks
from tagkin.arrays.records import storable, take
from tagkin.arrays.rules import Floats, Number
from tagkin.arrays.scores import check_pair, check_scores, read_scores
from tagkin.arrays.threads import run_parallel
from tagkin.calibration.error_sums import Expected, expect_errors
from tagkin.calibration.pooling import Prior, ScoreTable, newton_step, positions_among, summarize
from tagkin.errors import InvalidInput

__all__ = ["LabelErrors", "estimate_label_errors"]

MOST_ROUNDS = 200
SETTLED = 1e-4  # relative change of the shares in the last round
_FARTHEST = 16.0  # most rounds to extrapolate at once
_LEAST_RATE = 1e-12
_START = 0.03  # initial share of wrong and of missing labels
# A label's own errors are shrunk towards its expectation with the weight of this many errors.
_PRIOR_ERRORS = 100
# Prior labels and their share of errors, so few labels do not give an extreme share.
_PRIOR_LABELS, _PRIOR_SHARE = 100, 0.01
# Largest share of wrong and of missing labels.
_MOST = 0.95
# Rare labels fit the sigmoid worst and would dominate, so only labels on this many images decide
# whether wrong labels fall on all labels equally often, if the log-likelihood gains this much.
_FREQUENT, _CLEARLY = 100, 10


@storable
@dataclass(frozen=True)
class LabelErrors:
    """Shares of wrong and of missing labels; a label belongs with P(belongs | z) = σ(αₜ z + βₜ).

    `estimate_label_errors` learns it.
    """

    slopes: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """αₜ, shape (D,)."""
    intercepts: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """βₜ, shape (D,)."""
    wrong_rates: Annotated[np.ndarray, Floats("D", low=0, high=1).kept_on_host()]
    """aₜ: the share of images with the label among those where it does not belong, (D,)."""
    missing_rates: Annotated[np.ndarray, Floats("D", low=0, high=1).kept_on_host()]
    """eₜ: the share of images without the label among those where it belongs, (D,)."""
    wrong_share: Annotated[float, Number(low=0)]
    """Share of wrong labels among the present labels."""
    missing_share: Annotated[float, Number(low=0)]
    """Share of absent labels among the labels that belong."""

    @property
    def n_labels(self) -> int:
        """Number of labels, D."""
        return len(self.slopes)

    def predict_proba(self, Z: Array) -> np.ndarray:
        """Return q, the probability that each label belongs, present or not, shape (n, D)."""
        Z = check_scores(Z)
        if Z.shape[1] != self.n_labels:
            raise InvalidInput(
                f"Z has {Z.shape[1]} columns, but log-odds of {self.n_labels} labels were fitted."
            )
        q = np.empty(tuple(Z.shape))
        for rows in row_blocks(Z.shape[0], 32 * Z.shape[1]):
            z = read_scores(Z, rows, finite=True).astype(np.float64)
            q[rows] = expit(self.slopes * z + self.intercepts)
        return q

    def spread(self, columns: np.ndarray, n_labels: int) -> LabelErrors:
        """Expand to D = `n_labels` labels; these `columns`, ascending, were fitted.

        The other labels get the medians of the fitted labels.
        """
        n_new = n_labels - self.n_labels

        def widen(known: np.ndarray) -> np.ndarray:
            return np.append(known, np.full(n_new, np.median(known)))

        wide = replace(
            self,
            slopes=widen(self.slopes),
            intercepts=widen(self.intercepts),
            wrong_rates=widen(self.wrong_rates),
            missing_rates=widen(self.missing_rates),
        )
        return take(wide, "D", positions_among(columns, n_labels))


def estimate_label_errors(Z: Array, Y: Array) -> LabelErrors:
    """Learn from held-out log-odds Z (n×D), finite, and labels Y (n×D, dense or sparse).

    The log-odds come from models that have not seen the image, but were fitted to labels with the
    same errors. Slopes and intercepts are shrunk as in `fit_calibration`. Expectation maximisation
    maximises the likelihood of the present labels. Each label's rates are shrunk towards
    expectations from all labels: the same share of each label is missing, and wrong labels fall on
    labels in proportion to their frequency, or equally often if labels with many images clearly
    show that.

    The tails of z matter. Log-odds must keep falling for unsupported labels, because a floor looks
    like wrong labels. Plateaus of isotonic regression hide errors.

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
    gain = (evenly.likelihoods(table) - by_frequency.likelihoods(table))[n_present >= _FREQUENT]
    best = evenly if gain.sum() > _CLEARLY else by_frequency
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
        return np.hstack([self.sigmoids, np.log(np.maximum(rates, _LEAST_RATE))])

    def at(self, coordinates: np.ndarray) -> _Model:
        """Return the model at these coordinates; rates of 0 stay 0."""
        wrong, missing = np.exp(np.minimum(coordinates[:, 2:], np.log(_MOST))).T
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
        p = np.clip(p, 1e-300, 1 - 1e-16)
        absent = table.count - table.positives
        likelihood = table.positives * np.log(p) + absent * np.log1p(-p)
        return np.asarray(likelihood.sum(axis=1))


def _maximize(table: ScoreTable, weights: np.ndarray) -> _Model:
    """Run expectation maximisation; wrong labels are expected in proportion to `weights`."""
    n = table.count.sum(axis=1)
    there = table.positives.sum(axis=1)
    weights = weights / max(weights.sum(), 1)
    rates = _START * there.sum() * weights / np.maximum(n - there, 1)
    rates = np.minimum(rates, _MOST * there / n)
    sigmoids, prior = np.tile([1.0, 0.0], (len(n), 1)), Prior()
    model = _Model(sigmoids, rates, np.full(len(n), _START))
    before, path = np.zeros(2), [model]
    for _ in range(MOST_ROUNDS):
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
            np.minimum(wrong / np.maximum(n - belonging, 1), _MOST * there / n),
            np.minimum(missing / np.maximum(belonging, 1e-9), _MOST),
        )
        shares = np.array([expected.wrong.sum(), expected.missing.sum()])
        if np.all(np.abs(shares - before) <= SETTLED * shares + 1e-9 * there.sum()):
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
    s = min(_FARTHEST, float(np.linalg.norm(r)) / length) if length > 0 else 1.0
    return third if s <= 1 else third.at(x + 2 * s * r + s * s * v)


def _pool_share(errors: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of errors over all labels, including the prior labels."""
    total = errors.sum() + _PRIOR_SHARE * _PRIOR_LABELS
    return float(total / (labels.sum() + _PRIOR_LABELS))


def _shrink(errors: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the posterior mean of Poisson counts, with a gamma prior of mean `expected`."""
    return expected * (errors + _PRIOR_ERRORS) / (expected + _PRIOR_ERRORS)
