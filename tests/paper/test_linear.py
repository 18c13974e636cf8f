"""Linear methods against their normal equations, scikit-learn and a direct minimisation."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from sklearn.linear_model import Ridge

import tagkin
from tagkin import SemanticSpace
from tagkin.kernels import ArcCosine
from tagkin.paper import LinearSVM, RidgeTransfer
from tests.conftest import assert_same, make_collection


@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("regularization", [1e-3, 0.5, 100.0])
def test_ridge_is_ridge(collection, regularization, shift):
    X, Y, X_new = collection
    expected = Ridge(alpha=regularization).fit(X, Y).predict(X_new)
    model = RidgeTransfer(regularization).fit(X + shift, scipy.sparse.csr_array(Y))
    np.testing.assert_allclose(model.decision_function(X_new + shift), expected, atol=1e-8)
    assert model.coef_.shape == (12, 6)


def test_ridge_in_blocks_and_with_more_dimensions_than_images(collection):
    X, Y, X_new = collection
    expected = Ridge(alpha=0.5).fit(X[:5], Y[:5]).predict(X_new)
    with tagkin.memory_budget(2000):
        scores = RidgeTransfer().fit(X[:5], Y[:5]).decision_function(X_new)
    np.testing.assert_allclose(scores, expected, atol=1e-10)


def test_ridge_where_every_third_image_is_elsewhere():
    X, Y, X_new = make_collection(700)
    X[::3] += 5
    expected = Ridge(alpha=0.5).fit(X, Y).predict(X_new)
    np.testing.assert_allclose(
        RidgeTransfer().fit(X, Y).decision_function(X_new), expected, atol=1e-9
    )


def test_a_regularization_lost_in_rounding_does_no_harm():
    """Of two equal columns the Gram matrix is singular; κ = 1e-12 does not show beside it."""
    X, Y, X_new = make_collection()
    twice = RidgeTransfer(1e-12).fit(np.hstack([1e3 * X, 1e3 * X]), Y)
    expected = RidgeTransfer(1e-12).fit(1e3 * X, Y).decision_function(1e3 * X_new)
    scores = twice.decision_function(np.hstack([1e3 * X_new, 1e3 * X_new]))
    np.testing.assert_allclose(scores, expected, atol=1e-6)


def gram(A, B):
    return ArcCosine()(A, B)


@pytest.mark.parametrize("scaling", ["correlation", "unit", "none"])
def test_the_ridge_of_a_space_is_kernel_ridge(collection, scaling):
    """Ŷ = mean + K (K + κI)⁻¹ (Y − mean), of centred kernels, in dense form."""
    X, Y, X_new = collection
    space = SemanticSpace(0.7, kernel="arc-cosine", scaling=scaling).fit(X, Y)
    K, K_new = gram(X, X), gram(X_new, X)
    H = np.eye(150) - 1 / 150
    to_new = (K_new - K.mean(axis=0)) @ H
    dual = np.linalg.solve(H @ K @ H + 0.7 * np.eye(150), Y - Y.mean(axis=0))
    model = RidgeTransfer.of_space(space)
    scores = model.decision_function(space.transform(X_new))
    np.testing.assert_allclose(scores, Y.mean(axis=0) + to_new @ dual, atol=1e-9)
    assert model.n_labels_ == 6
    assert model.get_params() == {"regularization": 0.7}


@pytest.mark.parametrize("scaling", ["correlation", "unit", "none"])
def test_the_ridge_of_a_space_with_landmarks_is_ridge_on_their_features(collection, scaling):
    """Features φ = k(x, S) k(S, S)^(-1/2), whose products are the landmarks' kernel."""
    X, Y, X_new = collection
    space = SemanticSpace(
        0.7, kernel="arc-cosine", n_landmarks=25, scaling=scaling, random_state=0
    ).fit(X, Y)
    S = X[space.landmarks_.indices]
    values, vectors = np.linalg.eigh(gram(S, S))
    root = vectors / np.sqrt(values) @ vectors.T
    expected = Ridge(alpha=0.7).fit(gram(X, S) @ root, Y).predict(gram(X_new, S) @ root)
    scores = RidgeTransfer.of_space(space).decision_function(space.transform(X_new))
    np.testing.assert_allclose(scores, expected, atol=1e-8)


def test_the_ridge_of_a_space_can_be_saved(collection, tmp_path):
    X, Y, X_new = collection
    space = SemanticSpace().fit(X, Y)
    model = RidgeTransfer.of_space(space)
    again = tagkin.load(tagkin.save(model, tmp_path / "model"))
    psi = space.transform(X_new)
    assert_same(again.decision_function(psi), model.decision_function(psi))
    with pytest.raises(ValueError, match="12 features, but RidgeTransfer is expecting 6"):
        again.decision_function(X_new)


def objective(parameters, X, y, C):
    """‖w‖²/2 + C Σ (1 − y (b + ⟨w, x⟩))²/2, and its gradient."""
    w, b = parameters[:-1], parameters[-1]
    short = 1 - y * (X @ w + b)
    slope = -short * y
    gradient = np.append(w + C * X.T @ slope, C * slope.sum())
    return w @ w / 2 + C * (short**2).sum() / 2, gradient


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("shift", [0.0, 30.0])
def test_the_svm_is_at_the_least_of_its_objective(collection, C, shift):
    X, Y, X_new = collection
    scores = LinearSVM(C).fit(X + shift, Y).decision_function(X_new + shift)
    for t in (0, 3):
        best = scipy.optimize.minimize(
            objective,
            np.zeros(13),
            args=(X, 2 * Y[:, t] - 1, C),
            jac=True,
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000},
        ).x
        np.testing.assert_allclose(scores[:, t], X_new @ best[:-1] + best[-1], atol=1e-3)


def test_least_squares_is_ridge_on_plus_and_minus_one(collection):
    X, Y, X_new = collection
    expected = Ridge(alpha=1 / 0.3).fit(X, 2 * Y - 1).predict(X_new)
    scores = LinearSVM(0.3).fit(X, Y).decision_function(X_new)
    np.testing.assert_allclose(scores, expected, atol=1e-10)


def test_a_label_on_all_images_or_none_is_not_learned(collection):
    X, Y, X_new = collection
    Y[:, 1], Y[:, 4] = 0, 1
    scores = LinearSVM().fit(X, Y).decision_function(X_new)
    np.testing.assert_allclose(scores[:, 1], -1, atol=1e-12)
    np.testing.assert_allclose(scores[:, 4], 1, atol=1e-12)
