"""Scores of held-out images, and what is learned from them."""

import weakref
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from tagkin import SemanticSpace
from tagkin.annotator import learning, quality
from tagkin.annotator.hold_out import FoldModels, calibrate_held_out, hold_out
from tagkin.annotator.learning import learn, mix_evenly
from tagkin.annotator.part import Part
from tagkin.annotator.problem import Labels, Problem
from tagkin.annotator.recipe import Recipe, usual_recipe
from tagkin.errors import InvalidInput
from tagkin.model_selection import random_folds
from tagkin.model_selection.folds import Fold
from tagkin.space.parts import LeaveOutSpaces
from tagkin.transfer import KinReadout
from tagkin.transfer.kin_votes import KinVotes
from tests.conftest import assert_same, make_collection


def data(n=240):
    X, Y, _ = make_collection(n)
    return X, scipy.sparse.csr_array((Y > 0).astype(np.float32))


METHOD = KinReadout(30, n_landmarks=50)


def models_of(X, Y, folds):
    problem = Problem(X, Labels.of(Y))
    part = replace(Part.whole(problem), folds=folds)
    return FoldModels(problem, part, Recipe(SemanticSpace(n_landmarks=60), METHOD))


def hold_out_folds(X, Y, folds):
    models = models_of(X, Y, folds)
    return hold_out(models.part, models.score_fold)


def test_held_out_scores_are_what_models_without_the_fold_say():
    X, Y = data()
    folds = random_folds(len(X), 3, 0)
    folds_held_out = hold_out_folds(X, Y, folds)
    known, held_out = folds[1]
    parts = LeaveOutSpaces(SemanticSpace(n_landmarks=60), X, Y, [fold.held_out for fold in folds])
    space = parts.without(1, n_landmarks=45)  # three quarters of them
    method = clone(METHOD).fit(space.transform(X[known]), Y[known])
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
    assert_same(
        mix_evenly(*folds_held_out, Y)[held_out], (votes + components.readout + level) / 2, 1e-4
    )
    for held_out_scores, part in zip(folds_held_out, components, strict=True):
        assert_same(held_out_scores[held_out], part + level, 1e-4)


def test_known_images_with_the_same_labels_say_nothing_about_the_others():
    """All images with a label are held out at once: no space is learned, whatever the features."""
    X, Y = data(60)
    folds = [Fold.of(np.arange(60) % 3, k) for k in range(3)]
    Y = Y.tolil()
    Y[folds[1].known] = 0
    Y = scipy.sparse.csr_array(Y, dtype=np.float32)
    others = np.random.default_rng(1).random(X.shape)
    for features in (X, others):
        votes, readout = models_of(features, Y, folds).score_fold(1)
        assert_same(votes, np.tile(votes[0], (20, 1)), 1e-5)
        assert_same(readout, np.tile(readout[0], (20, 1)), 1e-5)
    assert_same(votes, models_of(X, Y, folds).score_fold(1)[0], 1e-5)


def test_a_fold_has_a_space_if_the_model_has_one():
    """Features that are the same on all known images are an error, as in a fit of these images."""
    X, Y = data(60)
    folds = [Fold.of(np.arange(60) % 3, k) for k in range(3)]
    X = X.copy()
    X[folds[1].known] = X[0]
    models = models_of(X, Y, folds)
    assert models.fit()[0] is not None
    with pytest.raises(InvalidInput, match="All images look the same to the kernel"):
        SemanticSpace(n_landmarks=60).fit(X[folds[1].known], Y[folds[1].known])
    with pytest.raises(InvalidInput, match="All images look the same to the kernel"):
        models.score_fold(1)


def test_the_space_of_all_images_comes_from_the_same_sums():
    X, Y = data()
    space, method = models_of(X, Y, random_folds(len(X), 3, 0)).fit()
    again = SemanticSpace(selection=space.landmarks_.points).fit(X, Y)
    assert_same(space.correlations_, again.correlations_, 1e-6)
    Z = space.transform(X)
    again = clone(METHOD).fit(Z, Y)
    assert_same(method.decision_function(Z), again.decision_function(Z), 1e-4)


def test_the_method_has_what_was_learned():
    X, Y = data()
    learned = learn(Problem(X, Labels.of(Y)), usual_recipe(None, None, 0))
    assert isinstance(learned.method, KinVotes)
    assert len(np.unique(learned.calibration.mixture.weights[:, 1])) > 1  # of each label its own
    given = learn(Problem(X, Labels.of(Y)), usual_recipe(SemanticSpace(3.0), None, 0))
    assert given.space.regularization == 3.0
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
    for scores in hold_out_folds(X, scipy.sparse.csr_array(Y), random_folds(100, 5, 0)):
        ranks = np.argsort(np.argsort(scores, axis=0), axis=0) / 99
        assert 0.4 < (ranks * Y).sum() / Y.sum() < 0.6


def test_sums_of_folds_are_freed_before_confidences_are_learned(monkeypatch):
    """With the default of 4,096 landmarks they take a gigabyte and more."""
    X, Y = data()
    sums: list[weakref.ref] = []
    start = LeaveOutSpaces.__init__

    def start_and_note(self, *args):
        sums.append(weakref.ref(self))
        start(self, *args)

    def calibrate(*args):
        assert sums
        assert not any(made() for made in sums)
        return calibrate_held_out(*args)

    monkeypatch.setattr(LeaveOutSpaces, "__init__", start_and_note)
    for module in (learning, quality):
        sums.clear()
        monkeypatch.setattr(module, "calibrate_held_out", calibrate)
        learn_or_measure = learning.learn if module is learning else quality.cross_validate
        learn_or_measure(Problem(X, Labels.of(Y)), Recipe(SemanticSpace(n_landmarks=60), METHOD))
