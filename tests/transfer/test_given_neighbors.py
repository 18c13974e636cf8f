"""Explaining and relabelling with neighbours that are known already."""

import numpy as np
import pytest

from tagkin.arrays.labels import as_labels
from tagkin.neighbors import Neighbors
from tagkin.paper import NeighborVoting, TagProp, TagRelevance, TwoPassKNN

METHODS = [NeighborVoting(7), TagRelevance(7), TagProp(7), TagProp(7, weights="distance")]


def data(seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.random((60, 5)) < 0.3
    return Y @ rng.random((5, 6)) + 0.3 * rng.random((60, 6)), Y


@pytest.mark.parametrize("method", [*METHODS, TwoPassKNN(3)], ids=repr)
def test_given_neighbours_explain_as_found_ones_do(method):
    Z, Y = data()
    method.fit(Z[:50], Y[:50])
    labels = [[0, 3]] * 9 + [[4]]
    explanation = method.explain(Z[50:], labels)
    given = method.model_.explain(labels, range(Y.shape[1]), neighbors=method.kneighbors(Z[50:]))
    for first, other in zip(explanation, given, strict=True):
        for a, b in zip(first, other, strict=True):
            assert a.label == b.label
            assert a.score == pytest.approx(b.score)
            np.testing.assert_array_equal(a.indices, b.indices)
            np.testing.assert_allclose(a.shares, b.shares)


def test_missing_neighbours_do_not_count():
    Z, Y = data()
    method = NeighborVoting(7).fit(Z, Y)
    indices, distances = method.kneighbors(Z[:4])
    indices[:, -3:], distances[:, -3:] = -1, np.inf
    neighbors = Neighbors(indices, distances)
    explained = method.model_.explain([[1]] * 4, range(Y.shape[1]), neighbors=neighbors)
    for i, (evidence,) in enumerate(explained):
        carriers = [j for j in indices[i, :4] if Y[j, 1]]
        assert evidence.indices.tolist() == carriers
        assert evidence.score == len(carriers)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_other_labels_for_the_same_images(method):
    Z, Y = data()
    other = np.roll(Y, 1, axis=1)
    method.fit(Z[:50], Y[:50])
    neighbors = method.kneighbors(Z[50:])
    method.model_ = method.model_.relabel(as_labels(other[:50]))
    np.testing.assert_array_equal(method.labels_.toarray(), other[:50])
    np.testing.assert_array_equal(method.kneighbors(Z[50:]).indices, neighbors.indices)
    if isinstance(method, NeighborVoting) and not isinstance(method, TagRelevance):
        fresh = NeighborVoting(7).fit(Z[:50], other[:50])
        np.testing.assert_array_equal(
            method.decision_function(Z[50:]), fresh.decision_function(Z[50:])
        )
