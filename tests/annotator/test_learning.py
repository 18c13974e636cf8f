import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_info, threadpool_limits

from tagkin import SemanticSpace
from tagkin.annotator.hold_out import FoldModels, HeldOut, hold_out
from tagkin.annotator.learning import audit_logits, learn, mix_evenly
from tagkin.annotator.part import Part
from tagkin.annotator.problem import Labels, Problem, n_folds
from tagkin.annotator.recipe import Recipe, usual_recipe
from tagkin.arrays import threads
from tagkin.calibration import HeldOutScores, fit_calibration
from tagkin.errors import InvalidInput
from tagkin.paper import NeighborVoting, RidgeTransfer, TagProp
from tests.conftest import assert_same

from .conftest import SyntheticPhotographs


def data(n=200, seed=0):
    synthetic = SyntheticPhotographs(n, seed)
    rng = np.random.default_rng(seed)
    Y = synthetic.truth & (rng.random(synthetic.truth.shape) > 0.1)
    return synthetic.X.astype(np.float32), scipy.sparse.csr_array(Y.astype(np.float32))


def scores_by_fold(X, Y, recipe, seed):
    problem = Problem(X, Labels.of(Y), seed=seed)
    part = Part.whole(problem)
    return hold_out(part, FoldModels(problem, part, recipe).score_fold)[0]


def test_few_photographs_are_learned_with_one_thread_of_blas():
    X, Y = data(n=60)
    seen = []

    def step(what, done, total):
        seen.extend(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas")

    threads.find_libraries_again()  # another test may have brought one
    recipe = usual_recipe(None, None, 0)
    with threadpool_limits(3, "blas"):
        learn(Problem(X, Labels.of(Y)), recipe, progress=step)
        assert set(seen) == {1}
        step("", 0, 0)
        assert set(seen) == {1, 3}


def test_a_photograph_has_no_say_in_its_own_held_out_scores():
    X, Y = data()
    recipe = usual_recipe(None, TagProp(100, weights="distance", sigmoids=False), 0)
    scores = scores_by_fold(X, Y, recipe, 0)
    changed = Y.toarray()
    changed[7] = 1 - changed[7]
    again = scores_by_fold(X, scipy.sparse.csr_array(changed), recipe, 0)
    np.testing.assert_allclose(again[7], scores[7], atol=1e-6)
    assert np.abs(again - scores).max() > 1e-3  # of others it has


def test_held_out_scores_are_those_of_a_fit_without_the_fold():
    X, Y = data()
    recipe = Recipe(SemanticSpace(random_state=0), NeighborVoting(20))
    scores = scores_by_fold(X, Y, recipe, 3)
    fold = np.sort(np.array_split(np.random.default_rng(3).permutation(200), 10)[0])
    known = np.setdiff1d(np.arange(200), fold)
    space = SemanticSpace(random_state=0).fit(X[known], Y[known])
    method = NeighborVoting(20).fit(space.transform(X[known]), Y[known])
    np.testing.assert_allclose(scores[fold], method.decision_function(space.transform(X[fold])))


def test_without_a_space_kin_are_found_visual_scores():
    X, Y = data()
    problem = Problem(X, Labels.of(Y))
    recipe = Recipe(None, NeighborVoting(5))
    space, method = FoldModels(problem, Part.whole(problem), recipe).fit()
    assert space is None
    np.testing.assert_array_equal(
        method.decision_function(X), NeighborVoting(5).fit(X, Y).decision_function(X)
    )


def test_confidences_of_held_out_tags_are_kept_for_the_audit():
    X, Y = data(100)
    steps = []
    learned = learn(
        Problem(X, Labels.of(Y)),
        usual_recipe(None, None, 0),
        progress=lambda *at: steps.append(at),
    )
    there = Y.toarray() > 0
    assert (learned.belonging.toarray()[there] > 0).all()
    assert learned.belonging.data.max() <= 1
    done = [at[1] for at in steps]
    assert done == sorted(done)
    assert steps[-1][1] == steps[-1][2]


def test_folds_leave_two_and_more_in_each():
    assert [n_folds(n) for n in (6, 8, 20, 1999, 2000)] == [3, 4, 10, 10, 3]


def test_a_method_without_kin_is_refused():
    with pytest.raises(InvalidInput, match="RidgeTransfer"):
        usual_recipe(None, RidgeTransfer(), 0)


def test_a_name_counts_in_an_audit_with_a_limit():
    """Without a limit, a classifier that overlooks small objects would call their labels wrong."""
    even, Y = np.array([[0.0, -2.0, 3.0]]), scipy.sparse.csr_array([[1.0, 0.0, 1.0]])
    scores = HeldOutScores((even, even))
    calibrated = fit_calibration(scores, Y)
    named = calibrated._replace(log_odds=np.array([[-9.0, 9.0, 3.5]]))
    mixed = mix_evenly(even, even, Y)
    all_labels = np.ones(3, dtype=bool)
    judged = audit_logits(HeldOut(scores, named, None, "names", all_labels, scores), Y)
    assert_same(judged, [[mixed[0, 0] - 1.25, mixed[0, 1] + 1.25, 3.5]], 1e-6)
    np.testing.assert_array_equal(
        audit_logits(HeldOut(scores, named, None, None, all_labels, scores), Y), mixed
    )
