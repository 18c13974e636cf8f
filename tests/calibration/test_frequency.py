"""How frequent labels are in new images."""

import numpy as np
import scipy.stats

from tagkin.calibration import frequency_levels


def logit(p):
    return np.log(p / (1 - p))


def test_it_is_empirical_bayes_with_binomial_counts():
    """Against a plain form, label by label, to 1e-9."""
    n, counts = 20, np.array([1, 1, 1, 1, 2, 2, 3, 7, 18])
    low, high = np.log(0.1 / n), np.log(1 - 0.5 / n)
    p = np.exp(np.linspace(low, high, int((high - low) / 0.05) + 2))
    weights = np.ones(len(p))
    for _ in range(6):
        posteriors = []
        for r in counts:
            likelihood = scipy.stats.binom.pmf(r, n, p) / scipy.stats.binom.sf(0, n, p)
            posteriors.append(likelihood * weights / (likelihood * weights).sum())
        weights = np.sum(posteriors, axis=0)
    expected = logit(np.array(posteriors) @ p) - logit(counts / n)
    np.testing.assert_allclose(frequency_levels(counts, n), np.minimum(expected, 0), atol=1e-9)


def test_labels_are_as_rare_as_drawn_ones_are():
    """Of 5,000 labels with shares of 1/1000 to 1/2, those that 20 images happen to have."""
    rng = np.random.default_rng(0)
    n, p = 20, np.exp(rng.uniform(np.log(0.001), np.log(0.5), 5000))
    counts = rng.binomial(n, p)
    levels = frequency_levels(counts, n)
    for r in (1, 2, 3, 4):
        drawn = counts == r
        expected = 1 / (1 + np.exp(-(logit(r / n) + levels[drawn][0])))
        np.testing.assert_allclose(expected, p[drawn].mean(), rtol=0.15)


def test_levels_are_never_above_0_and_vanish_for_frequent_labels():
    counts = np.array([0, 1, 2, 5, 50, 1000])
    levels = frequency_levels(counts, 1000)
    assert (levels <= 0).all()
    assert levels[0] == levels[5] == 0  # on no image, and on all
    assert np.abs(levels[4:]).max() < 0.01
    np.testing.assert_array_equal(frequency_levels(np.array([0, 6]), 6), 0)
