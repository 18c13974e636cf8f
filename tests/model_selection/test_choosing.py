"""Choosing parameters: the same numbers as doing it by hand, with the expensive part done once."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from tagkin import SemanticSpace
from tagkin.errors import InvalidInput
from tagkin.evaluation import evaluate
from tagkin.model_selection import MEASURES, grid_search
from tagkin.model_selection.folds import make_folds
from tagkin.neighbors import ExactNeighbors
from tagkin.space.moments import Moments
from tagkin.transfer import (
    LinearSVM,
    NeighborVoting,
    RidgeTransfer,
    TagProp,
    TagRelevance,
    TwoPassKNN,
)
from tagkin.transfer.votes import NearestVotes
from tests.conftest import make_collection
from tests.model_selection.by_hand import map_by_hand


@dataclass(frozen=True, kw_only=True, eq=False)
class VotesByReach(NearestVotes):
    """Votes by distance, in units of a reach."""

    reach: float

    def _weights(self, neighbors):
        return np.exp(-np.asarray(neighbors.distances, dtype=float) / self.reach)


class VotingByReach(NeighborVoting):
    """The reach is the mean distance of known images to their neighbours."""

    learns_from_neighbors = True

    def _learn(self, labels, neighbors):
        reach = float(np.mean(neighbors.distances[:, : self.n_neighbors]))
        return VotesByReach(labels=labels, n_neighbors=self.n_neighbors, reach=reach)


METHODS = {
    "voting": (NeighborVoting(), {"n_neighbors": [3, 40, 11, 1000]}),
    "relevance": (TagRelevance(), {"n_neighbors": [5, 20]}),
    "tagprop": (TagProp(), {"n_neighbors": [4, 9], "sigmoids": [True, False]}),
    "tagprop by distance": (TagProp(weights="distance"), {"n_neighbors": [4, 9]}),
    "another that learns from neighbours": (VotingByReach(), {"n_neighbors": [4, 9]}),
    "two passes": (TwoPassKNN(form="authors"), {"n_per_label": [1, 5, 2], "decay": [1.0, 7.0]}),
    "svm": (LinearSVM(), {"C": [0.01, 1.0]}),
    "ridge": (RidgeTransfer(), {"regularization": [0.5, 100.0]}),
    "metrics": (NeighborVoting(9), {"metric": ["cosine", "euclidean"]}),
}


@pytest.mark.parametrize(("method", "grid"), METHODS.values(), ids=METHODS)
def test_every_trial_is_what_a_fit_on_that_fold_gives(method, grid):
    """Of dense labels and of sparse ones."""
    X, Y, _ = make_collection(n=90)

    def with_parameters(parameters):
        return method.__class__(**{**method.get_params(), **parameters})

    expected = {}
    for labels in (Y, scipy.sparse.csr_array(Y)):
        result = grid_search(method, X, labels, grid, progress=False)
        assert len(result.trials) == np.prod([len(values) for values in grid.values()])
        for trial in result.trials:
            key = tuple(trial.parameters.items())
            if key not in expected:
                expected[key] = map_by_hand(with_parameters(trial.parameters), X, Y)
            np.testing.assert_allclose(trial.scores, expected[key], rtol=1e-9)
        assert result.score == max(trial.mean for trial in result.trials)
        best = next(trial for trial in result.trials if trial.mean == result.score)
        assert result.parameters == best.parameters
        again = with_parameters(best.parameters).fit(X, Y)
        np.testing.assert_allclose(
            result.estimator.decision_function(X), again.decision_function(X), rtol=1e-5
        )


def test_neighbours_are_searched_once_per_fold(monkeypatch):
    calls = []
    search = ExactNeighbors.kneighbors

    def counted(self, queries, n_neighbors, **kwargs):
        calls.append(n_neighbors)
        return search(self, queries, n_neighbors, **kwargs)

    monkeypatch.setattr(ExactNeighbors, "kneighbors", counted)
    X, Y, _ = make_collection(n=90)
    grid_search(NeighborVoting(), X, Y, {"n_neighbors": [3, 40, 11]}, progress=False)
    assert calls == [40, 40, 40]
    calls.clear()
    grid_search(TagProp(), X, Y, {"n_neighbors": [3, 8]}, progress=False)
    # for each fold the new and the known images; then the fit of the best
    assert sorted(calls[:6]) == [8] * 6
    assert len(calls) == 7


def test_no_space_has_seen_the_images_that_are_held_out():
    fits = []

    class Counted(SemanticSpace):
        def fit(self, X, y=None):
            fits.append((len(X), self.regularization))
            return super().fit(X, y)

    X, Y, _ = make_collection(n=90)
    pipeline = Pipeline([("space", Counted()), ("voting", NeighborVoting())])
    grid = {"space__regularization": [0.1, 2.0], "voting__n_neighbors": [5, 20]}
    result = grid_search(pipeline, X, Y, grid, progress=False)
    assert fits[:-1] == [(60, 0.1)] * 3 + [(60, 2.0)] * 3
    assert fits[-1] == (90, result.parameters["space__regularization"])
    fits.clear()
    grid_search(pipeline, X, Y, grid, progress=False, refit_space=False)  # as in the paper
    assert fits[:-1] == [(90, 0.1), (90, 2.0)]


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(30), 3)])
def test_with_landmarks_the_images_are_summed_up_once_for_all_folds_and_settings(
    monkeypatch, groups
):
    summed = []
    of, of_columns = Moments.of.__func__, Moments.of_columns.__func__

    def counted(by):
        def sums(cls, X, *args, **options):
            summed.append(len(X))
            return by(cls, X, *args, **options)

        return classmethod(sums)

    monkeypatch.setattr(Moments, "of", counted(of))
    monkeypatch.setattr(Moments, "of_columns", counted(of_columns))
    X, Y, _ = make_collection(n=90)
    landmarks = X[:40]
    pipeline = make_pipeline(SemanticSpace(selection=landmarks), NeighborVoting(9))
    grid = {"semanticspace__regularization": [0.1, 2.0], "neighborvoting__n_neighbors": [5, 20]}
    result = grid_search(pipeline, X, Y, grid, groups=groups, progress=False)
    assert summed == [30, 30, 30, 90]  # and all of them for the best, in the end
    folds = make_folds(90, Y, 3, groups, 0)
    for trial in result.trials:
        estimator = clone(pipeline).set_params(**trial.parameters)
        expected = [
            MEASURES["MAP"](Y[new], estimator.fit(X[old], Y[old]).decision_function(X[new]))
            for old, new in folds
        ]
        np.testing.assert_allclose(trial.scores, expected, atol=1e-6)


def test_groups_reach_what_learns_from_neighbours():
    """Copies of each image: weights learned from them would trust nobody else."""
    X, Y, _ = make_collection(n=60)
    groups = np.repeat(np.arange(60), 3)
    X = X[groups] + 1e-6 * np.random.default_rng(0).normal(size=(180, X.shape[1]))
    Y = Y[groups]
    method = TagProp(5, weights="distance", sigmoids=False)
    grid = {"n_neighbors": [5, 9]}
    result = grid_search(method, X, Y, grid, groups=groups, progress=False)
    assert result.estimator.decay_ < 0.1 * method.fit(X, Y).decay_
    for trial in result.trials:
        expected = [
            MEASURES["MAP"](
                Y[new],
                TagProp(trial.parameters["n_neighbors"], weights="distance", sigmoids=False)
                .fit(X[old], Y[old], groups=groups[old])
                .decision_function(X[new]),
            )
            for old, new in make_folds(180, Y, 3, groups, 0)
        ]
        np.testing.assert_allclose(trial.scores, expected, rtol=1e-9)


@pytest.mark.parametrize("refit_space", [False, True])
def test_a_pipelines_trials_are_what_fits_by_hand_give(refit_space):
    X, Y, _ = make_collection(n=90)
    pipeline = make_pipeline(SemanticSpace(), NeighborVoting())
    grid = {"semanticspace__regularization": [0.1, 2.0], "neighborvoting__n_neighbors": [5, 20]}
    result = grid_search(pipeline, X, Y, grid, refit_space=refit_space, progress=False)
    for trial in result.trials:
        space = SemanticSpace(trial.parameters["semanticspace__regularization"])
        method = NeighborVoting(trial.parameters["neighborvoting__n_neighbors"])
        if refit_space:
            expected = map_by_hand(make_pipeline(space, method), X, Y)
        else:
            expected = map_by_hand(method, space.fit(X, Y).transform(X), Y)
        np.testing.assert_allclose(trial.scores, expected, rtol=1e-9)


def test_torch_tensors(as_array):
    X, Y, _ = make_collection(n=90)
    grid = {"n_neighbors": [3, 20]}
    result = grid_search(NeighborVoting(), as_array(X), as_array(Y), grid, progress=False)
    expected = grid_search(NeighborVoting(), X, Y, grid, progress=False)
    np.testing.assert_allclose(result.trials[0].scores, expected.trials[0].scores)
    assert result.parameters == expected.parameters


def test_every_figure_of_evaluate_is_a_measure():
    X, Y, _ = make_collection(n=90)
    assert set(MEASURES) == set(evaluate(Y, X[:, : Y.shape[1]]))


def test_the_table_shows_every_trial_and_marks_the_best():
    X, Y, _ = make_collection(n=90)
    result = grid_search(NeighborVoting(), X, Y, {"n_neighbors": [1, 20]}, progress=False)
    lines = str(result).splitlines()
    assert len(lines) == 3
    assert lines[0].split() == ["n_neighbors", "mean", "folds"]
    assert ["<- best" in line for line in lines] == [False, False, True]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"grid": {"n_neighbours": [1]}}, "no parameter 'n_neighbours'. It has index, metric"),
        ({"grid": {"n_neighbors": 5}}, "list of values for n_neighbors; found 5"),
        ({"grid": {"n_neighbors": []}}, "no value for n_neighbors"),
        ({"grid": [{"n_neighbors": [1]}]}, "grid must be a dict .* several grids separately"),
        ({"cv": 1}, "from 2; found 1"),
        ({"cv": 10}, "12 images for 10 folds"),
        ({"measure": "F1"}, "measure must be one of MAP"),
        ({"measure": lambda Y, S: np.nan}, "NaN for {'n_neighbors': 2} on fold 0"),
    ],
)
def test_bad_input(kwargs, message):
    X, Y, _ = make_collection(n=12)
    kwargs = {"grid": {"n_neighbors": [2]}, "progress": False, **kwargs}
    with pytest.raises(InvalidInput, match=message):
        grid_search(NeighborVoting(), X, Y, **kwargs)


def test_only_what_scores_labels_is_searched():
    X, Y, _ = make_collection(n=12)
    with pytest.raises(InvalidInput, match=r"must score labels: .* found SemanticSpace\(\)"):
        grid_search(SemanticSpace(), X, Y, {"regularization": [1]})


def test_the_names_of_labels_are_those_of_the_data_frame():
    X, Y, _ = make_collection(n=90)
    names = [f"tag {t}" for t in range(Y.shape[1])]
    frame = pytest.importorskip("pandas").DataFrame(Y, columns=names)
    for estimator in (NeighborVoting(), make_pipeline(SemanticSpace(), NeighborVoting())):
        last = "" if isinstance(estimator, NeighborVoting) else "neighborvoting__"
        grid = {f"{last}n_neighbors": [3, 8]}
        result = grid_search(estimator, X, frame, grid, progress=False)
        assert list(result.estimator.classes_) == names
        plain = grid_search(estimator, X, Y, grid, progress=False)
        assert list(plain.estimator.classes_) == list(range(Y.shape[1]))
        assert [t.mean for t in result.trials] == pytest.approx([t.mean for t in plain.trials])
