"""Votes of neighbours against counts by hand."""

import numpy as np
import pytest
import scipy.sparse

import tagkin
from tagkin import load, save
from tagkin.errors import InvalidInput
from tagkin.neighbors import FaissNeighbors, nearest
from tagkin.transfer import NeighborVoting, TagRelevance
from tests.conftest import make_collection
from tests.transfer.contract.methods import needs_faiss


def nearest_first(z, Z, metric):
    """Images from the nearest to the farthest; of equal ones the lower index first."""
    if metric == "cosine":
        z, Z = z / np.linalg.norm(z), Z / np.linalg.norm(Z, axis=1, keepdims=True)
    distances = np.linalg.norm(Z - z, axis=1).round(10).tolist()
    return sorted(range(len(Z)), key=lambda j: (distances[j], j))


def votes_by_hand(Z_new, Z, Y, k, metric, users=None):
    """kₜ for each new image, and how many neighbours n_voters."""
    votes, n_voters = [], []
    for z in Z_new:
        voters = []
        for j in nearest_first(z, Z, metric):
            known = [] if users is None else [users[other] for other in voters]
            if users is None or users[j] not in known:
                voters.append(j)
            if len(voters) == k:
                break
        votes.append(Y[voters].sum(axis=0))
        n_voters.append(len(voters))
    return np.array(votes), np.array(n_voters)


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
    expected, _ = votes_by_hand(X_new, X, Y, k, metric)
    scores = NeighborVoting(k, metric).fit(X, Y).decision_function(X_new)
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("k", [1, 8, 60, 1000])
def test_relevance_is_votes_less_what_frequency_explains(with_twins, metric, k):
    X, Y, X_new = with_twins
    votes, n_voters = votes_by_hand(X_new, X, Y, k, metric)
    expected = votes - n_voters[:, None] * Y.sum(axis=0) / len(Y)
    scores = TagRelevance(k, metric).fit(X, Y).decision_function(X_new)
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    if k >= 60:
        np.testing.assert_allclose(scores, 0, atol=1e-12)


@pytest.mark.parametrize("k", [1, 4, 9, 30, 1000])
@pytest.mark.parametrize("n_users", [1, 6, 60])
def test_one_image_a_user(with_twins, k, n_users):
    X, Y, X_new = with_twins
    users = np.random.default_rng(3).integers(0, n_users, 60)
    votes, n_voters = votes_by_hand(X_new, X, Y, k, "cosine", users)
    assert (n_voters == min(k, len(set(users)))).all()
    model = TagRelevance(k).fit(X, Y, users=users)
    neighbors = model.kneighbors(X_new)
    assert ((neighbors.indices >= 0).sum(axis=1) == n_voters).all()
    expected = votes - n_voters[:, None] * Y.sum(axis=0) / len(Y)
    np.testing.assert_allclose(model.decision_function(X_new), expected, atol=1e-12)
    np.testing.assert_allclose(model.score_neighbors(*neighbors), expected, atol=1e-12)
    with tagkin.memory_budget(5000):
        np.testing.assert_allclose(model.decision_function(X_new), expected, atol=1e-12)


def test_long_lists_are_cut_to_one_image_a_user(with_twins):
    """Neighbours that are known may hold many images of one user."""
    X, Y, X_new = with_twins
    users = [f"user {i % 11}" for i in range(60)]
    among = nearest(X, X, 10, exclude=np.arange(60))
    model = TagRelevance(5).fit_neighbors(*among, Y, users=users)
    lists = nearest(X_new, X, 60)
    expected = TagRelevance(5).fit(X, Y, users=users).decision_function(X_new)
    np.testing.assert_array_equal(model.score_neighbors(*lists), expected)


def test_a_crowd_of_one_users_images_does_not_hide_the_others():
    """Ninety nearest images are one person's: the search goes on until K others are found."""
    Z = np.concatenate([np.full((90, 1), 1.0), np.arange(2.0, 12.0)[:, None]])
    Y = np.eye(11)[np.append(np.zeros(90, int), np.arange(1, 11))]
    users = np.append(np.zeros(90, int), np.arange(1, 11))
    model = TagRelevance(4, metric="euclidean").fit(Z, Y, users=users)
    neighbors = model.kneighbors(np.array([[0.9]]))
    assert neighbors.indices.tolist() == [[0, 90, 91, 92]]
    np.testing.assert_allclose(neighbors.distances, [[0.1, 1.1, 2.1, 3.1]])


@needs_faiss
def test_one_image_a_user_with_another_index(with_twins):
    X, Y, X_new = with_twins
    X = X + 1e-3 * np.random.default_rng(0).standard_normal(X.shape)  # FAISS chooses among twins
    users = np.arange(60) % 7
    exact = TagRelevance(5).fit(X, Y, users=users)
    model = TagRelevance(5, index=FaissNeighbors()).fit(X, Y, users=users)
    np.testing.assert_array_equal(model.kneighbors(X_new).indices, exact.kneighbors(X_new).indices)


def test_users_of_images_that_come_later(with_twins, tmp_path):
    X, Y, X_new = with_twins
    users = np.array([f"user {i % 9}" for i in range(60)])
    whole = TagRelevance(6).fit(X, Y, users=users)
    grown = TagRelevance(6).fit(X[:10], Y[:10], users=users[:10])
    for rows in (slice(10, 13), slice(13, 60)):
        grown.partial_fit(X[rows], Y[rows], users=users[rows])
    expected = whole.decision_function(X_new)
    np.testing.assert_array_equal(grown.decision_function(X_new), expected)
    again = load(save(grown, tmp_path / "model"))
    np.testing.assert_array_equal(again.decision_function(X_new), expected)
    again.partial_fit(X[:3], Y[:3], users=["user 0", "user 1", "someone else"])
    assert len(set(again.users_)) == 10


def test_users_must_fit_the_images(with_twins):
    X, Y, X_new = with_twins
    users = np.arange(60)
    with pytest.raises(InvalidInput, match="59 users for 60 images"):
        TagRelevance(5).fit(X, Y, users=users[1:])
    model = TagRelevance(5).fit(X, Y, users=users)
    before = model.decision_function(X_new)
    for bad, message in ((None, "no users for added images.* with users"), (users, "60 users")):
        with pytest.raises(InvalidInput, match=message):
            model.partial_fit(X[:5], Y[:5], users=bad)
    with pytest.raises(InvalidInput, match="fitted without users"):
        TagRelevance(5).fit(X, Y).partial_fit(X[:5], Y[:5], users=users[:5])
    np.testing.assert_array_equal(model.decision_function(X_new), before)
    model.fit(X, Y)
    assert model.users_ is None


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
