"""Clusters in time, the kinds that images are held out as, and their folds; all against loops."""

import numpy as np
import pytest

from tagkin.model_selection.kinds import (
    KINDS,
    Kind,
    Round,
    deal_rounds,
    follow,
    kind_of_gap,
    nearest_mates,
    number_clusters,
)

HOUR = 3600.0


def outings(n_trips=12, n_events=3, most_shots=4, seed=0):
    """Return the event and the trip of each image, shuffled; events have 1 to `most_shots`."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most_shots + 1, size=n_trips * n_events)
    events = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return events, events // n_events


def clusters_by_loop(times, folders, gap):
    """Join every pair of images again and again, until nothing changes."""
    n = len(times)
    labels = list(range(n))
    for _ in range(n):
        before = list(labels)
        for i in range(n):
            for j in range(n):
                if np.isnan(times[i]) and np.isnan(times[j]):
                    joined = folders[i] == folders[j] != ""
                else:
                    joined = abs(times[i] - times[j]) < gap  # NaN is not
                if joined:
                    labels[i] = labels[j] = min(labels[i], labels[j])
        if labels == before:
            return labels
    raise AssertionError


def same_partition(first, second):
    pairs = set(zip(first, second, strict=True))
    return len(pairs) == len(set(first)) == len(set(second))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gap", [KINDS.event, KINDS.trip])
def test_clusters_are_those_of_a_loop(gap, seed):
    rng = np.random.default_rng(seed)
    times = rng.random(40) * 40 * gap
    times[rng.random(40) < 0.3] = np.nan
    folders = rng.choice(["", "a", "a/b", "c"], size=40).astype(object)
    clusters = number_clusters(times, folders, gap, 40)
    assert same_partition(clusters, clusters_by_loop(times, folders, gap))
    assert 3 < len(set(clusters)) < 40
    assert set(clusters) == set(range(len(set(clusters))))
    without = number_clusters(times, None, gap, 40)
    assert same_partition(without, clusters_by_loop(times, [""] * 40, gap))
    by_folder = number_clusters(None, folders, gap, 40)
    assert same_partition(by_folder, clusters_by_loop(np.full(40, np.nan), folders, gap))
    assert same_partition(number_clusters(None, None, gap, 40), range(40))


def test_shots_as_far_apart_as_the_gap_are_two_clusters():
    times = np.array([0.0, 10.0, 19.0, 29.5]) * HOUR
    np.testing.assert_array_equal(number_clusters(times, None, 10 * HOUR, 4), [0, 1, 1, 2])


def test_no_image_and_no_known_time_have_clusters():
    assert len(number_clusters(np.zeros(0), None, 1.0, 0)) == 0
    unknown = np.full(3, np.nan)
    np.testing.assert_array_equal(number_clusters(unknown, None, 1.0, 3), [0, 1, 2])


def assert_nothing_is_parted(one, units):
    """All images of a unit are of one kind and in one fold."""
    for unit in np.unique(units):
        members = units == unit
        assert len(set(one.kinds[members])) == len(set(one.folds[members])) == 1


@pytest.mark.parametrize("seed", range(3))
def test_over_three_rounds_each_image_is_of_each_kind_once(seed):
    events, trips = outings(seed=seed)
    rounds = deal_rounds(events, trips, None, 5, 3, seed)
    kinds = np.sort([one.kinds for one in rounds], axis=0)
    np.testing.assert_array_equal(kinds, np.tile([[0], [1], [2]], len(events)))
    largest = np.bincount(trips).max()
    for one in rounds:
        counts = np.bincount(one.kinds, minlength=3)
        assert counts.max() - counts.min() <= largest
        assert set(one.folds) == set(range(5))
        assert_nothing_is_parted(_only(one, one.kinds == Kind.EVENT), events[one.kinds == 1])
        assert_nothing_is_parted(_only(one, one.kinds == Kind.FAR), trips[one.kinds == 2])
        for kind, units in ((Kind.EVENT, events), (Kind.FAR, trips)):  # also with other kinds
            for image in np.flatnonzero(one.kinds == kind):
                mates = units == units[image]
                assert set(one.kinds[mates]) == {kind}
                assert set(one.folds[mates]) == {one.folds[image]}


def _only(one, rows):
    return Round(one.folds[rows], one.kinds[rows], one.clusters[rows])


def test_near_images_are_held_out_alone_and_others_with_their_clusters():
    events, trips = outings()
    (one,) = deal_rounds(events, trips, None, 5, 1, 0)
    near, event, far = (one.kinds == kind for kind in Kind)
    assert len(set(one.clusters[near])) == near.sum()
    assert same_partition(one.clusters[event], events[event])
    assert same_partition(one.clusters[far], trips[far])
    assert not set(one.clusters[event]) & set(one.clusters[far])
    assert not set(one.clusters[near]) & set(one.clusters[event | far])
    # near images of one event are in several folds, so they see each other
    mates = events[near] == np.bincount(events[near]).argmax()
    assert mates.sum() > 2
    assert len(set(one.folds[near][mates])) > 1


@pytest.mark.parametrize("seed", range(3))
def test_no_group_is_on_both_sides_of_a_fold(seed):
    """Copies may be of other events and other trips."""
    events, trips = outings(20, seed=seed)
    groups = np.arange(len(events))
    rng = np.random.default_rng(seed)
    for _ in range(6):
        groups[rng.integers(len(groups), size=2)] = rng.integers(len(groups))
    groups[:3] = groups[3]
    for one in deal_rounds(events, trips, groups * 7, 4, 3, seed):
        assert_nothing_is_parted(one, groups)
        for image in np.flatnonzero(one.kinds == Kind.FAR):
            assert set(one.folds[trips == trips[image]]) == {one.folds[image]}
        for image in np.flatnonzero(one.kinds == Kind.EVENT):
            assert set(one.folds[events == events[image]]) == {one.folds[image]}


def test_too_large_trips_and_events_are_held_out_in_parts():
    # trip 0 has 30 of 60 images in 6 events, trip 1 one event of 21, and 9 trips have one image
    events = np.concatenate([np.repeat(np.arange(6), 5), np.full(21, 6), np.arange(7, 16)])
    trips = np.concatenate([np.zeros(30, int), np.ones(21, int), np.arange(2, 11)])
    rounds = deal_rounds(events, trips, None, 4, 3, 0)
    kinds = np.sort([one.kinds for one in rounds], axis=0)
    np.testing.assert_array_equal(kinds[:, :30].T, np.tile([0, 1, 1], (30, 1)))
    np.testing.assert_array_equal(kinds[:, 30:51], 0)
    np.testing.assert_array_equal(kinds[:, 51:].T, np.tile([0, 1, 2], (9, 1)))
    for one in rounds:
        assert len(set(one.folds[:30])) > 1
        assert len(set(one.folds[30:51])) == 4
        for image in np.flatnonzero(one.kinds == Kind.EVENT):
            assert set(one.folds[events == events[image]]) == {one.folds[image]}


def test_of_one_trip_nobody_is_far_and_of_one_event_all_are_near():
    events = np.arange(30) // 3
    for one in deal_rounds(events, np.zeros(30, int), None, 5, 3, 0):
        assert set(one.kinds) == {Kind.NEAR, Kind.EVENT}
    for one in deal_rounds(np.zeros(30, int), np.zeros(30, int), None, 5, 3, 0):
        assert set(one.kinds) == {Kind.NEAR}
        np.testing.assert_array_equal(np.bincount(one.folds), 6)


def test_the_seed_decides():
    events, trips = outings()
    first, again, other = (deal_rounds(events, trips, None, 5, 3, seed) for seed in (1, 1, 2))
    for one, same in zip(first, again, strict=True):
        for name in ("folds", "kinds", "clusters"):
            np.testing.assert_array_equal(getattr(one, name), getattr(same, name))
    assert any((a.folds != b.folds).any() for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_incomplete_images_follow_the_nearest_of_their_trip(seed):
    rng = np.random.default_rng(seed)
    events, trips = outings(seed=seed)
    n = len(trips)
    is_row = rng.random(n) < 0.5
    rows, others = np.flatnonzero(is_row), np.flatnonzero(~is_row)
    (first,) = deal_rounds(events[rows], trips[rows], None, 5, 1, seed)
    (second,) = deal_rounds(events[others], trips[others], None, 7, 1, seed)
    guides = nearest_mates(trips, rng.random(n), rows, others)
    joined = follow(first, second, rows, guides)
    np.testing.assert_array_equal(joined.folds[rows], first.folds)
    np.testing.assert_array_equal(joined.kinds[rows], first.kinds)
    assert same_partition(joined.clusters[rows], first.clusters)
    assert same_partition(joined.clusters[others], second.clusters)
    assert not set(joined.clusters[rows]) & set(joined.clusters[others])
    n_led = 0
    for place, image in enumerate(others):
        guide, fold = guides[place], second.folds[place] % (first.folds.max() + 1)
        if guide < 0:
            assert joined.kinds[image] == second.kinds[place]
            assert joined.folds[image] == fold
            continue
        assert joined.kinds[image] == joined.kinds[guide]
        if joined.kinds[guide] == Kind.NEAR:
            assert joined.folds[image] == fold
        else:
            assert joined.folds[image] == joined.folds[guide]
            n_led += 1
    assert n_led > 5


@pytest.mark.parametrize("seed", range(4))
def test_nearest_mates_are_those_of_a_loop(seed):
    rng = np.random.default_rng(seed)
    clusters, times = rng.integers(12, size=60), 1.7e9 + 1e6 * rng.random(60)
    rows = np.sort(rng.permutation(60)[:20])
    others = np.setdiff1d(np.arange(60), rows)
    found = nearest_mates(clusters, times, rows, others)
    for image, mate in zip(others, found, strict=True):
        mates = [row for row in rows if clusters[row] == clusters[image]]
        assert mate == min(mates, key=lambda row: abs(times[row] - times[image]), default=-1)
    assert (found < 0).any()
    for unknown in (None, np.full(60, np.nan)):
        for image, mate in zip(others, nearest_mates(clusters, unknown, rows, others), strict=True):
            mates = {row for row in rows if clusters[row] == clusters[image]}
            assert mate in (mates or {-1})
    np.testing.assert_array_equal(nearest_mates(clusters, times, rows[:0], others), -1)


def test_kinds_of_gaps():
    hours = np.array([0, 2.99, 3, 47.99, 48, 1e6, np.inf])
    near, event, far = Kind.NEAR, Kind.EVENT, Kind.FAR
    np.testing.assert_array_equal(kind_of_gap(hours * HOUR), [near, near, event, event] + [far] * 3)
