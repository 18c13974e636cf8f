"""ML-kNN against brute force, logistic regression against scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from experiments.baselines import LogisticProbe, MLkNN
from tagkin.neighbors import ExactNeighbors
from tests.conftest import make_collection


def brute_force(known_neighbors, new_neighbors, Y, k):
    """Algorithm 1 of the ML-kNN paper, image by image and label by label, s = 1."""
    n, d = Y.shape
    scores = np.empty((len(new_neighbors), d))
    for t in range(d):
        c_with, c_without = np.zeros(k + 1), np.zeros(k + 1)
        for i in range(n):
            delta = int(sum(Y[j, t] for j in known_neighbors[i]))
            (c_with if Y[i, t] else c_without)[delta] += 1
        prior = (1 + Y[:, t].sum()) / (2 + n)
        for i, neighbors in enumerate(new_neighbors):
            delta = int(sum(Y[j, t] for j in neighbors))
            yes = prior * (1 + c_with[delta]) / (k + 1 + c_with.sum())
            no = (1 - prior) * (1 + c_without[delta]) / (k + 1 + c_without.sum())
            scores[i, t] = yes / (yes + no)
    return scores


def test_ml_knn_is_its_definition():
    X, Y, X_new = make_collection(80)
    Y[:, 2] = 0  # a label on no image
    index = ExactNeighbors().fit(X)
    known = index.kneighbors(X, 12, exclude=np.arange(len(X)))
    new = index.kneighbors(X_new, 12)
    scores = MLkNN(7).fit_neighbors(*known, scipy.sparse.csr_array(Y)).score_neighbors(*new)
    expected = brute_force(known.indices[:, :7], new.indices[:, :7], Y, 7)
    np.testing.assert_allclose(scores, expected, rtol=1e-5)


def test_logistic_regression_is_scikit_learns():
    X, Y, X_new = make_collection(300)
    penalty = 0.01
    probe = LogisticProbe(penalty, max_iterations=500).fit(X, scipy.sparse.csr_array(Y))
    scores = probe.decision_function(X_new)
    scaler = StandardScaler().fit(X)
    for t in range(Y.shape[1]):
        regression = LogisticRegression(C=1 / (penalty * len(X)), tol=1e-8, max_iter=1000)
        regression.fit(scaler.transform(X), Y[:, t])
        expected = regression.decision_function(scaler.transform(X_new))
        np.testing.assert_allclose(scores[:, t], expected, atol=0.02)


def test_logistic_regression_in_blocks():
    X, Y, X_new = make_collection(200)
    whole, parts = (
        probe.fit(X, scipy.sparse.csr_array(Y)).decision_function(X_new)
        for probe in (LogisticProbe(0.1), LogisticProbe(0.1, block=37))
    )
    np.testing.assert_allclose(parts, whole, atol=1e-2)


def test_a_constant_feature_does_no_harm():
    X, Y, _ = make_collection(100)
    X[:, 0] = 3
    probe = LogisticProbe(0.1).fit(X, scipy.sparse.csr_array(Y))
    assert np.isfinite(probe.decision_function(X)).all()
    assert probe.coef_[0] == pytest.approx(0)
