"""What is learned from held-out images: κ, how neighbours vote, the mixture."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from tagkin import SemanticSpace
from tagkin.annotator.fold_spaces import hill_climb
from tagkin.annotator.hold_out import Voting, hold_out
from tagkin.annotator.learning import learn
from tagkin.annotator.problem import Labels, Part, Problem, Sizes
from tagkin.annotator.recipe import Recipe, usual_recipe
from tagkin.evaluation import mean_average_precision
from tagkin.model_selection import random_folds
from tagkin.space.parts import LeaveOutSpaces
from tagkin.transfer import KinReadout, KinVotes
from tests.conftest import assert_same, make_collection


@pytest.mark.parametrize(
    ("best", "start", "tried"),
    [
        (2.0, 0.5, [0.5, 2.0, 8.0]),
        (0.5, 0.5, [0.5, 2.0, 0.1]),
        (0.03, 0.5, [0.5, 2.0, 0.1, 0.03]),
        (30.0, 2.0, [2.0, 8.0, 30.0]),
    ],
)
def test_climbing_stops_at_the_top(best, start, tried):
    seen = []

    def ranked(values):
        seen.extend(values)
        return [np.exp(-abs(np.log(value / best))) for value in values]

    assert hill_climb((0.03, 0.1, 0.5, 2.0, 8.0, 30.0), start, ranked) == best
    assert seen == tried


def test_a_larger_value_may_be_a_little_worse():
    good = {0.1: 0.4999, 0.5: 0.5, 2.0: 0.4998, 8.0: 0.4989, 30.0: 0.49}

    def best_value(lost):
        return hill_climb(tuple(good), 0.5, lambda values: [good[value] for value in values], lost)

    assert best_value(lost=0.0) == 0.5
    assert best_value(lost=0.003) == 8.0
    good[2.0] = 0.49
    assert best_value(lost=0.003) == 0.5
    good[0.1] = 0.52
    assert best_value(lost=0.003) == 0.1


def test_no_smaller_value_is_tried_where_the_top_is_between_the_first_two():
    good = {0.1: 0.48, 0.5: 0.5, 2.0: 0.499, 8.0: 0.49}
    tried = []

    def ranked(values):
        tried.extend(values)
        return [good[value] for value in values]

    assert hill_climb(tuple(good), 0.5, ranked, level=0.005) == 0.5
    assert tried == [0.5, 2.0]
    good[2.0] = 0.497
    assert hill_climb(tuple(good), 0.5, ranked, level=0.005) == 0.5
    assert tried[2:] == [0.5, 2.0, 0.1]


def data(n=240):
    X, Y, _ = make_collection(n)
    return X, scipy.sparse.csr_array((Y > 0).astype(np.float32))


def hold_out_folds(X, Y, recipe, folds):
    return hold_out(
        Problem(X, Labels.of(Y)), recipe, replace(Part.whole(Problem(X, Labels.of(Y))), folds=folds)
    )


def voting(trial):
    return Voting.of(trial.recipe.method)


def recipe(**parameters):
    return Recipe(SemanticSpace(n_landmarks=60), KinReadout(30, n_landmarks=50), **parameters)


def test_held_out_scores_are_what_models_without_the_fold_say():
    X, Y = data()
    folds = random_folds(len(X), 3, 0)
    folds_held_out = hold_out_folds(X, Y, recipe(), folds)
    known, held_out = folds[1]
    parts = LeaveOutSpaces(SemanticSpace(n_landmarks=60), X, Y, [fold.held_out for fold in folds])
    space = parts.without(1, n_landmarks=45)  # three quarters of them
    method = KinReadout(30, n_landmarks=50).fit(space.transform(X[known]), Y[known])
    components = method.components(space.transform(X[held_out]))
    # halves for the audit, where no vote at all lowers the odds of a label's share of the images by
    # what its m images can show: about m, and less where they are few
    share, of_known = (
        (np.asarray(labels.sum(axis=0)) + 0.5) / (labels.shape[0] + 1) for labels in (Y, Y[known])
    )
    # as if the label had as large a share of the images learned from as it has of all
    level = np.log(share / (1 - share)) - np.log(of_known / (1 - of_known))
    m = np.asarray(Y.sum(axis=0))
    floor = np.log(share / (1 - share) / (1 + m))
    votes = np.maximum(components.votes + level, floor)
    assert (components.votes + level < floor - 0.01).any()
    assert_same(folds_held_out.even[held_out], (votes + components.readout + level) / 2, 1e-4)
    for held_out_scores, part in zip(folds_held_out.scores, components, strict=True):
        assert_same(held_out_scores[held_out], part + level, 1e-4)


def test_the_space_of_all_images_comes_from_the_same_sums():
    X, Y = data()
    held_out = hold_out_folds(X, Y, recipe(), random_folds(len(X), 3, 0))
    space, embeddings, readout = held_out.whole
    again = KinReadout(30, n_landmarks=50).fit(embeddings, Y).readout_
    assert_same(readout.decision_function(embeddings), again.decision_function(embeddings), 1e-6)
    again = SemanticSpace(selection=space.landmarks_.points).fit(X, Y)
    assert_same(space.correlations_, again.correlations_, 1e-6)
    assert held_out.recipe.space.regularization == 0.5  # nothing was to be chosen


def test_what_is_chosen_is_what_held_out_images_say():
    """With κ far off, choosing ranks held-out images better than keeping it."""
    X, Y = data(300)
    folds = random_folds(len(X), 3, 0)
    bad = recipe()
    bad.space.set_params(regularization=1e4)
    held_out = hold_out_folds(X, Y, bad, folds)
    chosen = hold_out_folds(X, Y, replace(bad, regularizations=(0.1, 0.5, 2.0, 1e4)), folds)
    assert chosen.recipe.space.regularization in (0.1, 0.5, 2.0, 1e4)
    assert mean_average_precision(Y, chosen.even) >= mean_average_precision(Y, held_out.even) - 0.01
    assert voting(chosen).temperature in (5.0, 10.0, 20.0)
    assert voting(held_out) == (30, 10.0)


@pytest.mark.parametrize("many", [False, True])  # all folds decide, or the first of many images
def test_votes_are_those_that_rank_best(many, monkeypatch):
    """The temperature, then the number, by spaces and methods that are fitted anew."""
    if many:
        monkeypatch.setattr("tagkin.annotator.hold_out.SIZES", Sizes(huge=100))
    X, Y = data()
    folds = random_folds(len(X), 3, 0)
    held_out = hold_out_folds(X, Y, recipe(regularizations=(0.5,)), folds)
    parts = LeaveOutSpaces(SemanticSpace(n_landmarks=60), X, Y, [fold.held_out for fold in folds])

    def ranked(number, temperature):
        votes, truth = [], []
        for i, fold in enumerate(folds[:1] if many else folds):
            space = parts.without(i, n_landmarks=45)
            method = KinReadout(number, temperature, n_landmarks=50)
            method.fit(space.transform(X[fold.known]), Y[fold.known])
            level = [
                np.log((labels.sum(axis=0) + 0.5) / (labels.shape[0] - labels.sum(axis=0) + 0.5))
                for labels in (Y, Y[fold.known])
            ]
            scores = method.components(space.transform(X[fold.held_out])).votes
            votes.append(scores + level[0] - level[1])
            truth.append(Y[fold.held_out].toarray())
        return mean_average_precision(np.vstack(truth), np.vstack(votes))

    number, temperature = voting(held_out)
    # others than usual are better by a 500th; rounding puts few images in another order
    best = max(ranked(30, other) for other in (5.0, 10.0, 20.0))
    assert ranked(30, temperature) >= 0.998 * best - 1e-3
    best = max(ranked(other, temperature) for other in (8, 15, 30))
    assert ranked(number, temperature) >= 0.998 * best - 1e-3
    assert number in (8, 15, 30)


def test_votes_are_sharp_where_only_the_nearest_know():
    """Six images each that alone share a label, among 200 neighbours."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((60, 20))
    X = np.repeat(centres, 6, axis=0) + 0.05 * rng.standard_normal((360, 20))
    Y = scipy.sparse.csr_array(np.repeat(np.eye(60, dtype=np.float32), 6, axis=0))
    flat = Recipe(None, KinReadout(200, temperature=0.1, n_landmarks=5), regularizations=(0.5,))
    folds = random_folds(360, 3, 0)
    held_out = hold_out_folds(X, Y, flat, folds)
    assert voting(held_out).temperature > 0.1
    held_out_plain = hold_out_folds(X, Y, replace(flat, regularizations=()), folds)
    assert voting(held_out_plain) == (200, 0.1)
    ranked = [mean_average_precision(Y, trial.scores[0]) for trial in (held_out, held_out_plain)]
    assert ranked[0] > ranked[1] + 0.05


def test_the_method_has_what_was_learned():
    X, Y = data()
    learned = learn(Problem(X, Labels.of(Y)), usual_recipe(None, None, 0))
    assert isinstance(learned.method, KinVotes)
    assert len(np.unique(learned.calibrator.mixture.weights[:, 1])) > 1  # of each label its own
    assert learned.space.regularization in (0.03, 0.1, 0.5, 2.0, 8.0, 30.0)
    given = learn(Problem(X, Labels.of(Y)), usual_recipe(SemanticSpace(3.0), None, 0))
    assert given.space.regularization == 3.0
    assert learned.method.n_neighbors in (100, 200, 400)
    both = usual_recipe(SemanticSpace(3.0), KinReadout(17, 7.0), 0)
    fixed = learn(Problem(X, Labels.of(Y)), both)
    assert (fixed.method.n_neighbors, fixed.method.temperature) == (17, 7.0)


def test_rare_labels_are_compared_across_folds():
    """Scores that say nothing rank at chance, also for labels on two images: mean of 60 labels.

    Each fold lacks the images that it holds out, which alone would put them last.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 8))
    Y = np.zeros((100, 60), dtype=np.float32)
    for t in range(60):
        Y[rng.choice(100, 2, replace=False), t] = 1
    held_out = hold_out_folds(X, scipy.sparse.csr_array(Y), recipe(), random_folds(100, 5, 0))
    for scores in held_out.scores:
        ranks = np.argsort(np.argsort(scores, axis=0), axis=0) / 99
        assert 0.4 < (ranks * Y).sum() / Y.sum() < 0.6
