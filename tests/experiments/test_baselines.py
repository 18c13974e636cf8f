"""Logistic regression against scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from experiments.baselines import LogisticProbe
from tests.conftest import make_collection


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
