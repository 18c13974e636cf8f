"""Confidences from a few examples, where no image is known to lack a label."""

import numpy as np
import pytest
import scipy.sparse

from tagkin.calibration import HeldOutScores
from tagkin.calibration.from_examples import NAMED, UNNAMED, calibrate_from_examples

N, D, BIAS = 60, 3, -4.9


@pytest.fixture
def scores() -> HeldOutScores:
    """Scores of votes, read-out and time, and of names: the last label's has no meaning."""
    votes, readout, time, name = np.random.default_rng(0).normal(size=(4, N, D)).astype(np.float32)
    name[:, 2] = 0
    return HeldOutScores((votes, 3 * readout - 2), 2 * name, (time,))


@pytest.fixture
def examples() -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(np.random.default_rng(1).random((N, D)) < 0.1)


def nothing() -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    return scipy.sparse.csr_array((N, D)), scipy.sparse.csr_array((N, D))


def spread(scores, examples):
    """Read-out of each label in units of its spread over all images but the examples."""
    columns = []
    for column, own in zip(scores.learned[1].T, examples.toarray().T, strict=True):
        others = column[~own].astype(np.float64)
        columns.append((column - np.median(others)) / others.std())
    return np.stack(columns, axis=1)


def test_log_odds_are_those_of_the_equation(scores, examples):
    z = calibrate_from_examples(scores, examples, nothing(), BIAS).log_odds
    readout, time, name = spread(scores, examples), scores.occasions[0], scores.name + BIAS
    for t, (a, c, w, b) in enumerate((NAMED, NAMED, UNNAMED)):
        expected = b + a * readout[:, t] + c * time[:, t] + w * name[:, t]
        np.testing.assert_allclose(z[:, t], expected, atol=1e-5)


def test_names_without_a_bias_do_not_count(scores, examples):
    without = calibrate_from_examples(scores._replace(name=None), examples, nothing())
    with_names = calibrate_from_examples(scores, examples, nothing(), None)
    np.testing.assert_allclose(with_names.log_odds, without.log_odds, atol=1e-6)


def test_the_scale_of_a_read_out_does_not_matter(scores, examples):
    votes, readout = scores.learned
    scaled = scores._replace(learned=(votes, 100 * readout + 7))
    z, other = (
        calibrate_from_examples(s, examples, nothing(), BIAS).log_odds for s in (scores, scaled)
    )
    np.testing.assert_allclose(z, other, atol=1e-3)


def test_answers_move_the_labels_that_they_are_about(scores, examples):
    right, wrong = np.zeros((2, N, D))
    right[:20, 0] = wrong[:20, 1] = 1
    answers = scipy.sparse.csr_array(right), scipy.sparse.csr_array(wrong)
    before = calibrate_from_examples(scores, examples, nothing(), BIAS).log_odds
    moved = (calibrate_from_examples(scores, examples, answers, BIAS).log_odds - before).mean(
        axis=0
    )
    assert moved[0] > 1
    assert moved[1] < moved[2] < moved[0]


def test_a_cut_holds_what_the_probabilities_say(scores, examples):
    votes, readout = scores.learned
    sure = scores._replace(learned=(votes, readout), occasions=(20 * scores.occasions[0],))
    calibrated = calibrate_from_examples(sure, examples, nothing(), BIAS)
    least = calibrated.calibration.threshold(0.8)
    P = calibrated.calibration.probabilities(calibrated.log_odds)
    assert P[least <= P].mean() >= 0.8


def test_a_label_without_spread_gets_finite_log_odds(scores, examples):
    scores.learned[1][:, 1] = -3
    assert np.isfinite(calibrate_from_examples(scores, examples, nothing(), BIAS).log_odds).all()
