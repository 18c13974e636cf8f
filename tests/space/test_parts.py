"""Spaces without a part of the images, against fits without it."""

import numpy as np
import pytest
import scipy.sparse

from tagkin import SemanticSpace
from tagkin.errors import InvalidInput
from tagkin.paper import Chi2View
from tagkin.space.parts import LeaveOutSpaces
from tests.conftest import assert_same, make_collection

PARTS = [np.arange(0, 30), np.arange(30, 50), np.arange(50, 90)]


def cosines(Z):
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    return unit @ unit.T


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("solving", [{}, {"regularization": 7.0}, {"n_components": 2}])
def test_a_space_without_a_part_is_the_one_fitted_without_it(sparse, solving, as_array):
    X, Y, X_new = make_collection(n=90)
    labels = scipy.sparse.csr_array(Y) if sparse else as_array(Y)
    parts = LeaveOutSpaces(
        SemanticSpace(selection=as_array(X[:40]), **solving), as_array(X), labels, PARTS
    )
    for i, gone in enumerate(PARTS):
        known = np.setdiff1d(np.arange(90), gone)
        expected = SemanticSpace(selection=X[:40], **solving).fit(X[known], Y[known])
        space = parts.without(i)
        assert space.n_images_ == len(known)
        np.testing.assert_allclose(space.correlations_, expected.correlations_, atol=1e-9)
        np.testing.assert_allclose(
            cosines(np.asarray(space.transform(as_array(X_new)))),
            cosines(expected.transform(X_new)),
            atol=1e-8,
        )


@pytest.mark.parametrize("kernel", ["arc-cosine", "linear"])  # the latter's columns are float64
@pytest.mark.parametrize("held", [0, 2**20])
def test_embeddings_are_those_of_the_space_whether_columns_are_kept(monkeypatch, held, kernel):
    """Float32, to 1e-4 of their length; `held` are bytes of columns that may be kept."""
    monkeypatch.setattr("tagkin.space.parts.HELD_BYTES", held)
    X, Y, _ = make_collection(n=90)
    X = X.astype(np.float32)
    parts = LeaveOutSpaces(SemanticSpace(kernel=kernel, n_landmarks=40), X, Y, PARTS)
    for space in (parts.without(1), parts.whole()):
        part, others, every = parts.embeddings(space, (PARTS[1], PARTS[0], slice(None)))
        expected = space.transform(X)
        assert_same(part, expected[PARTS[1]], 1e-4 * np.linalg.norm(expected, axis=1).mean())
        assert_same(others, expected[PARTS[0]], 1e-4 * np.linalg.norm(expected, axis=1).mean())
        assert every.shape == expected.shape
        assert part.dtype == every.dtype == np.float32


def test_fewer_landmarks_are_the_first_of_them(as_array):
    """Against a fit with those, in float64."""
    X, Y, X_new = make_collection(n=90)
    parts = LeaveOutSpaces(
        SemanticSpace(2.0, selection=as_array(X[:40])), as_array(X), as_array(Y), PARTS
    )
    known = np.setdiff1d(np.arange(90), PARTS[1])
    expected = SemanticSpace(2.0, selection=X[:25]).fit(X[known], Y[known])
    space = parts.without(1, n_landmarks=25)
    actual = cosines(np.asarray(space.transform(as_array(X_new))))
    np.testing.assert_allclose(actual, cosines(expected.transform(X_new)), atol=1e-8)
    (embeddings,) = parts.embeddings(space, [slice(None)])
    assert_same(embeddings, space.transform(as_array(X)), 1e-8)
    actual, exact = np.asarray(space.transform(as_array(X_new))), expected.transform(X_new)
    np.testing.assert_allclose(
        actual @ actual.T, exact @ exact.T, atol=1e-8
    )  # without the rotation
    assert space.solution().correlations is None


def test_labels_of_the_part_leave_no_trace():
    X, Y, X_new = make_collection(n=90)
    other = Y.copy()
    other[PARTS[1]] = 1 - other[PARTS[1]]
    spaces = [
        LeaveOutSpaces(SemanticSpace(n_landmarks=40), X, labels, PARTS).without(1).transform(X_new)
        for labels in (Y, other)
    ]
    assert_same(*spaces, 1e-8)


@pytest.mark.parametrize("space", [SemanticSpace(), SemanticSpace(text_view=Chi2View())])
def test_where_sums_do_not_pay_it_is_a_fit(space):
    X, Y, X_new = make_collection(n=90)
    known = np.arange(50)
    fitted = LeaveOutSpaces(space, X, Y, PARTS).without(2)
    expected = space.fit(X[known], Y[known])
    np.testing.assert_array_equal(fitted.transform(X_new), expected.transform(X_new))


@pytest.mark.parametrize("n_labels", [5, 120])  # fewer and more than images
def test_an_exact_draft_has_the_cosines_of_a_fit(n_labels):
    """It leaves out the rotation, which changes no length and no angle."""
    X, _, X_new = make_collection(n=90)
    Y = (np.random.default_rng(0).random((90, n_labels)) < 0.2).astype(float)
    known = np.arange(50)
    draft = LeaveOutSpaces(SemanticSpace(2.0), X, Y, PARTS).without(2, n_landmarks=45)
    assert draft.solution().correlations is None
    Z, Z_draft = (
        np.asarray(space.transform(X_new))
        for space in (SemanticSpace(2.0).fit(X[known], Y[known]), draft)
    )
    np.testing.assert_allclose(Z_draft @ Z_draft.T, Z @ Z.T, atol=1e-8 * np.abs(Z @ Z.T).max())


def test_bad_input():
    X, Y, _ = make_collection(n=90)
    with pytest.raises(InvalidInput, match="regularization must be"):
        LeaveOutSpaces(SemanticSpace(-1), X, Y, PARTS)
    with pytest.raises(InvalidInput, match="No label at all"):
        LeaveOutSpaces(SemanticSpace(n_landmarks=40), X, np.zeros((90, 3)), PARTS)


def test_a_space_to_try_things_in_is_as_precise_as_its_columns():
    """Solved in float32, against a fit in float64: lengths and cosines to 1e-4 of the largest."""
    X, Y, X_new = make_collection(n=90)
    single = X.astype(np.float32)
    parts = LeaveOutSpaces(SemanticSpace(selection=single[:40]), single, Y, PARTS)
    space = parts.without(1, n_landmarks=25)
    assert space.solution().coefficients.dtype == np.float32
    known = np.setdiff1d(np.arange(90), PARTS[1])
    exact = SemanticSpace(selection=X[:25]).fit(X[known], Y[known]).transform(X_new)
    embeddings = space.transform(X_new.astype(np.float32))
    products = exact @ exact.T
    np.testing.assert_allclose(embeddings @ embeddings.T, products, atol=1e-4 * products.max())
