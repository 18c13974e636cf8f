"""Held-out scores of some images and labels, where memory does not hold those of all."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

import tagkin
from tagkin import FeatureAnnotator, SemanticSpace
from tagkin.annotator import part as parts
from tagkin.annotator import problem as problems
from tagkin.annotator.learning import learn
from tagkin.annotator.part import Part, check_memory, choose_part
from tagkin.annotator.problem import Labels, Problem
from tagkin.annotator.recipe import usual_recipe
from tagkin.calibration import (
    HeldOutScores,
    estimate_label_errors,
    fit_calibration,
    fit_unannotated_labels,
    reliability_curve,
)
from tagkin.errors import InvalidInput
from tagkin.evaluation import mean_average_precision
from tagkin.machine import available_memory
from tagkin.paper import NeighborVoting

N, D, FREQUENT = 600, 24, 12


@pytest.fixture(scope="module")
def data():
    """Images with labels of which the even ones are frequent, and further images."""
    rng = np.random.default_rng(0)
    share = np.where(np.arange(D) % 2, 0.02, 0.15)
    Y = (rng.random((2 * N, D)) < share).astype(np.float32)
    X = Y @ rng.random((D, 32)) + 0.5 * rng.random((2 * N, 32))
    return X.astype(np.float32), scipy.sparse.csr_array(Y)


@pytest.fixture(scope="module")
def part(data):
    return Part.sample(Problem(data[0][:N], Labels.of(data[1][:N])), 300, np.arange(0, D, 2), 64)


@pytest.fixture(scope="module")
def both(data, part):
    """What is learned by a part of the scores, and by all of them."""
    X, Y = data[0][:N], data[1][:N]
    recipe = usual_recipe(None, None, 0)
    return learn(Problem(X, Labels.of(Y)), recipe, part=part), learn(
        Problem(X, Labels.of(Y)), recipe
    )


def part_of(Y, memory=None):
    return choose_part(Problem(np.zeros((Y.shape[0], 1)), Labels.of(Y)), memory)


def probabilities(learned, X):
    return learned.probabilities(learned.score(X, None))


# --- which part --------------------------------------------------------------------------


def frequencies(counts, n=100):
    rows = np.concatenate([np.arange(count) for count in counts])
    columns = np.repeat(np.arange(len(counts)), counts)
    return scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, len(counts)))


def test_all_scores_are_held_where_they_fit():
    Y = frequencies([50, 20, 5, 2, 1])
    assert part_of(Y, memory=32 * 500).is_whole
    assert not part_of(Y, memory=32 * 499).is_whole


def test_the_part_fits_and_has_the_labels_on_most_images():
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 3000, 2000)
    Y = frequencies(counts, n=3000)
    memory = 64 * 2**20
    part = part_of(Y, memory)
    assert 32 * len(part.rows) * len(part.columns) <= memory // 4
    assert len(part.rows) == 1000
    assert len(part.columns) == memory // 128 // 1000
    assert counts[part.columns].min() >= np.delete(counts, part.columns).max()
    assert (np.diff(part.columns) > 0).all()


def test_a_hundred_thousand_images_with_twenty_thousand_labels_in_four_gigabytes():
    """The scores held take a quarter, and embeddings a fifth."""
    n, memory = 100_000, 4 * 10**9
    columns = np.arange(n) % 20_000
    Y = scipy.sparse.csr_array((np.ones(n), (np.arange(n), columns)), shape=(n, 20_000))
    part = part_of(Y, memory)
    assert len(part.rows) == 16_384
    assert 1500 < len(part.columns) < 2100
    assert 3 * 4 * n * part.n_dimensions <= memory // 5


def test_a_fold_holds_out_so_many_and_no_group_twice():
    groups = np.repeat(np.arange(100), 5)
    problem = Problem(np.zeros((500, 1)), Labels.of(np.zeros((500, 2))), groups)
    (fold,) = Part.sample(problem, 120, np.arange(2), 64).folds
    assert len(fold.held_out) == 120
    assert len(np.unique(fold.held_out)) == 120
    assert not set(groups[fold.held_out]) & set(groups[fold.known])


def test_of_many_images_as_many_are_held_out_as_fit():
    """A sixth of 100,000 is a few more than 16,384: those few are left out, not half of them."""
    problem = Problem(np.zeros((100_000, 1)), Labels.of(np.zeros((100_000, 2))))
    (fold,) = Part.sample(problem, 16_384, np.arange(2), 64).folds
    assert len(fold.held_out) == 16_384
    assert not set(fold.held_out) & set(fold.known)


def test_all_images_are_held_out_in_turn_where_they_fit():
    problem = Problem(np.zeros((500, 1)), Labels.of(np.zeros((500, 2))))
    folds = Part.sample(problem, 500, np.arange(2), 64).folds
    assert len(folds) == 10
    assert sorted(np.concatenate([fold.held_out for fold in folds])) == list(range(500))


def test_very_many_labels_have_scores_for_the_most_frequent_whatever_the_memory():
    most, rare = 16_384, [7, 100, 9000, 16_387]
    counts = np.full(most + len(rare), 2)
    counts[rare] = 1
    part = part_of(frequencies(counts), memory=10**9)
    assert len(part.rows) == 100
    np.testing.assert_array_equal(part.columns, np.delete(np.arange(len(counts)), rare))
    assert part_of(frequencies(counts[:most]), memory=10**9).is_whole
    smaller_part = part_of(frequencies(counts), memory=32 * 100 * most - 1)
    assert len(smaller_part.rows) < 100


def test_what_needs_all_scores_is_refused_before_the_work():
    Y = frequencies([50, 20, 5, 2, 1])
    check_memory(Y, memory=32 * 500)
    with pytest.raises(InvalidInput, match=r"for 5 labels .* fewer than 6 .*: 2 remain"):
        check_memory(Y, memory=32 * 499)
    with pytest.raises(InvalidInput, match=r"on fewer than 21 images .*: 1 remain"):
        check_memory(Y, memory=32 * 100)


def test_a_hundred_thousand_labels_end_in_a_sentence():
    """At the size at which an array of labels by labels would take 74.5 GiB."""
    n = 100_000
    Y = scipy.sparse.csr_array((np.ones(n), (np.arange(n), np.arange(n))), shape=(n, n))
    tracemalloc.start()
    with pytest.raises(InvalidInput, match="GiB of memory"):
        check_memory(Y, memory=8 * 2**30)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * 2**20


def test_the_memory_at_hand_counts():
    n = available_memory() // 32 // 1000 + 1
    Y = scipy.sparse.csr_array((n, 1000), dtype=np.float32)
    assert not part_of(Y).is_whole
    assert part_of(Y[: n // 2]).is_whole


# --- what is learned ---------------------------------------------------------------------


def test_ranks_as_well_as_what_learned_by_all_scores(data, both):
    X, Y = data[0][N:], data[1][N:]
    by_part, by_all = (mean_average_precision(Y, probabilities(annotator, X)) for annotator in both)
    assert by_part > by_all - 0.02 > 0.5


def test_confidences_hold_for_labels_with_scores_and_without(data, both, part):
    """Within .1 in all bins with a hundred images and more."""
    X, Y = data[0][N:], data[1][N:].toarray()
    P = probabilities(both[0], X)
    for columns in (part.columns, np.setdiff1d(np.arange(D), part.columns)):
        curve = reliability_curve(Y[:, columns], P[:, columns], 5)
        many = curve.n_pairs >= 100
        assert many.any()
        gaps = np.abs(curve.observed - curve.predicted)[many]
        assert gaps.max() < 0.1


def test_confidences_agree_with_those_by_all_scores(data, both):
    X = data[0][N:]
    by_part, by_all = (probabilities(annotator, X) for annotator in both)
    assert np.abs(by_part - by_all).mean() < 0.02


def test_a_label_without_scores_gets_what_is_usual(both, part):
    learned = both[0]
    others = np.setdiff1d(np.arange(D), part.columns)
    rates = learned.errors.missing_rates
    np.testing.assert_allclose(rates[others], np.median(rates[part.columns]))
    mixture = learned.calibration.mixture
    np.testing.assert_array_equal(mixture.weights[others], [mixture.common] * len(others))
    np.testing.assert_allclose(mixture.centers[others, 0], mixture.centers[others, 1])


def test_held_out_scores_are_those_of_a_fit_on_all_others(data, part):
    """By hand, with a method that has nothing to learn."""
    X, Y = data[0][:N], data[1][:N]
    recipe = usual_recipe(SemanticSpace(), NeighborVoting(20), 0)
    learned = learn(Problem(X, Labels.of(Y)), recipe, part=part)
    (fold,) = part.folds
    few = Y[:, part.columns]
    space = SemanticSpace().fit(X[fold.known], Y[fold.known])
    method = NeighborVoting(20).fit(space.transform(X[fold.known]), few[fold.known])
    scores = method.decision_function(space.transform(X[fold.held_out]))
    held_out = HeldOutScores((scores,))
    expected = fit_calibration(held_out, few[fold.held_out], labels=few).calibration
    got, mixture = learned.calibration, expected.mixture
    np.testing.assert_allclose(got.mixture.weights[part.columns], mixture.weights, rtol=1e-4)
    np.testing.assert_allclose(got.mixture.intercepts[part.columns], mixture.intercepts, atol=1e-3)
    assert got.n_images == len(fold.held_out)


@pytest.mark.parametrize("method", [None, NeighborVoting(20)])
def test_with_room_for_all_labels_it_is_what_is_learned_without_a_limit(data, method):
    """The same folds, the same scores."""
    X, Y = data[0][:200], data[1][:200]
    recipe = usual_recipe(None, method, 0)
    whole = Part.sample(Problem(X, Labels.of(Y)), 200, np.arange(D), n_dimensions=4096)
    by_part = learn(Problem(X, Labels.of(Y)), recipe, part=whole)
    plain = learn(Problem(X, Labels.of(Y)), recipe)
    P = [probabilities(annotator, data[0][N : N + 50]) for annotator in (by_part, plain)]
    np.testing.assert_allclose(P[0], P[1], rtol=1e-5, atol=1e-7)
    belonging = (model.belonging.toarray() for model in (by_part, plain))
    np.testing.assert_allclose(*belonging, atol=1e-6)


def test_a_limit_that_is_not_reached_leaves_all_scores(monkeypatch):
    Y = frequencies([20] * D, n=80)
    monkeypatch.setattr(parts, "SIZES", problems.Sizes(most_scored=D))
    assert part_of(Y, 32 * 80 * D).is_whole
    assert not part_of(Y, 32 * 80 * D - 1).is_whole
    monkeypatch.setattr(parts, "SIZES", problems.Sizes(most_scored=D - 1))
    assert len(part_of(Y, 32 * 80 * D).columns) == D - 1


def test_labels_beyond_the_limit_get_what_is_usual(data, both):
    X, Y = data[0][:N], data[1][:N]
    part = Part.sample(Problem(X, Labels.of(Y)), N, np.arange(0, D, 2), n_dimensions=4096)
    recipe = usual_recipe(None, NeighborVoting(20), 0)
    learned = learn(Problem(X, Labels.of(Y)), recipe, part=part)
    mixture = learned.calibration.mixture
    np.testing.assert_array_equal(mixture.weights[1::2], [mixture.common] * (D // 2))
    assert set(np.flatnonzero(np.diff(learned.belonging.indptr))) == set(range(N))


def test_the_space_has_no_more_dimensions_than_fit(data, both):
    X, Y = data[0][:300], data[1][:300]
    narrow = Part.sample(Problem(X, Labels.of(Y)), 100, np.arange(0, D, 2), n_dimensions=5)
    recipe = usual_recipe(None, NeighborVoting(20), 0)
    learned = learn(Problem(X, Labels.of(Y)), recipe, part=narrow)
    assert learned.space.n_dimensions == 5
    assert both[0].space.n_dimensions == D


def test_images_held_out_are_judged(data, both, part):
    belonging, Y = both[0].belonging, data[1][:N]
    rows = part.rows
    assert belonging.shape == (N, D)
    assert set(np.flatnonzero(np.diff(belonging.indptr))) == set(rows)
    assert set(belonging.indices) <= set(part.columns)
    carried = Y[rows][:, part.columns].tocoo()
    noted = belonging[rows][:, part.columns]
    assert all(noted[i, j] > 0 for i, j in zip(carried.row, carried.col, strict=True))
    np.testing.assert_allclose(belonging.data, np.clip(belonging.data, 0, 1))


def test_decisions_of_held_out_images_count(data, part):
    X, Y = data[0][:N], data[1][:N]
    rng = np.random.default_rng(1)
    accepted = scipy.sparse.csr_array((rng.random(Y.shape) < 0.3) * Y.toarray())
    rejected = scipy.sparse.csr_array(((rng.random(Y.shape) < 0.01) & (Y.toarray() == 0)) * 1.0)
    recipe = usual_recipe(None, None, 0)
    problem = Problem(X, Labels.of(Y, rejected, accepted))
    learned = learn(problem, recipe, part=part)
    rows = part.rows
    assert learned.unannotated.n_accepted == accepted[rows][:, part.columns].nnz
    assert learned.unannotated.n_rejected == rejected[rows][:, part.columns].nnz
    assert len(learned.unannotated.offsets) == D
    others = np.setdiff1d(np.arange(D), part.columns)
    np.testing.assert_allclose(learned.unannotated.offsets[others], learned.unannotated.offset)
    assert learned.method.rejected.nnz == rejected.nnz


def test_an_annotator_is_stored_suggests_audits_and_goes_on(data, part, monkeypatch, tmp_path):
    X, Y = data
    monkeypatch.setattr("tagkin.annotator.learning.choose_part", lambda problem: part)
    FeatureAnnotator().fit(X[:N], Y[:N]).save(tmp_path / "model")
    loaded = tagkin.load(tmp_path / "model")
    again = loaded.suggest(X[N : N + 20], threshold=0.3)
    right = [Y[N + i, suggestion.label] for i, row in enumerate(again) for suggestion in row]
    assert np.mean(right) > 0.5
    findings = loaded.audit(20)
    assert {finding.label for finding in findings} <= set(part.columns)
    loaded.partial_fit(X[N : N + 50], Y[N : N + 50])
    assert loaded.predict_proba(X[:5]).shape == (5, D)


# --- one of some labels among all --------------------------------------------------------


def test_errors_and_unsaid_labels_are_spread():
    rng = np.random.default_rng(0)
    columns = np.array([0, 3])
    Z = rng.normal(-1, 3, (800, 2))
    truth = rng.random(Z.shape) < 1 / (1 + np.exp(-Z))
    alone = estimate_label_errors(Z, truth)
    spread = estimate_label_errors(Z, truth).spread(columns, 4)
    wide = np.column_stack([Z[:, 0], Z[:, 0], Z[:, 0], Z[:, 1]])
    np.testing.assert_allclose(spread.predict_proba(wide)[:, columns], alone.predict_proba(Z))
    np.testing.assert_allclose(spread.wrong_rates[1:3], np.median(alone.wrong_rates))

    P = np.full((40, 2), 0.5)
    unsaid = fit_unannotated_labels(P, truth[:40], ~truth[:40])
    offsets = unsaid.spread(columns, 4).offsets
    np.testing.assert_allclose(offsets[columns], unsaid.offsets)
    np.testing.assert_allclose(offsets[1:3], unsaid.offset)


def test_a_part_of_many_images_takes_little_memory():
    """A list of all folds, of which one is used, would take 80 MB."""
    n = 100_000
    problem = Problem(np.zeros((n, 1)), Labels.of(scipy.sparse.csr_array((n, 2), dtype=np.float32)))
    tracemalloc.start()
    (fold,) = Part.sample(problem, 1000, np.arange(2), 64).folds
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(fold.held_out) == 1000
    assert peak < 16 * 2**20
