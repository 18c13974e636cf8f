"""Metrics of a resample equal the metrics of the images drawn."""

import numpy as np
import pytest
import scipy.sparse

from experiments.bootstrap import (
    compare,
    interval,
    measure,
    resample_weights,
    weighted_counts,
    weighted_map,
)
from tagkin.evaluation import evaluate, mean_average_precision


@pytest.fixture(params=["ties", "no ties"])
def problem(request):
    rng = np.random.default_rng(0)
    truth = scipy.sparse.csr_array(rng.random((60, 5)) < [0.4, 0.1, 0.02, 0.6, 0.0])
    scores = rng.random((60, 5)) + truth.toarray()
    if request.param == "ties":
        scores = np.floor(4 * scores)
    return truth, scores.astype(np.float32)


def drawn_rows(weights):
    return np.repeat(np.arange(len(weights)), weights)


def test_weights_count_what_is_drawn():
    weights = resample_weights(30, 7, seed=3)
    assert weights.shape == (7, 30)
    assert (weights.sum(axis=1) == 30).all()
    assert not np.array_equal(weights[0], weights[1])
    assert np.array_equal(weights, resample_weights(30, 7, seed=3))


def test_map_of_a_resample_is_that_of_its_images(problem):
    truth, scores = problem
    weights = resample_weights(60, 20, seed=0)
    actual = weighted_map(truth, scores, weights)
    for value, w in zip(actual, weights, strict=True):
        rows = drawn_rows(w)
        assert value == pytest.approx(mean_average_precision(truth[rows], scores[rows]), abs=1e-12)


def test_precision_recall_and_n_plus_of_a_resample_are_those_of_its_images(problem):
    truth, scores = problem
    weights = resample_weights(60, 20, seed=0)
    precision, recall, n_plus = weighted_counts(truth, scores, weights, top=2)
    for i, w in enumerate(weights):
        rows = drawn_rows(w)
        expected = evaluate(truth[rows], scores[rows], 2)
        assert precision[i] == pytest.approx(expected["macro_precision"], abs=1e-6)
        assert recall[i] == pytest.approx(expected["macro_recall"], abs=1e-6)
        assert n_plus[i] == expected["n_plus"]


def test_blocks_do_not_matter(problem):
    truth, scores = problem
    weights = resample_weights(60, 9, seed=0)
    whole = weighted_map(truth, scores, weights)
    assert np.array_equal(weighted_map(truth, scores, weights, n_entries=1), whole)


def test_measure_has_the_values_of_evaluate(problem):
    truth, scores = problem
    measured = measure(truth, scores, 2, resample_weights(60, 4, seed=0))
    names = ("MAP", "macro_precision", "macro_recall", "n_plus", "MiAP")
    expected = evaluate(truth, scores, 2)
    assert measured["values"].tolist() == [expected[name] for name in names]
    assert measured["resampled"].shape == (4, 4)


def test_the_same_scores_do_not_differ():
    rng = np.random.default_rng(0)
    same = rng.random(100)
    comparison = compare(same, same, 0.5, 0.5)
    assert (comparison.value, comparison.low, comparison.high, comparison.p) == (0, 0, 0, 1)


def test_a_plain_difference_is_sure_and_a_vague_one_is_not():
    rng = np.random.default_rng(0)
    theirs = rng.normal(0.5, 0.01, 1000)
    sure = compare(theirs + 0.1 + rng.normal(0, 0.01, 1000), theirs, 0.6, 0.5)
    assert sure.p == 1 / 1000
    assert 0.07 < sure.low < 0.1 < sure.high < 0.13
    vague = compare(theirs + rng.normal(0.001, 0.01, 1000), theirs, 0.501, 0.5)
    assert vague.p > 0.5
    assert vague.low < 0 < vague.high


def test_paired_resamples_see_what_unpaired_ones_would_not():
    """Images differ more than methods do; on the same images the difference is plain."""
    rng = np.random.default_rng(0)
    luck = rng.normal(0.5, 0.1, 1000)
    comparison = compare(luck + 0.01 + rng.normal(0, 0.001, 1000), luck, 0.51, 0.5)
    assert comparison.p == 1 / 1000
    low, high = interval(luck, 0.5)
    assert low < 0.35
    assert high > 0.65
