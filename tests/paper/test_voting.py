"""Votes of neighbours against counts by hand."""

import numpy as np
import pytest
import scipy.sparse

from tagkin.errors import InvalidInput
from tagkin.paper import NeighborVoting, TagRelevance
from tests.conftest import make_collection


def nearest_first(z, Z, metric):
    """Images from the nearest to the farthest; of equal ones the lower index first."""
    if metric == "cosine":
        z, Z = z / np.linalg.norm(z), Z / np.linalg.norm(Z, axis=1, keepdims=True)
    distances = np.linalg.norm(Z - z, axis=1).round(10).tolist()
    return sorted(range(len(Z)), key=lambda j: (distances[j], j))


def votes_by_hand(Z_new, Z, Y, k, metric):
    """kₜ for each new image."""
    return np.array([Y[nearest_first(z, Z, metric)[:k]].sum(axis=0) for z in Z_new])


@pytest.fixture
def with_twins():
    """A collection in which every fourth image occurs again, with other labels."""
    X, Y, X_new = make_collection(60)
    X[1::4] = X[::4]
    return X, Y, X_new


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("k", [1, 8, 60, 1000])
def test_voting_counts_the_neighbours_that_carry_a_label(with_twins, metric, k):
    X, Y, X_new = with_twins
    expected = votes_by_hand(X_new, X, Y, k, metric)
    scores = NeighborVoting(k, metric).fit(X, Y).decision_function(X_new)
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("k", [1, 8, 60, 1000])
def test_relevance_is_votes_less_what_frequency_explains(with_twins, metric, k):
    X, Y, X_new = with_twins
    votes = votes_by_hand(X_new, X, Y, k, metric)
    expected = votes - min(k, len(Y)) * Y.sum(axis=0) / len(Y)
    scores = TagRelevance(k, metric).fit(X, Y).decision_function(X_new)
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    if k >= 60:
        np.testing.assert_allclose(scores, 0, atol=1e-12)


def test_both_rank_images_the_same_way(collection):
    """Relevance shifts a whole label, so that at equal K the order of images is that of votes."""
    X, Y, X_new = collection
    votes = NeighborVoting(9).fit(X, Y).decision_function(X_new)
    relevance = TagRelevance(9).fit(X, Y).decision_function(X_new)
    np.testing.assert_allclose(np.diff(votes - relevance, axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("method", [NeighborVoting, TagRelevance])
def test_weights_count_where_they_are_asked_for(method):
    X, Y, X_new = make_collection(n=60)
    weights = Y * np.random.default_rng(0).random(Y.shape).astype(np.float32)
    model = method(7, weighted=True).fit(X, scipy.sparse.csr_array(weights))
    near = model.kneighbors(X_new).indices
    expected = weights[near].sum(axis=1)
    if method is TagRelevance:
        expected -= 7 * weights.mean(axis=0)
    np.testing.assert_allclose(model.decision_function(X_new), expected, atol=1e-5)
    label = int(Y[near[0]].sum(axis=0).argmax())
    (evidence,) = model.explain(X_new[:1], [label])[0]
    carriers = near[0][Y[near[0], label] > 0]
    assert set(evidence.indices) == set(carriers)
    np.testing.assert_allclose(evidence.shares.sum(), evidence.score, atol=1e-6)
    raw = weights[evidence.indices, label]
    np.testing.assert_allclose(evidence.shares, raw * evidence.score / raw.sum(), rtol=1e-5)
    assert (np.diff(raw) <= 0).all()
    with pytest.raises(InvalidInput, match=r"Row \d+, column \d+ of Y is 0\."):
        method(7).fit(X, weights)
