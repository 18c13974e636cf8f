"""Series by name and by features, and events and trips: held out as a whole; told to the user."""

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from tagkin import FeatureAnnotator
from tagkin.annotator.model import describe_groups
from tagkin.annotator.part import Part
from tagkin.annotator.problem import Labels, Problem, find_groups
from tagkin.annotator.quality import split_into_halves
from tagkin.annotator.series import find_bursts, find_series
from tagkin.collection import Capture
from tagkin.evaluation import mean_average_precision
from tagkin.model_selection.kinds import Kind
from tagkin.paper import TwoPassKNN
from tagkin.transfer.occasions import Occasions
from tests.annotator.conftest import SPACE

HOUR = 3600.0


def unlike(n, d=40, seed=0):
    """Features of photographs of which no two are alike."""
    return np.maximum(np.random.default_rng(seed).normal(size=(n, d)), 0)


def alike(n, d=40):
    """Features with a cosine of .85: alike, but not the same picture."""
    base, *others = np.linalg.qr(np.random.default_rng(5).normal(size=(d, n + 1)))[0].T
    return np.sqrt(0.85) * base + np.sqrt(0.15) * np.array(others)


def test_numbers_that_follow_each_other_make_a_series_of_what_looks_alike():
    X = unlike(60)
    X[[10, 11, 12, 13, 30]] = alike(5)
    far_apart = [f"/a/DSC{100 * i:05}.jpg" for i in range(60)]
    following = [f"/a/DSC{i:05}.jpg" for i in range(60)]
    assert find_groups(X, find_series(far_apart, X)) is None
    series = find_series(following, X)
    assert describe_groups(series) == "4 photographs in 1 series"
    assert len(set(series[10:14])) == 1
    other_folders = [f"/{i}/DSC{i:05}.jpg" for i in range(60)]
    assert find_groups(X, find_series(other_folders, X)) is None


def test_known_times_decide_over_names():
    """Consecutive names and similar looks make no series of photographs whose times are known."""
    X, names = alike(4), [f"/a/DSC{i:05}.jpg" for i in range(4)]
    times = HOUR * np.arange(4.0)
    np.testing.assert_array_equal(find_series(names, X, times, 1), [0, 1, 2, 3])
    np.testing.assert_array_equal(find_series(names, X, 0 * times, 1), [0, 1, 2, 3])
    times[1] = np.nan
    np.testing.assert_array_equal(find_series(names, X, times, 1), [0, 0, 0, 1])
    np.testing.assert_array_equal(find_series(names, X, None, 1), [0, 0, 0, 0])


def test_nearly_the_same_picture_is_a_series_whatever_its_time_and_name():
    X = unlike(20)
    X[13] = X[4] + 0.001
    files = [f"/a/{i}.jpg" for i in range(20)]
    series = find_series(files, X, 24 * HOUR * np.arange(20), 2)
    assert series[13] == series[4]
    assert describe_groups(series) == "2 photographs in 1 series"


def test_versions_of_one_photograph_are_a_series():
    X = unlike(20)
    X[:3] = alike(3)
    names = ["IMG_0001", "IMG_0001-edited", "img_0001 (2)", *(f"IMG_0{i}00" for i in range(1, 18))]
    series = find_series([f"/a/{name}.jpg" for name in names], X, n_folds=2)
    np.testing.assert_array_equal(series, [0, 0, 0, *range(1, 18)])


def test_a_series_larger_than_a_fold_stays_whole():
    """It breaks only where it has more than a third of the photographs."""
    series = np.arange(48) // 8
    X = unlike(48)[8 * series] + 0.001 * unlike(48, seed=1)
    np.testing.assert_array_equal(find_groups(X, None), series)
    np.testing.assert_array_equal(find_series([f"/a/{i}.jpg" for i in range(48)], X), series)


@pytest.mark.parametrize("n_folds", [2, 5])
def test_a_series_of_everything_leaves_usable_folds(n_folds):
    sizes = np.bincount(find_series(["x.jpg"] * 40, np.ones((40, 5)), n_folds=n_folds))
    assert sizes.max() <= 40 // n_folds
    assert len(sizes) >= n_folds


def held_out_with(problem):
    """Return pairs of an image and one of those that are held out with it, of each kind."""
    part = Part.whole(problem)
    pairs = {kind: set() for kind in Kind}
    for number, fold in enumerate(part.folds):
        kinds = part.kinds[part.places(number)]
        assert not set(fold.known) & set(fold.held_out)
        for image, kind in zip(fold.held_out, kinds, strict=True):
            pairs[kind] |= {(int(image), int(other)) for other in fold.held_out}
    return pairs


def test_events_and_trips_are_held_out_whole():
    """Shots less than three hours apart, and less than two days: each image once as each kind."""
    hours = np.add.outer(24 * 7 * np.arange(8), [0, 2.9, 5, 8.1, 50, 52.9]).ravel()
    n, X = len(hours), unlike(len(hours))
    Y = np.random.default_rng(0).random((n, 3)) < 0.4
    problem = Problem(X, Labels.of(Y), occasions=Occasions(HOUR * hours))
    events = np.repeat(np.arange(24), [3, 1, 2] * 8)
    trips = np.arange(n) // 6
    pairs = held_out_with(problem)
    for units, kind in ((events, Kind.EVENT), (trips, Kind.FAR)):
        for image in range(n):
            assert {(image, int(mate)) for mate in np.flatnonzero(units == units[image])} <= pairs[
                kind
            ]
    # alone, an image sees others of its event
    is_mate = (events[:, None] == events) & ~np.eye(n, dtype=bool)
    near = [pair for pair in zip(*is_mate.nonzero(), strict=True) if pair not in pairs[Kind.NEAR]]
    assert len(near) > 0.5 * is_mate.sum()
    # without times, all are held out alone
    alone = Part.whole(replace(problem, occasions=None))
    np.testing.assert_array_equal(alone.kinds, Kind.NEAR)


def test_untimed_images_are_held_out_with_their_folder():
    folders = [f"scans/{i // 5}" for i in range(60)]
    X, Y = unlike(60), np.random.default_rng(0).random((60, 3)) < 0.4
    pairs = held_out_with(
        Problem(X, Labels.of(Y), occasions=Occasions.read(None, None, folders, 60))
    )
    for kind in (Kind.EVENT, Kind.FAR):
        for image in range(60):
            mates = range(image // 5 * 5, image // 5 * 5 + 5)
            assert {(image, mate) for mate in mates} <= pairs[kind]


def test_copies_are_held_out_together_whatever_their_times():
    X, Y = unlike(60), np.random.default_rng(0).random((60, 3)) < 0.4
    groups = np.arange(60)
    groups[[7, 31, 55]] = 7
    occasions = Occasions(24 * 7 * HOUR * (np.arange(60) // 4))
    for complete in (None, np.arange(60) % 2 == 0):
        problem = Problem(X, Labels.of(Y, complete=complete), groups, occasions=occasions)
        for fold in Part.whole(problem).folds:
            assert not set(groups[fold.known]) & set(groups[fold.held_out])


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(25), 4)])
def test_halves_part_no_group(groups):
    first, other = split_into_halves(100, groups, 0)
    np.testing.assert_array_equal(np.sort(np.concatenate([first, other])), np.arange(100))
    assert 48 <= len(first) <= 52
    if groups is not None:
        assert not set(groups[first]) & set(groups[other])


def events(n_events=40, n_shots=6, seed=0):
    """Near-identical shots of events whose tags have nothing to do with their looks."""
    rng = np.random.default_rng(seed)
    event = np.repeat(np.arange(n_events), n_shots)
    X = np.maximum(rng.normal(size=(n_events, 64)), 0)[event]
    X = X + 0.02 * rng.normal(size=X.shape)
    return X, (rng.random((n_events, 8)) < 0.25)[event], event


def test_figures_of_bursts_are_those_of_new_events():
    X, Y, event = events()
    annotator = FeatureAnnotator(SPACE)
    quality = annotator.cross_validate(X, Y)
    alone = annotator.cross_validate(X, Y, groups=np.arange(len(X)))
    assert "240 photographs in 40 series, each series held out as a whole" in quality.how
    new, truth, _ = events(seed=1)
    annotator.fit(X, Y)
    np.testing.assert_array_equal(annotator.model_.groups, event)
    reached = mean_average_precision(truth, annotator.decision_function(new))
    assert alone.semantic["MAP"] > 0.9
    assert abs(quality.semantic["MAP"] - reached) < 0.08
    assert "Held out together: 240 images in 40 groups." in annotator.describe()
    # of two honest and one careless calibrator, the last is sure of what it cannot know
    careless = FeatureAnnotator(SPACE).fit(X, Y, groups=np.arange(len(X)))
    sure = [(a.predict_proba(new) > 0.8).sum() for a in (annotator, careless)]
    assert sure[0] < 0.02 * truth.sum()
    assert sure[1] > 0.2 * truth.sum()


def test_images_that_come_later_are_groups_of_their_own(tmp_path):
    X, Y, _ = events(20)
    annotator = FeatureAnnotator(SPACE).fit(X, Y)
    annotator.partial_fit(X[:3] + 1, Y[:3])
    np.testing.assert_array_equal(annotator.model_.groups[-3:], [20, 21, 22])
    assert len(annotator.model_.groups) == 123


def test_groups_that_are_given_are_taken():
    X = unlike(30)
    np.testing.assert_array_equal(find_groups(X, list("ab" * 15)), [0, 1] * 15)


@pytest.mark.parametrize("n_groups", [2, 4])
def test_few_groups_are_held_out_one_by_one(n_groups):
    """Also fewer than there would be folds without them."""
    rng = np.random.default_rng(0)
    Y = rng.random((40, 3)) < 0.4
    X = np.hstack([Y, rng.random((40, 5))])
    groups = np.array(["sea", "hills", "city", "home"])[np.arange(40) % n_groups]
    annotator = FeatureAnnotator()
    assert annotator.fit(X, Y, groups=groups).score(X, Y) > 0.9
    assert annotator.cross_validate(X, Y, groups=groups).how.startswith(f"{n_groups}-fold")
    by_votes = FeatureAnnotator(method=TwoPassKNN())
    assert by_votes.fit(X, Y, groups=groups).score(X, Y) > 0.9


def test_a_burst_is_of_one_camera_within_seconds_and_looks_alike():
    rng = np.random.default_rng(0)
    scenes = rng.normal(size=(40, 16))
    features = np.concatenate([scenes, scenes[:3] + 0.01 * rng.normal(size=(3, 16)), scenes[:1]])
    start = datetime(2024, 5, 1, 10)
    captures = [Capture(start + timedelta(minutes=10 * i), "one") for i in range(40)]
    captures += [
        Capture(captures[0].time + timedelta(seconds=4), "one"),
        Capture(captures[1].time + timedelta(seconds=9), "one"),  # too late
        Capture(captures[2].time + timedelta(seconds=1), "two"),  # of another camera
        Capture(captures[39].time + timedelta(seconds=1), "one"),  # of another scene
    ]
    groups = find_bursts(captures, features)
    sizes = np.bincount(groups)
    assert groups[0] == groups[40]
    assert sorted(sizes)[-2:] == [1, 2]
    captures[40] = None
    assert max(np.bincount(find_bursts(captures, features))) == 1
