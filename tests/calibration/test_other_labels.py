"""What other labels of an image say, against one regression after the other."""

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit
from sklearn.metrics import average_precision_score

from tagkin.calibration import estimate_label_errors, with_other_labels

LAMBDA = 30


def drawn(n: int, n_labels: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds that know nothing of what the labels of an image have in common, and labels."""
    rng = np.random.default_rng(0)
    Z = rng.normal(-2, 2, (n, n_labels))
    theme = rng.normal(0, 1.5, (n, 3)) @ rng.normal(0, 1, (3, n_labels))
    return Z, rng.random(Z.shape) < expit(Z + theme)


@pytest.mark.parametrize(("n", "n_labels"), [(400, 12), (40, 60)])
def test_weights_are_those_of_a_regression_on_the_other_labels(n, n_labels):
    """A dense solve for each label, without its own column; equal up to 1e-9."""
    Z, Y = drawn(n, n_labels)
    there = scipy.sparse.csr_array(Y)
    groups = np.arange(n) // 4
    errors = estimate_label_errors(Z, there)
    corrected = with_other_labels(Z, there, groups)
    q = errors.predict_proba(Z)
    p = (1 - q) * errors.wrong_rates + q * (1 - errors.missing_rates)
    R = Y - p
    for fold in range(5):
        held_out = groups % 5 == fold
        known = R[~held_out]
        for t in range(Z.shape[1]):
            others = np.arange(Z.shape[1]) != t
            variance = (p * (1 - p))[~held_out, t].mean()
            C = known[:, others].T @ known[:, others]
            w = np.linalg.solve(
                variance * C + LAMBDA * np.eye(len(C)), known[:, others].T @ known[:, t]
            )
            step = R[held_out][:, others] @ w / max(errors.slopes[t], 0.2)
            np.testing.assert_allclose((corrected - Z)[held_out, t], step, rtol=0, atol=1e-9)


def test_missing_labels_are_found_sooner_by_what_else_is_there():
    Z, belongs = drawn(3000)
    there = belongs & (np.random.default_rng(1).random(Z.shape) > 0.1)
    Y = scipy.sparse.csr_array(there)
    corrected = with_other_labels(Z, Y)
    before, after = (
        average_precision_score(belongs[~there], scores[~there]) for scores in (Z, corrected)
    )
    assert after > before + 0.03


def test_rare_labels_of_many_are_left_as_they_are():
    rng = np.random.default_rng(2)
    Z = rng.normal(-3, 2, (60, 1100))
    Y = rng.random(Z.shape) < expit(Z)
    Y[:, :1024] |= rng.random((60, 1024)) < 0.3
    Y[:, 1024:] = False
    there = scipy.sparse.csr_array(Y)
    corrected = with_other_labels(Z, there)
    np.testing.assert_array_equal(corrected[:, 1024:], Z[:, 1024:])
    assert np.abs(corrected - Z)[:, :1024].max() > 1e-3
