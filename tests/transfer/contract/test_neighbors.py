"""What every method by neighbours keeps: scores come from them, and they are the evidence."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tagkin
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors, nearest
from tagkin.paper import NeighborVoting, TagProp
from tagkin.transfer import KinReadout
from tests.conftest import assert_same
from tests.transfer.contract.methods import (
    each_neighbor_method,
    each_searched_method,
)


@each_neighbor_method
def test_scores_come_from_the_neighbours(fitted, collection):
    X_new = collection.X_new
    neighbors = fitted.kneighbors(X_new)
    np.testing.assert_array_equal(neighbors.distances, np.sort(neighbors.distances, axis=1))
    np.testing.assert_array_equal(np.isinf(neighbors.distances), neighbors.indices < 0)
    scores = fitted.decision_function(X_new)
    tolerance = 1e-11 if isinstance(fitted, KinReadout) else 0  # of products
    assert_same(fitted.score_neighbors(*neighbors, X_new), scores, tolerance)
    with tagkin.memory_budget(2000):
        assert_same(fitted.score_neighbors(*neighbors, X_new), scores, tolerance)
    lists = [part.tolist() for part in neighbors]
    assert_same(fitted.score_neighbors(*lists, X_new), scores, tolerance)


@each_neighbor_method
def test_neighbours_that_are_known_serve_as_places_do(fitted, method, collection):
    X, Y, X_new = collection
    known = nearest(X, X, 149, metric=method.metric, exclude=np.arange(150))
    model = clone(method).fit_neighbors(*known, Y)
    to_new = nearest(X_new, X, 150, metric=method.metric)
    if isinstance(method, KinReadout):  # without embeddings, votes alone decide
        assert model.readout_ is None
        assert_same(model.score_neighbors(*to_new), fitted.components(X_new).votes)
    else:
        assert_same(model.score_neighbors(*to_new), fitted.decision_function(X_new))
    for call in (model.kneighbors, model.decision_function):
        with pytest.raises(NotFittedError, match="has no embeddings to search"):
            call(X_new)
    with pytest.raises(NotFittedError, match="has no embeddings to search"):
        model.partial_fit(X_new, Y[:40])


@each_neighbor_method
def test_padding_counts_for_nothing(fitted, collection):
    """−1 at the end or in between, at whatever distance, is as if it were not there."""
    neighbors = fitted.kneighbors(collection.X_new)
    short = Neighbors(neighbors.indices[:, :4].copy(), neighbors.distances[:, :4].copy())
    filled = Neighbors(np.full((40, 6), -1), np.full((40, 6), np.nan))
    filled.indices[:, :4], filled.distances[:, :4] = short
    np.testing.assert_allclose(
        fitted.score_neighbors(*filled), fitted.score_neighbors(*short), rtol=1e-12
    )
    nobody = fitted.score_neighbors(np.full((2, 3), -1), np.full((2, 3), np.inf))
    assert np.isfinite(nobody).all()
    np.testing.assert_array_equal(nobody[0], nobody[1])
    in_between = Neighbors(short.indices.copy(), short.distances.copy())
    in_between.indices[:, 1], in_between.distances[:, 1] = -1, np.inf
    assert np.isfinite(fitted.score_neighbors(*in_between)).all()


BAD_NEIGHBORS = [
    ([[0, 150]], [[0.1, 0.2]], "index 150 among 150 images"),
    ([[0, -2]], [[0.1, 0.2]], "index -2 among 150"),
    ([[0.0, 1.0]], [[0.1, 0.2]], "whole numbers; found float64"),
    ([[0, 1]], [[0.1]], r"found \(1, 2\) and \(1, 1\)"),
    ([0, 1], [0.1, 0.2], "the same shape"),
    ([[0, 1]], [[0.1, np.nan]], "NaN or infinity among the distances"),
    ([[0, 1]], [[0.1, np.inf]], "NaN or infinity among the distances"),
]


def assert_refused(message, call, *arguments):
    with pytest.raises(InvalidInput, match=message):
        call(*arguments)


@each_neighbor_method
def test_bad_neighbours(fitted):
    for indices, distances, message in BAD_NEIGHBORS:
        assert_refused(message, fitted.score_neighbors, np.array(indices), np.array(distances))


@each_searched_method
def test_a_fit_from_neighbours_forgets_the_places(fitted, collection):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    fitted.fit(pandas.DataFrame(collection.X, columns=list("abcdefghijkl")), collection.Y)
    known = nearest(collection.X, collection.X, 20, exclude=np.arange(150))
    fitted.fit_neighbors(*known, collection.Y)
    assert not hasattr(fitted, "n_features_in_")
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.index_ is None


# --- evidence ---


@each_neighbor_method
def test_shares_add_up_to_the_score_and_only_carriers_have_one(fitted, collection):
    X_new, Y = collection.X_new, collection.Y
    scores, neighbors = fitted.decision_function(X_new), fitted.kneighbors(X_new)
    evidence = fitted.explain(X_new, range(6))
    for i in range(40):
        far = dict(zip(neighbors.indices[i].tolist(), neighbors.distances[i].tolist(), strict=True))
        carriers = {t: {j for j in far if j >= 0 and Y[j, t]} for t in range(6)}
        assert [e.label for e in evidence[i]] == list(range(6))
        for t, e in enumerate(evidence[i]):
            assert e.score == pytest.approx(scores[i, t], rel=1e-9)
            assert set(e.indices.tolist()) <= carriers[t]
            assert len(set(e.indices.tolist())) == len(e.indices)
            assert e.distances.tolist() == [far[j] for j in e.indices.tolist()]
            if len(e.indices):
                assert e.shares.sum() + e.readout == pytest.approx(e.score, rel=1e-12)
                assert (np.diff(np.abs(e.shares)) <= 0).all()
                assert set(np.sign([*e.shares, e.readout])) <= {np.sign(e.score), 0}
            if not isinstance(fitted, TagProp):  # a weight that was learned may be 0
                assert set(e.indices.tolist()) == carriers[t]


@each_neighbor_method
def test_what_is_suggested_can_be_explained(fitted, collection):
    X_new = collection.X_new[:15]
    suggestions = fitted.suggest(X_new, 3)
    evidence = fitted.explain(X_new, suggestions)
    with tagkin.memory_budget(1000):
        in_blocks = fitted.explain(X_new, suggestions)
    for suggested, explained, again in zip(suggestions, evidence, in_blocks, strict=True):
        assert [(e.label, e.name) for e in explained] == [(s.label, s.name) for s in suggested]
        assert_same([e.score for e in explained], [s.score for s in suggested], 1e-9)
        for first, other in zip(explained, again, strict=True):
            assert_same(first.shares, other.shares, 1e-12)
    columns = np.array([[s.label for s in row] for row in suggestions])
    by_column = fitted.explain(X_new, columns)
    assert [[e.label for e in row] for row in by_column] == columns.tolist()
    assert fitted.explain(X_new[:1], []) == [[]]


BAD_LABELS = [
    ([6], "Unknown label 6: labels are the columns 0 to 5 of Y"),
    ([-1], "Unknown label -1"),
    (["dog"], "Unknown label 'dog'"),
    ([[0], ["dog"]], "Unknown label 'dog'"),
    ([[[0]], [[1]]], "Unknown label"),
    ([True], "Unknown label True"),
    ([0.0], "Unknown label 0.0"),
    ("dog", "a list of labels"),
    (3, "a list of labels"),
    ([[0], [1], [2]], "3 lists of labels for 2 images"),
]


def test_labels_that_cannot_be_explained(collection):
    model = NeighborVoting(3).fit(collection.X, collection.Y)
    for labels, message in BAD_LABELS:
        assert_refused(message, model.explain, collection.X_new[:2], labels)
