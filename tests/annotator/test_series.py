"""Series by time, by name and by features; held out as a whole; told to the user."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from tagkin import FeatureAnnotator, TwoPassKNN
from tagkin.annotator.model import describe_groups
from tagkin.annotator.problem import find_groups
from tagkin.annotator.quality import split_into_halves
from tagkin.annotator.series import find_bursts, find_series
from tagkin.collection import Capture
from tagkin.evaluation import mean_average_precision
from tests.annotator.conftest import SPACE
from tests.collection.test_facts import photograph


def unlike(n, d=40, seed=0):
    """Features of photographs of which no two are alike."""
    return np.maximum(np.random.default_rng(seed).normal(size=(n, d)), 0)


def alike(n, d=40):
    """Features with a cosine of .85: alike, but not the same picture."""
    base, *others = np.linalg.qr(np.random.default_rng(5).normal(size=(d, n + 1)))[0].T
    return np.sqrt(0.85) * base + np.sqrt(0.15) * np.array(others)


def test_shots_of_one_camera_within_minutes_are_a_series(tmp_path):
    minutes = [0, 2, 4, 30, 31, 90, 91, 92]
    cameras = ["A", "A", "A", "A", "B", "A", "A", "A"]
    files = [
        str(photograph(tmp_path / f"{i}.jpg", f"2024:01:31 {9 + m // 60:02}:{m % 60:02}:00", c, c))
        for i, (m, c) in enumerate(zip(minutes, cameras, strict=True))
    ]
    series = find_series(files, unlike(8), n_folds=2)
    np.testing.assert_array_equal(series, [0, 0, 0, 1, 2, 3, 3, 3])
    assert describe_groups(series) == "6 photographs in 2 series"


def test_numbers_that_follow_each_other_make_a_series_of_what_looks_alike():
    X = unlike(60)
    X[[10, 11, 12, 13, 30]] = alike(5)
    far_apart = [f"/a/DSC{100 * i:05}.jpg" for i in range(60)]
    following = [f"/a/DSC{i:05}.jpg" for i in range(60)]
    assert find_groups(X, find_series(far_apart, X, 3)) is None
    series = find_series(following, X, 3)
    assert describe_groups(series) == "4 photographs in 1 series"
    assert len(set(series[10:14])) == 1
    other_folders = [f"/{i}/DSC{i:05}.jpg" for i in range(60)]
    assert find_groups(X, find_series(other_folders, X, 3)) is None


def test_known_times_decide_over_names(tmp_path):
    """Consecutive names and similar looks make no series of photographs that are hours apart."""
    X = alike(4)
    files = [photograph(tmp_path / f"DSC{i:05}.jpg", f"2024:01:31 {9 + i}:00:00") for i in range(4)]
    names = [str(file) for file in files]
    np.testing.assert_array_equal(find_series(names, X, 1), [0, 1, 2, 3])
    files[1].unlink()  # its time is now unknown
    np.testing.assert_array_equal(find_series(names, X, 1), [0, 0, 0, 1])


def test_nearly_the_same_picture_is_a_series_whatever_its_time_and_name(tmp_path):
    X = unlike(20)
    X[13] = X[4] + 0.001
    files = [
        str(photograph(tmp_path / f"{i}.jpg", f"2024:01:{1 + i:02} 12:00:00")) for i in range(20)
    ]
    series = find_series(files, X, 2)
    assert series[13] == series[4]
    assert describe_groups(series) == "2 photographs in 1 series"


def test_versions_of_one_photograph_are_a_series():
    X = unlike(20)
    X[:3] = alike(3)
    names = ["IMG_0001", "IMG_0001-edited", "img_0001 (2)", *(f"IMG_0{i}00" for i in range(1, 18))]
    series = find_series([f"/a/{name}.jpg" for name in names], X, 2)
    np.testing.assert_array_equal(series, [0, 0, 0, *range(1, 18)])


def test_a_series_larger_than_a_fold_stays_whole(tmp_path):
    files = [
        str(photograph(tmp_path / f"{i}.jpg", f"2024:01:31 {9 + i // 8:02}:00:{i % 8:02}"))
        for i in range(48)
    ]
    np.testing.assert_array_equal(find_series(files, unlike(48)), np.arange(48) // 8)
    X = unlike(48)[np.arange(48) // 8 * 8] + 0.001 * unlike(48, seed=1)
    np.testing.assert_array_equal(find_groups(X, None), np.arange(48) // 8)


@pytest.mark.parametrize("n_folds", [2, 5])
def test_a_series_of_everything_leaves_usable_folds(tmp_path, n_folds):
    same = [str(photograph(tmp_path / f"{i}.jpg", "2024:01:31 12:00:00")) for i in range(40)]
    for files, X in ((same, unlike(40)), (["x.jpg"] * 40, np.ones((40, 5)))):
        sizes = np.bincount(find_series(files, X, n_folds))
        assert sizes.max() <= 40 // n_folds
        assert len(sizes) >= n_folds


def test_a_clock_that_always_says_the_same_is_no_evidence(tmp_path):
    file = str(photograph(tmp_path / "a.jpg", "2024:01:31 12:00:00"))
    assert find_groups(unlike(100), find_series([file] * 100, unlike(100), 3)) is None


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
