"""How much to denoise: what is chosen for clean and for untidy tags, and where nothing is."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from tagkin import SemanticSpace, TagDenoiser
from tagkin.denoising.trials import HeldOutFold
from tagkin.evaluation import mean_average_precision
from tagkin.labels import with_noise
from tagkin.neighbors import nearest
from tests.conftest import assert_same

from .kinds import SPACE, kinds

SMALL_SPACE = SemanticSpace(n_landmarks=100)
auto_denoiser = partial(TagDenoiser, space=SMALL_SPACE)  # β is chosen


def test_clean_tags_are_left_alone_or_nearly():
    X, Y = kinds()
    denoiser = auto_denoiser(30)
    found = denoiser.fit_transform(X, Y)
    assert denoiser.blend_ <= 0.3
    raw, *others = denoiser.trials_
    assert raw.blend == 0
    assert len(others) >= 5
    assert mean_average_precision(Y, found.toarray()) > 0.999


@pytest.mark.parametrize(
    ("noise", "n"), [({"dropped": 0.7}, 400), ({"dropped": 0.5, "wrong": 1.0}, 300)]
)
def test_untidy_tags_are_smoothed_and_end_nearer_to_the_truth(noise, n):
    X, Y = kinds(n, noise=1.2)
    tags = with_noise(Y, **noise)
    denoiser = auto_denoiser(30)
    found = denoiser.fit_transform(X, tags)
    assert denoiser.blend_ > 0
    before = mean_average_precision(Y, tags.toarray())
    assert mean_average_precision(Y, found.toarray()) > before + 0.05


def precision_of_votes(X, tags, X_new, Y_new, view="indicator"):
    """MAP of new images that get the tags of their 50 neighbours in the space."""
    space = SemanticSpace(text_view=view).fit(X, tags)
    near = nearest(space.transform(X_new), space.transform(X), 50).indices
    return mean_average_precision(Y_new, tags.toarray()[near].sum(axis=1))


@pytest.mark.parametrize(
    ("noise", "n_known", "seed"),
    [
        ({}, 300, 0),
        ({"dropped": 0.6}, 300, 1),
        ({"wrong": 2.0}, 300, 0),
        ({"untagged": 0.5}, 420, 1),  # of fewer tagged images nothing is chosen
    ],
)
def test_denoising_does_not_hurt(noise, n_known, seed):
    X, Y = kinds(n_known + 200, noise=1.2, seed=seed)
    known, new = slice(n_known), slice(n_known, None)
    tags = with_noise(Y[known], **noise)
    denoiser = auto_denoiser(30)
    denoised = denoiser.fit_transform(X[known], tags)
    raw = precision_of_votes(X[known], tags, X[new], Y[new])
    found = precision_of_votes(X[known], denoised, X[new], Y[new], denoiser.view_)
    assert found > raw - 0.005
    if noise:
        assert found > raw + 0.01


# --- a first look, and raw tags that are passed on ---


@pytest.fixture
def looked_at(monkeypatch):
    """One entry for every quarter that settings are tried on."""
    quarters = []
    real = HeldOutFold.__init__
    monkeypatch.setattr(
        HeldOutFold, "__init__", lambda self, *a, **k: quarters.append(1) or real(self, *a, **k)
    )
    return quarters


def test_a_first_look_at_one_quarter_ends_the_choice_for_clean_tags(looked_at):
    X, Y = kinds(400)
    clean = auto_denoiser(30, passed_on="raw", space=SPACE).fit(X, Y)
    assert clean.blend_ == 0
    assert [trial.blend for trial in clean.trials_] == [0, 0.5, 1]
    assert len(looked_at) == 1


def test_more_is_tried_where_it_helps_and_a_space_of_denoised_tags_is_better(looked_at):
    X, Y = kinds(900, noise=1.2)
    known, new = slice(600), slice(600, None)
    tags = with_noise(Y[known], dropped=0.5, wrong=2.0)
    denoiser = auto_denoiser(30, passed_on="raw").fit(X[known], tags)
    assert len(denoiser.trials_) > 5
    assert len(looked_at) == 4
    precision = []
    for blend in (0.0, denoiser.blend_):
        fixed = clone(denoiser).set_params(
            blend=blend, n_neighbors=denoiser.n_neighbors_, scale=denoiser.scale_
        )
        space = SemanticSpace().fit(X[known], fixed.fit_transform(X[known], tags))
        near = nearest(space.transform(X[new]), space.transform(X[known]), 50).indices
        votes = tags.toarray()[near].sum(axis=1)
        precision.append(mean_average_precision(Y[new], votes))
    assert precision[1] > precision[0] + 0.005


# --- what is tried and chosen ---


def test_what_is_chosen_is_what_is_used(monkeypatch):
    """A narrow scale and a third of the neighbours, where these do best."""
    X, Y = kinds(300)

    def praised(fold, blend, n_neighbors, scale, view):
        scales.add(round(scale / plain.scale_, 1))
        close = -abs(blend - 0.3) - abs(scale / plain.scale_ - 0.25) - n_neighbors / 1000
        return np.full((3, len(fold.measured)), close - (view == "chi2"))

    scales = set()
    plain = TagDenoiser(30, blend=0.3).fit(X, Y)
    monkeypatch.setattr(HeldOutFold, "precisions", praised)
    denoiser = auto_denoiser(30).fit(X, Y)
    assert (denoiser.blend_, denoiser.n_neighbors_, denoiser.view_) == (0.3, 10, "indicator")
    assert denoiser.scale_ == pytest.approx(plain.scale_ / 4)
    assert len(scales) >= 2, "both scales are tried"
    same = TagDenoiser(10, blend=0.3, scale=plain.scale_ / 4)
    np.testing.assert_allclose(
        denoiser.fit_transform(X, Y).toarray(), same.fit_transform(X, Y).toarray(), atol=1e-6
    )


def test_the_choice_is_among_the_trials_and_the_same_again(as_array):
    X, Y = kinds(280)
    tags = with_noise(Y, dropped=0.3, untagged=0.2)
    first = auto_denoiser(30).fit(as_array(X), tags)
    again = clone(first).fit(as_array(X), tags)
    assert [replace(t, score=0) for t in first.trials_] == [
        replace(t, score=0) for t in again.trials_
    ]
    assert_same([t.score for t in first.trials_], [t.score for t in again.trials_])
    assert first.blend_ == again.blend_
    assert all(0 <= trial.score <= 1 for trial in first.trials_)
    chosen = {(t.blend, t.n_neighbors, t.view) for t in first.trials_}
    assert (first.blend_, first.n_neighbors_, first.view_) in chosen
    assert max(t.score for t in first.trials_) - 0.1 < max(
        t.score for t in first.trials_ if t.blend == first.blend_
    )
    assert len(first.describe()) == 2 + len(first.trials_)


def test_with_few_tagged_images_nothing_is_chosen():
    X, Y = kinds(260)
    Y[199:] = 0
    denoiser = auto_denoiser(30).fit(X, Y)
    assert (denoiser.blend_, denoiser.trials_, denoiser.n_neighbors_) == (0, [], 30)
    Y[199, 0] = 1
    assert auto_denoiser(30).fit(X, Y).trials_


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param(np.eye(240), id="each tag on one image"),
        pytest.param(np.ones((240, 3)), id="all tags on all images"),
        pytest.param(np.ones((240, 1)), id="one tag on all images"),
    ],
)
def test_tags_that_cannot_be_measured_are_left_alone(tags):
    X, _ = kinds(240)
    denoiser = auto_denoiser(30)
    np.testing.assert_array_equal(denoiser.fit_transform(X, tags).toarray(), tags)
    assert denoiser.trials_ == []


def test_a_quarter_without_any_tag_to_measure_does_not_stop_the_choice():
    """Every image has a tag of its own, and two tags are on two images each."""
    rng = np.random.default_rng(0)
    T = np.zeros((240, 242), dtype=np.float32)
    T[np.arange(240), np.arange(240)] = 1
    T[[3, 77], 240] = T[[12, 150], 241] = 1
    X = rng.random((240, 6)).astype(np.float32)
    for seed in range(4):
        denoiser = auto_denoiser(random_state=seed).fit(X, scipy.sparse.csr_array(T))
        assert 0 <= denoiser.blend_ <= 1


def test_images_that_nothing_tells_apart_are_left_alone():
    _, Y = kinds(240)
    denoiser = auto_denoiser(30).fit(np.ones((240, 4)), Y)
    assert (denoiser.blend_, denoiser.trials_) == (0, [])


def test_zero_features_do_not_stop_the_choice():
    X, Y = kinds(300)
    X[::10] = 0
    denoiser = auto_denoiser(30)
    found = denoiser.fit_transform(X, with_noise(Y, dropped=0.5))
    assert denoiser.trials_
    assert np.isfinite(found.data).all()


@pytest.mark.parametrize("n_neighbors", [1, 2, 1000])
def test_the_choice_with_few_or_all_neighbours(n_neighbors):
    X, Y = kinds(260, noise=1.2)
    denoiser = auto_denoiser(n_neighbors)
    found = denoiser.fit_transform(X, with_noise(Y, dropped=0.5))
    assert denoiser.trials_
    assert 1 <= denoiser.n_neighbors_ <= n_neighbors
    assert found.shape == Y.shape
    assert np.isfinite(found.data).all()


def test_the_chi2_view_is_tried_and_named(monkeypatch):
    """Where it does best, it is what is asked for next."""
    X, Y = kinds(260, noise=1.2)
    precisions = HeldOutFold.precisions

    def praised(fold, blend, n_neighbors, scale, view):
        found = precisions(fold, blend, n_neighbors, scale, view)
        assert found is not None
        assert np.isfinite(found).all()
        return found * 0 + blend + (view == "chi2")

    monkeypatch.setattr(HeldOutFold, "precisions", praised)
    denoiser = auto_denoiser(30).fit(X, with_noise(Y, dropped=0.5))
    assert (denoiser.view_, denoiser.blend_, denoiser.trials_[-1].view) == ("chi2", 1, "chi2")
    SemanticSpace(text_view=denoiser.view_).fit(X, denoiser.fit_transform(X, Y))


def test_the_chi2_view_is_not_tried_of_tags_that_are_mostly_raw(monkeypatch):
    X, Y = kinds(300)

    def praised(fold, blend, n_neighbors, scale, view):
        return np.full((3, len(fold.measured)), -abs(blend - 0.3))

    monkeypatch.setattr(HeldOutFold, "precisions", praised)
    assert {trial.view for trial in auto_denoiser(30).fit(X, Y).trials_} == {"indicator"}


def test_groups_reach_the_trials():
    """Tags that belong to bursts and to nothing else: neighbours look useful if mates are known."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(100), 4)
    X = rng.random((100, 20))[groups] + 0.01 * rng.random((400, 20))
    T = (rng.random((100, 6)) < 0.3)[groups]
    denoiser = TagDenoiser(n_neighbors=10, space=SemanticSpace(n_landmarks=200))
    alone = denoiser.fit(X, T).trials_[0].score
    together = denoiser.fit(X, T, groups=groups).trials_[0].score
    assert alone > 0.6
    assert together < 0.5
