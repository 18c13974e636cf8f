"""Denoised tags: plain cases, what stays the same, and the choice of how much to do."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tagkin
from tagkin import SemanticSpace, TagDenoiser
from tagkin.denoising.trials import Comparison, HeldOutFold, Setting, folds, parted
from tagkin.errors import InvalidInput
from tagkin.evaluation import average_precision, mean_average_precision
from tagkin.labels import with_noise
from tagkin.neighbors import ExactNeighbors, nearest
from tests.conftest import assert_same

SPACE = SemanticSpace(n_landmarks=1024)  # all images here are landmarks
SMALL_SPACE = SemanticSpace(n_landmarks=100)
auto_denoiser = partial(TagDenoiser, space=SMALL_SPACE)  # β is chosen

# two kinds of images, three of each; one image of each kind lacks its tag
TWO_KINDS = np.array([[1, 0.0], [1, 0.01], [1, 0.02], [0, 1.0], [0.01, 1], [0.02, 1]])
TAGS = np.array([[1, 0], [1, 0], [0, 0], [0, 1], [0, 0], [0, 1]])


# --- plain cases ---


def test_a_forgotten_tag_comes_back_and_stays_below_those_that_are_there():
    found = TagDenoiser(3, blend=1.0).fit_transform(TWO_KINDS, TAGS).toarray()
    np.testing.assert_allclose(found, np.repeat([[2 / 3, 0], [0, 2 / 3]], 3, axis=0), atol=1e-3)
    found = TagDenoiser(3, blend=0.5).fit_transform(TWO_KINDS, TAGS).toarray()
    kept, filled = 1 / 2 + 1 / 3, 2 / 3
    expected = [[kept, 0], [kept, 0], [filled, 0], [0, kept], [0, filled], [0, kept]]
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_a_wrong_tag_is_outvoted():
    tags = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1], [1, 0]])
    found = TagDenoiser(3, blend=1.0).fit_transform(TWO_KINDS, tags).toarray()
    assert found.argmax(axis=1).tolist() == [0, 0, 0, 1, 1, 1]


def test_blend_zero_leaves_tags_as_they_are():
    denoiser = TagDenoiser(3, blend=0)
    np.testing.assert_array_equal(denoiser.fit_transform(TWO_KINDS, TAGS).toarray(), TAGS)
    np.testing.assert_array_equal(denoiser.transform(TWO_KINDS, TAGS).toarray(), TAGS)


@pytest.mark.parametrize("blend", [0.2, 0.5, 0.9])
def test_between_the_ends_tags_are_blended(blend, collection):
    X, Y, _ = collection
    Y[::5] = 0
    propagated = TagDenoiser(9, blend=1.0).fit_transform(X, Y).toarray()
    share = np.where(Y.any(axis=1), blend, 1)[:, None]
    found = TagDenoiser(9, blend=blend).fit_transform(X, Y).toarray()
    np.testing.assert_allclose(found, (1 - share) * Y + share * propagated, atol=1e-6)


def test_sums_stay_between_the_least_and_the_most(collection):
    """A mean of tag vectors is nowhere beyond them."""
    X, Y, X_new = collection
    denoiser = TagDenoiser(20, blend=0.7)
    for tags in (denoiser.fit_transform(X, Y), denoiser.transform(X_new)):
        assert tags.data.min() > 0
        assert tags.data.max() <= 1 + 1e-6


def test_the_choice_needs_a_space_to_try_blends_in():
    with pytest.raises(InvalidInput, match="TagDenoiser\\(space=SemanticSpace"):
        TagDenoiser().fit(TWO_KINDS, TAGS)


# --- new images ---


def test_new_images_without_tags_get_those_of_their_neighbours():
    new = np.array([[5.0, 0.05], [0.0, 3.0]])
    for blend in (0, 0.3, 1.0):
        denoiser = TagDenoiser(3, blend=blend).fit(TWO_KINDS, TAGS)
        found = denoiser.transform(new).toarray()
        np.testing.assert_allclose(found, [[2 / 3, 0], [0, 2 / 3]], atol=1e-3)


def test_new_images_with_tags_count_among_their_neighbours():
    new, own = np.array([[1, 0.004], [0, 1.0]]), np.array([[0, 1], [0, 0]])
    denoiser = TagDenoiser(3, blend=1.0).fit(TWO_KINDS, TAGS)
    found = denoiser.transform(new, own).toarray()
    # of the two fitted ones nearest to the first both carry a tag, to the second one does
    np.testing.assert_allclose(found, [[2 / 3, 1 / 3], [0, 1 / 3]], atol=1e-3)
    others = TagDenoiser(3, blend=1.0, include_self=False).fit(TWO_KINDS, TAGS)
    np.testing.assert_array_equal(
        others.transform(new, own).toarray(), others.transform(new).toarray()
    )


def test_one_neighbour_is_the_image_itself():
    new, own = np.array([[1, 0.01], [0, 1.0]]), np.array([[0, 1], [0, 0]])
    denoiser = TagDenoiser(1, blend=1.0).fit(TWO_KINDS, TAGS)
    np.testing.assert_array_equal(denoiser.transform(new, own).toarray(), own)


def test_batch_is_single(collection, as_array):
    X, Y, X_new = collection
    denoiser = TagDenoiser(12, blend=0.4).fit(as_array(X), Y)
    own = scipy.sparse.csr_array(Y[: len(X_new)])
    for tags in (None, own):
        whole = denoiser.transform(as_array(X_new), tags).toarray()
        for i in (0, 7, 39):
            one = None if tags is None else tags[[i]]
            single = denoiser.transform(as_array(X_new[[i]]), one).toarray()
            np.testing.assert_allclose(single[0], whole[i], atol=1e-6)


# --- rare images ---


def test_images_that_are_all_the_same_share_their_tags():
    """R of them at most, each image among its own."""
    Y = np.eye(8)
    for metric in ("cosine", "euclidean"):
        denoiser = TagDenoiser(4, blend=1.0, metric=metric)
        found = denoiser.fit_transform(np.full((8, 3), 0.1), Y).toarray()
        np.testing.assert_allclose(np.diag(found), 0.25)
        np.testing.assert_allclose(found.sum(axis=1), 1)


@pytest.mark.parametrize("include_self", [True, False])
def test_images_with_zero_features_are_like_no_other(include_self):
    X, Y = np.array([[1.0, 0], [0, 0], [1, 0.1], [0, 0]]), np.eye(4)
    denoiser = TagDenoiser(4, blend=1.0, include_self=include_self)
    found = denoiser.fit_transform(X, Y).toarray()
    np.testing.assert_array_equal(found[[1, 3]], Y[[1, 3]] * include_self)
    np.testing.assert_array_equal(found[[0, 2]][:, [1, 3]], 0)
    np.testing.assert_allclose(found[[0, 2]].sum(axis=1), 1, rtol=1e-6)
    assert denoiser.transform(np.zeros((1, 2))).nnz == 0


def test_a_single_image_and_no_tag_at_all():
    alone = TagDenoiser(blend=1.0).fit_transform([[1.0, 2.0]], [[1, 0]])
    np.testing.assert_array_equal(alone.toarray(), [[1, 0]])
    nobody = TagDenoiser(blend=1.0, include_self=False).fit_transform([[1.0, 2.0]], [[1, 0]])
    assert nobody.nnz == 0
    for blend in ("auto", 0.5, 1.0):
        found = auto_denoiser(3, blend=blend).fit_transform(TWO_KINDS, np.zeros((6, 2)))
        assert found.nnz == 0
        assert found.shape == (6, 2)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_features_of_hugely_different_sizes(metric):
    """One image far from all others must not make the rest one, or none."""
    X = np.concatenate([TWO_KINDS, [[1e12, 1e12]]])
    Y = np.concatenate([TAGS, [[1, 1]]])
    found = TagDenoiser(3, blend=1.0, metric=metric, scale=1e-3).fit_transform(X, Y).toarray()
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[-1], [1, 1], atol=1e-6)
    assert (found[:3, 1] == 0).all()
    assert (found[:3, 0] > 0).all()


def test_the_scale_may_be_the_mean_distance(collection):
    X, Y, _ = collection
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    squared = ((unit[:, None] - unit[None]) ** 2).sum(axis=2)
    for scale, expected in (("mean", np.sqrt(squared)), ("mean-squared", squared), (0.3, 0.3)):
        denoiser = TagDenoiser(blend=1.0, scale=scale).fit(X, Y)
        assert denoiser.scale_ == pytest.approx(np.mean(expected))


def test_light_tags_are_left_out(collection):
    X, Y, _ = collection
    full = TagDenoiser(20, blend=0.5).fit_transform(X, Y)
    thin = TagDenoiser(20, blend=0.5, min_weight=0.2).fit_transform(X, Y)
    assert 0 < thin.nnz < full.nnz
    dense = full.toarray()
    np.testing.assert_array_equal(thin.toarray(), np.where(dense < 0.2, 0, dense))


# --- what stays the same ---


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_blocks_change_nothing(collection, metric, as_array):
    X, Y, X_new = collection
    X[::4] = X[0]  # ties
    denoiser = TagDenoiser(10, blend=0.6, metric=metric)
    expected = denoiser.fit_transform(as_array(X), Y)
    of_new = denoiser.transform(as_array(X_new), Y[:40])
    with tagkin.memory_budget(4000):
        found = denoiser.fit_transform(as_array(X), Y)
        np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-6)
        found = denoiser.transform(as_array(X_new), Y[:40])
        np.testing.assert_allclose(found.toarray(), of_new.toarray(), atol=1e-6)
    assert expected.has_canonical_format
    assert of_new.has_canonical_format


def test_input_is_left_alone(collection):
    X, Y, _ = collection
    sparse = scipy.sparse.csr_array(Y)
    before = X.copy(), sparse.data.copy(), sparse.indices.copy()
    for blend in (0, 0.5, 1.0):
        found = TagDenoiser(5, blend=blend, min_weight=0.9).fit_transform(X, sparse)
        found.data[:] = 9
    for now, then in zip((X, sparse.data, sparse.indices), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_a_result_does_not_share_memory_with_the_model(collection):
    X, Y, _ = collection
    denoiser = TagDenoiser(5, blend=0)
    denoiser.fit_transform(X, Y).data[:] = 9
    np.testing.assert_array_equal(denoiser.tags_.toarray(), Y)


def test_a_fit_that_fails_keeps_what_was_learned(collection):
    X, Y, X_new = collection
    denoiser = TagDenoiser(5, blend=0.5).fit(X, Y)
    expected = denoiser.transform(X_new).toarray()
    broken = X[:, :5].copy()
    broken[3, 2] = np.nan
    with pytest.raises(InvalidInput, match="NaN or infinity in row 3"):
        denoiser.fit(broken, Y)
    with pytest.raises(InvalidInput, match="150 rows in X and 149"):
        denoiser.fit(X[:, :5], Y[1:])
    with pytest.raises(InvalidInput, match="negative entry in row 0 of Y"):
        denoiser.fit(X[:, :5], -np.ones((150, 2)))
    np.testing.assert_array_equal(denoiser.transform(X_new).toarray(), expected)


def test_a_loaded_denoiser_is_the_saved_one(collection, tmp_path):
    X, Y, X_new = collection
    denoiser = TagDenoiser(7, blend=0.3, metric="euclidean").fit(X, Y)
    denoiser.trials_ = [Setting(0.3, 7, 0.25, "chi2", 0.5)]
    again = tagkin.load(tagkin.save(denoiser, tmp_path / "model"))
    assert again.trials_ == denoiser.trials_
    assert again.get_params() == denoiser.get_params()
    for own in (None, Y[:40]):
        expected = denoiser.transform(X_new, own).toarray()
        np.testing.assert_array_equal(again.transform(X_new, own).toarray(), expected)
    card = (tmp_path / "model" / "README.md").read_text()
    assert "Smooths 6 tags over 150 images" in card
    assert "view='chi2'" in card


# --- errors ---


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a whole number from 1; found 0"),
        ({"blend": 1.5}, "blend must be 'auto' or a number from 0 to 1; found 1.5"),
        ({"blend": "most"}, "blend must be 'auto' or a number from 0 to 1; found 'most'"),
        ({"blend": np.nan}, "blend must be"),
        ({"scale": 0}, "scale must be mean-squared, mean or a positive number; found 0"),
        ({"scale": np.inf}, "scale must be"),
        ({"scale": "median"}, "found 'median'"),
        ({"metric": "manhattan"}, "metric must be one of cosine, euclidean"),
        ({"min_weight": -1}, "min_weight must be a number from 0; found -1"),
        ({"min_weight": "some"}, "min_weight must be a number from 0; found 'some'"),
        ({"passed_on": "some"}, "passed_on must be .* found 'some'"),
    ],
)
def test_parameters_that_make_no_sense_are_named(parameters, message):
    with pytest.raises(InvalidInput, match=message):
        auto_denoiser(**parameters).fit(TWO_KINDS, TAGS)


def test_what_does_not_fit_the_model_is_named():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        TagDenoiser().transform(TWO_KINDS)
    with pytest.raises(InvalidInput, match="requires y"):
        auto_denoiser().fit(TWO_KINDS)
    denoiser = TagDenoiser(3, blend=1.0).fit(TWO_KINDS, TAGS)
    with pytest.raises(InvalidInput, match="Found 3 tags in Y where 2 were fitted"):
        denoiser.transform(TWO_KINDS, np.ones((6, 3)))
    with pytest.raises(ValueError, match="expecting 2 features"):
        denoiser.transform(np.ones((6, 5)))
    with pytest.raises(InvalidInput, match="row 0"):
        denoiser.transform(np.array([[np.nan, 1]]))


# --- the choice ---


def kinds(n=600, n_kinds=12, noise=0.5, seed=0):
    """Images of some kinds, three tags each, and their features."""
    rng = np.random.default_rng(seed)
    of = rng.integers(0, n_kinds, n)
    X = rng.standard_normal((n_kinds, 16))[of] + noise * rng.standard_normal((n, 16))
    Y = np.zeros((n, n_kinds))
    for step in (0, 1, 3):
        Y[np.arange(n), (of + step) % n_kinds] = 1
    return X, Y


def test_clean_tags_are_left_alone_or_nearly():
    X, Y = kinds()
    denoiser = auto_denoiser(30)
    found = denoiser.fit_transform(X, Y)
    assert denoiser.blend_ <= 0.3
    raw, *others = denoiser.trials_
    assert raw.blend == 0
    assert len(others) >= 5
    assert mean_average_precision(Y, found.toarray()) > 0.999


@pytest.mark.parametrize("noise", [{"dropped": 0.7}, {"dropped": 0.5, "wrong": 1.0}])
def test_untidy_tags_are_smoothed_and_end_nearer_to_the_truth(noise):
    X, Y = kinds(400, noise=1.2)
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
    ("noise", "seed"), [({}, 0), ({"dropped": 0.6}, 1), ({"wrong": 2.0}, 0), ({"untagged": 0.5}, 1)]
)
def test_denoising_does_not_hurt(noise, seed):
    X, Y = kinds(800, noise=1.2, seed=seed)
    known, new = slice(500), slice(500, None)
    tags = with_noise(Y[known], **noise)
    denoiser = auto_denoiser(30)
    denoised = denoiser.fit_transform(X[known], tags)
    raw = precision_of_votes(X[known], tags, X[new], Y[new])
    found = precision_of_votes(X[known], denoised, X[new], Y[new], denoiser.view_)
    assert found > raw - 0.005
    if noise:
        assert found > raw + 0.01


# --- raw tags that are passed on in a space of denoised ones ---


def test_raw_tags_may_be_passed_on_in_a_space_of_denoised_ones():
    """Against the votes of neighbours in a space that is fitted for it."""
    X, Y = kinds(300, noise=1.2)
    tags = with_noise(Y, dropped=0.5)
    known, new = slice(200), slice(200, None)
    found = {}
    for passed_on in ("denoised", "raw"):
        fold = HeldOutFold(
            X[known],
            tags[known],
            X[new],
            tags[new],
            space=SPACE,
            index=ExactNeighbors().fit(X[known]),
            n_neighbors=30,
            include_self=True,
            passed_on=passed_on,
        )
        found[passed_on] = fold.precisions(0.5, 30, 0.5, "indicator")
    denoised = TagDenoiser(30, scale=0.5, blend=0.5).fit_transform(X[known], tags[known])
    space = SemanticSpace(n_landmarks=1024).fit(X[known], denoised)
    near = nearest(space.transform(X[new]), space.transform(X[known]), 50).indices
    for passed_on, carried in (("raw", tags[known]), ("denoised", denoised)):
        votes = carried.toarray()[near].sum(axis=1)
        expected = average_precision(tags[new], votes)[fold.measured]
        np.testing.assert_allclose(found[passed_on][0], expected, atol=1e-6)
    assert np.abs(found["raw"] - found["denoised"]).max() > 1e-3


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


def trials_with(by_setting, weights):
    """Trials that have found these precisions of each tag."""
    trials = object.__new__(Comparison)
    trials.weights = np.array(weights, dtype=float)
    trials.precisions = {}
    for setting, precisions in by_setting.items():
        score = np.average(precisions, weights=weights)
        trials.precisions[replace(setting, score=score)] = np.array(precisions)
    return trials


def test_the_mildest_of_those_as_good_as_the_best_is_chosen():
    by_setting = {
        Setting(0.0, 9): [0.5, 0.5, 0.5, 0.5],
        Setting(0.1, 9): [0.9, 0.5, 0.5, 0.8],  # behind the best by 0.125 ± 0.103
        Setting(0.2, 9): [0.9, 0.5, 0.5, 0.9],  # by 0.1 ± 0.12: as good
        Setting(0.5, 9): [0.7, 0.8, 0.7, 0.8],  # by 0.05 ± 0.03
        Setting(1.0, 9): [0.8, 0.8, 0.8, 0.8],
    }
    assert trials_with(by_setting, [1, 1, 1, 1]).mildest().blend == 0.2
    del by_setting[Setting(0.2, 9)]
    assert trials_with(by_setting, [1, 1, 1, 1]).mildest().blend == 1.0


def test_a_rare_tag_cannot_outweigh_common_ones():
    rare = {Setting(0.0, 9): [0.5, 0.5, 0.5, 0.5], Setting(0.5, 9): [0.6, 0.6, 0.58, 0.1]}
    assert trials_with(rare, [1, 1, 1, 1]).mildest().blend == 0
    assert trials_with(rare, [5, 5, 5, 0.1]).mildest().blend == 0.5


def test_the_error_of_the_weighted_mean_is_that_of_its_draws():
    """Of many draws of as many tags, with their weights."""
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 30, 60) ** 0.5
    trials = trials_with({}, weights)
    draws = rng.normal(0.3, 0.2, (4000, 60))
    spread = np.std([trials.mean(draw) for draw in draws])
    told = np.sqrt(np.mean([trials.standard_error(draw) ** 2 for draw in draws]))
    assert told == pytest.approx(spread, rel=0.05)
    assert trials_with({}, np.ones(9)).standard_error(draws[0, :9]) == pytest.approx(
        draws[0, :9].std(ddof=1) / 3
    )


class Fold:
    """A fold on which tags are measured as told."""

    def __init__(self, measured, carriers, found):
        self.tags = scipy.sparse.csr_array((1, 4))
        self.measured, self.carriers, self.found = np.array(measured), np.array(carriers), found

    def precisions(self, blend, n_neighbors, scale, view):
        return self.found and np.array(self.found)


def test_folds_are_averaged_tag_by_tag_before_voters_are_counted():
    first = Fold([0, 1], [9, 4], [[0.2, 0.4], [0.9, 0.1], [0.1, 0.1]])
    second = Fold([1, 3], [5, 16], [[0.6, 0.5], [0.1, 0.1], [0.8, 0.1]])
    trials = Comparison([first, second], scale=1.0)
    np.testing.assert_allclose(trials.weights, [3, 3, 0, 4])
    assert trials.add(Setting(0.1, 9))
    ((setting, precisions),) = trials.precisions.items()
    np.testing.assert_allclose(precisions, [0.2, 0.5, 0, 0.5])  # the first number of voters
    assert setting.score == pytest.approx((3 * 0.2 + 3 * 0.5 + 4 * 0.5) / 10)
    assert not Comparison([first, Fold([0], [1], None)], 1.0).add(Setting(0.1, 9))


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


@pytest.mark.parametrize("include_self", [True, False])
def test_settings_are_tried_as_they_are_used(include_self, monkeypatch):
    """The space under trial is learned from the tags that this setting gives."""
    X, Y = kinds(300)
    tags = with_noise(Y, dropped=0.5)
    seen = []
    known, new = slice(200), slice(200, None)
    fold = HeldOutFold(
        X[known],
        tags[known],
        X[new],
        tags[new],
        space=SPACE,
        index=ExactNeighbors().fit(X[known]),
        n_neighbors=30,
        include_self=include_self,
    )
    embeddings = fold.refits.embeddings

    def noted(tags, view):
        seen.append(tags)
        return embeddings(tags, view)

    monkeypatch.setattr(fold.refits, "embeddings", noted)
    for blend, r in ((0.0, 30), (0.3, 30), (0.3, 7), (1.0, 1)):
        scores = fold.precisions(blend, r, 0.5, "indicator")
        assert scores.shape == (3, 12)
        denoiser = TagDenoiser(r, scale=0.5, include_self=include_self, blend=blend)
        expected = denoiser.fit_transform(X[known], tags[known]).toarray()
        np.testing.assert_allclose(seen[-1].toarray(), expected, atol=1e-6)


def test_tags_on_hardly_an_image_or_on_all_are_not_measured():
    X, Y = kinds(300)
    Y[:, 4] = 1
    Y[:, 7] = 0
    Y[[0, 1, 2, 3, 298, 299], 7] = 1  # of those held out only two
    parts = X[:200], scipy.sparse.csr_array(Y[:200]), X[200:], scipy.sparse.csr_array(Y[200:])
    index = ExactNeighbors().fit(X[:200])
    fold = HeldOutFold(*parts, space=SPACE, index=index, n_neighbors=9, include_self=True)
    assert fold.measured.tolist() == [0, 1, 2, 3, 5, 6, 8, 9, 10, 11]


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
@pytest.mark.parametrize("include_self", [True, False])
def test_the_choice_with_few_or_all_neighbours(n_neighbors, include_self):
    X, Y = kinds(260, noise=1.2)
    denoiser = auto_denoiser(n_neighbors, include_self=include_self)
    found = denoiser.fit_transform(X, with_noise(Y, dropped=0.5))
    assert denoiser.trials_
    assert 1 <= denoiser.n_neighbors_ <= n_neighbors
    assert found.shape == Y.shape
    assert np.isfinite(found.data).all()


def test_the_chi2_view_is_tried_and_named(monkeypatch):
    """Where it does best, it is what is asked for next."""
    X, Y = kinds(400, noise=1.2)
    precisions = HeldOutFold.precisions

    def praised(fold, blend, n_neighbors, scale, view):
        found = precisions(fold, blend, n_neighbors, scale, view)
        assert found is not None
        assert np.isfinite(found).all()
        return found * 0 + blend + (view == "chi2")

    monkeypatch.setattr(HeldOutFold, "precisions", praised)
    denoiser = auto_denoiser(30).fit(X, with_noise(Y, dropped=0.7))
    assert (denoiser.view_, denoiser.blend_, denoiser.trials_[-1].view) == ("chi2", 1, "chi2")
    SemanticSpace(text_view=denoiser.view_).fit(X, denoiser.fit_transform(X, Y))


def test_the_chi2_view_is_not_tried_of_tags_that_are_mostly_raw(monkeypatch):
    X, Y = kinds(300)

    def praised(fold, blend, n_neighbors, scale, view):
        return np.full((3, len(fold.measured)), -abs(blend - 0.3))

    monkeypatch.setattr(HeldOutFold, "precisions", praised)
    assert {trial.view for trial in auto_denoiser(30).fit(X, Y).trials_} == {"indicator"}


@pytest.mark.parametrize("size", [400, 5000])
def test_every_tagged_image_looked_at_is_held_out_once(size):
    tagged = np.arange(1000) % 3 > 0
    parts = folds(tagged, size, 0)
    held = np.concatenate([held_out for _, held_out in parts])
    assert len(np.unique(held)) == len(held)
    looked_at = np.sort(np.concatenate(parts[0]))
    np.testing.assert_array_equal(np.sort(held), looked_at[tagged[looked_at]])
    for known, held_out in parts:
        np.testing.assert_array_equal(np.sort(np.concatenate([known, held_out])), looked_at)
        assert len(held_out) == pytest.approx(len(held) / 4, abs=1)
    for one, first in zip(parted(tagged, size, 0), parts[0], strict=True):
        np.testing.assert_array_equal(one, first)


def test_few_tagged_images_among_many_are_looked_at():
    tagged = np.arange(50_000) % 50 == 0
    known, held_out = parted(tagged, 8000, 0)
    assert len(held_out) == 250
    assert tagged[held_out].all()
    assert tagged[known].sum() == 750
    assert len(known) + len(held_out) == 8000
    assert not set(known) & set(held_out)


def test_images_of_a_group_are_held_out_together():
    rng = np.random.default_rng(0)
    tagged, groups = rng.random(2000) < 0.8, rng.permutation(np.repeat(np.arange(400), 5))
    parts = folds(tagged, 1000, 0, groups)
    looked_at = np.concatenate(parts[0])
    assert len(looked_at) == 1000
    for known, held_out in parts:
        np.testing.assert_array_equal(
            np.sort(np.concatenate([known, held_out])), np.sort(looked_at)
        )
        assert tagged[held_out].all()
        assert 190 < len(held_out) < 210
        with_tags = known[tagged[known]]
        assert not np.isin(groups[with_tags], groups[held_out]).any()


@pytest.mark.parametrize("groups", [np.zeros(400), np.minimum(np.arange(400), 200)])
def test_a_group_larger_than_a_quarter_leaves_usable_quarters(groups):
    parts = folds(np.ones(400, bool), 400, 0, groups.astype(int))
    sizes = [len(held_out) for _, held_out in parts]
    assert sum(sizes) == 400
    assert min(sizes) >= 50


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


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_as_many_of_those_looked_at_are_tagged_as_of_all(share):
    tagged = np.arange(10_000) < share * 10_000
    known, held_out = parted(tagged, 1000, 0)
    assert len(known) + len(held_out) == 1000
    assert tagged[known].sum() + len(held_out) == share * 1000
    known, held_out = parted(tagged, 20_000, 0)
    assert len(known) + len(held_out) == 10_000
