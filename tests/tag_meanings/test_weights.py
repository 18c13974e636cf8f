"""The weight of a name beside learned scores, against scikit-learn's logistic regression."""

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tagkin.errors import InvalidInput
from tagkin.evaluation import mean_average_precision
from tagkin.tag_meanings import fit_name_weights


def problem(n, n_tags, slope, weight, intercept=-2.0, seed=0):
    """Scores, priors and labels that follow the model, for all tags alike."""
    rng = np.random.default_rng(seed)
    S, Z = rng.normal(size=(2, n, n_tags))
    Y = rng.random((n, n_tags)) < expit(slope * S + intercept + weight * Z)
    return S, Z, scipy.sparse.csr_array(Y.astype(np.float32))


def own(n_tags):
    return np.zeros(n_tags, dtype=bool)


def test_with_many_images_it_is_a_logistic_regression():
    """Coefficients within .05 of scikit-learn's without penalty, on 3,000 images."""
    S, Z, Y = problem(3000, 3, 1.5, 0.7)
    found = fit_name_weights(S * 5 + 3, Z * 2 - 1, Y, own(3))
    odds = found.combine(S * 5 + 3, Z * 2 - 1)
    for t in range(3):
        reference = LogisticRegression(C=np.inf).fit(
            np.stack([S[:, t], Z[:, t]], axis=1), Y[:, [t]].toarray()[:, 0] > 0
        )
        expected = reference.decision_function(np.stack([S[:, t], Z[:, t]], axis=1))
        weight = found.weights[t] / 2  # the prior of a frequent tag counts half
        assert weight == pytest.approx(reference.coef_[0, 1], abs=0.05)
        np.testing.assert_allclose(odds[:, t], expected, atol=0.3)


def test_more_images_than_are_kept_give_the_same_coefficients():
    S, Z, Y = problem(12_000, 2, 1.5, 0.7, intercept=-4.0)
    found = fit_name_weights(S, Z, Y, own(2))
    np.testing.assert_allclose(found.slopes, 1.5, atol=0.25)
    np.testing.assert_allclose(found.weights / 2, 0.7, atol=0.25)
    np.testing.assert_allclose(found.intercepts, -4.0, atol=0.4)


def test_names_count_before_there_are_images_enough_to_tell():
    S, Z, Y = problem(6, 10, 0.0, 1.0)
    assert fit_name_weights(S, Z, Y, own(10)).weights.mean() > 0.6


def test_a_name_that_misleads_gets_no_weight():
    S, Z, Y = problem(400, 8, 2.0, 0.8)
    Z[:, 0] *= -1
    found = fit_name_weights(S, Z, Y, own(8))
    assert found.weights[0] < 0.05
    assert found.weights[1:].min() > 0.3
    assert found.name_shares(S, Z)[:, 0].max() < 0.5


def test_weights_shrink_as_scores_get_better():
    """A score that knows the truth needs no name."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(600, 6))
    Y = scipy.sparse.csr_array((truth > 1).astype(np.float32))
    Z = truth + rng.normal(size=truth.shape)
    poor, good = (truth + noise * rng.normal(size=truth.shape) for noise in (3.0, 0.2))
    weights = [fit_name_weights(S, Z, Y, own(6)).weights.mean() for S in (poor, good)]
    assert weights[1] < 0.6 * weights[0]


def test_names_do_not_lower_the_ranking_of_new_images():
    """MAP with names is never more than .002 below that without, whatever the names are worth."""
    for weight, seed in [(1.0, 1), (0.3, 2), (0.0, 3), (-1.0, 4)]:
        S, Z, Y = problem(1500, 20, 1.5, weight, seed=seed)
        found = fit_name_weights(S[:700], Z[:700], Y[:700], own(20))
        without = mean_average_precision(Y[700:], S[700:])
        assert mean_average_precision(Y[700:], found.combine(S[700:], Z[700:])) > without - 0.002


def test_unknown_tags_have_no_weight_and_new_ones_what_is_expected():
    S, Z, Y = problem(100, 3, 1.0, 1.0)
    found = fit_name_weights(S, Z, Y, np.array([True, False, False]))
    assert found.weights[0] == 0
    larger = found.extend(np.array([False, True]))
    np.testing.assert_allclose(larger.weights[3:], [found.expected[0, 2], 0])
    assert larger.combine(np.zeros((2, 5)), np.zeros((2, 5))).shape == (2, 5)


def test_a_prior_that_never_varies_changes_no_order():
    S, Z, Y = problem(100, 2, 1.0, 0.0)
    Z[:] = -20.0
    found = fit_name_weights(S, Z, Y, own(2))
    odds = found.combine(S, Z)
    assert np.isfinite(odds).all()
    assert (np.argsort(odds, axis=0) == np.argsort(S, axis=0)).all()


def test_shapes_are_checked():
    S, Z, Y = problem(10, 2, 1.0, 1.0)
    with pytest.raises(InvalidInput, match=r"the same shape; found \(10, 2\), \(10, 1\)"):
        fit_name_weights(S, Z[:, :1], Y, own(2))


def test_shares_are_parts_of_what_speaks_for_a_tag():
    S, Z, Y = problem(300, 3, 1.0, 1.0)
    found = fit_name_weights(S, Z, Y, own(3))
    shares = found.name_shares(S, Z)
    s = found.slopes * (S - S.mean()) / S.std()
    z = found.weights * (Z - Z.mean(axis=0)) / found.prior_scale
    both = (s > 0) & (z > 0)
    np.testing.assert_allclose(shares[both], (z / (s + z))[both], rtol=1e-6)
    assert (shares[(s <= 0) & (z > 0)] == 1).all()
    assert (shares[z <= 0] == 0).all()


def test_a_tag_on_few_photographs_has_the_slope_that_is_usual():
    """Held-out scores of a tag's only photographs say nothing good about what was learned."""
    S, Z, Y = problem(300, 12, 2.0, 0.8)
    few = Y.toarray()
    few[:, 0] = 0
    few[np.argsort(S[:, 0])[:3], 0] = 1  # three photographs with the lowest scores
    weights = fit_name_weights(S, Z, scipy.sparse.csr_array(few), own(12))
    assert weights.slopes[0] == pytest.approx(np.median(weights.slopes[1:]), abs=1e-3)


def test_an_unknown_name_keeps_the_learned_order():
    # held-out scores that are no better than chance, as those of rare tags often are
    rng = np.random.default_rng(0)
    S, Z = rng.normal(size=(60, 40)), np.zeros((60, 40))
    Y = scipy.sparse.csr_array((rng.random((60, 40)) < 0.05).astype(float))
    weights = fit_name_weights(S, Z, Y, np.ones(40, dtype=bool))
    assert (weights.slopes > 0.2).all()
    np.testing.assert_array_equal(
        np.argsort(weights.combine(S, Z), axis=0), np.argsort(S.astype(np.float32), axis=0)
    )


def test_the_prior_of_a_frequent_tag_counts_half():
    S, Z, Y = problem(300, 2, 1.0, 1.0)
    few = Y.toarray()
    few[:, 0] = 0
    few[:5, 0] = 1
    scale = fit_name_weights(S, Z, scipy.sparse.csr_array(few), own(2)).prior_scale
    np.testing.assert_allclose(scale / Z.std(axis=0), [1.5, 2.0], rtol=1e-6)
