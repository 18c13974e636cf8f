"""Neighbours outside one's own group, against sorting all pairs."""

import numpy as np
import pytest

import tagkin
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, neighbors_outside


def by_hand(points, k, groups):
    """Sort all pairs; −1 where there are too few others."""
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    distances = 1 - unit @ unit.T
    distances[groups[:, None] == groups] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    neighbors = np.take_along_axis(distances, order, axis=1)
    return np.where(np.isfinite(neighbors), order, -1), neighbors


GROUPS = {
    "alone": np.arange(60),
    "pairs": np.repeat(np.arange(30), 2),
    "one large": np.minimum(np.arange(60), 20),
    "names": np.repeat(["a", "b", "c"], 20),
    "mixed": np.random.default_rng(1).integers(0, 12, 60),
}


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("k", [1, 7, 59])
def test_it_is_what_sorting_all_pairs_gives(groups, k, as_array):
    points = np.random.default_rng(0).normal(size=(60, 5))
    # a group lies together, so that it fills the lists of its own
    points += 3 * np.random.default_rng(2).normal(size=(60, 5))[np.unique(groups, False, True)[1]]
    points = as_array(points)
    index = ExactNeighbors().fit(points)
    neighbors = neighbors_outside(index, points, k, groups)
    with tagkin.memory_budget(5000):
        small = neighbors_outside(index, points, k, groups)
    expected, distances = by_hand(np.asarray(points), k, groups)
    np.testing.assert_array_equal(np.asarray(neighbors.indices), expected)
    np.testing.assert_allclose(np.asarray(neighbors.distances), distances, atol=1e-12)
    np.testing.assert_array_equal(np.asarray(small.indices), expected)


def test_without_groups_it_is_the_search():
    points = np.random.default_rng(0).normal(size=(40, 5))
    index = ExactNeighbors().fit(points)
    expected = index.kneighbors(points, 6, exclude=np.arange(40))
    for groups in (None, np.arange(40)):
        np.testing.assert_array_equal(
            neighbors_outside(index, points, 6, groups).indices, expected.indices
        )


def test_nobody_is_outside_of_a_group_of_all():
    points = np.random.default_rng(0).normal(size=(12, 3))
    neighbors = neighbors_outside(ExactNeighbors().fit(points), points, 4, np.zeros(12))
    assert (neighbors.indices == -1).all()
    assert np.isinf(neighbors.distances).all()


def test_one_group_for_each_point():
    points = np.ones((4, 2))
    with pytest.raises(InvalidInput, match=r"each of the 4 images; found shape \(3,\)"):
        neighbors_outside(ExactNeighbors().fit(points), points, 1, np.arange(3))
