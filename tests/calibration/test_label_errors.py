"""Shares of wrong and missing labels, against known truth and against other forms."""

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize
from scipy.special import expit

from tagkin.calibration import (
    LabelErrors,
    error_rates,
    estimate_label_errors,
    probability_missing,
    probability_wrong,
)
from tagkin.calibration.error_rates import ScoreTable, expect_errors
from tagkin.errors import InvalidInput


def drawn(
    rng: np.random.Generator,
    n: int,
    *,
    wrong: float = 0.0,
    missing: float = 0.0,
    evenly: bool = False,
    n_labels: int = 30,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-odds, the labels that belong, and those that are there: all of shape (n, n_labels).

    Of those there, a share `wrong` does not belong; of those that belong, `missing` is not there.
    """
    Z = rng.normal(np.linspace(-8, -2, n_labels), 4, (n, n_labels))
    belongs = rng.random(Z.shape) < expit(Z)
    there = belongs & (rng.random(Z.shape) >= missing)
    count = there.sum(axis=0)
    n_wrong = wrong / (1 - wrong) * (np.full(n_labels, count.mean()) if evenly else count)
    rates = n_wrong / (~belongs).sum(axis=0)
    return Z, belongs, there | (~belongs & (rng.random(Z.shape) < rates))


def confidences(errors: LabelErrors, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    q, rates = errors.predict_proba(Z), (errors.wrong_rates, errors.missing_rates)
    return probability_wrong(q, *rates), probability_missing(q, *rates)


def test_probabilities_are_those_of_bayes():
    """Against the joint distribution of belonging and being there, written out."""
    rng = np.random.default_rng(0)
    for q, a, e in rng.uniform(0.01, 0.99, (20, 3)):
        joint = {
            (belongs, there): (q if belongs else 1 - q)
            * (((1 - e) if there else e) if belongs else (a if there else 1 - a))
            for belongs in (False, True)
            for there in (False, True)
        }
        wrong = joint[False, True] / (joint[False, True] + joint[True, True])
        missing = joint[True, False] / (joint[True, False] + joint[False, False])
        assert probability_wrong(q, a, e) == pytest.approx(wrong, rel=1e-12)
        assert probability_missing(q, a, e) == pytest.approx(missing, rel=1e-12)


def test_sums_in_blocks_are_those_of_the_formulas():
    """Label by label with Bayes' rule; also where a label is never there, and far log-odds."""
    rng = np.random.default_rng(0)
    shape = 7, 5000  # groups of three labels fill a block
    z = rng.normal(0, 4, shape)
    z[0], z[1] = 900, -900  # surely there, surely not: the exponential would be no number
    n = rng.integers(0, 30, shape).astype(float)
    there = np.floor(n * rng.random(shape))
    there[2] = 0
    sigmoids = np.column_stack([rng.uniform(0, 2, 7), rng.normal(0, 1, 7)])
    a, e = rng.uniform(0.01, 0.2, (2, 7))
    a[2] = e[3] = 0
    estimate = expect_errors(ScoreTable(z, n, there), sigmoids, a, e)
    for t in range(7):
        q = expit(sigmoids[t, 0] * z[t] + sigmoids[t, 1])
        rounding = 1e-15 * n[t].sum()
        wrong = there[t] * probability_wrong(q, a[t], e[t])
        missing = (n[t] - there[t]) * probability_missing(q, a[t], e[t])
        belongs = there[t] - wrong + missing
        assert estimate.wrong[t] == pytest.approx(wrong.sum(), rel=1e-12, abs=rounding)
        assert estimate.missing[t] == pytest.approx(missing.sum(), rel=1e-12, abs=rounding)
        assert estimate.belonging[t] == pytest.approx(belongs.sum(), rel=1e-12, abs=rounding)
        x = np.stack([z[t], np.ones_like(z[t])])
        gradient, curvature = x @ (n[t] * q - belongs), (x * n[t] * q * (1 - q)) @ x.T
        np.testing.assert_allclose(estimate.gradient[t], gradient, rtol=1e-10, atol=1e-7)
        np.testing.assert_allclose(estimate.curvature[t], curvature, rtol=1e-10, atol=1e-7)


def test_one_label_with_much_data_has_the_greatest_likelihood():
    """Against a general optimiser on the likelihood of all images."""
    rng = np.random.default_rng(1)
    z = rng.choice(np.linspace(-7, 7, 12), 60_000)  # so few values that no group mixes them
    belongs = rng.random(len(z)) < expit(1.3 * z - 0.4)
    there = np.where(belongs, rng.random(len(z)) < 0.85, rng.random(len(z)) < 0.04)

    def loss(parameters: np.ndarray) -> float:
        q, (a, e) = expit(parameters[0] * z + parameters[1]), expit(parameters[2:])
        p = (1 - q) * a + q * (1 - e)
        return -float(np.where(there, np.log(p), np.log1p(-p)).mean())

    best = minimize(loss, [1, 0, -2, -2], method="Nelder-Mead", options={"maxiter": 2000})
    errors = estimate_label_errors(z[:, None], there[:, None])
    fitted = errors.slopes[0], errors.intercepts[0]
    # the priors weigh as much as a hundred labels of 30,000
    np.testing.assert_allclose(fitted, best.x[:2], atol=0.02)
    rates = errors.wrong_rates[0], errors.missing_rates[0]
    np.testing.assert_allclose(rates, expit(best.x[2:]), rtol=0.02)


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("kind", ["wrong", "missing"])
def test_shares_are_found_and_findings_hold_as_often_as_is_said(kind, share):
    rng = np.random.default_rng(2)
    Z, belongs, there = drawn(rng, 6000, **{kind: share})
    errors = estimate_label_errors(Z, there)
    assert errors.wrong_share == pytest.approx(share if kind == "wrong" else 0, abs=0.01)
    assert errors.missing_share == pytest.approx(share if kind == "missing" else 0, abs=0.01)
    wrong, missing = confidences(errors, Z)
    confidence, holds = (
        (wrong[there], ~belongs[there]) if kind == "wrong" else (missing[~there], belongs[~there])
    )
    for low, high in ((0.3, 0.5), (0.5, 0.8), (0.8, 1)):
        in_range = (confidence >= low) & (confidence < high)
        deviation = 0.5 / np.sqrt(max(in_range.sum(), 1))
        expected, held = confidence[in_range].sum(), holds[in_range].sum()
        assert abs(expected - held) <= (3 * deviation + 0.05) * in_range.sum()


def test_going_ahead_leads_where_many_rounds_do(monkeypatch):
    Z, _, there = drawn(np.random.default_rng(3), 2000, wrong=0.05, missing=0.2)
    estimate = estimate_label_errors(Z, there)
    monkeypatch.setattr(error_rates, "extrapolate", lambda first, second, third: third)
    numbers = error_rates.ErrorNumbers(most_rounds=5000, settled=1e-7)
    monkeypatch.setattr(error_rates, "ERRORS", numbers)
    expected = estimate_label_errors(Z, there)
    np.testing.assert_allclose(estimate.missing_share, expected.missing_share, rtol=0.01)
    np.testing.assert_allclose(estimate.wrong_share, expected.wrong_share, atol=1e-3)
    np.testing.assert_allclose(estimate.slopes, expected.slopes, atol=0.01)


def test_where_nothing_is_wrong_or_missing_nothing_is_found():
    Z, _, there = drawn(np.random.default_rng(3), 5000)
    errors = estimate_label_errors(Z, scipy.sparse.csr_array(there * 1.0))
    assert errors.wrong_share < 0.005
    assert errors.missing_share < 0.01
    wrong, missing = confidences(errors, Z)
    # by chance, one of 22,000 tags is as odd as a wrong one
    assert np.count_nonzero(wrong[there] >= 0.8) <= 1
    assert missing[~there].max() < 0.8


@pytest.mark.parametrize("evenly", [False, True])
def test_what_all_labels_share_is_learned(evenly):
    """Wrong labels fall on labels by their frequency, or on all of them equally often."""
    Z, belongs, there = drawn(np.random.default_rng(4), 8000, wrong=0.1, evenly=evenly)
    errors = estimate_label_errors(Z, there)
    true = (there & ~belongs).sum(axis=0) / (~belongs).sum(axis=0)
    off = np.abs(np.log(errors.wrong_rates / true))
    assert np.median(off) < 0.1  # by chance alone, counts of 50 differ by .14
    expected = errors.wrong_rates if evenly else errors.wrong_rates / there.mean(axis=0)
    assert np.std(np.log(expected)) < 0.35


def test_a_rare_label_has_the_rates_of_the_others():
    rng = np.random.default_rng(5)
    Z, _, there = drawn(rng, 4000, missing=0.2)
    z = rng.normal(-9, 1, (4000, 1))
    rare = np.zeros((4000, 1), bool)
    rare[np.argsort(z[:, 0])[-3:]] = True
    errors = estimate_label_errors(np.hstack([Z, z]), np.hstack([there, rare]))
    assert errors.missing_rates[-1] == pytest.approx(errors.missing_share, abs=0.03)


def test_labels_on_no_image_and_on_all_are_no_trouble():
    Z, _, there = drawn(np.random.default_rng(6), 300, wrong=0.1)
    there[:, 0], there[:, 1] = False, True
    Z[:, 1] += 15  # as any method finds it
    errors = estimate_label_errors(Z, there)
    for part in confidences(errors, Z):
        assert np.all(np.isfinite(part))
    assert np.all((errors.wrong_rates >= 0) & (errors.wrong_rates <= 1))
    # nobody sees what it is to be without a label that all images have
    assert confidences(errors, Z)[0][:, 1].max() < 0.5


def test_the_surest_findings_are_not_tied():
    Z, _, there = drawn(np.random.default_rng(7), 3000, wrong=0.1)
    errors = estimate_label_errors(Z, there)
    top = np.sort(confidences(errors, Z)[0][there])[-100:]
    assert len(np.unique(top)) == 100


def test_what_does_not_fit_is_refused():
    Z, _, there = drawn(np.random.default_rng(8), 100)
    errors = estimate_label_errors(Z, there)
    with pytest.raises(InvalidInput, match="30 labels"):
        errors.predict_proba(Z[:, :2])
    with pytest.raises(InvalidInput):
        estimate_label_errors(np.where(Z > 0, np.inf, Z), there)
