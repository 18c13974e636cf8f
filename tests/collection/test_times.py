"""Times that count: each rule by itself, and the clocks of two cameras."""

from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tagkin.collection.times import (
    CLOCKS,
    Moments,
    align_cameras,
    leave_out_unset,
    read_moments,
    tidy_times,
    to_seconds,
)
from tests.collection.test_facts import ZURICH, packet, photograph

HOUR, DAY = 3600.0, 86_400.0
START = to_seconds(["2024-05-01T08:00:00"])[0]


def at(text: str) -> float:
    return float(to_seconds([text])[0])


def test_seconds_are_those_of_the_clock_on_the_wall():
    texts = ["1970-01-01T00:00:01.500000", None, "2024-05-01T08:00:00", "1969-12-31", "2024-05-01"]
    seconds = to_seconds(texts)
    expected = (datetime(2024, 5, 1, 8) - datetime(1970, 1, 1)).total_seconds()
    np.testing.assert_array_equal(seconds, [1.5, np.nan, expected, -DAY, expected - 8 * HOUR])
    assert to_seconds([]).shape == (0,)


@pytest.mark.parametrize(
    "taken",
    [
        "2004-05-01",  # a date without a time
        "2004-05-01T00:00:00",  # the same in EXIF
        "1970-01-01T00:00:00",
        "1970-01-01T09:31:00",
        "1980-01-01T00:00:04",
        "1980-01-01T12:00:00",
        "2000-01-01T00:00:00",
        "2000-01-01T00:00:41",
    ],
)
def test_no_photograph_was_taken_then(taken):
    assert np.isnan(leave_out_unset(to_seconds([taken]), ["a"]))


@pytest.mark.parametrize(
    "taken",
    [
        "2004-05-01T00:00:01",
        "2004-05-01T00:00:00.250000",
        "1970-01-02T09:31:00",
        "1985-07-14T12:00:00",
        "2000-01-01T00:01:00",
        "1999-12-31T23:59:59",
        "1931-06-07T12:00:00",
    ],
)
def test_a_photograph_may_have_been_taken_then(taken):
    np.testing.assert_array_equal(leave_out_unset(to_seconds([taken]), ["a"]), to_seconds([taken]))


def test_a_clock_that_stands_still_has_no_time():
    most = CLOCKS.most_per_second
    instant = at("2011-01-01T12:00:00")
    seconds = np.array([instant] * most + [instant] * most + [instant + 0.5, instant + 1])
    cameras = ["a"] * most + ["b"] * most + ["b", "b"]
    kept = leave_out_unset(seconds, cameras)
    np.testing.assert_array_equal(kept[:most], instant)  # a fast camera
    assert np.isnan(kept[most:-1]).all()
    assert kept[-1] == instant + 1
    assert np.isfinite(seconds).all()  # it is left as it was


def test_no_time_is_normal():
    nothing = np.full(3, np.nan)
    for times in (tidy_times(nothing, ["a", "a", ""]), tidy_times(nothing, ["", "", ""])):
        assert np.isnan(times).all()
    assert tidy_times(np.zeros(0), []).shape == (0,)
    np.testing.assert_array_equal(tidy_times(np.array([np.inf, START]), ["", ""]), [np.nan, START])


# --- two cameras -------------------------------------------------------------------------


def outings(rng: np.random.Generator, n: int = 40) -> np.ndarray:
    """Times of photographs on some days: a few at a sight, and half an hour to the next."""
    days = np.cumsum(rng.integers(1, 20, n)) * DAY + rng.uniform(0, 4 * HOUR, n)
    sights = days[:, None] + np.cumsum(rng.exponential(HOUR / 2, (n, 8)), axis=1)
    return START + (sights[..., None] + rng.uniform(0, 120, (n, 8, 3))).ravel()


@pytest.mark.parametrize("shift", [HOUR, -7 * HOUR, 5.5 * HOUR, 12 * HOUR])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_cameras_hours_apart_are_brought_together(shift, seed):
    rng = np.random.default_rng(seed)
    true = outings(rng)
    is_second = rng.random(len(true)) < 0.4
    seconds = np.where(is_second, true + shift, true)
    cameras = np.where(is_second, "second", "first").tolist()
    tidy = tidy_times(seconds, cameras)
    np.testing.assert_array_equal(tidy[~is_second], true[~is_second])
    assert np.abs(tidy - true).max() <= CLOCKS.step
    order = rng.permutation(len(true))
    np.testing.assert_array_equal(tidy_times(seconds[order], np.array(cameras)[order]), tidy[order])


@pytest.mark.parametrize("seed", range(5))
def test_cameras_that_agree_or_were_never_used_together_stay(seed):
    rng = np.random.default_rng(seed)
    first = outings(rng)
    together = first[rng.random(len(first)) < 0.5] + 60
    on_other_days = outings(rng) + 0.5 * DAY
    few = first[:20] + 3 * HOUR
    evenings = first + 9 * HOUR + rng.normal(0, HOUR, len(first))  # on the same days, but later
    for second in (together, on_other_days, few, evenings):
        seconds = np.concatenate([first, second])
        cameras = ["first"] * len(first) + ["second"] * len(second)
        np.testing.assert_array_equal(align_cameras(seconds, cameras), seconds)


def test_cameras_that_go_on_for_hours_meet_with_any_shift():
    days = np.arange(30)[:, None] * DAY
    first = (START + days + np.arange(0, 6 * HOUR, 120)).ravel()
    second = (START + 3 * HOUR + days + np.arange(0, 4 * HOUR, 240)).ravel()
    seconds = np.concatenate([first, second])
    cameras = ["first"] * len(first) + ["second"] * len(second)
    np.testing.assert_array_equal(align_cameras(seconds, cameras), seconds)


def test_an_unknown_camera_is_no_camera():
    rng = np.random.default_rng(0)
    true = outings(rng)
    is_second = rng.random(len(true)) < 0.5
    seconds = np.where(is_second, true + 5 * HOUR, true)
    for names in (("", "second"), ("first", "")):
        cameras = np.where(is_second, names[1], names[0])
        np.testing.assert_array_equal(align_cameras(seconds, cameras), seconds)


# --- files -------------------------------------------------------------------------------


def test_moments_of_files(tmp_path: Path):
    folder = tmp_path / "Ireland" / "Cork"
    folder.mkdir(parents=True)
    first = photograph(folder / "a.jpg", below={0x9291: "5"}, gps=ZURICH)
    second = tmp_path / "b.png"
    Image.new("RGB", (8, 8)).save(second)
    second.with_suffix(".xmp").write_bytes(packet('exif:DateTimeOriginal="2004-05-01"'))
    gone = tmp_path / "Ireland" / "gone.jpg"
    files = [str(first), str(second), str(gone), "/elsewhere/c.jpg"]
    moments = read_moments(files, tmp_path)
    np.testing.assert_array_equal(moments.times, [at("2024-01-31T15:45:07.500000"), *[np.nan] * 3])
    np.testing.assert_array_equal(moments.places, [[47.377, 8.54], *[[np.nan] * 2] * 3])
    assert moments.folders.tolist() == ["Ireland/Cork", "", "Ireland", ""]
    last = moments.take([3, 0])
    assert last.folders.tolist() == ["", "Ireland/Cork"]
    assert [len(array) for array in last] == [2, 2, 2]
    assert [array.shape for array in read_moments([], tmp_path)] == [(0,), (0, 2), (0,)]
    assert isinstance(last, Moments)
