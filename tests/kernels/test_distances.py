"""Mean distances over pairs of rows, against the sums written out."""

import numpy as np
import pytest

import tagkin
from tagkin.kernels.kernel import (
    mean_distance,
    mean_pair_distance,
    mean_squared_distance,
    sample_pairs,
)
from tests.conftest import make_collection


def test_the_mean_squared_distance_is_that_of_all_pairs(as_array):
    X = make_collection(40).X
    pairs = [((a - b) ** 2).sum() for a in X for b in X]
    assert mean_squared_distance(as_array(X)) == pytest.approx(np.mean(pairs))
    with tagkin.memory_budget(1000):
        assert mean_squared_distance(as_array(X)) == pytest.approx(np.mean(pairs))


def test_the_mean_squared_distance_keeps_its_digits_far_from_the_origin():
    X = make_collection(40).X
    assert mean_squared_distance(X * 1e-4 + 1e4) == pytest.approx(1e-8 * mean_squared_distance(X))
    assert mean_squared_distance(np.full((30, 3), 0.1)) == pytest.approx(0, abs=1e-30)


def test_the_mean_distance_is_exact_for_few_and_near_for_many(as_array):
    X = make_collection(40).X
    exact = np.mean([np.linalg.norm(a - b) for a in X for b in X])
    assert mean_distance(as_array(X)) == pytest.approx(exact)
    pairs = sample_pairs(40, 1000, random_state=0)
    sampled = mean_pair_distance(as_array(X), *pairs)
    assert sampled == pytest.approx(exact, rel=0.1)
    assert sampled != exact


def test_sampled_pairs_are_those_of_the_seed():
    first, other, another = (sample_pairs(1000, 50, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, other)
    assert not np.array_equal(first, another)
    assert len(first[0]) == 50
    every = set(zip(*sample_pairs(3, 50), strict=True))
    assert every == {(i, j) for i in range(3) for j in range(3)}
