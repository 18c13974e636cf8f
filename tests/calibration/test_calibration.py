from itertools import pairwise

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
    LabelCalibrator,
    expected_calibration_error,
    fit_calibration,
    reliability_curve,
)
from tagkin.calibration.cuts import least_probabilities
from tagkin.calibration.pooling import (
    Prior,
    ScoreTable,
    derivatives,
    fit_sigmoids,
    sigmoid_loss,
    summarize,
)
from tagkin.errors import InvalidInput
from tests.conftest import assert_same, needs_torch


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
    return fit_calibration(S, Y)


def test_known_probabilities_are_recovered(fitted):
    S, P, Y = made_scores(seed=1)
    found = fitted.predict_proba(S)
    assert np.abs(found - P).mean() < 0.02
    raw = (S - S.min()) / (S.max() - S.min())
    assert expected_calibration_error(Y, found) < 0.01
    assert expected_calibration_error(Y, raw) > 0.1


def test_pooling_helps_rare_labels():
    """Against a sigmoid for each label on its own, and against the labels' frequencies."""
    S, _, Y = made_scores(n=60, seed=2)
    S_new, _, Y_new = made_scores(seed=3)
    rare = np.flatnonzero(Y.any(axis=0) & (Y.sum(axis=0) <= 6))
    assert len(rare) >= 5
    pooled = fit_calibration(S, Y).predict_proba(S_new)[:, rare]
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


def test_probabilities_never_fall_as_scores_rise(fitted):
    grid = np.repeat(np.linspace(-20, 20, 2001)[:, None], fitted.n_labels, axis=1)
    P = fitted.predict_proba(grid)
    assert (np.diff(P, axis=0) >= 0).all()
    assert (P[0] < P[-1]).all()
    assert ((P > 0) & (P < 1)).all()


def test_scores_that_speak_against_a_label_tell_nothing():
    """A slope never falls below 0, whatever the data."""
    S, _, Y = made_scores(n=2000)
    S[:, 0] = -4 * Y[:, 0] + np.random.default_rng(0).standard_normal(2000)
    calibrator = fit_calibration(S, Y)
    assert (calibrator.slopes >= 0).all()
    p = calibrator.predict_proba(S)[:, 0]
    assert p == pytest.approx(np.full(2000, Y[:, 0].mean()), abs=0.02)


def test_thresholds_reach_the_wanted_precision_on_fresh_images(fitted):
    S, _, Y = made_scores(n=6000, seed=4)
    share = []
    for wanted in (0.3, 0.5, 0.8):
        suggested = fitted.min_scores(wanted) <= S
        assert Y[suggested].mean() == pytest.approx(wanted, abs=0.04)
        share.append(suggested.mean())
    assert share[0] > share[1] > share[2] > 0
    assert (np.diff([fitted.min_scores(w) for w in (0.1, 0.5, 0.9)], axis=0) >= 0).all()


def test_precision_is_that_of_all_suggestions_together():
    """A label that is nearly always right must not keep the others from being suggested."""
    rng = np.random.default_rng(7)
    S = rng.random((8000, 4))
    Y = rng.random(S.shape) < S**2
    Y[:, 0] = rng.random(8000) < 0.7  # of any score: asked for .5, suggested everywhere
    fitted = fit_calibration(S[:4000], Y[:4000])
    given = S[4000:] >= fitted.min_scores(0.5)
    assert given[:, 0].mean() > 0.99
    assert Y[4000:][given].mean() == pytest.approx(0.505, abs=0.02)
    # each of the others is asked for .4 at the least: .38 with its sampling error
    for label in (1, 2, 3):
        assert Y[4000:, label][given[:, label]].mean() > 0.38


def test_joint_precision_against_counting():
    """Of 30 labels, with their images counted one by one."""
    S, _, Y = made_scores(n=300, n_labels=30)
    fitted = fit_calibration(S, Y)
    for index in (60, 120, 180):
        right = given = 0.0
        for label in range(30):
            reached = np.flatnonzero(fitted.cut_precision[label] >= index / 200)
            if len(reached):
                n = int((S[:, label] >= fitted.cut_scores[label, reached[-1]]).sum())
                given += n
                right += n * fitted.cut_precision[label, reached[-1]]
        assert fitted.joint_precision[index] == pytest.approx(right / given, rel=1e-12)
    wanted = np.linspace(0.05, 1, 20)
    for lower, higher in pairwise(fitted.min_scores(w) for w in wanted):
        assert (lower <= higher).all()


def test_one_lucky_positive_earns_no_threshold():
    """Scores that say nothing, and a label whose one positive happens to stand first."""
    rng = np.random.default_rng(5)
    S = rng.standard_normal((400, 30))
    Y = rng.random(S.shape) < 0.01
    Y[:, 0] = np.arange(400) == S[:, 0].argmax()
    assert np.isinf(fit_calibration(S, Y).min_scores(0.5)).all()


def test_labels_on_no_or_every_image():
    S, _, Y = made_scores(n=500)
    Y[:, 0], Y[:, 1] = False, True
    P = fit_calibration(S, Y).predict_proba(S)
    assert np.isfinite(P).all()
    assert P[:, 0].mean() < 0.01
    assert P[:, 1].mean() > 0.95
    nothing = fit_calibration(S, np.zeros_like(Y))
    assert nothing.predict_proba(S).max() < 0.01
    assert np.isinf(nothing.min_scores(0.5)).all()
    assert fit_calibration(S, np.ones_like(Y)).predict_proba(S).min() > 0.99


@pytest.mark.parametrize(("n", "n_labels"), [(1, 1), (2, 1), (1, 5), (300, 1)])
def test_small_collections(n, n_labels):
    S, _, Y = made_scores(n=n, n_labels=n_labels)
    P = fit_calibration(S, Y).predict_proba(S)
    assert P.shape == (n, n_labels)
    assert ((P > 0) & (P < 1)).all()


def test_constant_scores_give_the_labels_frequency():
    Y = np.random.default_rng(0).random((5000, 3)) < [0.05, 0.2, 0.5]
    P = fit_calibration(np.zeros(Y.shape), Y).predict_proba(np.zeros((1, 3)))
    np.testing.assert_allclose(P[0], Y.mean(axis=0), atol=0.01)


def test_the_same_answer_for_every_kind_and_block(fitted, as_array):
    S, _, Y = made_scores()
    P = fitted.predict_proba(S)
    for labels in (as_array(Y), scipy.sparse.csr_array(Y * 2)):
        with memory_budget(1 if scipy.sparse.issparse(labels) else 10**6):
            again = fit_calibration(as_array(S), labels)
            found = again.predict_proba(as_array(S[:50]))
        assert type(found) is type(as_array(S))
        assert_same(found, P[:50])
        assert_same(again.min_scores(0.5), fitted.min_scores(0.5))


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(np.float32, np.float32), (np.int8, np.float32), (np.int64, float), (bool, np.float32)],
)
def test_scores_of_any_real_dtype(dtype, expected):
    S, _, Y = made_scores(n=500)
    votes = np.clip(np.round(S * 2 + 5), 0, 10)
    votes = (votes > 7) if dtype is bool else votes
    found = fit_calibration(votes.astype(dtype), Y).predict_proba(votes.astype(dtype))
    assert found.dtype == expected
    reference = fit_calibration(votes.astype(float), Y).predict_proba(votes.astype(float))
    np.testing.assert_allclose(found, reference, rtol=1e-5)


def test_a_loaded_calibrator_is_the_saved_one(fitted, tmp_path):
    S, _, Y = made_scores()
    calibrator = LabelCalibrator().fit(S, Y)
    again = load(save(calibrator, tmp_path / "model"))
    for found in (calibrator, again):
        assert_same(found.predict_proba(S), fitted.predict_proba(S))
        assert_same(found.min_scores(0.7), fitted.min_scores(0.7))
    assert "Probabilities of 40 labels" in (tmp_path / "model" / "README.md").read_text()
    assert not hasattr(clone(again), "calibration_")


@needs_torch
def test_a_calibrator_loaded_to_a_device_works(fitted, tmp_path):
    S, _, Y = made_scores()
    again = load(save(LabelCalibrator().fit(S, Y), tmp_path / "model"), device="cpu")
    assert_same(again.predict_proba(S), fitted.predict_proba(S))
    assert_same(again.min_scores(0.7), fitted.min_scores(0.7))


def test_unusable_input_is_refused(fitted):
    S, _, Y = made_scores(n=20)
    with pytest.raises(NotFittedError):
        LabelCalibrator().predict_proba(S)
    with pytest.raises(NotFittedError):
        LabelCalibrator().min_scores(0.5)
    with pytest.raises(InvalidInput, match="has 3 columns, but scores of 40 labels"):
        fitted.predict_proba(S[:, :3])
    with pytest.raises(InvalidInput, match=r"\(20, 40\) and \(19, 40\)"):
        fit_calibration(S[1:], Y)
    for precision in (0, 1.5, -1, float("nan"), True, "high", [0.8, 0.9]):
        with pytest.raises(InvalidInput, match="precision must be above 0"):
            fitted.min_scores(precision)
    S[7, 5] = np.inf
    for use in (lambda: fit_calibration(S, Y), lambda: fitted.predict_proba(S)):
        with pytest.raises(InvalidInput, match="inf at row 7, column 5"):
            use()


def test_log_odds_are_those_of_the_probabilities_and_go_on_beyond_them():
    S, _, Y = made_scores()
    calibrator = fit_calibration(S, Y)
    low, high = calibrator.link.scores[[0, -1]]
    inside = (low <= S) & (high >= S)
    P, Z = calibrator.predict_proba(S), calibrator.log_odds(S)
    np.testing.assert_allclose(expit(Z)[inside], P[inside], rtol=1e-5)
    steps = np.repeat([[low - 2], [low - 1], [low], [high], [high + 1]], 40, axis=1)
    rising = np.diff(calibrator.log_odds(steps), axis=0)
    assert np.all(rising[:, calibrator.slopes > 0] > 0)


# --- the parts ---------------------------------------------------------------------------


def test_groups_hold_every_image_once_and_do_not_part_equal_scores():
    rng = np.random.default_rng(0)
    S = np.concatenate([rng.integers(0, 9, (700, 3)), rng.standard_normal((700, 3))], axis=1)
    Y = rng.random(S.shape) < 0.2
    table = summarize(S, scipy.sparse.csr_array(Y))
    for t in range(6):
        at_or_above = [(S[:, t] >= low).sum() for low in table.lowest[t]]
        np.testing.assert_array_equal(np.cumsum(table.count[t]), at_or_above)
        found = [Y[S[:, t] >= low, t].sum() for low in table.lowest[t]]
        np.testing.assert_array_equal(np.cumsum(table.positives[t]), found)
        assert table.count[t].sum() == 700
        assert (table.count[t] * table.mean[t]).sum() == pytest.approx(S[:, t].sum())


def test_derivatives_are_those_of_thesigmoid_loss():
    rng = np.random.default_rng(0)
    z, count = rng.standard_normal((2, 3, 8))
    count = np.abs(count) * 20
    table = ScoreTable(z, z, count, count * rng.random((3, 8)))
    prior = Prior(np.array([1.0, -0.5]), np.array([[2.0, 0.3], [0.3, 1.0]]))
    at = rng.standard_normal((3, 2))
    gradient, curvature = derivatives(at, z, table, prior)
    for j, step in enumerate(1e-5 * np.eye(2)):
        up, down = at + step, at - step
        slope = (sigmoid_loss(up, z, table, prior) - sigmoid_loss(down, z, table, prior)) / 2e-5
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-5)
        above, below = (derivatives(end, z, table, prior)[0] for end in (up, down))
        bend = (above - below) / 2e-5
        np.testing.assert_allclose(curvature[:, j], bend, rtol=1e-5, atol=1e-6)


def test_sigmoids_of_labels_with_much_data_are_their_own():
    z = np.tile(np.linspace(-6, 2, 60), (30, 1))
    rng = np.random.default_rng(0)
    true = np.stack([rng.uniform(0.5, 2, 30), rng.normal(0, 1, 30)], axis=1)
    count = np.full(z.shape, 1e6)
    table = ScoreTable(z, z, count, count * expit(true[:, :1] * z + true[:, 1:]))
    np.testing.assert_allclose(fit_sigmoids(z, table), true, atol=1e-3)


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
            found = reliability_curve(labels, as_array(P))
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)


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


def lowest_cut(probabilities, wanted):
    """The least probability from which the mean reaches what is wanted, or ∞."""
    cuts = [p for p in set(probabilities) if p > 0]
    enough = [p for p in cuts if np.mean([q for q in probabilities if q >= p]) >= wanted - 1e-12]
    return min(enough, default=np.inf)


@pytest.mark.parametrize("precision", [0.5, 0.8, 0.95])
def test_cuts_of_open_suggestions(precision):
    """Against all cuts there are: together they reach the precision, and each nearly does."""
    rng = np.random.default_rng(3)
    P = rng.random((60, 5)).round(1) * [1, 0.9, 0.7, 0.5, 0.2]
    allowed = rng.random(P.shape) < 0.6
    least = least_probabilities(scipy.sparse.csc_array(np.where(allowed, P, 0)), precision)
    suggested = allowed & (least <= P)
    assert P[suggested].mean() >= precision - 1e-12
    open_now = [P[allowed[:, t], t].tolist() for t in range(5)]
    tried = [precision - 0.1 + 0.005 * step for step in range(21)]
    choices = [[lowest_cut(column, wanted) for column in open_now] for wanted in tried]
    assert any(np.allclose(least, cuts) for cuts in choices)
    for cuts in choices:
        if np.allclose(least, cuts):
            break
        assert P[allowed & (np.array(cuts) <= P)].mean() < precision  # a lower cut is too low
