"""Times, places and folders beside features: what they find, what they cost, what they promise.

Trips are weeks apart, their events ten hours, and shots minutes. Some labels are on what features
show, others on most events of a trip, whatever an image shows.
"""

from dataclasses import fields
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse

import tagkin
from tagkin import FeatureAnnotator
from tagkin.annotator.hold_out import FoldModels, calibrate_held_out, hold_out
from tagkin.annotator.part import Part
from tagkin.annotator.problem import Labels, Problem
from tagkin.annotator.recipe import Recipe
from tagkin.evaluation import mean_average_precision
from tagkin.model_selection.kinds import Kind
from tagkin.paper import NeighborVoting
from tagkin.transfer import KinReadout
from tagkin.transfer.occasions import Asked, Occasions

HOUR, DAY = 3600.0, 86_400.0
N_SEEN, N_SAID = 3, 4  # labels that features show, and labels of trips
N_EVENTS, N_SHOTS = 3, 2  # of a trip, and of an event


class Images(NamedTuple):
    X: np.ndarray
    Y: np.ndarray
    times: np.ndarray
    events: np.ndarray
    trips: np.ndarray

    def take(self, rows):
        return Images(*(part[rows] for part in self))


@cache
def images(n_trips=40, seed=0):
    rng = np.random.default_rng(seed)
    n = n_trips * N_EVENTS * N_SHOTS
    events = np.arange(n) // N_SHOTS
    trips = events // N_EVENTS
    times = 30 * DAY * trips + 10 * HOUR * (events % N_EVENTS) + 1200 * rng.random(n)
    of_trips = rng.random((n_trips, N_SAID)) < 0.35
    flipped = rng.random((n_trips * N_EVENTS, N_SAID)) < 0.1
    said = of_trips[trips] ^ flipped[events]
    shown = rng.random((n, N_SEEN)) < 0.4
    X = shown @ np.random.default_rng(99).random((N_SEEN, 8)) + 0.4 * rng.random((n, 8))
    Y = np.hstack([shown, said]).astype(float)
    order = rng.permutation(n)
    return Images(X.astype(np.float32), Y, times, events, trips).take(order)


def split(kind, seed=0):
    """Return images to learn from, and others: any half, or a half of the events or trips."""
    all_images = images(seed=seed)
    units = {Kind.NEAR: np.arange(len(all_images.X)), Kind.EVENT: all_images.events}
    units = units.get(kind, all_images.trips)
    order = np.random.default_rng(seed).permutation(units.max() + 1)
    is_learned = order[units] % 2 == 0
    return all_images.take(is_learned), all_images.take(~is_learned)


@cache
def learned(kind, with_times, seed=0):
    known, _ = split(kind, seed)
    return FeatureAnnotator().fit(known.X, known.Y, times=known.times if with_times else None)


def probabilities(annotator, asked):
    return annotator.predict_proba(asked.X, times=asked.times)


def rank(asked, P, columns=slice(N_SEEN, None)):
    return mean_average_precision(asked.Y[:, columns], P[:, columns])


def test_labels_that_only_time_shows_are_found():
    for kind, least in ((Kind.NEAR, 0.85), (Kind.EVENT, 0.7)):
        _, asked = split(kind)
        without, with_times = (
            probabilities(learned(kind, given), asked) for given in (False, True)
        )
        assert rank(asked, with_times) > least
        assert rank(asked, without) < 0.5
        # and what pictures show is found as before
        shown = slice(0, N_SEEN)
        assert rank(asked, with_times, shown) > rank(asked, without, shown) - 0.05


@pytest.mark.parametrize("kind", Kind)
def test_confidences_are_right_for_each_kind_of_images(kind):
    P, Y, suggested = [], [], []
    for seed in range(2):
        annotator, (known, asked) = learned(kind, True, seed), split(kind, seed)
        gaps = np.abs(asked.times[:, None] - known.times).min(axis=1)
        expected = np.digitize(gaps, [3 * HOUR, 48 * HOUR])
        when = Asked.new(Occasions(asked.times), len(asked.X))
        np.testing.assert_array_equal(annotator.model_.kinds(when, len(asked.X)), expected)
        assert (expected == kind).mean() > 0.4
        P.append(probabilities(annotator, asked))
        Y.append(asked.Y)
        for row, truth in zip(
            annotator.suggest(asked.X, precision=0.8, times=asked.times), asked.Y, strict=True
        ):
            suggested += [truth[s.label] for s in row]
    P, Y = np.concatenate(P), np.concatenate(Y)
    assert len(suggested) > 150
    assert np.mean(suggested) > 0.72
    bins = np.digitize(P, [0.2, 0.4, 0.6, 0.8])
    error = sum(
        (bins == b).mean() * abs(P[bins == b].mean() - Y[bins == b].mean()) for b in np.unique(bins)
    )
    assert error < 0.07
    if kind == Kind.FAR:  # time says nothing, so nothing is sure of what only time shows
        assert (P[:, N_SEEN:] > 0.8).mean() < 0.02


def test_times_that_say_nothing_cost_little():
    losses = []
    for seed in range(2):
        known, asked = split(Kind.NEAR, seed)
        rng = np.random.default_rng(seed)
        noise, of_asked = (np.floor(400 * DAY * rng.random(len(p.X))) for p in (known, asked))
        annotator = FeatureAnnotator().fit(known.X, known.Y, times=noise)
        shown = slice(0, N_SEEN)
        P = annotator.predict_proba(asked.X, times=of_asked)
        without = probabilities(learned(Kind.NEAR, False, seed), asked)
        losses.append(rank(asked, without, shown) - rank(asked, P, shown))
    assert np.mean(losses) < 0.04


def test_images_without_times_can_be_asked_about():
    _, asked = split(Kind.NEAR)
    annotator = learned(Kind.NEAR, True)
    unknown = np.full(len(asked.X), np.nan)
    without = annotator.predict_proba(asked.X)
    np.testing.assert_array_equal(without, annotator.predict_proba(asked.X, times=unknown))
    scores = annotator.decision_function(asked.X)
    np.testing.assert_array_equal(scores, annotator.decision_function(asked.X, times=unknown))
    far = annotator.model_.kinds(None, len(asked.X))
    np.testing.assert_array_equal(far, Kind.FAR)
    assert rank(asked, without, slice(0, N_SEEN)) > 0.7
    kin = annotator.suggest(asked.X[:5], n=2)
    assert [len(row) for row in kin] == [2] * 5
    assert {s.time_share for row in kin for s in row} == {0.0}
    # what is known of some images changes nothing for the others
    times = np.where(np.arange(len(asked.X)) % 2, asked.times, np.nan)
    some = annotator.predict_proba(asked.X, times=times)
    np.testing.assert_allclose(some[::2], without[::2], atol=1e-6)
    whole = probabilities(annotator, asked)
    np.testing.assert_allclose(some[1::2], whole[1::2], atol=1e-6)


def test_a_model_without_times_does_not_ask_for_them():
    _, asked = split(Kind.NEAR)
    annotator = learned(Kind.NEAR, False)
    with_times = probabilities(annotator, asked)
    np.testing.assert_array_equal(with_times, annotator.predict_proba(asked.X))
    given = annotator.suggest(asked.X[:5], times=asked.times[:5], folders=["a"] * 5)
    assert given == annotator.suggest(asked.X[:5])


def test_times_that_are_all_unknown_change_nothing():
    known, asked = split(Kind.NEAR)
    unknown = {
        "times": np.full(len(known.X), np.nan),
        "places": np.full((len(known.X), 2), np.nan),
        "folders": [""] * len(known.X),
    }
    annotator, without = (
        FeatureAnnotator().fit(known.X, known.Y, **unknown),
        learned(Kind.NEAR, False),
    )
    assert annotator.model_.occasions is None
    np.testing.assert_array_equal(annotator.predict_proba(asked.X), without.predict_proba(asked.X))
    assert annotator.audit(1000) == without.audit(1000)
    mixtures = [one.model_.calibration.mixture for one in (annotator, without)]
    for field in fields(mixtures[0]):
        np.testing.assert_array_equal(*(getattr(mixture, field.name) for mixture in mixtures))


def places_and_folders(some):
    """Each trip has a place and a folder; a tenth of the images has none."""
    rng = np.random.default_rng(5)
    places = np.array([47.0, 8.0]) + 0.3 * np.stack([some.trips, some.trips % 3], axis=1)
    places = places + 0.001 * rng.normal(size=places.shape)
    places[rng.random(len(places)) < 0.1] = np.nan
    folders = [
        "" if rng.random() < 0.1 else f"{trip % 4}/{trip}/{event}"
        for trip, event in zip(some.trips, some.events, strict=True)
    ]
    return {"times": some.times, "places": places, "folders": folders}


@cache
def learned_with_all():
    known, _ = split(Kind.EVENT)
    return FeatureAnnotator().fit(known.X, known.Y, **places_and_folders(known))


def test_saved_models_keep_times_places_and_folders(tmp_path):
    _, asked = split(Kind.EVENT)
    annotator, known = learned_with_all(), places_and_folders(asked)
    annotator.save(tmp_path / "model")
    loaded = tagkin.load(tmp_path / "model")
    P = annotator.predict_proba(asked.X, **known)
    np.testing.assert_allclose(loaded.predict_proba(asked.X, **known), P, atol=1e-6)
    assert np.abs(annotator.predict_proba(asked.X) - P).max() > 0.1
    for name, values in annotator.model_.occasions.to_dict().items():
        np.testing.assert_array_equal(getattr(loaded.model_.occasions, name), values)
    rows = np.arange(20)
    some = {name: values[:20] for name, values in known.items()}
    numbers = annotator.suggest(asked.X[rows], n=3, **some)
    for row, again in zip(numbers, loaded.suggest(asked.X[rows], n=3, **some), strict=True):
        assert [s.label for s in row] == [s.label for s in again]
        for one, other in zip(row, again, strict=True):
            assert one.time_share == pytest.approx(other.time_share, abs=1e-5)
    assert "time" in " ".join(annotator.describe())
    assert annotator.describe() == loaded.describe()


def test_shares_add_up_to_one():
    _, asked = split(Kind.EVENT)
    rows = learned_with_all().suggest(asked.X, n=7, n_kin=1000, **places_and_folders(asked))
    inputs = ("name", "readout", "time", "place", "folder")
    found = dict.fromkeys(inputs, 0.0)
    for suggestion in (s for row in rows for s in row):
        shares = {name: getattr(suggestion, f"{name}_share") for name in inputs}
        assert min(shares.values()) >= 0
        total = sum(shares.values()) + sum(kin.share for kin in suggestion.support)
        assert total == pytest.approx(1, abs=1e-5)
        found = {name: max(found[name], share) for name, share in shares.items()}
    assert found.pop("name") == 0
    assert min(found.values()) > 0.05
    columns = tagkin.suggestion_columns(rows)
    total = sum(columns[f"{name}_share"] for name in (*inputs, "kin"))
    np.testing.assert_allclose(total, 1)
    np.testing.assert_allclose(columns["time_share"], [s.time_share for row in rows for s in row])


def test_answers_vote_at_once():
    """Of a day that no learned image is near to."""
    _, asked = split(Kind.EVENT)
    annotator, label = learned(Kind.EVENT, True), N_SEEN
    X, times = asked.X[:13], 1e9 + 600.0 * np.arange(13)
    answered, rest = slice(0, 3), slice(3, None)
    labels = np.zeros((3, asked.Y.shape[1]))
    labels[:, label] = 1
    nothing = np.zeros_like(labels)
    before = annotator.predict_proba(X[rest], times=times[rest])[:, label]

    def after(present, rejected, given=times):
        grown = learned.__wrapped__(Kind.EVENT, True)
        grown.partial_fit(
            X[answered], present, rejected=rejected, complete=[False] * 3, times=given[answered]
        )
        return grown.predict_proba(X[rest], times=given[rest])[:, label]

    accepted, refused = after(labels, nothing), after(nothing, labels)
    assert (accepted > before + 0.2).all()
    assert (refused < before).all()
    # it is time that says it: on another day, the same answers change less
    elsewhere = after(labels, nothing, np.concatenate([times[answered] + 90 * DAY, times[rest]]))
    assert (accepted > elsewhere + 0.1).all()


def test_times_of_known_images_stay():
    known, asked = split(Kind.NEAR)
    annotator = learned.__wrapped__(Kind.NEAR, True)
    P = probabilities(annotator, asked)
    annotator.partial_fit(known.X[:4], known.Y[:4], known=[0, 1, 2, 3], times=np.zeros(4))
    np.testing.assert_array_equal(annotator.model_.occasions.times, known.times)
    np.testing.assert_allclose(probabilities(annotator, asked), P, atol=1e-6)
    annotator.partial_fit(asked.X[:2], asked.Y[:2])
    assert np.isnan(annotator.model_.occasions.times[-2:]).all()


def test_a_known_image_is_no_neighbor_of_itself():
    known, _ = split(Kind.NEAR)
    annotator = learned(Kind.NEAR, True)
    model, rows = annotator.model_, np.arange(10)
    asked = Asked(Occasions(known.times[rows]), rows)
    others = np.setdiff1d(np.arange(len(known.X)), rows[:1])
    alone = Asked.new(Occasions(known.times[:1]), 1)
    gaps = np.abs(known.times[others] - known.times[0])
    expected = np.searchsorted([3 * HOUR, 48 * HOUR], gaps.min(), side="right")
    assert model.kinds(asked, 10)[0] == expected
    assert model.kinds(alone, 1)[0] == Kind.NEAR


def test_a_label_of_one_image_is_suggested_for_its_moment():
    known, _ = split(Kind.NEAR)
    one = np.zeros((len(known.X), 1))
    one[0] = 1
    annotator = FeatureAnnotator().fit(known.X, np.hstack([known.Y, one]), times=known.times)
    X, times = known.X[20:24], known.times[0] + 60.0 * np.arange(4)
    together = annotator.predict_proba(X, times=times)[:, -1]
    week_after = annotator.predict_proba(X, times=times + 7 * DAY)[:, -1]
    assert (together > 5 * week_after).all()
    for row in annotator.suggest(X, n=len(known.Y.T) + 1, times=times):
        (found,) = (s for s in row if s.label == known.Y.shape[1])
        assert found.time_share > 0.3


def common_weights(method, some, Y):
    occasions = Occasions(some.times)
    problem = Problem(some.X, Labels.of(scipy.sparse.csr_array(Y)), occasions=occasions)
    part = Part.whole(problem)
    models = FoldModels(problem, part, Recipe(None, method))
    held_out = calibrate_held_out(problem, part, hold_out(part, models.score_fold))
    return [
        calibration.mixture.common
        for calibration in (
            held_out.calibrated.calibration,
            held_out.by_kind.event,
            held_out.by_kind.far,
        )
    ]


def test_labels_of_one_image_do_not_move_the_common_weights():
    known, _ = split(Kind.NEAR)
    single = np.eye(len(known.X))[:, :20]
    method = KinReadout(10, 5.0)
    weights = common_weights(method, known, known.Y)
    more = common_weights(method, known, np.hstack([known.Y, single]))
    for one, other in zip(weights, more, strict=True):
        np.testing.assert_allclose(other, one, rtol=0.01)


def test_kinds_have_weights_of_their_own():
    known, _ = split(Kind.NEAR)
    near, event, far = common_weights(NeighborVoting(10), known, known.Y)
    assert len(near) == len(event) == len(far) == 2
    assert near[1] > far[1]
    assert not np.allclose(near, event)


def test_batch_sizes_do_not_matter():
    _, asked = split(Kind.EVENT)
    annotator, known = learned_with_all(), places_and_folders(asked)
    P = annotator.predict_proba(asked.X, **known)
    rows = annotator.suggest(asked.X, n=3, **known)
    with tagkin.memory_budget(2**12):
        np.testing.assert_allclose(annotator.predict_proba(asked.X, **known), P, atol=1e-5)
        again = annotator.suggest(asked.X, n=3, **known)
    confidences = [[s.confidence for s in row] for row in rows]
    np.testing.assert_allclose(
        [[s.confidence for s in row] for row in again], confidences, atol=1e-5
    )
    alone = [
        annotator.predict_proba(asked.X[[i]], **{name: v[i : i + 1] for name, v in known.items()})
        for i in range(12)
    ]
    np.testing.assert_allclose(np.concatenate(alone), P[:12], atol=1e-5)


def test_events_are_held_out_whole():
    """Labels that name an event are known from nothing but its own images."""
    rng = np.random.default_rng(0)
    some = images()
    X = rng.random((len(some.X), 8)).astype(np.float32)
    single = (some.events[:, None] == 3 * np.arange(6)).astype(float)
    Y = np.hstack([single, (some.trips[:, None] % 5 == np.arange(2))])
    quality = FeatureAnnotator().cross_validate(X, Y, times=some.times)
    n_events = len(set(some.events))
    n = len(some.X)
    assert quality.how.startswith("10-fold cross-validation on ")
    assert f"({n} photographs in {n_events} events, each event held out as a whole)" in quality.how
    assert set(quality.inputs) == {"pictures", "moments"}
    found = [report["MAP"] for report in (quality.semantic, quality.inputs["moments"])]
    of_events, of_trips = quality.confidences[:, :6], quality.confidences[:, 6:]
    assert not (of_events[single > 0] > 0.5).any()
    assert mean_average_precision(single, of_events) < 0.2
    assert mean_average_precision(Y[:, 6:], of_trips) > 0.6
    assert max(found) < 0.6
    without = FeatureAnnotator().cross_validate(X, Y)
    assert without.inputs == {}
    assert "event" not in without.how


def test_moments_alone_find_what_only_time_shows():
    some = images()
    quality = FeatureAnnotator().cross_validate(some.X, some.Y[:, N_SEEN:], times=some.times)
    assert quality.inputs["moments"]["MAP"] > quality.inputs["pictures"]["MAP"] + 0.2
    assert quality.semantic["MAP"] > 0.6


def test_folders_and_places_alone_find_what_they_show():
    known, asked = split(Kind.EVENT)
    for name in ("places", "folders"):
        given, of_asked = (places_and_folders(part)[name] for part in (known, asked))
        annotator = FeatureAnnotator().fit(known.X, known.Y, **{name: given})
        P = annotator.predict_proba(asked.X, **{name: of_asked})
        assert rank(asked, P) > rank(asked, annotator.predict_proba(asked.X)) + 0.15


def test_the_audit_finds_what_is_missing_on_one_of_many():
    """A label on 39 of the 40 images of an event."""
    rng = np.random.default_rng(0)
    n, event = 160, np.arange(160) // 40
    X = rng.random((n, 8)).astype(np.float32)
    Y = np.stack([event == 1, rng.random(n) < 0.3, X[:, 0] > 0.6], axis=1).astype(float)
    Y[47, 0] = 0
    times = 4 * HOUR * (np.arange(n) // 10) + 60.0 * (np.arange(n) % 10) + 90 * DAY * event
    for given, is_found in ((times, True), (None, False)):
        findings = FeatureAnnotator().fit(X, Y, times=given).audit(20, kind="missing")
        of_label = [(finding.image, finding.label) for finding in findings if finding.label == 0]
        assert ((47, 0) in of_label[:1]) == is_found
