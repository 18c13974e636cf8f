"""The link and the cut: counted by hand, against scikit-learn, and on new images."""

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from scipy.special import expit

from tagkin.arrays import memory_budget
from tagkin.calibration.calibration import (
    LINKING,
    Cuts,
    Tally,
    apply_link,
    fit_cuts,
    fit_shrink,
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


def test_the_shrink_is_the_likeliest():
    """Against a search on a grid, of the printed loss."""
    z, Y = drawn(n=300)
    tally = tally_of(z, Y)
    grid = np.linspace(0, 0.9, 901)
    log_odds = tally.log_odds - grid[:, None] * np.maximum(tally.log_odds + 1, 0)
    p = expit(log_odds)
    absent = tally.count - tally.positives
    loss = -(tally.positives * np.log(p) + absent * np.log1p(-p)).sum(axis=1)
    loss += LINKING.shrink_pull / 2 * (grid - LINKING.shrink) ** 2
    assert fit_shrink(tally) == pytest.approx(grid[np.argmin(loss)], abs=0.002)


def test_likely_labels_become_less_likely():
    """If log-odds say twice too much above −1, half of that is taken away."""
    rng = np.random.default_rng(0)
    z = rng.normal(-1, 2, (3000, 10))
    right = z - 0.5 * np.maximum(z + 1, 0)
    shrink = fit_shrink(
        tally_of(z, scipy.sparse.csr_array((rng.random(z.shape) < expit(right)) * 1.0))
    )
    assert shrink == pytest.approx(0.5, abs=0.03)
    np.testing.assert_allclose(apply_link(z, 0.5), right)


def test_few_images_change_the_shrink_little():
    """If 40 images have log-odds that are right, it stays near its usual value."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = rng.normal(-2, 1.5, (40, 20))
        Y = scipy.sparse.csr_array((rng.random(z.shape) < expit(z)).astype(float))
        assert 0 < fit_shrink(tally_of(z, Y)) < LINKING.shrink + 0.05


@pytest.mark.parametrize("shrink", [0, 0.9])
def test_only_equal_log_odds_are_tied(shrink):
    grid = np.linspace(-30, 30, 4001)
    assert (np.diff(apply_link(grid, shrink)) > 0).all()


def test_a_cut_is_the_lowest_that_reaches_the_precision():
    """Against the bound at every cut, in a loop."""
    z, Y = drawn(n=150)
    tally = tally_of(z, Y)
    shrink = fit_shrink(tally)
    cuts = fit_cuts(tally, shrink)
    p = expit(apply_link(tally.log_odds, shrink))
    for wanted in (0.3, 0.5, 0.7):
        expected = np.inf
        for at in range(len(p)):
            count, right = tally.count[at:].sum(), tally.positives[at:].sum()
            mean = (tally.count[at:] * p[at:]).sum() / count
            right += LINKING.prior_pairs * mean
            wrong = count + LINKING.prior_pairs - right
            if scipy.stats.beta(right, wrong + 1).ppf(LINKING.error) >= wanted:
                expected = expit(apply_link(tally.log_odds[at] - LINKING.step / 2, shrink))
                break
        assert cuts.threshold(wanted) == pytest.approx(expected)


@pytest.mark.parametrize("wanted", [0.3, 0.5, 0.7])
def test_cuts_keep_their_word_on_new_images(wanted):
    z, Y = drawn(2000)
    tally = tally_of(z, Y)
    shrink = fit_shrink(tally)
    threshold = fit_cuts(tally, shrink).threshold(wanted)
    new, truth = drawn(20_000, seed=7)
    chosen = expit(apply_link(new, shrink)) >= threshold
    assert truth.toarray()[chosen].mean() == pytest.approx(wanted, abs=0.03)


def test_a_lucky_first_pair_earns_nothing():
    tally = Tally(np.array([-2.0, 4.0]), np.array([500.0, 1.0]), np.array([20.0, 1.0]))
    assert fit_cuts(tally, fit_shrink(tally)).threshold(0.9) == np.inf


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
