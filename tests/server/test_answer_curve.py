"""Confidences that follow answers, against the posterior of each band, answer by answer."""

import numpy as np
import pytest
import scipy.stats

from tagkin.server.asking import N_BANDS, AnswerCurve, list_bands

STRENGTH, COMMON_STRENGTH, REACH = 5, 50, 0.5
CENTERS = (np.arange(N_BANDS) + 0.5) / N_BANDS


@pytest.fixture
def answers():
    rng = np.random.default_rng(0)
    p = rng.random(80)
    return p, rng.random(80) < p**2


def learn(p, accepted):
    return AnswerCurve().add(list_bands(p, accepted))


def posterior_mean(center, p, accepted, prior=None, strength=STRENGTH):
    """The mean of the Beta posterior of one band, from a plain loop over all answers."""
    prior = center if prior is None else prior
    yes, no = strength * prior, strength * (1 - prior)
    for confidence, is_right in zip(p, accepted, strict=True):
        weight = REACH ** abs(int(confidence * N_BANDS) - int(center * N_BANDS))
        share = float(is_right) - confidence + center  # of this answer that counts as right
        yes, no = yes + weight * share, no + weight * (1 - share)
    return scipy.stats.beta(yes, no).mean() if yes > 0 else 0.0


def test_a_band_has_the_mean_of_its_posterior(answers):
    expected = np.array([posterior_mean(center, *answers) for center in CENTERS])
    expected = [expected[i:].min() for i in range(N_BANDS)]  # at most that of the bands above
    np.testing.assert_allclose(learn(*answers).correct(CENTERS), expected, atol=1e-12)


def test_a_label_starts_from_the_answers_to_all_labels(answers):
    rng = np.random.default_rng(2)
    p = rng.uniform(0.2, 0.9, 300)
    accepted = rng.random(300) < p - 0.1
    start = AnswerCurve.start(list_bands(p, accepted))
    common = [posterior_mean(c, p, accepted, strength=COMMON_STRENGTH) for c in CENTERS]
    lowest = [min(common[i:]) for i in range(N_BANDS)]
    np.testing.assert_allclose(start.correct(CENTERS), lowest, atol=1e-12)
    own = [posterior_mean(c, *answers, prior) for c, prior in zip(CENTERS, common, strict=True)]
    lowest = [min(own[i:]) for i in range(N_BANDS)]
    np.testing.assert_allclose(start.add(list_bands(*answers)).correct(CENTERS), lowest, atol=1e-12)


def test_the_order_of_a_label_stays(answers):
    p = np.linspace(0, 1, 1001)
    for seed in range(20):
        accepted = np.random.default_rng(seed).random(80) < 0.5
        corrected = learn(answers[0], accepted).correct(p)
        assert (np.diff(corrected) >= -1e-12).all()
        assert 0 <= corrected.min() <= corrected.max() <= 1


def test_without_answers_nothing_changes():
    p = np.linspace(0, 1, 50)
    np.testing.assert_allclose(AnswerCurve().correct(p), p, atol=1e-12)


def test_bands_count_each_answer(answers):
    p, accepted = answers
    bands = [(int(q * N_BANDS), 1, float(y) - q) for q, y in zip(p, accepted, strict=True)]
    curve = AnswerCurve().add(bands[:30]).add(bands[30:])
    np.testing.assert_allclose(curve.correct(p), learn(p, accepted).correct(p), atol=1e-12)


def test_confidences_reach_the_share_that_is_right():
    """A word that is said at 61 % and right for 14 % becomes modest after a page."""
    rng = np.random.default_rng(1)
    p, accepted = rng.uniform(0.55, 0.67, 60), rng.random(60) < 0.14
    corrected = learn(p, accepted).correct(np.array([0.61, 0.5]))
    np.testing.assert_allclose(corrected[0], accepted.mean(), atol=0.08)
    assert corrected[1] <= corrected[0]
