"""Propagated tags against sums written out."""

import numpy as np
import pytest
import scipy.sparse

from tagkin.errors import InvalidInput
from tagkin.paper import TagDenoiser
from tagkin.paper.denoiser import as_tags, blend_tags, propagate, propagation_weights, spread
from tests.conftest import make_collection, needs_torch


def propagated_by_hand(X, Y, r):
    """Equation 7, one image after the other."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    squared = np.array([[((a - b) ** 2).sum() for b in X] for a in X])
    sigma = squared.mean()
    expected = np.zeros(Y.shape)
    for i in range(len(X)):
        others = sorted((j for j in range(len(X)) if j != i), key=lambda j: (squared[i, j], j))
        near = [i, *others[: r - 1]]
        weights = np.array([np.exp(-squared[i, k] / sigma) for k in near])
        expected[i] = weights @ Y[near] / weights.sum()
    return expected


@pytest.mark.parametrize("r", [1, 2, 10, 60, 1000])
def test_the_propagated_tags_are_the_papers(r, as_array):
    """Equation 7: the weighted mean over the R most similar images, itself among them."""
    X, Y, _ = make_collection(60)
    Y[::7] = 0  # images without a tag are no exception
    denoiser = TagDenoiser(r, blend=1.0)
    denoised = denoiser.fit_transform(as_array(X), Y)
    expected = propagated_by_hand(X, Y, r)
    np.testing.assert_allclose(denoised.toarray(), expected, atol=1e-6)
    assert denoised.shape == Y.shape
    assert denoised.dtype == np.float32
    if r == 1:
        np.testing.assert_array_equal(denoised.toarray(), Y)


# --- weights ---


def test_weights_fall_with_the_distance_and_add_up_to_one():
    weights = propagation_weights(np.array([[0.0, 1.0, 2.0], [5.0, 5.0, 6.0]]), 2.0)
    raw = np.exp(-np.array([[0.0, 0.5, 1.0], [2.5, 2.5, 3.0]]))
    np.testing.assert_allclose(weights, raw / raw.sum(axis=1, keepdims=True))


def test_no_weight_vanishes_or_overflows():
    """Only differences count: huge distances weigh as small ones do."""
    far = propagation_weights(np.array([[1e6, 1e6 + 1, 1e300]]), 1.0)
    np.testing.assert_allclose(far, [[1 / (1 + np.exp(-1)), np.exp(-1) / (1 + np.exp(-1)), 0]])
    np.testing.assert_array_equal(propagation_weights(np.array([[0.0, 1.0]]), 1e-310), [[1, 0]])


def test_weights_where_nothing_tells_images_apart_or_none_is_there():
    same = propagation_weights(np.zeros((2, 4)), 0.0)
    np.testing.assert_array_equal(same, np.full((2, 4), 0.25))
    inf = np.inf
    gone = propagation_weights(np.array([[inf, inf], [3.0, inf]]), 1.0)
    np.testing.assert_array_equal(gone, [[0, 0], [1, 0]])
    np.testing.assert_array_equal(propagation_weights(np.array([[0.0, inf]]), 0.0), [[1, 0]])
    assert propagation_weights(np.empty((3, 0)), 1.0).shape == (3, 0)


# --- sums of tags ---


def test_spread_sums_the_rows_that_are_named():
    tags = scipy.sparse.csr_array(np.array([[1.0, 0, 0], [0, 1, 0], [0, 1, 1]]))
    denoised = spread(np.array([[0, 2], [1, -1]]), np.array([[0.5, 0.25], [0.75, 0.25]]), tags)
    np.testing.assert_array_equal(denoised.toarray(), [[0.5, 0.25, 0.25], [0, 0.75, 0]])
    nobody = spread(np.empty((2, 0), int), np.empty((2, 0)), tags)
    np.testing.assert_array_equal(nobody.toarray(), np.zeros((2, 3)))


def test_an_image_speaks_for_itself_at_distance_zero():
    tags = scipy.sparse.csr_array(np.array([[1.0, 0.0]]))
    own = scipy.sparse.csr_array(np.array([[0.0, 1.0]]))
    near = np.array([[0]]), np.array([[2.0]])
    weight = 1 / (1 + np.exp(-1))
    denoised = propagate(*near, 2.0, tags, own).toarray()
    np.testing.assert_allclose(denoised, [[1 - weight, weight]], rtol=1e-6)
    np.testing.assert_array_equal(propagate(*near, 2.0, tags).toarray(), [[1, 0]])


def test_blended_keeps_a_share_of_what_is_there():
    raw = scipy.sparse.csr_array(np.array([[1.0, 0.0], [0.0, 0.0]], dtype=np.float32))
    propagated = scipy.sparse.csr_array(np.array([[0.5, 0.5], [0.2, 0.4]], dtype=np.float32))
    denoised = blend_tags(raw, propagated, 0.25).toarray()
    np.testing.assert_allclose(denoised, [[0.875, 0.125], [0.2, 0.4]], rtol=1e-6)
    for blend, expected in ((0.0, raw), (1.0, propagated)):
        np.testing.assert_array_equal(
            blend_tags(raw, propagated, blend).toarray(), expected.toarray()
        )


# --- reading tags ---


def test_tags_of_every_kind_are_the_same_tags():
    dense = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    # an entry twice, and a zero that is written out
    parts = ([True, True, True, False, True], ([0, 0, 0, 1, 2], [0, 0, 2, 1, 1]))
    twice = scipy.sparse.csr_array(
        (np.array(parts[0]), np.array([0, 0, 2, 1, 1]), np.array([0, 3, 4, 5])), shape=(3, 3)
    )
    kinds = [dense, dense.tolist(), dense.astype(bool), dense.astype(float), twice]
    kinds += [scipy.sparse.csc_matrix(dense), scipy.sparse.coo_array(dense.astype(np.int8))]
    for Y in kinds:
        tags = as_tags(Y, 3)
        np.testing.assert_array_equal(tags.toarray(), dense)
        assert tags.nnz == 3
        assert tags.dtype == np.float32
    assert twice.nnz == 5, "the input is left alone"


def test_weights_written_twice_are_summed():
    twice = scipy.sparse.csr_array((np.array([0.5, 0.25]), np.array([1, 1]), np.array([0, 2])))
    np.testing.assert_array_equal(as_tags(twice, 1).toarray(), [[0, 0.75]])
    assert twice.nnz == 2


def test_tags_are_a_copy():
    Y = scipy.sparse.csr_array(np.eye(3, dtype=np.float32))
    as_tags(Y, 3).data[:] = 7
    np.testing.assert_array_equal(Y.toarray(), np.eye(3))


@needs_torch
def test_tags_may_be_a_tensor():
    import torch

    for dtype in (torch.bool, torch.int64, torch.bfloat16):
        np.testing.assert_array_equal(as_tags(torch.eye(3).to(dtype), 3).toarray(), np.eye(3))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-1.0, "negative entry in row 2 of Y"),
        (1e300, "of tag 1 on image 2; weights must be positive"),
    ],
)
def test_weights_that_make_no_sense_are_named(weight, message):
    Y = np.eye(4)
    Y[2, 1] = weight
    with pytest.raises(InvalidInput, match=message):
        as_tags(Y, 4)
