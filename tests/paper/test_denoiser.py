"""Denoised tags: plain cases, and what stays the same."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

import tagkin
from tagkin.errors import InvalidInput
from tagkin.paper import TagDenoiser

# two kinds of images, three of each; one image of each kind lacks its tag
TWO_KINDS = np.array([[1, 0.0], [1, 0.01], [1, 0.02], [0, 1.0], [0.01, 1], [0.02, 1]])
TAGS = np.array([[1, 0], [1, 0], [0, 0], [0, 1], [0, 0], [0, 1]])


# --- plain cases ---


def test_a_forgotten_tag_comes_back_and_stays_below_those_that_are_there():
    denoised = TagDenoiser(3, blend=1.0).fit_transform(TWO_KINDS, TAGS).toarray()
    np.testing.assert_allclose(denoised, np.repeat([[2 / 3, 0], [0, 2 / 3]], 3, axis=0), atol=1e-3)
    denoised = TagDenoiser(3, blend=0.5).fit_transform(TWO_KINDS, TAGS).toarray()
    own, filled = 1 / 2 + 1 / 3, 2 / 3
    expected = [[own, 0], [own, 0], [filled, 0], [0, own], [0, filled], [0, own]]
    np.testing.assert_allclose(denoised, expected, atol=1e-3)


def test_a_wrong_tag_is_outvoted():
    tags = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1], [1, 0]])
    denoised = TagDenoiser(3, blend=1.0).fit_transform(TWO_KINDS, tags).toarray()
    assert denoised.argmax(axis=1).tolist() == [0, 0, 0, 1, 1, 1]


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
    denoised = TagDenoiser(9, blend=blend).fit_transform(X, Y).toarray()
    np.testing.assert_allclose(denoised, (1 - share) * Y + share * propagated, atol=1e-6)


def test_sums_stay_between_the_least_and_the_most(collection):
    """A mean of tag vectors is nowhere beyond them."""
    X, Y, X_new = collection
    denoiser = TagDenoiser(20, blend=0.7)
    for tags in (denoiser.fit_transform(X, Y), denoiser.transform(X_new)):
        assert tags.data.min() > 0
        assert tags.data.max() <= 1 + 1e-6


def test_the_defaults_blend(collection):
    X, Y, _ = collection
    denoised = TagDenoiser().fit_transform(X, Y).toarray()
    expected = 0.7 * Y + 0.3 * TagDenoiser(blend=1.0).fit_transform(X, Y).toarray()
    np.testing.assert_allclose(denoised[Y.any(axis=1)], expected[Y.any(axis=1)], atol=1e-6)
    assert (denoised[Y > 0] >= 0.7).all()


# --- new images ---


def test_new_images_without_tags_get_those_of_their_neighbours():
    new = np.array([[5.0, 0.05], [0.0, 3.0]])
    for blend in (0, 0.3, 1.0):
        denoiser = TagDenoiser(3, blend=blend).fit(TWO_KINDS, TAGS)
        denoised = denoiser.transform(new).toarray()
        np.testing.assert_allclose(denoised, [[2 / 3, 0], [0, 2 / 3]], atol=1e-3)


def test_new_images_with_tags_count_among_their_neighbours():
    new, own = np.array([[1, 0.004], [0, 1.0]]), np.array([[0, 1], [0, 0]])
    denoiser = TagDenoiser(3, blend=1.0).fit(TWO_KINDS, TAGS)
    denoised = denoiser.transform(new, own).toarray()
    # of the two fitted ones nearest to the first both carry a tag, to the second one does
    np.testing.assert_allclose(denoised, [[2 / 3, 1 / 3], [0, 1 / 3]], atol=1e-3)


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
            tag = None if tags is None else tags[[i]]
            single = denoiser.transform(as_array(X_new[[i]]), tag).toarray()
            np.testing.assert_allclose(single[0], whole[i], atol=1e-6)


# --- rare images ---


def test_images_that_are_all_the_same_share_their_tags():
    """R of them at most, each image among its own."""
    Y = np.eye(8)
    denoised = TagDenoiser(4, blend=1.0).fit_transform(np.full((8, 3), 0.1), Y).toarray()
    np.testing.assert_allclose(np.diag(denoised), 0.25)
    np.testing.assert_allclose(denoised.sum(axis=1), 1)


def test_images_with_zero_features_are_like_no_other():
    X, Y = np.array([[1.0, 0], [0, 0], [1, 0.1], [0, 0]]), np.eye(4)
    denoiser = TagDenoiser(4, blend=1.0)
    denoised = denoiser.fit_transform(X, Y).toarray()
    np.testing.assert_array_equal(denoised[[1, 3]], Y[[1, 3]])
    np.testing.assert_array_equal(denoised[[0, 2]][:, [1, 3]], 0)
    np.testing.assert_allclose(denoised[[0, 2]].sum(axis=1), 1, rtol=1e-6)
    assert denoiser.transform(np.zeros((1, 2))).nnz == 0


def test_a_single_image_and_no_tag_at_all():
    alone = TagDenoiser(blend=1.0).fit_transform([[1.0, 2.0]], [[1, 0]])
    np.testing.assert_array_equal(alone.toarray(), [[1, 0]])
    for blend in (0.3, 0.5, 1.0):
        denoised = TagDenoiser(3, blend=blend).fit_transform(TWO_KINDS, np.zeros((6, 2)))
        assert denoised.nnz == 0
        assert denoised.shape == (6, 2)


def test_features_of_hugely_different_sizes():
    """One image far from all others must not make the rest one, or none."""
    X = np.concatenate([TWO_KINDS, [[1e12, 1e12]]])
    Y = np.concatenate([TAGS, [[1, 1]]])
    denoised = TagDenoiser(3, blend=1.0).fit_transform(X, Y).toarray()
    assert np.isfinite(denoised).all()
    assert denoised[-1].min() > 0.4
    assert (denoised[:3, 1] == 0).all()
    assert (denoised[:3, 0] > 0).all()


def test_the_scale_may_be_the_mean_distance(collection):
    X, Y, _ = collection
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    squared = ((unit[:, None] - unit[None]) ** 2).sum(axis=2)
    for scale, expected in (("mean", np.sqrt(squared)), ("mean-squared", squared)):
        denoiser = TagDenoiser(scale=scale, blend=1.0).fit(X, Y)
        assert denoiser.scale_ == pytest.approx(np.mean(expected))


# --- what stays the same ---


def test_blocks_change_nothing(collection, as_array):
    X, Y, X_new = collection
    X[::4] = X[0]  # ties
    denoiser = TagDenoiser(10, blend=0.6)
    expected = denoiser.fit_transform(as_array(X), Y)
    of_new = denoiser.transform(as_array(X_new), Y[:40])
    with tagkin.memory_budget(4000):
        denoised = denoiser.fit_transform(as_array(X), Y)
        np.testing.assert_allclose(denoised.toarray(), expected.toarray(), atol=1e-6)
        denoised = denoiser.transform(as_array(X_new), Y[:40])
        np.testing.assert_allclose(denoised.toarray(), of_new.toarray(), atol=1e-6)
    assert expected.has_canonical_format
    assert of_new.has_canonical_format


def test_input_is_left_alone(collection):
    X, Y, _ = collection
    sparse = scipy.sparse.csr_array(Y)
    before = X.copy(), sparse.data.copy(), sparse.indices.copy()
    for blend in (0, 0.5, 1.0):
        denoised = TagDenoiser(5, blend=blend).fit_transform(X, sparse)
        denoised.data[:] = 9
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
    denoiser = TagDenoiser(7, blend=0.3).fit(X, Y)
    again = tagkin.load(tagkin.save(denoiser, tmp_path / "model"))
    assert again.get_params() == denoiser.get_params()
    for own in (None, Y[:40]):
        expected = denoiser.transform(X_new, own).toarray()
        np.testing.assert_array_equal(again.transform(X_new, own).toarray(), expected)
    card = (tmp_path / "model" / "README.md").read_text()
    assert "Smooths 6 tags over 150 images" in card
    assert "30 % comes from 7 visual neighbours" in card


# --- errors ---


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a whole number from 1; found 0"),
        ({"blend": 1.5}, "blend must be a number from 0 to 1; found 1.5"),
        ({"blend": "most"}, "blend must be a number from 0 to 1; found 'most'"),
        ({"blend": np.nan}, "blend must be"),
        ({"scale": "median"}, "scale must be mean-squared or mean; found 'median'"),
    ],
)
def test_parameters_that_make_no_sense_are_named(parameters, message):
    with pytest.raises(InvalidInput, match=message):
        TagDenoiser(**parameters).fit(TWO_KINDS, TAGS)


def test_columns_in_another_order_are_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    named = pandas.DataFrame(TAGS, columns=["a", "b"])
    fitted = TagDenoiser(3, blend=0.5).fit(TWO_KINDS, named)
    for denoiser in (fitted, tagkin.load(tagkin.save(fitted, tmp_path / "model"))):
        denoised = denoiser.transform(TWO_KINDS, named)
        expected = denoiser.transform(TWO_KINDS, TAGS)
        np.testing.assert_allclose(denoised.toarray(), expected.toarray(), rtol=1e-6)
        with pytest.raises(InvalidInput, match="Column 0 of Y"):
            denoiser.transform(TWO_KINDS, named[["b", "a"]])


def test_what_does_not_fit_the_model_is_named():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        TagDenoiser().transform(TWO_KINDS)
    with pytest.raises(InvalidInput, match="requires y"):
        TagDenoiser().fit(TWO_KINDS)
    denoiser = TagDenoiser(3, blend=1.0).fit(TWO_KINDS, TAGS)
    with pytest.raises(InvalidInput, match="Found 3 tags in Y, but 2 were fitted"):
        denoiser.transform(TWO_KINDS, np.ones((6, 3)))
    with pytest.raises(ValueError, match="expecting 2 features"):
        denoiser.transform(np.ones((6, 5)))
    with pytest.raises(InvalidInput, match="row 0"):
        denoiser.transform(np.array([[np.nan, 1]]))
