"""Suggested labels as a matrix, their probabilities, and their names."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tagkin import load, save
from tagkin.errors import InvalidInput
from tagkin.neighbors import nearest
from tagkin.paper import NeighborVoting, TagProp
from tagkin.transfer import KinReadout, LogisticReadout
from tests.conftest import needs_torch
from tests.transfer.contract.methods import methods

NAMES = ["beach", "boat", "dog", "harbour", "night", "people"]
WITH_PROBABILITIES = methods("voting", "tagprop", "tagprop, no sigmoids")
WITHOUT = [*methods("relevance", "2pknn", "svm", "ridge"), NeighborVoting(7, weighted=True)]

each_method = pytest.mark.parametrize("method", WITH_PROBABILITIES + WITHOUT, ids=repr)


@pytest.fixture
def fitted(method, collection):
    return clone(method).fit(collection.X, collection.Y)


@pytest.fixture
def named(collection):
    """Y as a data frame."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    return pandas.DataFrame(collection.Y, columns=NAMES)


# --- predict -----------------------------------------------------------------------------


@each_method
def test_the_n_best_as_a_matrix(fitted, collection):
    for n in (1, 3, 10):
        predictions = fitted.predict(collection.X_new, n=n)
        assert predictions.dtype == np.int64
        assert predictions.sum(axis=1).tolist() == [min(n, 6)] * 40
        for row, suggested in zip(predictions, fitted.suggest(collection.X_new, n), strict=True):
            assert set(np.flatnonzero(row)) == {s.label for s in suggested}


@pytest.mark.parametrize("method", WITHOUT, ids=repr)
def test_without_probabilities_the_five_best_are_predicted(fitted, collection):
    assert not hasattr(fitted, "predict_proba")
    np.testing.assert_array_equal(
        fitted.predict(collection.X_new), fitted.predict(collection.X_new, n=5)
    )


@pytest.mark.parametrize("method", WITH_PROBABILITIES, ids=repr)
def test_with_probabilities_what_is_probable_is_predicted(fitted, collection):
    X_new = collection.X_new
    P = fitted.predict_proba(X_new)
    assert P.shape == (40, 6)
    assert ((P >= 0) & (P <= 1)).all()
    np.testing.assert_array_equal(fitted.predict(X_new), P >= 0.5)
    least = np.linspace(0.1, 0.6, 6) if fitted.n_labels_ == 6 else 0.4
    scores = fitted.decision_function(X_new)
    suggested = fitted.suggest(X_new, min_score=least)
    assert [{s.label for s in row} for row in suggested] == [
        set(np.flatnonzero(row).tolist()) for row in scores >= least
    ]
    both = fitted.suggest(X_new, 1, min_score=0.3)
    assert [len(row) for row in both] == (scores.max(axis=1) >= 0.3).tolist()


def test_a_share_of_the_neighbours_is_a_probability(collection):
    model = NeighborVoting(7).fit(collection.X, collection.Y)
    neighbors = model.kneighbors(collection.X_new).indices
    np.testing.assert_allclose(
        model.predict_proba(collection.X_new), collection.Y[neighbors].mean(axis=1)
    )


def test_probabilities_of_tagprop_are_as_frequent_as_the_labels():
    """Its likelihood lets present labels weigh as much as absent ones; probabilities do not."""
    rng = np.random.default_rng(0)
    Y = (rng.random((1500, 6)) < 0.1).astype(float)
    X = Y @ rng.standard_normal((6, 12)) + rng.standard_normal((1500, 12))
    model = TagProp(30).fit(X[:1000], Y[:1000])
    P, scores = model.predict_proba(X[1000:]), model.decision_function(X[1000:])
    frequency = Y[1000:].mean(axis=0)
    np.testing.assert_allclose(P.mean(axis=0), frequency, atol=0.04)
    assert (scores.mean(axis=0) > frequency + 0.1).all()
    for t in range(6):  # the order of the images stays
        assert (np.diff(P[np.argsort(scores[:, t]), t]) >= 0).all()


@needs_torch
@each_method
def test_predictions_are_where_the_embeddings_are(fitted, collection):
    import torch

    X_new = collection.X_new
    model = clone(fitted).fit(torch.from_numpy(collection.X), collection.Y)
    predictions = model.predict(torch.from_numpy(X_new))
    assert isinstance(predictions, torch.Tensor)
    np.testing.assert_array_equal(predictions.numpy(), fitted.predict(X_new))
    assert model.score(torch.from_numpy(X_new), collection.Y[:40]) == pytest.approx(
        fitted.score(X_new, collection.Y[:40])
    )


@needs_torch
@pytest.mark.parametrize("method", methods("voting", "tagprop", "2pknn"), ids=repr)
def test_the_way_from_numpy_to_torch_is_named(fitted, collection):
    import torch

    with pytest.raises(InvalidInput, match=r"tensor.cpu\(\).numpy\(\).*tagkin.load\(folder, dev"):
        fitted.predict(torch.from_numpy(collection.X_new))


# --- names -------------------------------------------------------------------------------


@each_method
def test_labels_have_the_names_of_a_data_frame(method, named, collection, tmp_path):
    X, Y, X_new = collection
    model = clone(method).fit(X, named)
    assert model.classes_.tolist() == NAMES
    for row in model.suggest(X_new, 3):
        assert [s.name for s in row] == [NAMES[s.label] for s in row]
    again = load(save(model, tmp_path / "model"))
    assert again.classes_.tolist() == NAMES
    assert again.suggest(X_new[:1])[0][0].name == model.suggest(X_new[:1])[0][0].name
    model.fit(X, Y)
    assert model.classes_.tolist() == [0, 1, 2, 3, 4, 5]
    assert model.suggest(X_new[:1])[0][0].name == model.suggest(X_new[:1])[0][0].label


@each_method
def test_labels_without_a_fit_have_no_names(method):
    with pytest.raises(NotFittedError):
        clone(method).classes_  # noqa: B018
    assert not hasattr(clone(method), "classes_")


def test_evidence_is_asked_for_and_given_by_name(named, collection):
    model = NeighborVoting(7).fit(collection.X, named)
    ((dog, boat),) = model.explain(collection.X_new[:1], ["dog", "boat"])
    assert (dog.label, dog.name, boat.label, boat.name) == (2, "dog", 1, "boat")
    with pytest.raises(InvalidInput, match=r"Unknown label 'cat'.*or their names"):
        model.explain(collection.X_new[:1], ["cat"])


@pytest.mark.parametrize("method", WITH_PROBABILITIES + WITHOUT, ids=repr)
def test_columns_in_another_order_are_no_labels_to_score_by(method, named, collection):
    model = clone(method).fit(collection.X, named)
    assert model.score(collection.X, named) == model.score(collection.X, collection.Y)
    with pytest.raises(InvalidInput, match="Column 0 of Y is 'people' where 'beach' was fitted"):
        model.score(collection.X, named[NAMES[::-1]])


def test_what_is_rejected_has_the_columns_of_the_labels(named, collection):
    X, turned = collection.X, (1 - named)[NAMES[::-1]]
    model = KinReadout(7).fit(X, named, rejected=1 - named)
    for learn in (LogisticReadout().fit, model.fit):
        with pytest.raises(InvalidInput, match="Column 0 of Y"):
            learn(X, named, rejected=turned)


def test_names_of_labels_that_come_later(named, collection):
    X, Y, X_new = collection
    model = NeighborVoting(7).fit(X, named)
    more = named[:40].assign(snow=1)
    with pytest.raises(InvalidInput, match=r"1 new label\(s\) without a name"):
        model.partial_fit(X_new, more.to_numpy())
    with pytest.raises(InvalidInput, match="Column 0 of Y is 'snow' where 'beach'"):
        model.partial_fit(X_new, more[["snow", *NAMES]])
    assert model.labels_.shape == (150, 6)
    model.partial_fit(X_new, Y[:40])
    model.partial_fit(X_new, more)
    assert model.classes_.tolist() == [*NAMES, "snow"]
    with pytest.raises(InvalidInput, match="Column 6 of Y is 'rain' where 'snow'"):
        model.partial_fit(X_new, more.rename(columns={"snow": "rain"}))


def test_names_with_known_neighbours(named, collection):
    known = nearest(collection.X, collection.X, 7, exclude=np.arange(150))
    assert NeighborVoting(7).fit_neighbors(*known, named).classes_.tolist() == NAMES


def test_a_name_names_one_label(named, collection):
    twice = named.set_axis([*NAMES[:5], "dog"], axis=1)
    with pytest.raises(InvalidInput, match="2 columns named 'dog'"):
        NeighborVoting(7).fit(collection.X, twice)


def test_columns_that_are_no_text_are_numbers(named, collection):
    numbered = named.set_axis(range(10, 16), axis=1)
    assert NeighborVoting(7).fit(collection.X, numbered).classes_.tolist() == list(range(6))


# --- what is no label matrix -------------------------------------------------------------


TAGS = {
    "lists": [["dog", "beach"], ["dog"], []] * 50,
    "sets": [None, ["dog"], {"beach"}] * 50,
    "one each": np.array(["dog", "beach", "sea"] * 50),
    "two each": np.array([["dog", "sea"]] * 150),
    "objects": np.array([["dog"], ["sea", "beach"], None] * 50, dtype=object),
}


def assert_tags_are_refused(kind, fit, X):
    with pytest.raises(InvalidInput, match=r"holds tags.*tagkin.Vocabulary\(\).fit_transform\(Y\)"):
        fit(X, TAGS[kind])


@each_method
def test_tags_themselves_name_the_way_to_a_matrix(method, collection):
    for kind in TAGS:
        assert_tags_are_refused(kind, clone(method).fit, collection.X)


@each_method
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_minus_one_for_absent_labels_is_refused(method, kind, collection):
    signed = 2 * collection.Y - 1
    row = int(np.argmax((signed < 0).any(axis=1)))
    message = f"negative entry in row {row} of Y.*If -1 stands for an absent label, pass Y > 0"
    with pytest.raises(InvalidInput, match=message):
        clone(method).fit(collection.X, kind(signed))
    with pytest.raises(InvalidInput, match=message):
        clone(method).fit(collection.X, collection.Y).score(collection.X, kind(signed))
