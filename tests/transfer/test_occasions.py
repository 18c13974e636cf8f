"""Votes of time, place and folder, against loops over pairs of photographs."""

import datetime as dt
from bisect import bisect_left
from math import acos, cos, log, radians, sin

import numpy as np
import pytest
import scipy.sparse

import tagkin
from tagkin.errors import InvalidInput
from tagkin.transfer.occasions import Asked, Occasions, score_occasions

HOUR, MOST = 3600.0, 200


def sparse(Y):
    return scipy.sparse.csr_array(np.asarray(Y, np.float32))


def texts(folders):
    return np.array(folders, dtype=object)


def draw(n, seed, n_labels=5):
    """Photographs of a month and of a region; a fifth lacks each of time, place and folder."""
    rng = np.random.default_rng(seed)
    times = rng.random(n) * 30 * 24 * HOUR
    times[rng.random(n) < 0.2] = np.nan
    places = np.array([47.0, 8.0]) + 0.01 * rng.normal(size=(n, 2))
    places[rng.random(n) < 0.2] = np.nan
    names = ["", "a", "a/b", "a/b/c", "a/d", "e", "e/b", "ab/c"]
    return Occasions.read(times, places, texts(rng.choice(names, size=n)), n), sparse(
        rng.random((n, n_labels)) < 0.3
    )


def kilometres(a, b):
    """By the cosine law of the sphere."""
    (a_lat, a_lon), (b_lat, b_lon) = (tuple(map(radians, place)) for place in (a, b))
    cosine = sin(a_lat) * sin(b_lat) + cos(a_lat) * cos(b_lat) * cos(a_lon - b_lon)
    return 6371 * acos(min(1.0, max(-1.0, cosine)))


def folder_weight(a, b):
    if not a or not b:
        return 0.0
    a, b = a.split("/"), b.split("/")
    shared = 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    return 0.25 ** (len(a) + len(b) - 2 * shared) if shared else 0.0


def nearest_by_time(times, moment, most):
    """Half of the images before a moment, and half after it."""
    order = sorted((t, j) for j, t in enumerate(times) if not np.isnan(t))
    k = min(most + 1, len(order))
    start = min(max(bisect_left([t for t, _ in order], moment) - k // 2, 0), len(order) - k)
    return [j for _, j in order[start : start + k]]


def score(weights, Y, rejected, complete):
    """The formula for the weights (n×N) of photographs."""
    Y, (n, n_labels) = Y.toarray(), (len(weights), Y.shape[1])
    N = len(Y)
    rejected = np.zeros_like(Y) if rejected is None else rejected.toarray()
    complete = np.ones(N, bool) if complete is None else complete
    is_known = [
        [complete[j] or Y[j, t] + rejected[j, t] > 0 for t in range(n_labels)] for j in range(N)
    ]
    scores = np.zeros((n, n_labels))

    def logit(p):
        p = min(max(p, 1e-4), 1 - 1e-4)
        return log(p / (1 - p))

    for t in range(n_labels):
        share = (Y[:, t].sum() + 0.5) / (sum(row[t] for row in is_known) + 1)
        for i in range(n):
            votes = sum(weights[i][j] * Y[j, t] for j in range(N) if is_known[j][t])
            known = sum(weights[i][j] for j in range(N) if is_known[j][t])
            scores[i, t] = logit((votes + 0.3 * share) / (known + 0.3)) - logit(share)
    return scores


def by_loops(occasions, queries, Y, own=None, rejected=None, complete=None):
    n, N = queries.n_images, Y.shape[0]
    own = [-1] * n if own is None else own
    parts = []
    if occasions.times is not None:
        both = []
        for unit in (0.5, 24):
            weights = np.zeros((n, N))
            for i in range(n):
                if queries.times is None or np.isnan(queries.times[i]):
                    continue
                for j in nearest_by_time(occasions.times, queries.times[i], MOST):
                    gap = abs(occasions.times[j] - queries.times[i])
                    weights[i, j] = 0 if j == own[i] else 1 / (1 + gap / HOUR / unit)
            both.append(score(weights, Y, rejected, complete))
        parts.append(both[0] + both[1])
    if occasions.places is not None:
        weights = np.zeros((n, N))
        for i in range(n):
            for j in range(N):
                if queries.places is None or j == own[i]:
                    continue
                apart = (*occasions.places[j], *queries.places[i])
                if not np.isnan(apart).any():
                    weights[i, j] = 1 / (1 + kilometres(apart[:2], apart[2:]) / 0.1)
        parts.append(score(weights, Y, rejected, complete))
    if occasions.folders is not None:
        weights = np.zeros((n, N))
        for i in range(n):
            for j in range(N):
                if queries.folders is not None and j != own[i]:
                    weights[i, j] = folder_weight(occasions.folders[j], queries.folders[i])
        parts.append(score(weights, Y, rejected, complete))
    return parts


def assert_scores(actual, expected):
    assert len(actual) == len(expected)
    for scores, by_hand in zip(actual, expected, strict=True):
        assert scores.dtype == np.float32
        np.testing.assert_allclose(scores, by_hand, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_loops(seed):
    (learned, Y), (asked, _) = draw(60, seed), draw(25, 10 + seed)
    actual = score_occasions(learned, asked, Y)
    assert_scores(actual, by_loops(learned, asked, Y))
    assert all(np.abs(scores).max() > 0.2 for scores in actual)


@pytest.mark.parametrize("seed", range(3))
def test_incomplete_images_vote_with_what_is_known_of_them(seed):
    (learned, Y), (asked, _) = draw(60, seed), draw(25, 10 + seed)
    rng = np.random.default_rng(seed)
    rejected = sparse((rng.random(Y.shape) < 0.3) & (Y.toarray() == 0))
    complete = rng.random(60) < 0.4
    known = {"rejected": rejected, "complete": complete}
    some = score_occasions(learned, asked, Y, **known)
    assert_scores(some, by_loops(learned, asked, Y, **known))
    everything = score_occasions(learned, asked, Y, rejected=rejected)  # which adds nothing
    assert_scores(everything, by_loops(learned, asked, Y))
    assert np.abs(some[0] - everything[0]).max() > 0.1


def test_no_image_votes_for_itself():
    learned, Y = draw(60, 0)
    own = np.arange(60)
    own[50:] = -1
    actual = score_occasions(learned, learned, Y, own=own)
    assert_scores(actual, by_loops(learned, learned, Y, own=own))
    alone = score_occasions(learned, learned, Y)
    assert (
        max(np.abs(one[:50] - other[:50]).max() for one, other in zip(actual, alone, strict=True))
        > 0.5
    )
    for one, other in zip(actual, alone, strict=True):
        np.testing.assert_array_equal(one[50:], other[50:])


@pytest.mark.parametrize("n", [MOST + 1, MOST + 2, 450])
def test_of_many_images_those_around_in_time_vote(n):
    """Half of them before and half after it, even if these are far away."""
    rng = np.random.default_rng(n)
    times = np.concatenate([rng.random(n // 3), 500 + rng.random(n - n // 3)]) * 24 * HOUR
    learned, Y = Occasions(times), sparse(rng.random((n, 3)) < 0.3)
    asked = Occasions(np.array([-1e7, 0.5, 1.0, 250, 500.2, 500.9, 1e4]) * 24 * HOUR)
    own = np.array([-1, 3, -1, -1, n - 1, 5, -1])
    assert_scores(score_occasions(learned, asked, Y), by_loops(learned, asked, Y))
    actual = score_occasions(learned, asked, Y, own=own)
    assert_scores(actual, by_loops(learned, asked, Y, own=own))


def test_of_many_images_those_nearest_in_place_vote():
    rng = np.random.default_rng(0)
    places = np.array([60.0, 179.99]) + 0.05 * rng.normal(size=(300, 2))
    places[:, 1] = (places[:, 1] + 180) % 360 - 180  # on both sides of the date line
    Y = sparse(rng.random((300, 3)) < 0.3)
    learned, asked = Occasions(places=places), Occasions(places=places[:8] + 1e-4)
    weights = np.zeros((8, 300))
    for i, place in enumerate(asked.places):
        apart = [kilometres(place, other) for other in places]
        for j in np.argsort(apart)[: MOST + 1]:
            weights[i, j] = 1 / (1 + apart[j] / 0.1)
    (actual,) = score_occasions(learned, asked, Y)
    np.testing.assert_allclose(actual, score(weights, Y, None, None), atol=1e-3)


def test_folders_are_weighted_by_the_steps_between_them():
    learned = Occasions.read(None, None, ["/a/b/", "a/b/c", "a", "a/d", "b/b", "ab"], 6)
    asked = Occasions.read(None, None, ["a/b", "a/b/x/y", "b", "none", ""], 5)
    Y = sparse(np.eye(6))
    (actual,) = score_occasions(learned, asked, Y)
    steps = [[0, 1, 1, 2, None, None], [2, 3, 3, 4, None, None], [None] * 4 + [1, None]]
    weights = [[0.0 if s is None else 0.25**s for s in row] for row in steps] + [[0.0] * 6] * 2
    np.testing.assert_allclose(actual, score(weights, Y, None, None), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(actual[3:], 0)


def test_what_is_unknown_says_nothing():
    (learned, Y), (asked, _) = draw(40, 0), draw(10, 1)
    nothing = Occasions(np.full(10, np.nan), np.full((10, 2), np.nan), texts([""] * 10))
    for scores in score_occasions(learned, nothing, Y):
        np.testing.assert_allclose(scores, 0, atol=1e-6)
    # nothing at all is known of the images to score, or of those that vote
    for scores in score_occasions(learned, Occasions(np.full(10, np.nan)), Y):
        np.testing.assert_allclose(scores, 0, atol=1e-6)
    all_unknown = Occasions(np.full(40, np.nan), np.full((40, 2), np.nan), texts([""] * 40))
    for scores in score_occasions(all_unknown, asked, Y):
        np.testing.assert_allclose(scores, 0, atol=1e-6)
    (by_time,) = score_occasions(Occasions(learned.times), asked, Y)
    np.testing.assert_array_equal(by_time, score_occasions(learned, asked, Y)[0])
    assert [part.shape for part in score_occasions(learned, asked.take([]), Y)] == [(0, 5)] * 3


def test_nothing_depends_on_blocks_or_on_the_origin_of_time():
    (learned, Y), (asked, _) = draw(300, 0), draw(80, 1)
    whole = score_occasions(learned, asked, Y)
    parts = [score_occasions(learned, asked.take([i]), Y) for i in range(80)]
    for scores, *rows in zip(whole, *parts, strict=True):
        np.testing.assert_allclose(scores, np.concatenate(rows), rtol=1e-5, atol=1e-6)
    with tagkin.memory_budget(1 << 12):
        for scores, again in zip(whole, score_occasions(learned, asked, Y), strict=True):
            np.testing.assert_allclose(scores, again, rtol=1e-5, atol=1e-6)
    later = [Occasions(part.times + 1.7e9) for part in (learned, asked)]
    (shifted,) = score_occasions(*later, Y)
    np.testing.assert_allclose(shifted, whole[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("times", "places", "folders", "message"),
    [
        ([1.0, 2.0], None, None, r"times must have the shape \(3,\); found \(2,\)"),
        ([[1.0]] * 3, None, None, r"times must have the shape \(3,\); found \(3, 1\)"),
        (["noon"] * 3, None, None, "times must hold seconds or datetime64, and NaN if"),
        ([None, "1", dt.date(2020, 1, 1)], None, None, "times must hold seconds or datetime64"),
        (None, [None, (1, 2), (1, 2)], None, "places must hold numbers, and NaN if unknown"),
        ([1.0, np.inf, 2.0], None, None, "times has infinite numbers. Use NaN"),
        (None, [[1.0, 2.0, 3.0]] * 3, None, r"places must have the shape \(3, 2\)"),
        (None, [[1, 2], [91, 2], [1, 2]], None, r"places\[1\] is \[91.0, 2.0\]; expected latitude"),
        (None, [[1, 2], [1, 2], [1, -180.5]], None, r"places\[2\] is"),
        (None, [[1, -np.inf]] * 3, None, "places has infinite numbers"),
        (None, None, "a/b", "folders must be a list of paths; found 'a/b'"),
        (None, None, {"a": 1}, "folders must be a list of paths"),
        (None, None, ["a", "b"], "Found 3 images and 2 folders"),
        (None, None, ["a", None, "b"], r"folders\[1\] is None; expected a path as text, or ''"),
    ],
)
def test_what_cannot_be_read_is_named(times, places, folders, message):
    with pytest.raises(InvalidInput, match=message):
        Occasions.read(times, places, folders, 3)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_of_any_unit_are_seconds(unit):
    dates = np.array(["2020-01-01T10:00:00", "NaT", "2020-01-01T10:00:07"], f"datetime64[{unit}]")
    read = Occasions.read(dates, None, None, 3)
    np.testing.assert_array_equal(read.times - read.times[0], [0, np.nan, 7])
    days = dates.astype("datetime64[D]") + np.array([0, 0, 2])
    np.testing.assert_array_equal(np.diff(Occasions.read(days[::2], None, None, 2).times), 172800)


def test_what_is_read():
    assert Occasions.read(None, None, None, 3) is None
    times, places = [1, 2, np.nan], [[90, 180], [-90, -180], [np.nan, 3.0]]
    read = Occasions.read(times, places, ("/a/b/", "", "c"), 3)
    np.testing.assert_array_equal(read.times, times)
    np.testing.assert_array_equal(read.places, [[90, 180], [-90, -180], [np.nan, np.nan]])
    assert read.folders.tolist() == ["a/b", "", "c"]
    assert read.inputs == ("time", "place", "folder")
    assert Occasions.read(None, places, None, 3).inputs == ("place",)
    own = np.array([1.0, 2.0, 3.0])
    copied = Occasions.read(own, None, None, 3)
    own[0] = 7
    assert copied.times[0] == 1  # what a caller changes later changes nothing


def test_take_and_join():
    first, _ = draw(6, 0)
    second, _ = draw(4, 1)
    joined = first.take([0, 2]).join(second, 4)
    for name, values in joined.to_dict().items():
        own, other = getattr(first, name), getattr(second, name)
        expected = np.concatenate([own[[0, 2]], other])
        np.testing.assert_array_equal(values, expected)
    # only what is known of the first is kept, and what is not known of the second is unknown
    times = Occasions(first.times)
    assert times.join(second, 4).inputs == ("time",)
    np.testing.assert_array_equal(times.join(None, 2).times, [*first.times, np.nan, np.nan])
    alone = first.join(Occasions(second.times), 4)
    np.testing.assert_array_equal(alone.times, [*first.times, *second.times])
    assert np.isnan(alone.places[6:]).all()
    assert alone.folders[6:].tolist() == [""] * 4
    asked = Asked(second, np.array([3, -1, 0, 1])).take(slice(1, 3))
    np.testing.assert_array_equal(asked.known, [-1, 0])
    np.testing.assert_array_equal(asked.occasions.times, second.times[1:3])


def test_only_what_differs_tells():
    same_place = np.tile([1.0, 2.0], (3, 1))
    times = np.array([1.0, 5.0, np.nan])
    telling = Occasions(times, same_place, texts(["a", "", "a"])).only_telling()
    assert telling.inputs == ("time",)
    places = same_place + np.arange(3)[:, None]
    assert Occasions(times[:1].repeat(3), places, None).only_telling().inputs == ("place",)
    assert Occasions(None, None, texts(["a", "", "b"])).only_telling().inputs == ("folder",)
    unknown = np.full(3, np.nan)
    assert Occasions(unknown, np.full((3, 2), np.nan), texts([""] * 3)).only_telling() is None
    assert Occasions(np.array([1.0, np.nan, 1.0]), same_place).only_telling() is None
