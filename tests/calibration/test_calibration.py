"""Calibrated probabilities from scores, as users learn them, and reliability."""

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from tagkin import load, save
from tagkin.arrays import memory_budget
from tagkin.calibration import (
    HeldOutScores,
    LabelCalibrator,
    expected_calibration_error,
    fit_calibration,
    reliability_curve,
)
from tagkin.calibration.error_rates import summarize
from tagkin.errors import InvalidInput
from tagkin.evaluation import mean_average_precision
from tests.conftest import needs_torch


def made_scores(n=3000, n_labels=40, seed=0):
    """Scores, the probabilities behind them (label by label, not linear), and labels drawn."""
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((n, n_labels)) * 1.5
    labels = np.random.default_rng(99)  # the same labels whatever the images
    slope, intercept = labels.uniform(0.7, 1.3, n_labels), labels.normal(-3, 1.2, n_labels)
    P = expit(slope * (2 * S + 0.4 * np.sin(2 * S)) + intercept)
    return S, P, rng.random(P.shape) < P


@pytest.fixture(scope="module")
def fitted():
    S, _, Y = made_scores()
    return LabelCalibrator().fit(S, Y)


def test_known_probabilities_are_recovered(fitted):
    S, P, Y = made_scores(seed=1)
    probabilities = fitted.predict_proba(S)
    assert np.abs(probabilities - P).mean() < 0.02
    raw = (S - S.min()) / (S.max() - S.min())
    assert expected_calibration_error(Y, probabilities) < 0.01
    assert expected_calibration_error(Y, raw) > 0.1


def test_pooling_helps_rare_labels():
    """Against a sigmoid for each label on its own, and against the labels' frequencies."""
    S, _, Y = made_scores(n=60, seed=2)
    S_new, _, Y_new = made_scores(seed=3)
    rare = np.flatnonzero(Y.any(axis=0) & (Y.sum(axis=0) <= 6))
    assert len(rare) >= 5
    pooled = LabelCalibrator().fit(S, Y).predict_proba(S_new)[:, rare]
    alone = np.empty_like(pooled)
    for column, t in enumerate(rare):
        sigmoid = LogisticRegression(C=1e3).fit(S[:, [t]], Y[:, t])
        alone[:, column] = sigmoid.predict_proba(S_new[:, [t]])[:, 1]
    frequency = np.broadcast_to(Y.mean(axis=0)[rare], pooled.shape)
    truth = Y_new[:, rare].ravel()
    loss, loss_alone, loss_frequency = (
        log_loss(truth, P.ravel()) for P in (pooled, alone, frequency)
    )
    assert loss < 0.9 * loss_alone
    assert loss < 0.9 * loss_frequency


def test_probabilities_rank_like_scores(fitted):
    grid = np.repeat(np.linspace(-8, 8, 401)[:, None], 40, axis=1)
    P = fitted.predict_proba(grid)
    steps = np.diff(P, axis=0)
    assert (steps >= 0).all()
    assert (steps[P[1:] < 0.9999] > 0).all()  # float32 may round two that are nearer to 1
    assert ((P > 0) & (P < 1)).all()


@pytest.mark.parametrize("n", [8, 30])
def test_few_images_tie_no_probabilities(n):
    """Ranked by probability, new images are as good as ranked by score."""
    S, _, Y = made_scores(n=n, seed=5)
    calibrator = LabelCalibrator().fit(S, Y)
    S_new, _, Y_new = made_scores(n=500, seed=6)
    by_score, by_probability = (
        mean_average_precision(Y_new * 1.0, ranked)
        for ranked in (S_new, calibrator.predict_proba(S_new))
    )
    # probabilities are float32, and rounding may tie two images
    assert by_probability == pytest.approx(by_score, abs=1e-5)


def test_one_threshold_reaches_the_wanted_precision_on_fresh_images(fitted):
    S, _, Y = made_scores(n=6000, seed=4)
    P, share = fitted.predict_proba(S), []
    for wanted in (0.3, 0.5, 0.8):
        suggested = fitted.threshold(wanted) <= P
        assert Y[suggested].mean() == pytest.approx(wanted, abs=0.03)
        share.append(suggested.mean())
    assert share[0] > share[1] > share[2] > 0


def test_labels_on_no_or_every_image():
    S, _, Y = made_scores(n=500)
    Y[:, 0], Y[:, 1] = False, True
    P = LabelCalibrator().fit(S, Y).predict_proba(S)
    assert P[:, 0].mean() < 0.01
    assert P[:, 1].mean() > 0.95


@pytest.mark.parametrize(("n", "n_labels"), [(1, 1), (2, 1), (1, 5), (300, 1)])
def test_small_collections(n, n_labels):
    S, _, Y = made_scores(n, n_labels)
    P = LabelCalibrator().fit(S, Y).predict_proba(S)
    assert np.isfinite(P).all()
    assert ((P > 0) & (P < 1)).all()


def test_constant_scores_give_the_labels_frequency():
    Y = np.random.default_rng(0).random((4000, 3)) < [0.1, 0.3, 0.6]
    P = LabelCalibrator().fit(np.ones((4000, 3)), Y).predict_proba(np.ones((2, 3)))
    np.testing.assert_allclose(P[0], Y.mean(axis=0), atol=0.03)


def test_a_name_counts_before_there_is_anything_to_learn_from():
    """With votes that say nothing, ten images rank by the names; a constant name adds nothing."""
    rng = np.random.default_rng(0)
    name = rng.normal(size=(310, 4)).astype(np.float32)
    Y = scipy.sparse.csr_array((rng.random((310, 4)) < expit(2 * name - 2)).astype(float))
    name[:, 3] = 7.0
    nothing = np.zeros((310, 4), dtype=np.float32)
    scores = HeldOutScores((nothing, nothing), name)
    calibration = fit_calibration(scores.take(np.arange(10)), Y[:10]).calibration
    z = calibration.mix(scores.take(np.arange(10, 310)).all)
    for t in range(3):
        assert np.corrcoef(z[:, t], name[10:, t])[0, 1] > 0.99
    assert np.ptp(z[:, 3]) < 1e-4


def test_rare_labels_are_expected_less_often_than_they_were_seen():
    """Labels on one of twenty images by luck, of a hundred that are on one of a hundred."""
    rng = np.random.default_rng(0)
    Y = rng.random((20, 200)) < 0.01
    seen = np.flatnonzero(Y.any(axis=0))
    P = LabelCalibrator().fit(np.zeros((20, len(seen))), Y[:, seen] * 1.0)
    probability = P.predict_proba(np.zeros((1, len(seen)))).mean()
    assert probability < 0.8 * Y[:, seen].mean()


def test_the_same_answer_for_every_kind_and_block(fitted, as_array):
    S = made_scores(n=300)[0]
    expected = fitted.predict_proba(S)
    with memory_budget(1):
        again = LabelCalibrator().fit(as_array(made_scores()[0]), as_array(made_scores()[2]))
        probabilities = again.predict_proba(as_array(S))
    np.testing.assert_allclose(np.asarray(probabilities), expected, atol=2e-4)


def test_a_loaded_calibrator_is_the_saved_one(fitted, tmp_path):
    S = made_scores(n=50)[0]
    save(fitted, tmp_path / "calibrator")
    loaded = load(tmp_path / "calibrator")
    np.testing.assert_array_equal(loaded.predict_proba(S), fitted.predict_proba(S))
    assert loaded.threshold(0.5) == fitted.threshold(0.5)
    assert loaded.calibration_.describe() == fitted.calibration_.describe()
    assert not hasattr(clone(loaded), "calibration_")


@needs_torch
def test_a_calibrator_loaded_to_a_device_works(fitted, tmp_path):
    import torch

    save(fitted, tmp_path / "calibrator")
    S = torch.asarray(made_scores(n=20)[0])
    P = load(tmp_path / "calibrator", device="cpu").predict_proba(S)
    assert isinstance(P, torch.Tensor)


def test_unusable_input_is_refused(fitted):
    S, _, Y = made_scores(n=20)
    with pytest.raises(NotFittedError):
        LabelCalibrator().predict_proba(S)
    with pytest.raises(InvalidInput, match="3 labels, but"):
        fitted.predict_proba(S[:, :3])
    with pytest.raises(InvalidInput, match=r"\(20, 40\) and \(19, 40\)"):
        LabelCalibrator().fit(S[1:], Y)
    for precision in (0, 1.5, -1, float("nan"), True, "high", [0.8, 0.9]):
        with pytest.raises(InvalidInput, match="precision must be above 0"):
            fitted.threshold(precision)
    S[7, 5] = np.inf
    for use in (lambda: LabelCalibrator().fit(S, Y), lambda: fitted.predict_proba(S)):
        with pytest.raises(InvalidInput, match="inf at row 7, column 5"):
            use()


def test_groups_hold_every_image_once_and_do_not_part_equal_scores():
    rng = np.random.default_rng(0)
    S = np.concatenate([rng.integers(0, 9, (700, 3)), rng.standard_normal((700, 3))], axis=1)
    Y = rng.random(S.shape) < 0.2
    table = summarize(S, scipy.sparse.csr_array(Y))
    for t in range(6):
        order = np.argsort(-S[:, t])
        ends = np.cumsum(table.count[t]).astype(int)
        ranked, inner = S[order, t], ends[ends < 700]
        assert (ranked[inner - 1] > ranked[inner]).all()
        n_positives = np.cumsum(Y[order, t])[ends - 1]
        np.testing.assert_array_equal(np.cumsum(table.positives[t]), n_positives)
        assert table.count[t].sum() == 700
        assert (table.count[t] * table.mean[t]).sum() == pytest.approx(S[:, t].sum())


# --- reliability -------------------------------------------------------------------------


def test_the_reliability_curve_by_hand():
    P = np.array([[0.05, 0.15], [0.55, 0.95], [1.0, 0.0]])
    Y = np.array([[0, 1], [1, 0], [1, 0]])
    curve = reliability_curve(Y, P, n_bins=2)
    np.testing.assert_allclose(curve.predicted, [0.2 / 3, 2.5 / 3])
    np.testing.assert_allclose(curve.observed, [1 / 3, 2 / 3])
    np.testing.assert_array_equal(curve.n_pairs, [3, 3])
    expected = (abs(0.2 / 3 - 1 / 3) + abs(2.5 / 3 - 2 / 3)) / 2
    assert expected_calibration_error(Y, P, n_bins=2) == pytest.approx(expected)
    empty = reliability_curve(Y, P, n_bins=10)
    assert np.isnan(empty.predicted[3])
    assert np.isnan(empty.observed[3])
    assert empty.n_pairs[3] == 0


def test_reliability_does_not_depend_on_kind_or_blocks(as_array):
    _, P, Y = made_scores(n=50)
    expected = reliability_curve(Y, P)
    with memory_budget(1):
        for labels in (as_array(Y), scipy.sparse.csr_array(Y)):
            estimate = reliability_curve(labels, as_array(P))
            for actual, other in zip(estimate, expected, strict=True):
                np.testing.assert_allclose(actual, other, rtol=1e-12)


def test_perfect_probabilities_have_no_error():
    _, _, Y = made_scores(n=50)
    assert expected_calibration_error(Y, Y.astype(float)) == 0
    assert expected_calibration_error(Y, 1.0 - Y) == 1


def test_what_is_no_probability_is_refused():
    Y = np.ones((2, 2))
    for value in (-0.1, 1.1):
        with pytest.raises(InvalidInput, match=f"P holds {value}, which is not a probability"):
            reliability_curve(Y, np.full((2, 2), value))
    with pytest.raises(InvalidInput, match="P holds nan at row 0"):
        reliability_curve(Y, np.full((2, 2), np.nan))
    with pytest.raises(InvalidInput, match="n_bins"):
        reliability_curve(Y, Y, n_bins=0)
