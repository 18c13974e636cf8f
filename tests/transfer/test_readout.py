"""The logistic read-out against scikit-learn's logistic regression on the same features."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression

import tagkin
from tagkin.errors import InvalidInput
from tagkin.kernels import arc_cosine_kernel
from tagkin.transfer import LogisticReadout
from tests.conftest import assert_same, make_collection, needs_torch


def explicit_features(model, X):
    """Φ with Φ Φᵀ the kernel, from its definition."""

    def with_length(Z):
        return np.column_stack([Z / model.length_, np.ones(len(Z))])

    landmarks = with_length(np.asarray(model.landmarks_))
    gram = arc_cosine_kernel(landmarks, order=2)
    factor = np.linalg.cholesky(gram + 1e-6 * np.eye(len(gram)))
    return np.linalg.solve(factor, arc_cosine_kernel(with_length(X), landmarks, order=2).T).T


@pytest.mark.parametrize("regularization", [0.05, 0.25, 2.0])
def test_scores_are_those_of_logistic_regression(regularization):
    """Up to the tolerance of the solver: 2 % of the scores' spread."""
    X, Y, X_new = make_collection(400)
    model = LogisticReadout(regularization, n_landmarks=120, tol=1e-3).fit(X, Y)
    scores = model.decision_function(X_new)
    features, new = explicit_features(model, X), explicit_features(model, X_new)
    for t in range(Y.shape[1]):
        exact = LogisticRegression(C=1 / regularization, tol=1e-8, max_iter=10**4)
        expected = exact.fit(features, Y[:, t] > 0).decision_function(new)
        assert np.abs(scores[:, t] - expected).max() < 0.02 * np.ptp(expected)


def test_the_gradient_vanishes_at_the_solution():
    """Σᵢ (σ(fᵢ) − yᵢ) = 0, since the intercept is not regularised; to 1 % of the labels."""
    X, Y, _ = make_collection(300)
    p = LogisticReadout(tol=1e-3).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=0), (Y > 0).sum(axis=0), rtol=0.01)


def test_labels_do_not_depend_on_each_other():
    """One at a time gives the same as all together."""
    X, Y, X_new = make_collection(200)
    whole = LogisticReadout().fit(X, Y).decision_function(X_new)
    one_by_one = np.column_stack(
        [LogisticReadout().fit(X, Y[:, [t]]).decision_function(X_new) for t in range(Y.shape[1])]
    )
    np.testing.assert_allclose(one_by_one, whole, atol=1e-9)


def test_a_rejected_label_counts_for_more_than_one_that_nobody_mentioned():
    X, Y, _ = make_collection(300)
    plain = LogisticReadout().fit(X, Y)
    unsaid = np.flatnonzero(Y[:, 0] == 0)
    surest = unsaid[np.argsort(-plain.decision_function(X)[unsaid, 0])[:10]]
    rejected = scipy.sparse.lil_array(Y.shape)
    rejected[surest, 0] = 1
    told = LogisticReadout().fit(X, Y, rejected=rejected.tocsr())
    assert (told.decision_function(X)[surest, 0] < plain.decision_function(X)[surest, 0]).all()
    assert_same(told.decision_function(X)[:, 1:], plain.decision_function(X)[:, 1:], 1e-6)


def test_rejections_are_as_many_copies_of_the_image():
    """A rejection weighs twice as much as a label that nobody mentioned."""
    X, Y, X_new = make_collection(120)
    y = Y[:, :1]
    chosen = np.flatnonzero(y[:, 0] == 0)[:8]
    rejected = np.zeros_like(y)
    rejected[chosen] = 1
    told = LogisticReadout(n_landmarks=120, tol=1e-3).fit(X, y, rejected=rejected)
    features, new = explicit_features(told, X), explicit_features(told, X_new)
    weights = np.ones(len(X))
    weights[chosen] = 2
    exact = LogisticRegression(C=4.0, tol=1e-8, max_iter=10**4)
    expected = exact.fit(features, y[:, 0] > 0, weights).decision_function(new)
    found = told.decision_function(X_new)[:, 0]
    assert np.abs(found - expected).max() < 0.02 * np.ptp(expected)


def test_what_cannot_be_rejected():
    X, Y, _ = make_collection(50)
    with pytest.raises(InvalidInput, match="carries a label that is rejected for it"):
        LogisticReadout().fit(X, Y, rejected=Y)
    with pytest.raises(InvalidInput, match=r"rejected has the shape \(50, 2\)"):
        LogisticReadout().fit(X, Y, rejected=Y[:, :2])


def test_labels_on_all_images_or_none_keep_their_share():
    X, Y, X_new = make_collection(100)
    Y = Y.copy()
    Y[:, 0], Y[:, 1] = 0, 1
    model = LogisticReadout().fit(X, Y)
    assert model.learned_.tolist() == [2, 3, 4, 5]
    p = model.predict_proba(X_new)
    np.testing.assert_allclose(p[:, 0], 0.5 / 101)
    np.testing.assert_allclose(p[:, 1], 100.5 / 101)


def test_it_is_kept_in_a_folder(tmp_path):
    X, Y, X_new = make_collection(100)
    model = LogisticReadout().fit(X, Y)
    again = tagkin.load(tagkin.save(model, tmp_path / "model"))
    assert_same(again.decision_function(X_new), model.decision_function(X_new))


@needs_torch
def test_torch_and_numpy_agree_in_single_precision():
    import torch

    X, Y, X_new = make_collection(300)
    expected = LogisticReadout().fit(X, Y).decision_function(X_new)
    single = torch.from_numpy(X.astype(np.float32))
    scores = LogisticReadout().fit(single, Y).decision_function(torch.from_numpy(X_new).float())
    np.testing.assert_allclose(scores.numpy(), expected, atol=0.02 * np.ptp(expected))
