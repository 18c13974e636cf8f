"""The link and the cut: counted by hand, against scikit-learn, and on new images."""

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from tagkin.arrays import memory_budget
from tagkin.calibration.calibration import (
    LINKING,
    Cuts,
    Link,
    Tally,
    fit_cuts,
    fit_link,
    tally_pairs,
)


def drawn(n=3000, d=10, seed=0):
    """Log-odds that say too much, and labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-1, 2, (n, d)).astype(np.float32)
    Y = rng.random((n, d)) < expit(0.5 * z - 0.5)
    return z, scipy.sparse.csr_array(Y.astype(float))


def tally_of(z, Y, weights=None):
    n, d = Y.shape
    return tally_pairs(z, Y, np.ones(d), np.ones(n) if weights is None else weights)


def test_pairs_are_counted_by_their_log_odds():
    z, Y = drawn(n=200, d=3)
    rng = np.random.default_rng(1)
    of_labels, of_images = rng.random(3), rng.random(200)
    with memory_budget(1):
        tally = tally_pairs(z, Y, of_labels, of_images)
    weights = np.where(Y.toarray() > 0, of_labels, 1) * of_images[:, None]
    for middle, count, positives in zip(tally.log_odds, tally.count, tally.positives, strict=True):
        here = np.rint(z / LINKING.step) == round(middle / LINKING.step)
        assert count == pytest.approx(weights[here].sum(), abs=1e-6)
        assert positives == pytest.approx((weights * Y.toarray())[here].sum(), abs=1e-6)


def test_the_link_is_an_isotonic_regression():
    z, Y = drawn()
    tally = tally_of(z, Y)
    link = fit_link(tally)
    peer = IsotonicRegression().fit(
        tally.log_odds, tally.positives / np.maximum(tally.count, 1e-9), sample_weight=tally.count
    )
    middle = np.linspace(-4, 3, 50)
    np.testing.assert_allclose(expit(link(middle)), peer.predict(middle), atol=0.05)
    np.testing.assert_allclose(expit(link(middle)), expit(0.5 * middle - 0.5), atol=0.05)


def test_few_images_bend_the_link_little():
    """If 40 images have log-odds that are right, an even chance stays one within .1."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = rng.normal(-2, 1.5, (40, 20))
        Y = scipy.sparse.csr_array((rng.random(z.shape) < expit(z)).astype(float))
        assert expit(fit_link(tally_of(z, Y))(np.array(0.0))) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("n", [8, 100])
def test_only_equal_log_odds_are_tied(n):
    z, Y = drawn(n)
    link = fit_link(tally_of(z, Y))
    grid = np.linspace(-30, 30, 4001)
    assert (np.diff(link(grid)) > 0).all()
    P = expit(link(grid))
    assert 0 < P.min() < P.max() < 1


def test_ends_stay_away_from_certainty():
    """Ten pairs that are all right are no proof of 100 %."""
    z = np.r_[np.full(10, 3.0), np.full(90, -3.0)][:, None]
    link = fit_link(tally_of(z, scipy.sparse.csr_array((z > 0).astype(float))))
    assert 0.8 < expit(link(np.array(3.0))) < expit(3.0)
    assert 0 < expit(link(np.array(-3.0))) < 0.03


def test_a_cut_is_the_lowest_of_a_fixed_sequence():
    """Against the bound at every cut, in a loop."""
    z, Y = drawn(n=150)
    tally = tally_of(z, Y)
    link = fit_link(tally)
    cuts = fit_cuts(tally, link)
    p = expit(link(tally.log_odds))
    for wanted in (0.3, 0.5, 0.7):
        expected = np.inf
        for at in range(len(p) - 1, -1, -1):
            count, right = tally.count[at:].sum(), tally.positives[at:].sum()
            mean = (tally.count[at:] * p[at:]).sum() / count
            right += LINKING.prior_pairs * mean
            wrong = count + LINKING.prior_pairs - right
            if scipy.stats.beta(right, wrong + 1).ppf(LINKING.error) < wanted:
                break
            expected = expit(link(tally.log_odds[at] - LINKING.step / 2))
        assert cuts.threshold(wanted) == pytest.approx(expected)


@pytest.mark.parametrize("wanted", [0.3, 0.5, 0.7])
def test_cuts_keep_their_word_on_new_images(wanted):
    z, Y = drawn(2000)
    tally = tally_of(z, Y)
    link = fit_link(tally)
    threshold = fit_cuts(tally, link).threshold(wanted)
    new, truth = drawn(20_000, seed=7)
    chosen = expit(link(new)) >= threshold
    assert truth.toarray()[chosen].mean() == pytest.approx(wanted, abs=0.03)


def test_a_lucky_first_pair_earns_nothing():
    tally = Tally(np.array([-2.0, 4.0]), np.array([500.0, 1.0]), np.array([20.0, 1.0]))
    assert fit_cuts(tally, fit_link(tally)).threshold(0.9) == np.inf


def test_a_series_counts_once():
    """Fifty photographs of one burst say no more than one."""
    z, Y = drawn(n=100, d=2)
    burst = np.r_[np.zeros(50, dtype=int), np.arange(1, 51)]
    weights = 1 / np.bincount(burst)[burst]
    tally = tally_of(z, Y, weights)
    assert tally.count.sum() == pytest.approx(2 * 51)


def test_a_precision_that_nothing_reaches_has_no_threshold():
    assert Cuts(np.array([0.9, 0.5]), np.array([0.7, 0.4])).threshold(0.8) == np.inf
    assert Cuts(np.array([0.9, 0.5]), np.array([0.7, 0.4])).threshold(0.4) == 0.5


def test_beyond_its_steps_a_link_goes_on():
    link = Link(np.array([-1.0, 1.0]), logit(np.array([0.1, 0.8])))
    np.testing.assert_allclose(link(np.array([-1.0, 1.0])), logit(np.array([0.1, 0.8])))
    assert link(np.array(2.0)) == pytest.approx(logit(0.8) + LINKING.end_slope)
