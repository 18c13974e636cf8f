"""Methods of label transfer as parts of scikit-learn: pipelines, grids, cross-validation."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from tagkin import SemanticSpace
from tagkin.errors import InvalidInput
from tagkin.evaluation import evaluate, mean_average_precision, scorer
from tagkin.paper import LinearSVM, NeighborVoting, RidgeTransfer, TagProp, TagRelevance, TwoPassKNN
from tests.conftest import make_collection
from tests.transfer.contract.methods import methods

METHODS = methods(
    *("voting", "relevance", "tagprop", "tagprop, no sigmoids", "2pknn"),
    *("kin and read-out", "logistic read-out", "svm", "ridge"),
)
NAMES = ["beach", "boat", "dog", "harbour", "night", "people"]

each_method = pytest.mark.parametrize("method", METHODS, ids=repr)
as_dense, as_sparse = np.asarray, scipy.sparse.csr_array
each_kind = pytest.mark.parametrize("kind", [as_dense, as_sparse], ids=["dense", "sparse"])


def frames(collection):
    """X, Y and X_new as data frames with named columns."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    features = [f"f{i}" for i in range(collection.X.shape[1])]
    return (
        pandas.DataFrame(collection.X, columns=features),
        pandas.DataFrame(collection.Y.astype(int), columns=NAMES),
        pandas.DataFrame(collection.X_new, columns=features),
    )


def pipeline_of(method) -> Pipeline:
    return make_pipeline(SemanticSpace(), clone(method))


@each_method
@each_kind
def test_a_pipeline_of_a_space_and_a_method(method, kind, collection):
    X, Y, X_new = collection
    pipeline = pipeline_of(method).fit(X, y=kind(Y))
    space = SemanticSpace().fit(X, Y)
    alone = clone(method).fit(space.transform(X), y=Y)
    scores = alone.decision_function(space.transform(X_new))
    np.testing.assert_allclose(pipeline.decision_function(X_new), scores, atol=1e-8)
    np.testing.assert_array_equal(pipeline.predict(X_new), alone.predict(space.transform(X_new)))
    assert hasattr(pipeline, "predict_proba") == hasattr(alone, "predict_proba")
    assert pipeline.score(X, kind(Y)) == pytest.approx(
        mean_average_precision(Y, pipeline.decision_function(X))
    )


@each_method
def test_data_frames_all_the_way(method, collection):
    X, Y, X_new = frames(collection)
    pipeline = pipeline_of(method).fit(X, Y)
    assert pipeline.classes_.tolist() == NAMES
    assert pipeline.predict(X_new).shape == (40, 6)
    assert 0 < pipeline.score(X, Y) <= 1
    embeddings = pipeline[:-1].transform(X_new[:1])
    (suggestions,) = pipeline[-1].suggest(embeddings, n=2)
    assert [s.name for s in suggestions] == [NAMES[s.label] for s in suggestions]


@each_kind
def test_a_grid_of_settings(kind, collection):
    X, Y, _ = collection
    grid = {
        "semanticspace__regularization": [0.1, 1.0],
        "neighborvoting__n_neighbors": [1, 15],
    }
    search = GridSearchCV(pipeline_of(NeighborVoting()), grid, cv=3).fit(X, kind(Y))
    assert search.best_params_["neighborvoting__n_neighbors"] == 15
    assert search.score(X, Y) == search.best_estimator_.score(X, Y)
    expected = cross_val_score(search.best_estimator_, X, Y, cv=3).mean()
    assert search.best_score_ == pytest.approx(expected)


@pytest.mark.parametrize("measure", ["MAP", "MiAP", "macro_precision", "image_recall", "n_plus"])
def test_a_grid_of_settings_by_any_measure(measure, collection):
    X, Y, _ = collection
    grid = {"neighborvoting__n_neighbors": [1, 15]}
    pipeline = pipeline_of(NeighborVoting())
    search = GridSearchCV(pipeline, grid, cv=3, scoring=scorer(measure, n=2)).fit(X, Y)
    values = np.empty((2, 3))
    for number, (old, new) in enumerate(KFold(3).split(X)):
        for i, k in enumerate((1, 15)):
            fitted = pipeline.set_params(neighborvoting__n_neighbors=k).fit(X[old], Y[old])
            values[i, number] = evaluate(Y[new], fitted.decision_function(X[new]), n=2)[measure]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], np.mean(values, axis=1))
    assert search.best_index_ == np.argmax(np.mean(values, axis=1))


def test_a_scorer_of_no_measure_is_refused():
    with pytest.raises(InvalidInput, match=r"one of image_precision, .*; found 'F1'"):
        scorer("F1")


@each_method
def test_cross_validated_predictions(method, collection):
    X, Y, _ = collection
    method = clone(method)
    wanted = ["predict", "decision_function"]
    wanted += ["predict_proba"] if hasattr(method, "predict_proba") else []
    for name in wanted:
        predictions = cross_val_predict(method, X, Y.astype(int), cv=3, method=name)
        assert predictions.shape == Y.shape
        first = clone(method).fit(X[50:], Y[50:])
        np.testing.assert_allclose(predictions[:50], getattr(first, name)(X[:50]), atol=1e-9)


def test_cross_validated_predictions_of_sparse_labels(collection):
    X, Y, _ = collection
    method = NeighborVoting(7)
    predictions = cross_val_predict(method, X, scipy.sparse.csr_array(Y), cv=3)
    np.testing.assert_array_equal(predictions, cross_val_predict(method, X, Y, cv=3))


@pytest.mark.parametrize(
    "estimator",
    [
        NeighborVoting(3, "euclidean", weighted=True),
        TagRelevance(3, "euclidean", weighted=True),
        TagProp(
            3,
            "distance",
            sigmoids=False,
            monotone=False,
            metric="euclidean",
        ),
        TwoPassKNN(
            3,
            2.0,
            form="authors",
            metric="euclidean",
        ),
        LinearSVM(0.1),
        RidgeTransfer(2.0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_a_clone_has_every_parameter(estimator, collection):
    fitted = estimator.fit(collection.X, collection.Y)
    again = clone(fitted)
    given, copied = fitted.get_params(deep=False), again.get_params(deep=False)
    defaults = type(estimator)().get_params(deep=False)
    for name, value in given.items():
        assert value != defaults[name], f"{name} is as it is by default: the test says nothing"
        assert copied[name] == value
    np.testing.assert_allclose(
        again.fit(collection.X, collection.Y).decision_function(collection.X_new),
        fitted.decision_function(collection.X_new),
        atol=1e-9,
    )


# --- scores ------------------------------------------------------------------------------


def test_a_score_is_the_mean_average_precision():
    X, Y, _ = make_collection(200)
    model = NeighborVoting(15).fit(X[:150], Y[:150])
    scores = model.decision_function(X[150:])
    assert model.score(X[150:], Y[150:]) == mean_average_precision(Y[150:], scores)
