"""How many labels are wrong and how many are missing, and which: from held-out log-odds.

A label t belongs on an image with probability q. It is there although it does not belong with
probability aₜ, and not there although it does with probability eₜ, so that it is there with
probability

    p = (1 − q) aₜ + q (1 − eₜ).

Where q comes close to 0 and to 1, p levels off at aₜ and at 1 − eₜ: this is what the two rates are
learned from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import Array, expit, row_blocks, run_parallel
from tagkin.arrays.scores import check_pair, check_scores, read_scores
from tagkin.calibration.error_sums import ErrorSums, Expected
from tagkin.calibration.pooling import Prior, ScoreTable, newton_step, positions_among, summarize
from tagkin.errors import InvalidInput
from tagkin.wording import count

__all__ = ["LabelErrors"]

_MOST_ROUNDS = 200
_SETTLED = 1e-4  # relative change of the shares of a round after which no more are needed
_FARTHEST = 16.0  # rounds that are gone ahead at once, at most
_LEAST_RATE = 1e-12
_START = 0.03  # share of wrong and of missing labels before looking
# A label's own errors count beside this many of what is expected of it by all labels.
_PRIOR_ERRORS = 100
# Labels that are taken to have been looked at before: few labels alone make no large share.
_PRIOR_LABELS, _PRIOR_SHARE = 100, 0.01
# Of the images that have a label, and of those where it belongs: most that can be wrong, missing.
_MOST = 0.95
# Rare labels fit the sigmoid worst and would decide: asked are labels on so many images. They must
# make it so much likelier (in log-likelihood) that wrong labels fall on all labels equally often.
_FREQUENT, _CLEARLY = 100, 10


class LabelErrors(BaseEstimator):
    """Shares of wrong and of missing labels, learned from held-out log-odds.

    The log-odds z are those of models that had not seen the image, but had seen labels with the
    same errors. Whether a label belongs is taken as P(belongs | z) = σ(αₜ z + βₜ), with slopes and
    intercepts shrunk as in `LabelCalibrator`; the likelihood of the labels that are there is
    maximised by expectation maximisation. A label's own rates are shrunk towards what is expected
    of it by all labels: the same share of its images is missing, and wrong ones fall on labels as
    often as these are there, or on all equally often where labels with many images say so clearly.

    The tails of z matter. They must be log-odds that go on falling where nothing speaks for a
    label: a floor looks like wrong labels. What isotonic regression has levelled off shows fewer
    errors than there are.

    Attributes
    ----------
    n_labels_ : int
        Labels, D.
    slopes_, intercepts_ : arrays of shape (D,)
        αₜ and βₜ.
    wrong_rates_ : array of shape (D,)
        aₜ: of the images where a label does not belong, the share that has it.
    missing_rates_ : array of shape (D,)
        eₜ: of the images where a label belongs, the share that does not have it.
    wrong_share_ : float
        Share of the labels that are there which are wrong.
    missing_share_ : float
        Share of the labels that belong which are not there.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.calibration import LabelErrors
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(-1, 4, (5000, 5))
    >>> belongs = rng.random(Z.shape) < 1 / (1 + np.exp(-Z))
    >>> there = belongs & (rng.random(Z.shape) < 0.9)
    >>> errors = LabelErrors().fit(Z, there)
    >>> round(errors.missing_share_, 2), round(errors.wrong_share_, 2)
    (0.1, 0.0)
    """

    def fit(self, Z: Array, Y: Array) -> Self:
        """Learn from log-odds Z (n×D), finite, and labels Y (n×D, dense or sparse)."""
        labels, Z = check_pair(Y, Z, ("Y", "Z"))
        table = summarize(Z, labels)
        there = table.positives.sum(axis=1)
        without = Z.shape[0] - there  # a label can be put wrongly on these
        sums = ErrorSums(table)
        tasks = [partial(_maximize, table, sums, weights) for weights in (there * without, without)]
        by_frequency, evenly = run_parallel(tasks)
        gain = (evenly.likelihoods(table) - by_frequency.likelihoods(table))[there >= _FREQUENT]
        found = evenly if gain.sum() > _CLEARLY else by_frequency
        self.n_labels_ = Z.shape[1]
        self.slopes_, self.intercepts_ = found.sigmoids.T.copy()
        self.wrong_rates_, self.missing_rates_ = found.wrong_rates, found.missing_rates
        expected = found.expected(sums)
        self.wrong_share_ = float(expected.wrong.sum() / max(there.sum(), 1))
        belonging = expected.belonging.sum()
        self.missing_share_ = float(expected.missing.sum() / max(belonging, 1))
        return self

    def predict_proba(self, Z: Array) -> np.ndarray:
        """Probability (n, D) that each label belongs, whether it is there or not: q."""
        check_is_fitted(self)
        Z = check_scores(Z)
        if Z.shape[1] != self.n_labels_:
            raise InvalidInput(
                f"Z has {Z.shape[1]} columns, but log-odds of {self.n_labels_} labels were fitted."
            )
        q = np.empty(tuple(Z.shape))
        for rows in row_blocks(Z.shape[0], 32 * Z.shape[1]):
            z = read_scores(Z, rows, finite=True).astype(np.float64)
            q[rows] = expit(self.slopes_ * z + self.intercepts_)
        return q

    def spread(self, columns: np.ndarray, n_labels: int) -> Self:
        """Be one of D = `n_labels` labels, of which these columns, ascending, were fitted.

        The others get the medians of those.
        """
        check_is_fitted(self)
        positions = positions_among(columns, n_labels)
        for name in ("slopes_", "intercepts_", "wrong_rates_", "missing_rates_"):
            known = getattr(self, name)
            usual = np.full(n_labels - len(known), np.median(known))
            setattr(self, name, np.append(known, usual)[positions])
        self.n_labels_ = n_labels
        return self

    def describe(self) -> list[str]:
        """What was learned, in a few sentences."""
        check_is_fitted(self)
        return [
            f"Shares of wrong and missing labels, learned for {count(self.n_labels_, 'label')}.",
            f"About {self.wrong_share_:.1%} of the labels that are there seem wrong, and "
            f"{self.missing_share_:.1%} of those that belong seem to be missing.",
        ]


@dataclass(frozen=True)
class _Model:
    """Sigmoids (D, 2), and the rates of errors (D,)."""

    sigmoids: np.ndarray
    wrong_rates: np.ndarray
    missing_rates: np.ndarray

    def coordinates(self) -> np.ndarray:
        """The sigmoids, and the logarithms of the rates, (D, 4)."""
        rates = np.stack([self.wrong_rates, self.missing_rates], axis=1)
        return np.hstack([self.sigmoids, np.log(np.maximum(rates, _LEAST_RATE))])

    def at(self, coordinates: np.ndarray) -> _Model:
        """The model at these coordinates; rates of 0 stay."""
        wrong, missing = np.exp(np.minimum(coordinates[:, 2:], np.log(_MOST))).T
        return _Model(
            coordinates[:, :2],
            np.where(self.wrong_rates > 0, wrong, 0),
            np.where(self.missing_rates > 0, missing, 0),
        )

    def expected(self, sums: ErrorSums) -> Expected:
        """The expectation: of the labels there, which do not belong; of the others, which do."""
        return sums.at(self.sigmoids, self.wrong_rates, self.missing_rates)

    def likelihoods(self, table: ScoreTable) -> np.ndarray:
        """Log-likelihood of where each label is, (D,)."""
        q = expit(self.sigmoids[:, :1] * table.mean + self.sigmoids[:, 1:])
        p = (1 - q) * self.wrong_rates[:, None] + q * (1 - self.missing_rates[:, None])
        p = np.clip(p, 1e-300, 1 - 1e-16)
        absent = table.count - table.positives
        found = table.positives * np.log(p) + absent * np.log1p(-p)
        return np.asarray(found.sum(axis=1))


def _maximize(table: ScoreTable, sums: ErrorSums, weights: np.ndarray) -> _Model:
    """Expectation maximisation, where wrong labels are expected in proportion to `weights`."""
    n = table.count.sum(axis=1)
    there = table.positives.sum(axis=1)
    weights = weights / max(weights.sum(), 1)
    rates = _START * there.sum() * weights / np.maximum(n - there, 1)
    rates = np.minimum(rates, _MOST * there / n)
    sigmoids, prior = np.tile([1.0, 0.0], (len(n), 1)), Prior()
    model = _Model(sigmoids, rates, np.full(len(n), _START))
    before, path = np.zeros(2), [model]
    for _ in range(_MOST_ROUNDS):
        expected = model.expected(sums)
        belonging = expected.belonging
        wrong = _shrunk(expected.wrong, _pooled(expected.wrong, there) * there.sum() * weights)
        missing = _shrunk(expected.missing, _pooled(expected.missing, belonging) * belonging)
        # one step suffices: the next round goes on from it
        gradient, curvature = prior.added(expected.gradient, expected.curvature, model.sigmoids)
        sigmoids = newton_step(model.sigmoids, gradient, curvature)
        prior = Prior.of(sigmoids, curvature)
        model = _Model(
            sigmoids,
            np.minimum(wrong / np.maximum(n - belonging, 1), _MOST * there / n),
            np.minimum(missing / np.maximum(belonging, 1e-9), _MOST),
        )
        shares = np.array([expected.wrong.sum(), expected.missing.sum()])
        if np.all(np.abs(shares - before) <= _SETTLED * shares + 1e-9 * there.sum()):
            break
        before, path = shares, [*path, model]
        if len(path) == 3:
            model = _ahead(*path)
            path = [model]
    return model


def _ahead(first: _Model, second: _Model, third: _Model) -> _Model:
    """Where the rounds that led from one model to the next are going, as far as can be told.

    A round changes little, and hardly less than the one before: r and r + v. Varadhan and Roland
    (2008) go on from the first by 2s r + s² v with s = ‖r‖/‖v‖, here in the rates' logarithms.
    """
    x, y, z = (model.coordinates() for model in (first, second, third))
    r, v = y - x, (z - y) - (y - x)
    length = float(np.linalg.norm(v))
    s = min(_FARTHEST, float(np.linalg.norm(r)) / length) if length > 0 else 1.0
    return third if s <= 1 else third.at(x + 2 * s * r + s * s * v)


def _pooled(errors: np.ndarray, labels: np.ndarray) -> float:
    """Share of errors over all labels, with the prior's labels."""
    total = errors.sum() + _PRIOR_SHARE * _PRIOR_LABELS
    return float(total / (labels.sum() + _PRIOR_LABELS))


def _shrunk(errors: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Posterior mean of Poisson counts whose rates have a gamma prior with mean `expected`."""
    return expected * (errors + _PRIOR_ERRORS) / (expected + _PRIOR_ERRORS)
