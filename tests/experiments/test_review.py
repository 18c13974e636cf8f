"""Actions of persons who review, against all ways there are; and one small review."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from experiments.persons import clicked, keys_to_type, marked, overlooking
from experiments.review import Collection, grid, list_doubtful, live, photograph_list
from tagkin import FeatureAnnotator


def cheapest(truth):
    """Over all defaults and all sets of runs: two actions for a run, one for an exception."""
    best = len(truth) + 1
    for default in (True, False):
        for states in itertools.product((False, True), repeat=len(truth)):
            n_runs = sum(now and not before for before, now in itertools.pairwise((False, *states)))
            wrong = sum(t != (default != s) for t, s in zip(truth, states, strict=True))
            best = min(best, 1 + 2 * n_runs + wrong)
    return best


@pytest.mark.parametrize("seed", range(20))
def test_runs_are_marked_as_cheaply_as_can_be(seed):
    rng = np.random.default_rng(seed)
    truth = rng.random(9) < rng.random()
    found = marked(truth)
    assert found.n_actions == cheapest(truth.tolist()) <= clicked(truth)


def test_what_is_clicked_one_by_one():
    truth = np.array([1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0], bool)
    found = marked(truth)
    assert found.n_actions == 1 + 1 + 2 + 1  # a key, a wrong one, a run, a right one in it
    assert np.flatnonzero(found.singly).tolist() == [2, 10]
    said, n_actions = overlooking(truth, found, 1.0, np.random.default_rng(0))
    assert np.flatnonzero(said != truth).tolist() == [2]
    assert n_actions == found.n_actions - 1
    said, n_actions = overlooking(truth, found, 0.0, np.random.default_rng(0))
    assert (said == truth).all()


def test_names_are_completed():
    assert keys_to_type(["cat", "car", "dog", "do"]).tolist() == [4, 4, 4, 3]


def test_a_small_review():
    rng = np.random.default_rng(0)
    truth = rng.random((400, 4)) < 0.3
    X = truth @ rng.random((4, 12)) + 0.3 * rng.random((400, 12))
    labels = scipy.sparse.csr_array(truth[:100].astype(np.float32))
    annotator = FeatureAnnotator().fit(X[:100], labels, groups=np.arange(100))
    P = annotator.predict_proba(X[100:])
    c = Collection((X[:100], truth[:100]), X[100:], truth[100:], P, annotator)
    n = int(c.truth.sum())
    careful, careless = live(c, 0.9), live(c, 0.9, 0.5)
    accepted, hasty = careful.verdicts > 0, careless.verdicts > 0
    assert not (accepted & ~c.truth).any()
    wrong = hasty & ~c.truth
    assert wrong.any()
    assert not (wrong & ~careless.together).any()  # what was clicked by itself is right
    assert list_doubtful(c, careless)[-1] == wrong.sum()  # all were looked at again
    assert careful.runs.right[-1] == accepted.sum() >= 0.9 * n
    fitted = live(c, 0.9, fits=(0.5,))
    assert fitted.runs.right[-1] == (fitted.verdicts > 0).sum() >= 0.9 * n
    assert (careful.runs.actions <= careful.clicks.actions).all()
    for every in (grid(c, runs=True), grid(c, runs=False), photograph_list(c)):
        assert every.right[-1] == n
        assert careful.runs.at(0.8, n) < every.at(0.8, n) < 2
    assert np.isnan(careful.runs.at(1.0, 10 * n))
