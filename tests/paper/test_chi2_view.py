"""The exp-χ² view against the kernel written out pair by pair."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from tagkin import SemanticSpace, load, memory_budget, save
from tagkin.errors import InvalidInput
from tagkin.paper import Chi2View, ExpChi2
from tagkin.paper.exp_chi2 import mean_chi2
from tagkin.space.views import TextView
from tests.conftest import assert_same, needs_torch


def tag_vectors(n=60, n_tags=8, seed=0):
    """Weights such as denoised tags have: many zeros, some images without tags, twins."""
    rng = np.random.default_rng(seed)
    Y = rng.random((n, n_tags)) * (rng.random((n, n_tags)) < 0.4)
    Y[3], Y[5] = 0.0, Y[6]
    return Y


def chi2(a, b):
    return sum((x - y) ** 2 / (x + y) for x, y in zip(a, b, strict=True) if x + y > 0)


def test_the_mean_is_over_all_pairs_and_exact_for_few_rows(as_array):
    Y = tag_vectors(30)
    expected = np.mean([chi2(a, b) for a in Y for b in Y])
    for given in (as_array(Y), scipy.sparse.csr_array(Y)):
        mean, error = mean_chi2(given)
        assert mean == pytest.approx(expected, rel=1e-12)
        assert error == 0


def test_the_mean_of_many_rows_is_estimated_within_its_error():
    Y = tag_vectors(1500)
    exact = -2 * np.log(ExpChi2(scale=1.0)(Y)).mean()
    means = np.array([mean_chi2(Y, seed) for seed in range(10)])
    errors = (means[:, 0] - exact) / means[:, 1]
    assert np.abs(errors).max() < 4
    assert 0.5 < errors.std() < 1.6, "the error stated is the error made"
    assert means[:, 1].max() < 0.002 * exact
    assert mean_chi2(Y, 7) == mean_chi2(scipy.sparse.csr_array(Y), 7)
    with memory_budget(10_000):
        assert mean_chi2(Y[:600], 7)[0] == pytest.approx(mean_chi2(Y[:600], 7)[0])


def test_with_every_image_a_landmark_the_kernel_is_exact(as_array):
    Y, new = tag_vectors(), tag_vectors(20, seed=1)
    view = Chi2View(n_landmarks=100).fit(as_array(Y))
    T, T_new = (np.asarray(view.transform(as_array(Z))) for Z in (Y, new))
    np.testing.assert_allclose(T @ T.T, ExpChi2()(Y), atol=1e-9)
    expected = [[np.exp(-chi2(a, b) / (2 * view.scale_)) for b in Y] for a in new]
    np.testing.assert_allclose(T_new @ T.T, expected, atol=1e-9)
    assert T.shape == (60, len(np.unique(Y, axis=0))), "twins are one landmark"
    assert view.scale_error_ == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_sparse_is_dense(dtype):
    Y = (4 * tag_vectors(700)).astype(dtype)
    dense = Chi2View(n_landmarks=50, random_state=3).fit(Y)
    sparse = Chi2View(n_landmarks=50, random_state=3).fit(scipy.sparse.csr_array(Y))
    T = sparse.transform(scipy.sparse.csr_matrix(Y))
    assert T.dtype == dense.transform(Y).dtype
    with memory_budget(20_000):
        np.testing.assert_allclose(sparse.transform(scipy.sparse.csc_array(Y)), T, atol=1e-5)
    np.testing.assert_allclose(dense.transform(Y), T, atol=1e-5)
    assert (dense.scale_, dense.scale_error_) == (sparse.scale_, sparse.scale_error_)
    assert dense.scale_error_ > 0


def test_more_landmarks_come_closer_to_the_kernel():
    Y = tag_vectors(400)
    K = ExpChi2()(Y)
    errors = []
    for n_landmarks in (10, 80, 300):
        T = Chi2View(n_landmarks=n_landmarks, random_state=0).fit(Y).transform(Y)
        assert T.shape == (400, n_landmarks)
        errors.append(np.linalg.norm(K - T @ T.T) / np.linalg.norm(K))
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    assert errors[2] < 0.05


def test_the_seed_decides():
    Y = tag_vectors(700)
    first, same, other = (
        Chi2View(n_landmarks=20, random_state=s).fit(Y).transform(Y) for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_a_space_takes_it_and_finds_what_the_exact_kernel_finds(collection, tmp_path):
    X, Y, X_new = collection
    assert isinstance(Chi2View(), TextView)
    weights = Y * np.random.default_rng(0).random(Y.shape)
    by_landmarks = SemanticSpace(text_view=Chi2View()).fit(X, weights)

    class ExactView:
        def fit(self, Y):
            values, vectors = np.linalg.eigh(ExpChi2()(Y))
            self.T = vectors * np.sqrt(values.clip(0))

        def transform(self, Y):
            return self.T

    exact = SemanticSpace(text_view=ExactView()).fit(X, weights)
    gram = by_landmarks.transform(X_new) @ by_landmarks.transform(X_new).T
    np.testing.assert_allclose(gram, exact.transform(X_new) @ exact.transform(X_new).T, atol=1e-9)
    sparse = SemanticSpace(text_view=Chi2View()).fit(X, scipy.sparse.csr_array(weights))
    np.testing.assert_allclose(sparse.correlations_, by_landmarks.correlations_, atol=1e-9)


def test_a_stored_view_and_a_space_with_it_are_the_same(collection, tmp_path):
    X, Y, X_new = collection
    view = Chi2View(n_landmarks=12, random_state=0)
    space = SemanticSpace(text_view=view, n_landmarks=40, random_state=0).fit(X, Y)
    again = load(save(space, tmp_path / "space"))
    assert again.text_view.n_landmarks == 12
    for model in (space, again):
        model.partial_fit(X[:20], Y[:20])
    np.testing.assert_allclose(again.transform(X_new), space.transform(X_new), atol=1e-9)
    view.fit(Y)
    loaded = load(save(view, tmp_path / "view"))
    assert_same(loaded.transform(Y), view.transform(Y))
    assert (loaded.scale_, loaded.scale_error_) == (view.scale_, view.scale_error_)
    assert "6 labels by 12 landmarks" in (tmp_path / "view" / "README.md").read_text()


@needs_torch
def test_sparse_labels_meet_landmarks_on_a_device(tmp_path):
    Y = tag_vectors()
    view = Chi2View(n_landmarks=20, random_state=0).fit(Y)
    loaded = load(save(view, tmp_path / "view"), device="cpu")
    T = loaded.transform(scipy.sparse.csr_array(Y))
    assert type(T).__name__ == "Tensor"
    np.testing.assert_allclose(T.numpy(), view.transform(Y), atol=1e-12)


@pytest.mark.parametrize("Y", [np.zeros((4, 3)), np.ones((5, 2)), np.ones((1, 2))])
def test_where_all_images_carry_the_same_tags_all_are_alike(Y):
    T = Chi2View().fit_transform(Y)
    np.testing.assert_allclose(T @ T.T, 1.0)


def test_what_cannot_be_used_is_said():
    Y = tag_vectors()
    with pytest.raises(InvalidInput, match="negative entry in row 0 of Y"):
        Chi2View().fit(-Y)
    view = Chi2View().fit(Y)
    for wrong in (-Y, scipy.sparse.csr_array(-Y)):
        with pytest.raises(InvalidInput, match="negative entry in row 0 of Y"):
            view.transform(wrong)
    with pytest.raises(InvalidInput, match="Found 3 labels where 8 were fitted"):
        view.transform(Y[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        Chi2View().fit(np.where(Y > 0.5, np.nan, Y))
    for n_landmarks in (0, 1.5, "many"):
        with pytest.raises(InvalidInput, match="n_landmarks must be a whole number from 1"):
            Chi2View(n_landmarks=n_landmarks).fit(Y)
    with pytest.raises(NotFittedError):
        Chi2View().transform(Y)
