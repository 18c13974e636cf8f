"""Cross-validation: the same numbers as doing it by hand, with the dear part done once."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.pipeline import make_pipeline

from tagkin import SemanticSpace
from tagkin.calibration import LabelCalibrator, expected_calibration_error
from tagkin.errors import InvalidInput
from tagkin.evaluation import evaluate, mean_average_precision
from tagkin.model_selection import choose, cross_validate, held_out_scores
from tagkin.model_selection.selection import MEASURES
from tagkin.neighbors import ExactNeighbors
from tagkin.transfer import (
    LinearSVM,
    NeighborVoting,
    RidgeTransfer,
    TagProp,
    TagRelevance,
    TwoPassKNN,
)
from tests.conftest import make_collection


def folds_by_hand(n, n_folds=3, seed=0):
    """(known, held out) of each fold."""
    parts = np.array_split(np.random.default_rng(seed).permutation(n), n_folds)
    return [(np.setdiff1d(np.arange(n), part), np.sort(part)) for part in parts]


def by_hand(estimator, X, Y, **kwargs):
    return [
        mean_average_precision(Y[new], estimator.fit(X[old], Y[old]).decision_function(X[new]))
        for old, new in folds_by_hand(len(X), **kwargs)
    ]


METHODS = {
    "voting": (NeighborVoting(), {"n_neighbors": [3, 40, 11, 1000]}),
    "relevance": (TagRelevance(), {"n_neighbors": [5, 20]}),
    "tagprop": (TagProp(), {"n_neighbors": [4, 9], "sigmoids": [True, False]}),
    "tagprop by distance": (TagProp(weights="distance"), {"n_neighbors": [4, 9]}),
    "two passes": (TwoPassKNN(form="authors"), {"n_per_label": [1, 5, 2], "decay": [1.0, 7.0]}),
    "learned metric": (TwoPassKNN(metric_learning=True, random_state=0), {"decay": [1.0, 3.0]}),
    "svm": (LinearSVM(), {"C": [0.01, 1.0]}),
    "ridge": (RidgeTransfer(), {"regularization": [0.5, 100.0]}),
    "metrics": (NeighborVoting(9), {"metric": ["cosine", "euclidean"]}),
}


@pytest.mark.parametrize(("method", "grid"), METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("sparse", [False, True])
def test_every_trial_is_what_a_fit_on_that_fold_gives(method, grid, sparse):
    X, Y, _ = make_collection(n=90)
    labels = scipy.sparse.csr_array(Y) if sparse else Y
    found = choose(method, X, labels, grid, progress=False)
    assert len(found.trials) == np.prod([len(values) for values in grid.values()])
    for trial in found.trials:
        expected = by_hand(method.__class__(**{**method.get_params(), **trial.parameters}), X, Y)
        np.testing.assert_allclose(trial.scores, expected, rtol=1e-9)
    assert found.score == max(trial.mean for trial in found.trials)
    best = next(trial for trial in found.trials if trial.mean == found.score)
    assert found.parameters == best.parameters
    np.testing.assert_allclose(
        found.estimator.decision_function(X),
        method.__class__(**{**method.get_params(), **best.parameters})
        .fit(X, Y)
        .decision_function(X),
        rtol=1e-5,
    )


def test_neighbours_are_searched_once_a_fold(monkeypatch):
    calls = []
    search = ExactNeighbors.kneighbors

    def counted(self, queries, n_neighbors, **kwargs):
        calls.append(n_neighbors)
        return search(self, queries, n_neighbors, **kwargs)

    monkeypatch.setattr(ExactNeighbors, "kneighbors", counted)
    X, Y, _ = make_collection(n=90)
    choose(NeighborVoting(), X, Y, {"n_neighbors": [3, 40, 11]}, progress=False)
    assert calls == [40, 40, 40]
    calls.clear()
    choose(TagProp(), X, Y, {"n_neighbors": [3, 8]}, progress=False)
    # for each fold the new and the known images; then the fit of the best
    assert sorted(calls[:6]) == [8] * 6
    assert len(calls) == 7


def test_a_space_is_fitted_once_for_each_of_its_settings(monkeypatch):
    fits = []
    fit = SemanticSpace.fit

    def counted(self, X, Y=None):
        fits.append((len(X), self.regularization))
        return fit(self, X, Y)

    monkeypatch.setattr(SemanticSpace, "fit", counted)
    X, Y, _ = make_collection(n=90)
    pipeline = make_pipeline(SemanticSpace(), NeighborVoting())
    grid = {"semanticspace__regularization": [0.1, 2.0], "neighborvoting__n_neighbors": [5, 20]}
    found = choose(pipeline, X, Y, grid, progress=False)
    assert fits[:-1] == [(90, 0.1), (90, 2.0)]
    assert fits[-1] == (90, found.parameters["semanticspace__regularization"])
    fits.clear()
    choose(pipeline, X, Y, grid, progress=False, refit_space=True)
    assert fits[:-1] == [(60, 0.1)] * 3 + [(60, 2.0)] * 3


@pytest.mark.parametrize("refit_space", [False, True])
def test_a_pipelines_trials_are_what_fits_by_hand_give(refit_space):
    X, Y, _ = make_collection(n=90)
    pipeline = make_pipeline(SemanticSpace(), NeighborVoting())
    grid = {"semanticspace__regularization": [0.1, 2.0], "neighborvoting__n_neighbors": [5, 20]}
    found = choose(pipeline, X, Y, grid, refit_space=refit_space, progress=False)
    for trial in found.trials:
        space = SemanticSpace(trial.parameters["semanticspace__regularization"])
        method = NeighborVoting(trial.parameters["neighborvoting__n_neighbors"])
        if refit_space:
            expected = by_hand(make_pipeline(space, method), X, Y)
        else:
            expected = by_hand(method, space.fit(X, Y).transform(X), Y)
        np.testing.assert_allclose(trial.scores, expected, rtol=1e-9)


def test_torch_tensors(as_array):
    X, Y, _ = make_collection(n=90)
    grid = {"n_neighbors": [3, 20]}
    found = choose(NeighborVoting(), as_array(X), as_array(Y), grid, progress=False)
    expected = choose(NeighborVoting(), X, Y, grid, progress=False)
    np.testing.assert_allclose(found.trials[0].scores, expected.trials[0].scores)
    assert found.parameters == expected.parameters


def test_the_seed_decides_the_folds():
    X, Y, _ = make_collection(n=90)
    scores = [
        cross_validate(NeighborVoting(9), X, Y, random_state=seed, progress=False)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_allclose(scores[0], by_hand(NeighborVoting(9), X, Y))
    assert not np.array_equal(scores[0], scores[2])


def test_every_figure_of_evaluate_is_a_measure():
    X, Y, _ = make_collection(n=90)
    assert set(MEASURES) == set(evaluate(Y, X[:, : Y.shape[1]]))


@pytest.mark.parametrize("measure", MEASURES)
def test_measures_are_those_of_evaluate(measure):
    X, Y, _ = make_collection(n=90)
    found = cross_validate(NeighborVoting(9), X, Y, measure=measure, n_folds=2, progress=False)
    for value, (old, new) in zip(found, folds_by_hand(90, 2), strict=True):
        scores = NeighborVoting(9).fit(X[old], Y[old]).decision_function(X[new])
        assert value == pytest.approx(evaluate(Y[new], scores)[measure])
    own = cross_validate(
        NeighborVoting(9), X, Y, measure=lambda Y, S: 0.5, n_folds=2, progress=False
    )
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
    assert expected_calibration_error(Y[later], calibrator.predict_proba(fresh)) < 0.02
    suggested = fresh >= calibrator.thresholds(0.9)
    assert suggested.sum() > 500
    assert Y[later][suggested].mean() > 0.86


def test_the_table_shows_every_trial_and_marks_the_best():
    X, Y, _ = make_collection(n=90)
    found = choose(NeighborVoting(), X, Y, {"n_neighbors": [1, 20]}, progress=False)
    lines = str(found).splitlines()
    assert len(lines) == 3
    assert lines[0].split() == ["n_neighbors", "mean", "folds"]
    assert ["<- best" in line for line in lines] == [False, False, True]


def test_progress_goes_to_stderr_and_only_where_it_is_wanted(capsys):
    X, Y, _ = make_collection(n=30)
    cross_validate(NeighborVoting(3), X, Y)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == ""  # no terminal here


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"grid": {"n_neighbours": [1]}}, "no parameter 'n_neighbours'. It has index, metric"),
        ({"grid": {"n_neighbors": 5}}, "list of values for n_neighbors; found 5"),
        ({"grid": {"n_neighbors": []}}, "no value for n_neighbors"),
        ({"n_folds": 1}, "from 2; found 1"),
        ({"n_folds": 10}, "12 images for 10 folds"),
        ({"measure": "F1"}, "measure must be one of MAP"),
        ({"measure": lambda Y, S: np.nan}, "NaN for {'n_neighbors': 2} on fold 0"),
    ],
)
def test_bad_input(kwargs, message):
    X, Y, _ = make_collection(n=12)
    kwargs = {"grid": {"n_neighbors": [2]}, "progress": False, **kwargs}
    with pytest.raises(InvalidInput, match=message):
        choose(NeighborVoting(), X, Y, **kwargs)
