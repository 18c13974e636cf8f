"""Groups: near-duplicates against all pairs, joining against a plain loop, and caps."""

import numpy as np
import pytest

import tagkin
from tagkin.annotator.model import count_grouped
from tagkin.errors import InvalidInput
from tagkin.model_selection import Links, find_groups, linked_groups
from tagkin.model_selection.folds import make_folds
from tagkin.model_selection.groups import CLOSENESS, MAX_BURST, NearImages


def bursts(n_events, n_shots, jitter, d=100, seed=0):
    """Features of events and their shots, in order."""
    rng = np.random.default_rng(seed)
    events = np.maximum(rng.normal(size=(n_events, d)), 0)
    shots = np.repeat(events, n_shots, axis=0)
    return shots + jitter * rng.normal(size=shots.shape)


def all_pairs(X):
    """Near-duplicates by the definition, with all images as the sample."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    far = 1 - unit @ unit.T
    quarter = np.sort(far, axis=1)[:, int(0.25 * (len(X) - 1))]
    near = CLOSENESS * np.minimum(quarter[:, None], quarter)
    return {(i, j) for i, j in np.argwhere(far <= near) if i != j}


@pytest.mark.parametrize("d", [40, 100])
def test_near_duplicates_are_those_of_all_pairs(d, as_array):
    X = bursts(60, 3, 0.37, d)  # some shots are near enough, some are not
    links = NearImages(as_array(X)).duplicates()
    with tagkin.memory_budget(20_000):
        small = NearImages(X).duplicates()
    found = set(zip(links.first.tolist(), links.second.tolist(), strict=True))
    assert found == all_pairs(X)
    assert 0.1 < len(found) / 360 < 0.9
    assert found == set(zip(small.first.tolist(), small.second.tolist(), strict=True))
    assert links.gaps.min() >= 0
    assert links.gaps.max() <= 1


def test_shots_of_one_event_are_a_group():
    X = bursts(50, 4, 0.01)
    np.testing.assert_array_equal(find_groups(X), np.repeat(np.arange(50), 4))
    assert count_grouped(find_groups(X)) == (200, 50)
    X = bursts(200, 1, 0)
    assert count_grouped(find_groups(X)) == (0, 0)


@pytest.mark.parametrize(("jitter", "largest"), [(0.3, MAX_BURST), (0.02, 60)])
def test_photographs_of_one_subject_are_bursts_unless_they_are_copies(jitter, largest):
    X = np.concatenate([bursts(1, 60, jitter), bursts(400, 1, 0, seed=1)])
    groups = find_groups(X)
    assert np.bincount(groups).max() == largest
    assert len(np.unique(groups[60:])) == 400


@pytest.mark.parametrize("X", [np.zeros((30, 5)), np.ones((30, 5)), np.ones((1, 3))])
def test_features_that_say_nothing_make_usable_groups(X):
    groups = find_groups(X)
    assert np.bincount(groups).max() <= max(1, len(X) // 3)


def joined_by_hand(n, links, max_size):
    groups = [{i} for i in range(n)]
    for i, j, _ in sorted(zip(*links, strict=True), key=lambda link: link[2]):
        one, other = (next(g for g in groups if k in g) for k in (i, j))
        if one is not other and len(one) + len(other) <= max_size:
            groups.remove(other)
            one |= other
    return {frozenset(group) for group in groups}


@pytest.mark.parametrize("max_size", [1, 3, 8, 40])
def test_links_join_from_the_surest_on(max_size):
    rng = np.random.default_rng(3)
    links = Links(*rng.integers(0, 40, (2, 45)), rng.random(45))
    halves = [Links(*(part[:20] for part in links)), Links(*(part[20:] for part in links))]
    groups = linked_groups(40, halves, max_size)
    found = {frozenset(np.flatnonzero(groups == g).tolist()) for g in range(groups.max() + 1)}
    assert found == joined_by_hand(40, links, max_size)
    firsts = [np.flatnonzero(groups == g)[0] for g in range(groups.max() + 1)]
    assert firsts == sorted(firsts)


def test_a_chain_through_all_images_breaks_at_its_weakest_links():
    gaps = np.full(11, 0.2)
    gaps[[3, 7]] = 0.9
    chain = Links(np.arange(11), np.arange(1, 12), gaps)
    groups = linked_groups(12, [chain], max_size=4)
    np.testing.assert_array_equal(groups, np.repeat([0, 1, 2], 4))
    folds = make_folds(12, np.ones((12, 1)), 3, groups, 0)
    assert sorted(len(fold.held_out) for fold in folds) == [4, 4, 4]


@pytest.mark.parametrize("n_links", [30, 100, 400])
def test_groups_are_the_connected_components(n_links):
    """Against SciPy; a path in random order takes the most rounds."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rng = np.random.default_rng(n_links)
    path = rng.permutation(200)
    for first, second in (rng.integers(0, 200, (2, n_links)), (path[:-1], path[1:])):
        found = linked_groups(200, [Links(first, second, np.ones(len(first)))], max_size=200)
        graph = coo_array((np.ones(len(first)), (first, second)), shape=(200, 200))
        n_groups, expected = connected_components(graph, directed=False)
        assert len({*zip(found, expected, strict=True)}) == n_groups == found.max() + 1


def test_without_links_everybody_is_alone():
    np.testing.assert_array_equal(linked_groups(3, [], 2), [0, 1, 2])
    np.testing.assert_array_equal(linked_groups(3, [Links.none()], 2), [0, 1, 2])
    assert len(NearImages(np.ones((1, 4))).duplicates().first) == 0


def test_bad_input():
    links = Links(np.array([0]), np.array([3]), np.array([0.0]))
    with pytest.raises(InvalidInput, match="between images 0 to 2"):
        linked_groups(3, [links], 2)
    with pytest.raises(InvalidInput, match="max_size must be a whole number from 1"):
        linked_groups(3, [], 0)
    with pytest.raises(InvalidInput, match="n_folds"):
        find_groups(np.ones((3, 2)), n_folds=1)
