"""TagProp against the dense formula with an N×K×D array, numerical derivatives, real data."""

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy.special import expit
from sklearn.base import clone

from tagkin.arrays.labels import as_labels
from tagkin.neighbors import nearest
from tagkin.paper import TagProp
from tagkin.paper.likelihood import (
    Sigmoids,
    distance_loss,
    fit_label_sigmoids,
    likelihood_loss,
    rank_loss,
    rank_weights,
    sigmoid_problem,
)
from tagkin.paper.pairs import Pairs
from tagkin.transfer.neighbor_lists import distance_weights
from tests.conftest import make_collection

N, K, D = 40, 6, 5
EPSILON = 1e-3


def made(*, missing=True, seed=0):
    """Neighbours, distances and labels of N images; some neighbours are missing."""
    X, Y, _ = make_collection(N, n_labels=D, seed=seed)
    Y[:, 3] *= np.arange(N) < 4  # a rare label
    neighbors = nearest(X, X, K, metric="euclidean", exclude=np.arange(N))
    indices, distances = neighbors.indices.copy(), neighbors.distances.copy()
    if missing:
        indices[::7, -2:], distances[::7, -2:] = -1, np.inf
        indices[5], distances[5] = -1, np.inf  # an image without any
    return indices, distances, Y


def dense_p(weights, indices, Y):
    """p = Σₖ πₖ y(k, t), shape (N, D)."""
    votes = np.where((indices >= 0)[:, :, None], Y[indices], 0)  # N×K×D
    return np.einsum("nk,nkd->nd", np.broadcast_to(weights, indices.shape), votes)


def dense_loss(P, Y):
    """−Σ c log P, with c = 1/(2n₊) on present and 1/(2n₋) on absent entries."""
    present = Y > 0
    loss = -np.log(P[present]).sum() / (2 * present.sum())
    return loss - np.log(1 - P[~present]).sum() / (2 * (~present).sum())


def dense_predictions(p, sigmoids):
    if sigmoids is None:
        return EPSILON / 2 + (1 - EPSILON) * p
    return expit(sigmoids[0] * p + sigmoids[1])


def softmax(x):
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def prior(slopes, Y):
    """Slopes of 100 cost as much as a present label with the odds e^½."""
    return 0.5 / Y.sum() * (np.asarray(slopes) ** 2).sum() / (2 * 100**2)


def some_sigmoids():
    rng = np.random.default_rng(5)
    return Sigmoids(rng.uniform(-1, 4, D), rng.uniform(-3, 1, D))


def slope_by_differences(function, x, step=1e-6):
    return np.array(
        [(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))]
    )


def pairs_of(indices, Y, by_rank):
    return Pairs.of(indices, scipy.sparse.csr_array(Y.astype(np.float32)), by_rank=by_rank)


each_kind = pytest.mark.parametrize("sigmoids", [None, some_sigmoids()], ids=["bare", "sigmoids"])


# --- the likelihood ---


@each_kind
def test_the_likelihood_by_rank_is_the_dense_one(sigmoids):
    indices, _, Y = made()
    penalties = np.random.default_rng(1).standard_normal(K)
    value, _ = rank_loss(penalties, pairs_of(indices, Y, True), sigmoids)
    p = dense_p(softmax(-penalties), indices, Y)
    assert value == pytest.approx(dense_loss(dense_predictions(p, sigmoids), Y), rel=1e-12)


@each_kind
@pytest.mark.parametrize("decay", [0.0, 0.4, 50.0])
def test_the_likelihood_by_distance_is_the_dense_one(sigmoids, decay):
    indices, distances, Y = made()
    value, _ = distance_loss(np.array([decay]), pairs_of(indices, Y, False), distances, sigmoids)
    weights = np.zeros(indices.shape)
    for i, (row, far) in enumerate(zip(indices, distances, strict=True)):
        if (row >= 0).any():
            weights[i, row >= 0] = softmax(-decay * far[row >= 0])
    np.testing.assert_allclose(distance_weights(distances, decay), weights, atol=1e-14)
    p = dense_p(weights, indices, Y)
    assert value == pytest.approx(dense_loss(dense_predictions(p, sigmoids), Y), rel=1e-12)


@each_kind
def test_gradients_by_the_weights(sigmoids):
    indices, distances, Y = made()
    by_rank, by_distance = (pairs_of(indices, Y, kind) for kind in (True, False))
    penalties = np.random.default_rng(1).standard_normal(K)
    _, gradient = rank_loss(penalties, by_rank, sigmoids)
    numerical = slope_by_differences(lambda x: rank_loss(x, by_rank, sigmoids)[0], penalties)
    np.testing.assert_allclose(gradient, numerical, atol=1e-9)
    assert np.abs(gradient).min() > 1e-6
    for decay in (0.01, 0.7):
        arguments = (by_distance, distances, sigmoids)
        _, gradient = distance_loss(np.array([decay]), *arguments)
        numerical = slope_by_differences(
            lambda x, arguments=arguments: distance_loss(x, *arguments)[0], np.array([decay])
        )
        np.testing.assert_allclose(gradient, numerical, atol=1e-9)
        assert abs(gradient[0]) > 1e-5


def test_the_likelihood_of_many_pairs():
    """9,900 or so, of 500 images and 20 labels."""
    rng = np.random.default_rng(0)
    Y = (rng.random((500, 20)) < 0.4).astype(float)
    indices = rng.integers(0, 500, (500, 9))
    sigmoids = Sigmoids(rng.uniform(-1, 4, 20), rng.uniform(-3, 1, 20))
    pairs, penalties = pairs_of(indices, Y, True), rng.standard_normal(9)
    value, gradient = rank_loss(penalties, pairs, sigmoids)
    p = dense_p(softmax(-penalties), indices, Y)
    assert value == pytest.approx(dense_loss(dense_predictions(p, sigmoids), Y), rel=1e-12)
    numerical = slope_by_differences(lambda x: rank_loss(x, pairs, sigmoids)[0], penalties)
    np.testing.assert_allclose(gradient, numerical, atol=1e-9)


@pytest.mark.parametrize("by_rank", [True, False])
def test_the_memory_of_the_table(by_rank):
    """As the docstring of TagProp says, in bytes for each label of a neighbour."""
    rng = np.random.default_rng(0)
    Y = scipy.sparse.csr_array((rng.random((2000, 100)) < 0.05).astype(np.float32))
    indices = rng.integers(0, 2000, (2000, 50))
    n_entries = int(np.diff(Y.indptr)[indices].sum())
    tracemalloc.start()
    pairs = Pairs.of(indices, Y, by_rank=by_rank)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(pairs.slot) == n_entries
    assert pairs.slot.nbytes + pairs.pair.nbytes == 16 * n_entries
    assert peak < 52 * n_entries


def test_gradient_and_hessian_of_the_sigmoids():
    indices, _, Y = made()
    pairs = pairs_of(indices, Y, True)
    p = pairs.votes(rank_weights(np.arange(K) / 3))
    a, b = some_sigmoids()

    def problem(change_a, change_b):
        return sigmoid_problem(pairs, p, Sigmoids(a + change_a, b + change_b))

    value, gradient, curvature = problem(0, 0)
    whole, _ = likelihood_loss(p, pairs, Sigmoids(a, b))
    assert value.sum() == pytest.approx(whole + prior(a, Y), rel=1e-12)
    step = 1e-6
    for place, change in enumerate(((step, 0), (0, step))):
        up, down = problem(*change), problem(*(-c for c in change))
        np.testing.assert_allclose(gradient[place], (up[0] - down[0]) / (2 * step), atol=1e-9)
        second = (up[1] - down[1]) / (2 * step)
        np.testing.assert_allclose(curvature[[place, place + 1]], second, atol=1e-9)


# --- the optimum ---


def fitted(missing=False, **parameters):
    indices, distances, Y = made(missing=missing)
    return TagProp(K, **parameters).fit_neighbors(indices, distances, Y), indices, distances, Y


def test_no_weights_by_rank_are_better():
    model, indices, _, Y = fitted(sigmoids=False)

    def loss(penalties):
        return dense_loss(dense_predictions(dense_p(softmax(-penalties), indices, Y), None), Y)

    best = min(
        scipy.optimize.minimize(loss, np.random.default_rng(s).standard_normal(K), tol=1e-9).fun
        for s in range(3)
    )
    assert model.loss_ == pytest.approx(best, abs=1e-7)
    assert loss(-np.log(model.rank_weights_)) == pytest.approx(model.loss_, abs=1e-12)
    assert model.rank_weights_.sum() == pytest.approx(1)
    assert model.slopes_ is None


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_no_decay_with_distance_is_better(scale):
    indices, distances, Y = made(missing=False)
    model = TagProp(K, "distance", sigmoids=False).fit_neighbors(indices, scale * distances, Y)

    def loss(decay):
        p = dense_p(softmax(-decay * distances), indices, Y)
        return dense_loss(dense_predictions(p, None), Y)

    grid = np.linspace(0, 20, 2001)
    best = grid[np.argmin([loss(decay) for decay in grid])]
    assert 0 < best < 20
    assert model.loss_ <= loss(best) + 1e-9
    assert model.decay_ * scale == pytest.approx(best, abs=0.02)


def test_decay_is_never_negative():
    """Where far neighbours are the better ones, all count the same."""
    indices, distances, Y = made(missing=False)
    turned = indices[:, ::-1]
    model = TagProp(K, "distance", sigmoids=False).fit_neighbors(turned, distances, Y)
    straight = TagProp(K, "distance", sigmoids=False).fit_neighbors(indices, distances, Y)
    assert straight.decay_ > 0
    assert model.decay_ == 0


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("missing", [True, False])
def test_no_sigmoids_are_better(monotone, missing):
    indices, _, Y = made(missing=missing)
    pairs = pairs_of(indices, Y, True)
    weights = rank_weights(np.arange(K) / 3)
    fitted = fit_label_sigmoids(pairs, pairs.votes(weights), monotone=monotone)
    p, n_present = dense_p(weights, indices, Y), Y.sum()
    for t in range(D):
        cost = np.where(Y[:, t] > 0, 0.5 / n_present, 0.5 / (Y.size - n_present))
        sign = 2 * Y[:, t] - 1

        def loss(x, cost=cost, sign=sign, p=p[:, t]):
            return cost @ np.logaddexp(0, -sign * (x[0] * p + x[1])) + prior(x[0], Y)

        best = scipy.optimize.minimize(
            loss, [0.5, 0.0], bounds=[(0 if monotone else -500, 500), (None, None)], tol=1e-10
        )
        assert loss((fitted.slope[t], fitted.offset[t])) <= best.fun + 1e-7
    assert (fitted.slope >= 0).all() or not monotone


def test_slopes_stay_moderate_if_nearly_all_images_are_neighbours():
    """Votes are nearly the same everywhere: without a prior, the largest slope is 3,130."""
    X, Y, _ = make_collection(40)
    model = TagProp(35).fit(X, Y)
    assert 0 < model.slopes_.max() < 300


def test_a_label_that_goes_with_fewer_neighbours():
    """Neighbours are of the other half, so that the label is where they do not carry it."""
    rng = np.random.default_rng(0)
    Y = (np.arange(40) % 2 == (rng.random(40) < 0.2))[:, None]
    indices = (np.arange(40)[:, None] + np.array([1, 3, 5])) % 40
    free, constrained = (
        TagProp(3, monotone=monotone).fit_neighbors(indices, np.ones((40, 3)), Y)
        for monotone in (False, True)
    )
    assert free.slopes_[0] < 0
    assert constrained.slopes_[0] == 0
    assert free.loss_ < constrained.loss_ == pytest.approx(np.log(2))


def in_turns(weights, monotone, indices, distances, Y):
    """The loss after sigmoids, then 5 × [weights, sigmoids], by a generic optimiser."""
    x, sigmoids = np.zeros(K if weights == "rank" else 1), np.zeros(2 * D)
    bounds_x = [(None, None)] * K if weights == "rank" else [(0, None)]
    bounds_s = [(0 if monotone else None, None)] * D + [(None, None)] * D

    votes, cost = Y[indices], np.where(Y > 0, 0.5 / Y.sum(), 0.5 / (1 - Y).sum())

    def predicted(x):
        pi = softmax(-x) if weights == "rank" else softmax(-x[0] * distances)
        return (np.broadcast_to(pi, indices.shape)[:, None, :] @ votes)[:, 0]

    def loss(p, sigmoids):
        margin = (2 * Y - 1) * (sigmoids[:D] * p + sigmoids[D:])
        return (cost * np.logaddexp(0, -margin)).sum() + prior(sigmoids[:D], Y)

    def gradient(p, sigmoids):
        signs = 2 * Y - 1
        slope = -cost * signs * expit(-signs * (sigmoids[:D] * p + sigmoids[D:]))
        by_prior = 0.5 / Y.sum() * sigmoids[:D] / 100**2
        return np.append((slope * p).sum(axis=0) + by_prior, slope.sum(axis=0))

    for turn in range(11):
        if turn % 2:
            x = scipy.optimize.minimize(
                lambda x, s=sigmoids: loss(predicted(x), s), x, bounds=bounds_x, tol=1e-11
            ).x
        else:
            p = predicted(x)
            sigmoids = scipy.optimize.minimize(
                lambda s, p=p: (loss(p, s), gradient(p, s)),
                sigmoids,
                jac=True,
                bounds=bounds_s,
                tol=1e-11,
            ).x
    return loss(predicted(x), sigmoids) - prior(sigmoids[:D], Y)


@pytest.mark.parametrize("weights", ["rank", "distance"])
@pytest.mark.parametrize("monotone", [True, False])
def test_weights_and_sigmoids_in_turn(weights, monotone):
    model, indices, distances, Y = fitted(weights=weights, monotone=monotone)
    expected = in_turns(weights, monotone, indices, distances, Y)
    assert model.loss_ == pytest.approx(expected, abs=1e-4)
    assert (model.slopes_ >= 0).all() or not monotone
    bare = TagProp(K, weights, sigmoids=False).fit_neighbors(indices, distances, Y)
    assert model.loss_ < bare.loss_


@pytest.mark.parametrize(("weights", "missing"), [("rank", 0), ("distance", 0), ("distance", 1)])
@pytest.mark.parametrize("sigmoids", [True, False])
@pytest.mark.parametrize("monotone", [True, False])
def test_the_loss_is_that_of_the_scores_of_the_labelled_images(
    weights, missing, sigmoids, monotone
):
    """By rank, missing neighbours are made up for in scores, and not when weights are learned."""
    parameters = {"weights": weights, "sigmoids": sigmoids, "monotone": monotone}
    model, indices, distances, Y = fitted(bool(missing), **parameters)
    scores = model.score_neighbors(indices, distances)
    assert np.isfinite(model.loss_)
    assert dense_loss(scores, Y) == pytest.approx(model.loss_, rel=1e-9)


def test_a_neighbour_that_tells_all_gets_all_the_weight():
    rng = np.random.default_rng(0)
    Y = (rng.random((200, 8)) < 0.3).astype(float)
    Y[1::2] = Y[::2]
    indices = rng.integers(0, 200, (200, 4))
    indices[:, 2] = np.arange(200) ^ 1  # the twin is the third neighbour
    model = TagProp(4, sigmoids=False).fit_neighbors(indices, np.ones((200, 4)), Y)
    assert model.rank_weights_[2] > 0.99


# --- odd cases ---


def test_neighbours_that_carry_nothing_teach_nothing():
    Y = np.zeros((4, 2))
    Y[0] = 1
    indices = np.array([[1, 2], [2, 3], [3, 1], [1, 2]])
    for parameters in ({}, {"weights": "distance"}, {"sigmoids": False}):
        model = TagProp(2, **parameters).fit_neighbors(indices, np.ones((4, 2)), Y)
        assert np.isfinite(model.loss_)
        assert np.isfinite(model.score_neighbors(indices, np.ones((4, 2)))).all()


def test_labels_on_all_images_and_equal_distances():
    Y = np.ones((5, 2))
    Y[:3, 1] = 0
    indices = np.array([[j for j in range(5) if j != i] for i in range(5)])
    for parameters in ({}, {"weights": "distance"}, {"sigmoids": False}):
        model = TagProp(9, **parameters).fit_neighbors(indices, np.zeros((5, 4)), Y)
        scores = model.score_neighbors(indices, np.zeros((5, 4)))
        assert (scores[:, 0] > 0.99).all()


def test_labels_without_images_score_zero_until_they_have_some(collection):
    X, Y, X_new = collection
    Y[:, 2] = 0
    model = TagProp(10).fit(X, Y)
    assert (model.decision_function(X_new)[:, 2] == 0).all()
    known = np.array([0, 1, 3, 4, 5])
    sigmoids = model.slopes_.copy(), model.offsets_.copy()
    added = np.zeros((40, 9))  # three more labels, of which one is on no image
    added[:, 2] = added[:10, 6] = added[:, 7] = 1
    model.partial_fit(X_new, added)
    for now, then, absent in zip(
        (model.slopes_, model.offsets_), sigmoids, (0, -np.inf), strict=True
    ):
        np.testing.assert_array_equal(now[known], then[known])
        np.testing.assert_array_equal(now[[2, 6, 7]], np.median(then[known]))
        assert now[8] == absent
    scores = model.decision_function(X_new)
    assert (scores[:, [2, 7]] > 0).all()
    assert (scores[:, 8] == 0).all()


def test_a_label_that_first_appears_through_relabel_can_be_suggested(collection):
    X, Y, X_new = collection
    full = Y.copy()
    Y[:, 2] = 0
    model = TagProp(10).fit(X, Y)
    learned = model.slopes_.copy()
    model.model_ = model.model_.relabel(as_labels(full))
    scores = model.decision_function(X_new)[:, 2]
    assert (scores > 0).all()
    assert scores.std() > 0
    without = full.copy()
    without[:, 0] = 0
    for labels in (without, full):
        model.model_ = model.model_.relabel(as_labels(labels))
    assert model.slopes_[0] == learned[0], "a label that goes and comes has what was learned"


def test_lists_of_another_length_than_was_learned():
    """Shorter ones: the weights that are left are brought to a sum of 1. Longer ones are cut."""
    model, indices, distances, Y = fitted(sigmoids=False)
    scores = model.score_neighbors(indices[:, :2], distances[:, :2])
    pi = model.rank_weights_[:2] / model.rank_weights_[:2].sum()
    expected = dense_predictions(dense_p(pi, indices[:, :2], Y), None)
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    longer = [np.hstack([part, part[:, :3]]) for part in (indices, distances)]
    np.testing.assert_array_equal(
        model.score_neighbors(*longer), model.score_neighbors(indices, distances)
    )


# --- real neighbourhoods ---


@pytest.mark.parametrize(
    ("parameters", "reached"),
    [({"sigmoids": False}, 1.5288), ({"monotone": False}, 0.4094 + 7e-4), ({}, 0.4098 + 4e-4)],
    ids=["rank", "sigmoids", "monotone"],
)
def test_the_loss_of_the_original_code_on_corel5k(parameters, reached):
    """But for what the prior of the slopes adds to it."""
    shared = Path(__file__).parent.parent.parent.parent / "shared" / "data"
    path = Path(os.environ.get("TAGKIN_DATA", shared)) / "corel5k_tagprop.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is not in ../shared/data; set TAGKIN_DATA to its folder")
    with np.load(path) as data:
        indices = data["neighbors"].astype(np.int64)  # from 0 on
        labels = np.unpackbits(data["labels"], axis=1)[:, : int(data["n_labels"])]
    assert (indices != np.arange(4500)[:, None]).all()
    ranks = np.broadcast_to(np.arange(100.0), indices.shape)
    model = TagProp(100, **parameters).fit_neighbors(indices, ranks, labels)
    assert model.loss_ <= reached
    if model.slopes_ is not None:
        assert (model.slopes_ < 0).any() != model.monotone


@pytest.mark.parametrize("weights", ["rank", "distance"])
@pytest.mark.parametrize("sigmoids", [False, True])
def test_with_groups_weights_are_learned_from_other_groups(weights, sigmoids):
    """As from lists in which nobody of the own group is."""
    X, Y, _ = make_collection(n=40)
    groups = np.repeat(np.arange(40), 3)
    X = X[groups] + 1e-3 * np.random.default_rng(0).normal(size=(120, X.shape[1]))
    Y = Y[groups]
    method = TagProp(6, weights=weights, sigmoids=sigmoids)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    far = np.where(groups[:, None] == groups, np.inf, 1 - unit @ unit.T)
    lists = np.argsort(far, axis=1, kind="stable")[:, :6]
    expected = clone(method).fit_neighbors(lists, np.take_along_axis(far, lists, axis=1), Y)
    grouped = clone(method).fit(X, Y, groups=groups)
    assert grouped.loss_ == pytest.approx(expected.loss_, rel=1e-6)
    if weights == "distance":
        assert grouped.decay_ == pytest.approx(expected.decay_, rel=1e-3)
        assert clone(method).fit(X, Y).decay_ > 2 * grouped.decay_
    assert clone(method).fit(X, Y).loss_ < 0.5 * grouped.loss_


def test_a_group_of_all_images_leaves_nothing_to_learn_weights_from():
    X, Y, X_new = make_collection(n=40)
    model = TagProp(6, weights="distance").fit(X, Y, groups=np.zeros(40))
    assert np.isfinite(model.decision_function(X_new)).all()
