import numpy as np
import pytest
import scipy.sparse

from tagkin import FeatureAnnotator, evaluate
from tagkin.annotator import quality
from tagkin.annotator.hold_out import FoldModels, calibrate_held_out, hold_out
from tagkin.annotator.label_input import NamedLabels
from tagkin.annotator.part import Part
from tagkin.annotator.problem import Labels, Problem
from tagkin.annotator.quality import cross_validate
from tagkin.annotator.recipe import usual_recipe
from tagkin.calibration import fit_calibration

from .conftest import NAMES, SPACE, SyntheticPhotographs


def test_figures_are_those_of_the_confidences(synthetic):
    X, Y = synthetic.X[:150], synthetic.truth[:150]
    quality = FeatureAnnotator(SPACE).cross_validate(X, Y)
    truth = quality.truth.toarray() > 0
    np.testing.assert_array_equal(truth, Y)
    assert [point.wanted for point in quality.operating_points] == [0.5, 0.7, 0.8, 0.9]
    point, given = quality.by_default, quality.confidences >= 0.5
    assert point.n_suggestions == given.sum()
    assert point.per_photograph == pytest.approx(given.sum(axis=1).mean())
    assert point.without == pytest.approx(np.mean(given.sum(axis=1) == 0))
    assert point.recall == pytest.approx((given & truth).sum() / truth.sum())
    assert point.precision == pytest.approx((given & truth).sum() / given.sum())


def test_every_figure_has_a_name_and_stands_where_it_is_averaged():
    Y = np.eye(8)
    shown = [key for group in quality.MEASURES for key in group.names]
    in_json = ["n_plus", "present_precision", "present_recall"]
    assert sorted([*shown, *in_json]) == sorted(evaluate(Y, Y))
    assert all(len(set(group.names.values())) == len(group.names) for group in quality.MEASURES)


def test_cross_validation_compares_with_kin_visual_scores():
    synthetic = SyntheticPhotographs(300, noise=1.5)
    Y = scipy.sparse.csr_array(synthetic.truth.astype(np.float32))
    X = synthetic.X.astype(np.float32)
    recipe = usual_recipe(SPACE, None, 0)
    steps: list[tuple] = []
    problem = Problem(X, Labels.of(Y), source=NamedLabels(Y, np.array(NAMES)))
    quality = cross_validate(problem, recipe, lambda *at: steps.append(at))
    assert [at[1] for at in steps] == list(range(21))
    part = Part.whole(problem)
    scores = hold_out(part, FoldModels(problem, part, recipe).score_fold)
    held_out = calibrate_held_out(problem, part, scores)
    assert quality.semantic == evaluate(Y, held_out.calibrated.log_odds)
    assert quality.semantic["MAP"] > quality.visual["MAP"] + 0.05
    assert "10-fold" in quality.how
    assert list(quality.labels.names) == NAMES


def test_a_label_of_one_series_teaches_no_weights():
    """Its own images have scores of a model that did not know it, in learning and here alike."""
    rng = np.random.default_rng(0)
    series = np.arange(200) // 5
    Y = (rng.random((200, 8)) < 0.3).astype(np.float32)
    Y[:, 6:] = 0
    Y[series == 3, 6] = Y[series == 8, 7] = 1
    X = Y @ rng.standard_normal((8, 24)) + rng.standard_normal((200, 24))
    problem = Problem(X, Labels.of(scipy.sparse.csr_array(Y)), series)
    recipe, part = usual_recipe(None, None, 0), Part.whole(problem)
    scores = hold_out(part, FoldModels(problem, part, recipe).score_fold)
    held_out = calibrate_held_out(problem, part, scores)
    known = np.arange(8) < 6
    np.testing.assert_array_equal(held_out.testable, known)
    measured = cross_validate(problem, recipe)
    halves = quality.split_into_halves(200, series, 0)
    for rows, others in zip(halves, reversed(halves), strict=True):
        of_others, groups = held_out.scores.take(others), series[others]
        calibration = fit_calibration(
            of_others, problem.Y[others], groups=groups, testable=known
        ).calibration
        P = calibration.probabilities(calibration.mix(held_out.scores.take(rows).all))
        np.testing.assert_allclose(measured.confidences[rows], P, rtol=1e-4)


def test_one_half_may_carry_no_tag():
    X, Y = np.random.default_rng(0).random((40, 6)), np.zeros((40, 1))
    Y[7] = 1
    quality = FeatureAnnotator().cross_validate(X, Y)
    assert 0 < quality.semantic["MAP"] <= 1


def test_a_collection_of_one_afternoon_can_be_measured(synthetic):
    X, Y = synthetic.X[:60], synthetic.truth[:60]
    quality = FeatureAnnotator(SPACE).cross_validate(X, Y, times=60.0 * np.arange(60))
    assert "event" not in quality.how  # it is not held out as a whole
    assert quality.semantic["MAP"] > 0.5
