"""Groups: pictures that are nearly the same against all pairs, joining against a plain loop."""

import numpy as np
import pytest

import tagkin
from tagkin.annotator.model import count_grouped
from tagkin.errors import InvalidInput
from tagkin.model_selection import find_groups
from tagkin.model_selection.folds import number_folds
from tagkin.model_selection.groups import COPIES, Links, join_links, link_copies


def bursts(n_events, n_shots, jitter, d=100, seed=0):
    """Features of events and their shots, in order."""
    rng = np.random.default_rng(seed)
    events = np.maximum(rng.normal(size=(n_events, d)), 0)
    shots = np.repeat(events, n_shots, axis=0)
    return shots + jitter * rng.normal(size=shots.shape)


def all_pairs(X):
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    far = 1 - unit @ unit.T
    most = min(1 - COPIES.cosine, 0.05 * np.median(far[np.triu_indices(len(X), 1)]))
    return {(i, j) for i, j in np.argwhere(far <= most) if i != j}


@pytest.mark.parametrize("d", [40, 100])
def test_copies_are_those_of_all_pairs(d, as_array):
    X = bursts(60, 3, 0.12, d)  # some shots are near enough, some are not
    links = link_copies(as_array(X))
    with tagkin.memory_budget(20_000):
        small = link_copies(X)
    pairs = set(zip(links.first.tolist(), links.second.tolist(), strict=True))
    assert pairs == all_pairs(X)
    assert 0.1 < len(pairs) / 360 < 0.9
    assert pairs == set(zip(small.first.tolist(), small.second.tolist(), strict=True))
    assert links.gaps.min() >= 0
    assert links.gaps.max() <= 1


def test_copies_of_one_picture_are_a_group():
    X = bursts(50, 4, 0.01)
    np.testing.assert_array_equal(find_groups(X), np.repeat(np.arange(50), 4))
    assert count_grouped(find_groups(X)) == (200, 50)
    X = bursts(200, 1, 0)
    assert count_grouped(find_groups(X)) == (0, 0)


def test_few_features_that_are_not_centred_make_no_copies():
    """All cosines are above .97, but no image is much nearer to another than to all."""
    X = 10 + np.random.default_rng(0).random((200, 16))
    assert count_grouped(find_groups(X)) == (0, 0)


def test_look_alikes_are_not_a_group():
    """Eleven zebras with a mean cosine of .74 are photographs of their own."""
    zebras = bursts(1, 11, 0.45)
    unit = zebras / np.linalg.norm(zebras, axis=1, keepdims=True)
    assert np.mean((unit @ unit.T)[~np.eye(11, dtype=bool)]) == pytest.approx(0.74, abs=0.02)
    X = np.concatenate([zebras, bursts(400, 1, 0, seed=1)])
    assert count_grouped(find_groups(X)) == (0, 0)


@pytest.mark.parametrize("X", [np.zeros((30, 5)), np.ones((30, 5)), np.ones((1, 3))])
def test_features_that_say_nothing_make_usable_groups(X):
    groups = find_groups(X)
    assert np.bincount(groups).max() <= max(1, len(X) // 3)


def joined_by_hand(n, links, max_size):
    groups = [{i} for i in range(n)]
    for i, j, _ in sorted(zip(*links, strict=True), key=lambda link: link[2]):
        first, other = (next(g for g in groups if k in g) for k in (i, j))
        if first is not other and len(first) + len(other) <= max_size:
            groups.remove(other)
            first |= other
    return {frozenset(group) for group in groups}


@pytest.mark.parametrize("max_size", [1, 3, 8, 40])
def test_links_join_from_the_surest_on(max_size):
    rng = np.random.default_rng(3)
    links = Links(*rng.integers(0, 40, (2, 45)), rng.random(45))
    halves = [Links(*(part[:20] for part in links)), Links(*(part[20:] for part in links))]
    groups = join_links(40, halves, max_size)
    members = {frozenset(np.flatnonzero(groups == g).tolist()) for g in range(groups.max() + 1)}
    assert members == joined_by_hand(40, links, max_size)
    firsts = [np.flatnonzero(groups == g)[0] for g in range(groups.max() + 1)]
    assert firsts == sorted(firsts)


def test_a_chain_through_all_images_breaks_at_its_weakest_links():
    gaps = np.full(11, 0.2)
    gaps[[3, 7]] = 0.9
    chain = Links(np.arange(11), np.arange(1, 12), gaps)
    groups = join_links(12, [chain], max_size=4)
    np.testing.assert_array_equal(groups, np.repeat([0, 1, 2], 4))
    assert np.bincount(number_folds(12, 3, groups, 0)).tolist() == [4, 4, 4]


@pytest.mark.parametrize("n_links", [30, 100, 400])
def test_groups_are_the_connected_components(n_links):
    """Against SciPy; a path in random order takes the most rounds."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rng = np.random.default_rng(n_links)
    path = rng.permutation(200)
    for first, second in (rng.integers(0, 200, (2, n_links)), (path[:-1], path[1:])):
        joined = join_links(200, [Links(first, second, np.ones(len(first)))], max_size=200)
        graph = coo_array((np.ones(len(first)), (first, second)), shape=(200, 200))
        n_groups, expected = connected_components(graph, directed=False)
        assert len({*zip(joined, expected, strict=True)}) == n_groups == joined.max() + 1


def test_without_links_everybody_is_alone():
    np.testing.assert_array_equal(join_links(3, [], 2), [0, 1, 2])
    np.testing.assert_array_equal(join_links(3, [Links.none()], 2), [0, 1, 2])
    assert len(link_copies(np.ones((1, 4))).first) == 0


def test_bad_input():
    links = Links(np.array([0]), np.array([3]), np.array([0.0]))
    with pytest.raises(InvalidInput, match="between images 0 to 2"):
        join_links(3, [links], 2)
    with pytest.raises(InvalidInput, match="max_size must be a whole number from 1"):
        join_links(3, [], 0)
    with pytest.raises(InvalidInput, match="n_folds"):
        find_groups(np.ones((3, 2)), n_folds=1)
