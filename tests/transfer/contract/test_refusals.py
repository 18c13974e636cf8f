"""What every method of label transfer keeps: what cannot be used is refused."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tagkin
from tagkin.errors import InvalidInput
from tagkin.paper import LinearSVM, NeighborVoting, RidgeTransfer, TagProp, TwoPassKNN
from tests.conftest import assert_same
from tests.transfer.contract.methods import (
    each_method,
)


@each_method
def test_unfitted(method, collection):
    model = clone(method)
    for call in ("decision_function", "suggest", "kneighbors"):
        if hasattr(model, call):
            with pytest.raises(NotFittedError, match=r"fit\(X, y\) first"):
                getattr(model, call)(collection.X_new)
    if hasattr(model, "explain"):
        with pytest.raises(NotFittedError, match="first"):
            model.explain(collection.X_new, [0])
        with pytest.raises(NotFittedError, match="first"):
            model.score_neighbors([[0]], [[0.5]])


def nan_in_row_30(X):
    X = X.copy()
    X[30, 2] = np.nan
    return X


def assert_refused(message, call, *arguments):
    with pytest.raises(ValueError, match=message):
        call(*arguments)


# How it is fitted, and what is said.
BAD_FITS = [
    (lambda m, X, Y: m.fit(X, None), "y to be passed"),
    (lambda m, X, Y: m.fit(X, Y[:-1]), "150 rows in X and 149 in Y"),
    (lambda m, X, Y: m.fit(X, 2 * Y - 1), "negative entry in row 0 of Y"),
    (lambda m, X, Y: m.fit(X, -scipy.sparse.csr_array(Y)), "negative entry in row"),
    (lambda m, X, Y: m.fit(X, np.where(Y, np.nan, 0)), "NaN"),
    (lambda m, X, Y: m.fit(X, np.arange(150)), "Expected 2D array for Y"),
    (lambda m, X, Y: m.fit(nan_in_row_30(X), Y), "Input X contains NaN or infinity in row 30"),
    (lambda m, X, Y: m.fit(X[0], Y), "2D array"),
    (lambda m, X, Y: m.fit(scipy.sparse.csr_array(X), Y), "features must be dense"),
]


@each_method
def test_a_fit_that_fails_leaves_what_was_learned(fitted, collection, scores):
    X, Y, X_new = collection
    for fit, message in BAD_FITS:
        assert_refused(message, fit, fitted, X[:, ::-1], Y[:, ::-1])
        assert_same(fitted.decision_function(X_new), scores, message=message)
        if hasattr(fitted, "partial_fit"):
            assert_refused(message, fit, type("", (), {"fit": fitted.partial_fit}), X, Y)
            assert_same(fitted.decision_function(X_new), scores, message=message)


BAD_QUERIES = [
    (lambda m, Z: m.decision_function(Z[:, :4]), "4 features, but .* is expecting 12"),
    (lambda m, Z: m.decision_function(nan_in_row_30(Z)), "X contains NaN or infinity in row 30"),
    (lambda m, Z: m.suggest(Z, 0), "n must be a whole number from 1; found 0"),
    (lambda m, Z: m.suggest(Z, 2.5), "whole number"),
    (lambda m, Z: m.suggest(Z, min_score=[1.0, 2.0]), r"each of the 6 labels; found shape \(2,"),
    (lambda m, Z: m.suggest(Z, min_score=np.nan), "with NaN"),
]


@each_method
def test_bad_queries(fitted, collection):
    with tagkin.memory_budget(1000):
        for call, message in BAD_QUERIES:
            assert_refused(message, call, fitted, collection.X_new)


BAD_PARAMETERS = [
    (NeighborVoting(0), "n_neighbors must be a whole number from 1; found 0"),
    (TagProp().set_params(n_neighbors=2.5), "found 2.5"),
    (NeighborVoting(metric="manhattan"), "metric must be one of cosine, euclidean"),
    (TagProp(weights="none"), "weights must be one of rank, distance"),
    (TwoPassKNN(0), "from 1; found 0"),
    (TwoPassKNN(decay=0), "decay must be a number above 0"),
    (TwoPassKNN(decay=np.nan), "decay must be"),
    (TwoPassKNN(form="other"), "form must be one of paper, authors"),
    (TwoPassKNN(metric="manhattan"), "metric must be one of"),
    (LinearSVM(C=0), "C must be a number above 0"),
    (RidgeTransfer(-1.0), "regularization must be a number above 0; found -1.0"),
]


def test_bad_parameters(collection):
    for method, message in BAD_PARAMETERS:
        with pytest.raises(InvalidInput, match=message):
            method.fit(collection.X, collection.Y)
        assert not hasattr(method, "n_labels_"), repr(method)


@each_method
def test_feature_names_are_kept_and_give_no_warning(method, collection, recwarn):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    names = [f"f{i}" for i in range(12)]
    X, X_new = (pandas.DataFrame(a, columns=names) for a in (collection.X, collection.X_new))
    model = clone(method).fit(X, collection.Y)
    model.suggest(X_new)
    if hasattr(model, "kneighbors"):
        model.kneighbors(X_new)
        model.explain(X_new, [0])
        model.partial_fit(X_new, collection.Y[:40])
    assert model.feature_names_in_.tolist() == names
    assert not [w for w in recwarn if "feature names" in str(w.message)]
