"""The mixture of scores against a general optimiser, and against fits without an image."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy.special import expit

from tagkin.calibration.mixture import MIXING, ScoreColumns, fit_mixture, share_logits


def collection(n=400, d=6, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(-1, 1.5, (2, n, d)).astype(np.float32)
    weights = rng.uniform(0.2, 1.2, (2, 1, d))
    Y = rng.random((n, d)) < expit(-1 + (weights * scores).sum(axis=0))
    return scores, scipy.sparse.csr_array(Y.astype(float))


def columns_of(scores, learned=None):
    k, d = len(scores), scores[0].shape[1]
    ones = np.ones(k)
    learned = ones > 0 if learned is None else np.array(learned)
    pulls = MIXING.start_pull * np.ones(k + 1), np.append(MIXING.pull * ones, MIXING.intercept_pull)
    start = np.array(MIXING.start[:k])
    return ScoreColumns(scores, np.full((d, k), -1.0), 2 * ones, start, *pulls, learned)


def fit(scores, Y, weights=None):
    d = Y.shape[1]
    weights = np.ones(d) if weights is None else weights
    return fit_mixture(columns_of(scores), Y, share_logits(Y), weights, np.ones(d, dtype=bool))


def test_it_is_the_minimum_of_the_stated_losses():
    """Common weights, then those of each label, with weights of images that have it."""
    scores, Y = collection()
    d, levels, positive = Y.shape[1], share_logits(Y), np.linspace(0.3, 1, Y.shape[1])
    x = np.stack([*(scores + 1) / 2, np.ones(Y.shape)])  # (3, n, D)
    y = Y.toarray()
    w = np.where(y > 0, positive, 1)
    start = np.array([*MIXING.start, 0])
    low = np.array([*(MIXING.least * start[:2]), -np.inf])

    def loss(theta, mean, pull, labels, level):
        z = np.einsum("k,knt->nt", theta, x[:, :, labels]) + level
        misfit = w[:, labels] * (np.logaddexp(0, z) - y[:, labels] * z)
        slope = np.einsum("knt,nt->k", x[:, :, labels], w[:, labels] * (expit(z) - y[:, labels]))
        apart = theta - mean
        return misfit.sum() + 0.5 * (pull * apart**2).sum(), slope + pull * apart

    def minimum(*problem):
        bounds = [(bound if np.isfinite(bound) else None, None) for bound in low]
        options = {"maxiter": 10**4, "ftol": 1e-15, "gtol": 1e-9}
        return scipy.optimize.minimize(
            loss, start, problem, "L-BFGS-B", jac=True, bounds=bounds, options=options
        ).x

    everything = np.arange(d)
    common = minimum(start, np.full(3, MIXING.start_pull), everything, levels)
    low[:2] = MIXING.least * common[:2]
    pull = np.array([MIXING.pull, MIXING.pull, MIXING.intercept_pull])
    mixture, _ = fit(scores, Y, positive)
    np.testing.assert_allclose(mixture.common, common[:2] / 2, atol=1e-3)
    assert mixture.common_intercept == pytest.approx(common[2], abs=2e-3)
    for t in everything:
        own = minimum(common, pull, [t], levels[t])
        np.testing.assert_allclose(mixture.weights[t], own[:2] / 2, atol=1e-3)
        assert mixture.intercepts[t] == pytest.approx(own[2] + levels[t], abs=2e-3)


def test_labels_that_are_not_judged_teach_the_weight_of_names():
    """Their learned scores, which folds made incomparable, count as 0: so do neutral ones."""
    scores, Y = collection(n=60, d=8, seed=2)
    judged, ones = np.arange(8) < 2, np.ones(8)

    def common(labels, are_judged, learned=(True, False)):
        columns = columns_of(labels, learned)
        mixture, _ = fit_mixture(columns, Y, share_logits(Y), ones, are_judged)
        return np.append(mixture.common, mixture.common_intercept)

    neutral = scores.copy()
    neutral[0][:, ~judged] = -1  # the centre
    expected = common(neutral, np.ones(8, dtype=bool))
    np.testing.assert_allclose(common(scores, judged), expected, atol=1e-6)
    # without a name, only judged labels count
    shuffled = scores.copy()
    shuffled[:, :, ~judged] = np.random.default_rng(0).permuted(scores[:, :, ~judged], axis=1)
    both = True, True
    np.testing.assert_array_equal(common(scores, judged, both), common(shuffled, judged, both))
    assert np.abs(common(scores, judged) - common(scores, judged, both)).max() > 0.01


def test_log_odds_are_those_of_fits_without_the_image():
    """To first order, and nearer than those of the fit with it; the common weights hardly move."""
    scores, Y = collection(n=60, d=3, seed=1)
    mixture, log_odds = fit(scores, Y)
    inside = mixture(scores)
    better = 0
    for i in range(0, 60, 7):
        others = np.delete(np.arange(60), i)
        fitted = fit(scores[:, others], Y[others])[0]
        # the share of the images, which the centre of the intercept is, is that of all
        without = fitted(scores[:, [i]])[0]
        assert np.abs(log_odds[i] - without).max() < 0.25
        better += np.sum(np.abs(log_odds[i] - without) < np.abs(inside[i] - without))
    assert better >= 20  # of 27


def test_a_label_on_few_images_keeps_the_common_weights():
    scores, Y = collection(2000)
    dense = Y.toarray()

    def deviation(n_images):
        dense[:, 0] = 0
        dense[np.argsort(-scores[0][:, 0])[:n_images], 0] = 1  # it goes with the first score alone
        mixture = fit(scores, scipy.sparse.csr_array(dense))[0]
        return np.abs(mixture.weights[0] - mixture.common).max()

    assert deviation(3) < 0.1 < deviation(400)


def test_few_images_leave_the_weights_where_they_usually_are():
    scores, Y = collection(8)
    mixture = fit(scores, Y)[0]
    np.testing.assert_allclose(2 * mixture.common, MIXING.start, atol=0.2)


def test_weights_never_turn_the_order_of_images_around():
    scores, Y = collection(1000)
    wrong = scores.copy()
    wrong[0] = -5 * Y.toarray()
    mixture, log_odds = fit(wrong, Y)
    assert (mixture.weights > 0).all()
    assert np.isfinite(log_odds).all()


def test_shares_add_up_to_one_and_follow_what_lifts_the_score():
    scores, Y = collection(50)
    mixture = fit(scores, Y)[0]
    shares = mixture.shares(scores)
    np.testing.assert_allclose(shares.sum(axis=0), 1)
    lifts = mixture.weights.T[:, None] * (scores - mixture.centers.T[:, None])
    helps = (lifts > 0).any(axis=0)
    assert (shares[0][helps & (lifts[0] < 0)] == 0).all()
    both = (lifts > 0).all(axis=0)
    np.testing.assert_allclose(shares[0][both], (lifts[0] / lifts.sum(axis=0))[both])


def test_labels_without_scores_get_the_common_weights():
    scores, Y = collection(300)
    mixture = fit(scores, Y)[0]
    columns = np.array([0, 2, 3, 5, 6, 7])
    levels = np.linspace(-3, -1, 8)
    wide = mixture.spread(columns, np.zeros((8, 2)), levels)
    np.testing.assert_array_equal(wide.weights[columns], mixture.weights)
    np.testing.assert_array_equal(wide.weights[[1, 4]], [mixture.common] * 2)
    np.testing.assert_allclose(wide.intercepts[[1, 4]], levels[[1, 4]] + mixture.common_intercept)


def test_nothing_depends_on_the_blocks_of_labels(monkeypatch):
    scores, Y = collection(200)
    mixture, log_odds = fit(scores, Y)
    monkeypatch.setattr("tagkin.calibration.mixture.cached_rows", lambda bytes_per_row: 1)
    one_by_one, others = fit(scores, Y)
    np.testing.assert_allclose(one_by_one.weights, mixture.weights, rtol=1e-4)
    np.testing.assert_allclose(others, log_odds, atol=1e-3)
