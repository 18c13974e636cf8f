import numpy as np
import pytest
import scipy.sparse

from tagkin import Annotator, FeatureAnnotator, LabelCalibrator, NeighborVoting, evaluate
from tagkin.annotator import quality
from tagkin.annotator.hold_out import FoldModels, calibrate_held_out, hold_out
from tagkin.annotator.label_input import NamedLabels
from tagkin.annotator.photograph_reader import PhotographReader
from tagkin.annotator.problem import Labels, Part, Problem
from tagkin.annotator.quality import cross_validate, measure_scores
from tagkin.annotator.recipe import usual_recipe
from tagkin.calibration import fit_calibration
from tagkin.errors import InvalidInput

from .conftest import NAMES, SPACE, VOTING, SyntheticPhotographs, seen


def test_figures_are_those_of_the_scores():
    rng = np.random.default_rng(0)
    S = rng.random((300, 6)).astype(np.float32)
    Y = scipy.sparse.csr_array((rng.random((300, 6)) < S**2).astype(float))
    calibrator = LabelCalibrator().fit(S[:150], Y[:150])
    judge = calibrator.calibration_
    quality = measure_scores(Y[150:], judge.mix([S[150:]]), None, judge, NAMES)
    assert quality.semantic["MAP"] == pytest.approx(evaluate(Y[150:], S[150:])["MAP"])
    assert quality.visual == {}
    P = calibrator.predict_proba(S[150:])
    np.testing.assert_allclose(quality.confidences, P, rtol=1e-6)
    for point in quality.operating_points:
        given = judge.threshold(point.wanted) <= P
        truth = Y[150:].toarray() > 0
        assert point.n_suggestions == given.sum()
        assert point.per_photograph == pytest.approx(given.sum(axis=1).mean())
        assert point.without == pytest.approx(np.mean(given.sum(axis=1) == 0))
        assert point.recall == pytest.approx((given & truth).sum() / truth.sum())
        if given.any():
            assert point.precision == pytest.approx((given & truth).sum() / given.sum())
        else:
            assert np.isnan(point.precision)


def test_every_figure_has_a_name_and_stands_where_it_is_averaged():
    Y = np.eye(8)
    shown = [key for group in quality.MEASURES for key in group.names]
    assert sorted([*shown, "n_plus"]) == sorted(evaluate(Y, Y))
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
    np.testing.assert_array_equal(held_out.judged, known)
    measured = cross_validate(problem, recipe)
    halves = quality.split_into_halves(200, series, 0)
    for rows, others in zip(halves, reversed(halves), strict=True):
        of_others, groups = held_out.scores.take(others), series[others]
        calibration = fit_calibration(
            of_others, problem.Y[others], groups=groups, judged=known
        ).calibration
        P = calibration.probabilities(calibration.mix(held_out.scores.take(rows).all))
        np.testing.assert_allclose(measured.confidences[rows], P, rtol=1e-4)


def test_looks_are_judged_with_the_same_method(synthetic, monkeypatch):
    known, new = seen(synthetic.X[:100]), seen(synthetic.X[100:200], first=100)
    annotator = Annotator(method=NeighborVoting(n_neighbors=7)).fit(known, synthetic.tags[:100])
    monkeypatch.setattr(
        PhotographReader, "read", lambda self, photos, *_: new if photos is new else known
    )
    quality = annotator.evaluate(new, synthetic.tags[100:200])
    Y, truth = (annotator.vocabulary_.transform(synthetic.tags[a : a + 100]) for a in (0, 100))
    visual_scores = NeighborVoting(n_neighbors=7).fit(known.features, Y)
    assert quality.visual == evaluate(truth, visual_scores.decision_function(new.features))
    places = annotator.space_.transform(new.features)
    scores = annotator.calibrator_.mix(annotator.method_.components(places))
    assert quality.semantic == evaluate(truth, scores)


def test_a_baseline_of_some_photographs_is_not_shown(synthetic, monkeypatch):
    known, new = seen(synthetic.X[:100]), seen(synthetic.X[100:200], first=100)
    annotator = Annotator(space=SPACE, method=VOTING).fit(known, synthetic.tags[:100])
    there = known
    monkeypatch.setattr(
        PhotographReader, "read", lambda self, photos, *_: new if photos is new else there
    )
    for n_there, fair in ((100, True), (99, True), (50, False), (0, False)):
        there = seen(synthetic.X[:n_there])
        assert bool(annotator.evaluate(new, synthetic.tags[100:200]).visual) == fair, n_there


def test_evaluation_leaves_out_what_was_learned_from(fitted, synthetic, monkeypatch):
    photos = seen(synthetic.X)
    monkeypatch.setattr("tagkin.annotator.quality.score_visually", lambda *_: None)
    quality = fitted.evaluate(photos, synthetic.tags)
    assert "100 tagged photographs" in quality.how
    scores = fitted.model_.score(photos.features[300:], None)
    Y = fitted.vocabulary_.transform(synthetic.tags[300:])
    assert quality.semantic == evaluate(Y, scores)
    with pytest.raises(InvalidInput, match="learned from all"):
        fitted.evaluate(seen(synthetic.X[:10]), synthetic.tags[:10])


def test_one_half_may_carry_no_tag():
    X, Y = np.random.default_rng(0).random((40, 6)), np.zeros((40, 1))
    Y[7] = 1
    quality = FeatureAnnotator().cross_validate(X, Y)
    assert 0 < quality.semantic["MAP"] <= 1


def test_no_known_tag_at_all_is_an_error():
    S = np.random.default_rng(0).random((50, 2))
    Y = (S > 0.5) * 1.0
    judge = LabelCalibrator().fit(S, Y).calibration_
    with pytest.raises(InvalidInput, match="nothing to compare"):
        measure_scores(scipy.sparse.csr_array((50, 2)), S, None, judge, ["a", "b"])
