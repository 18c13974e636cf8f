"""Cross-validation: measures by fold, and scores of images from models without them."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit

from tagkin.calibration import LabelCalibrator, expected_calibration_error
from tagkin.errors import InvalidInput
from tagkin.evaluation import evaluate
from tagkin.model_selection import MEASURES, evaluate_folds, held_out_scores
from tagkin.transfer import NeighborVoting, RidgeTransfer
from tests.conftest import make_collection
from tests.model_selection.by_hand import folds_by_hand, map_by_hand


def test_the_seed_decides_the_folds():
    X, Y, _ = make_collection(n=90)
    scores = [
        evaluate_folds(NeighborVoting(9), X, Y, random_state=seed, progress=False)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_allclose(scores[0], map_by_hand(NeighborVoting(9), X, Y))
    assert not np.array_equal(scores[0], scores[2])


@pytest.mark.parametrize("measure", MEASURES)
def test_measures_are_those_of_evaluate(measure):
    X, Y, _ = make_collection(n=90)
    scores = evaluate_folds(NeighborVoting(9), X, Y, measure=measure, cv=2, progress=False)
    for value, (old, new) in zip(scores, folds_by_hand(90, 2), strict=True):
        scores = NeighborVoting(9).fit(X[old], Y[old]).decision_function(X[new])
        assert value == pytest.approx(evaluate(Y[new], scores)[measure])
    own = evaluate_folds(NeighborVoting(9), X, Y, measure=lambda Y, S: 0.5, cv=2, progress=False)
    np.testing.assert_array_equal(own, [0.5, 0.5])


def test_held_out_scores_come_from_models_without_the_image():
    X, Y, _ = make_collection(n=90)
    scores = held_out_scores(NeighborVoting(9), X, Y, progress=False)
    for old, new in folds_by_hand(90):
        expected = NeighborVoting(9).fit(X[old], Y[old]).decision_function(X[new])
        np.testing.assert_array_equal(scores[new], expected)


def test_held_out_scores_calibrate():
    """Probabilities learned from held-out scores are right on images that come later."""
    X, Y, _ = make_collection(n=3000)
    known, later = slice(0, 2000), slice(2000, 3000)
    method = RidgeTransfer()
    scores = held_out_scores(method, X[known], Y[known], progress=False)
    calibrator = LabelCalibrator().fit(scores, Y[known])
    fresh = method.fit(X[known], Y[known]).decision_function(X[later])
    P = calibrator.predict_proba(fresh)
    assert expected_calibration_error(Y[later], P) < 0.02
    suggested = calibrator.threshold(0.9) <= P
    assert suggested.sum() > 500
    assert Y[later][suggested].mean() > 0.86


def test_progress_goes_to_stderr_and_only_where_it_is_wanted(capsys):
    X, Y, _ = make_collection(n=30)
    evaluate_folds(NeighborVoting(3), X, Y)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == ""  # no terminal here


def test_any_splitter_makes_the_folds():
    X, Y, _ = make_collection(n=90)
    splitter = ShuffleSplit(4, test_size=0.3, random_state=1)
    pairs = list(splitter.split(X))
    expected = [
        MEASURES["MAP"](Y[new], NeighborVoting(9).fit(X[old], Y[old]).decision_function(X[new]))
        for old, new in pairs
    ]
    for cv in (splitter, pairs):
        scores = evaluate_folds(NeighborVoting(9), X, Y, cv=cv, progress=False)
        np.testing.assert_allclose(scores, expected)


@pytest.mark.parametrize("cv", [3, GroupKFold(3)])
def test_images_of_a_group_are_held_out_together(cv):
    X, Y, _ = make_collection(n=90)
    groups = np.repeat(np.arange(30), 3)
    # the others of a group are copies: with one of them known, its nearest neighbour has its labels
    X, Y = X[groups], Y[groups]
    alone = held_out_scores(NeighborVoting(1), X, Y, progress=False)
    together = held_out_scores(NeighborVoting(1), X, Y, cv=cv, groups=groups, progress=False)
    assert np.mean(alone == Y) > 0.95
    assert np.mean(together == Y) < 0.9
    for known, held_out in GroupKFold(3).split(X, groups=groups):
        expected = NeighborVoting(1).fit(X[known], Y[known]).decision_function(X[held_out])
        np.testing.assert_array_equal(together[held_out], expected)


def test_scores_of_all_images_need_folds_that_hold_each_out_once():
    X, Y, _ = make_collection(n=30)
    for cv in (ShuffleSplit(3), [*KFold(3).split(X), *KFold(2).split(X)]):
        with pytest.raises(InvalidInput, match="hold every image out once"):
            held_out_scores(NeighborVoting(3), X, Y, cv=cv, progress=False)


def test_progress_is_told_to_a_function():
    X, Y, _ = make_collection(n=30)
    steps = []
    held_out_scores(NeighborVoting(3), X, Y, progress=lambda *at: steps.append(at))
    assert steps == [("Scoring", k, 3) for k in (1, 2, 3)]
