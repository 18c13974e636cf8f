"""2PKNN against both passes in plain loops, and metric learning where the answer is known."""

import functools
import math

import numpy as np
import pytest
import scipy.sparse

import tagkin
from tagkin.neighbors import ExactNeighbors, nearest
from tagkin.transfer import TwoPassKNN, margins
from tagkin.transfer.margins import learn_dimension_weights, margin_loss, sample_size
from tagkin.transfer.twopass_votes import balanced_neighbors
from tests.conftest import assert_same, make_collection


def distance(z, other, metric):
    if metric == "cosine":
        z, other = z / np.linalg.norm(z), other / np.linalg.norm(other)
        return float(((z - other) ** 2).sum() / 2)
    return float(np.sqrt(((z - other) ** 2).sum()))


def neighbourhood_by_hand(z, Z, Y, n_per_label, metric):
    """Pass 1: {image: distance} of the nearest of every label."""
    far = [distance(z, other, metric) for other in Z]
    order = sorted(range(len(Z)), key=lambda j: (round(far[j], 10), j))
    union = {}
    for t in range(Y.shape[1]):
        for j in [j for j in order if Y[j, t]][:n_per_label]:
            union[j] = far[j]
    return union


def scores_by_hand(union, Y, decay, form):
    """Pass 2."""
    scores = [0.0] * Y.shape[1]
    if not union:
        return scores
    least = min(union.values())
    mean = sum(d - least for d in union.values()) / len(union)
    for j, d in union.items():
        if form == "authors":
            d = (d - least) / mean if mean else 0.0
        for t in range(Y.shape[1]):
            scores[t] += math.exp(-decay * d) * Y[j, t]
    total = sum(scores)
    return [s / total for s in scores] if form == "authors" else scores


def made(ties):
    """Images with a rare label, one without any, and perhaps twins with other labels."""
    X, Y, X_new = make_collection(50)
    Y[:, 4] *= np.arange(50) < 7
    Y[11] = 0
    if ties:
        X[1::3] = X[: len(X[1::3])]
        X_new[::2] = X[:20]
    return X, Y, X_new


@functools.cache
def unions_by_hand(ties, n_per_label, metric):
    """Pass 1 for all new images, which every form of pass 2 begins with."""
    X, Y, X_new = made(ties)
    return [neighbourhood_by_hand(z, X, Y, n_per_label, metric) for z in X_new]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize(("form", "decay"), [("paper", 1.0), ("paper", 3.0), ("authors", 7.0)])
@pytest.mark.parametrize("n_per_label", [1, 3, 100])
def test_both_passes(ties, metric, form, decay, n_per_label):
    X, Y, X_new = made(ties)
    model = TwoPassKNN(n_per_label, decay, form=form, metric=metric).fit(X, Y)
    unions = unions_by_hand(ties, n_per_label, metric)
    neighbors = model.kneighbors(X_new)
    for row, union in zip(neighbors.indices, unions, strict=True):
        assert set(row[row >= 0].tolist()) == set(union)
        assert len(row[row >= 0]) == len(union)
    expected = [scores_by_hand(union, Y, decay, form) for union in unions]
    np.testing.assert_allclose(model.decision_function(X_new), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.score_neighbors(*neighbors), model.decision_function(X_new))


@pytest.mark.parametrize("form", ["paper", "authors"])
def test_longer_lists_are_cut_by_the_first_pass(form):
    X, Y, X_new = made(ties=True)
    model = TwoPassKNN(2, form=form).fit(X, Y)
    everyone = nearest(X_new, X, 50)
    expected = model.decision_function(X_new)
    np.testing.assert_allclose(model.score_neighbors(*everyone), expected, atol=1e-12)
    with tagkin.memory_budget(3000):
        np.testing.assert_allclose(model.score_neighbors(*everyone), expected, atol=1e-12)


def test_of_equal_images_the_lower_index_counts():
    Z = np.array([[1.0, 0], [0, 1], [1, 0], [1, 0], [0, 1]])
    Y = np.array([[0, 1], [1, 0], [1, 0], [1, 0], [1, 0]])
    model = TwoPassKNN(1).fit(Z, Y)
    neighbors = model.kneighbors(np.array([[2.0, 0]]))
    assert neighbors.indices.tolist() == [[0, 2]]
    assert model.decision_function(np.array([[2.0, 0]])).tolist() == [[1.0, 1.0]]


def test_a_neighbourhood_of_one_distance():
    """The authors' scale is the mean distance beyond the nearest, which is 0 here."""
    Z, Y = np.eye(4), np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    scores = TwoPassKNN(2, form="authors").fit(Z, Y).decision_function(np.ones((1, 4)))
    np.testing.assert_allclose(scores, 0.5)


def test_rows_of_the_authors_form_add_up_to_one(collection):
    X, Y, X_new = collection
    scores = TwoPassKNN(3, 5.0, form="authors").fit(X, Y).decision_function(X_new)
    np.testing.assert_allclose(scores.sum(axis=1), 1)


def test_division_by_each_labels_maximum_over_the_call(collection):
    X, Y, X_new = collection
    Y[:, 3] = 0
    plain = TwoPassKNN(3).fit(X, Y)
    scores = plain.decision_function(X_new)
    most = np.where(scores.max(axis=0) > 0, scores.max(axis=0), 1)
    model = TwoPassKNN(3, label_maximum=True).fit(X, Y)
    with tagkin.memory_budget(3000):
        np.testing.assert_allclose(model.decision_function(X_new), scores / most)
        np.testing.assert_allclose(model.score_neighbors(*model.kneighbors(X_new)), scores / most)
        for i, evidence in enumerate(model.explain(X_new, range(6))):
            for t, e in enumerate(evidence):
                assert e.score == pytest.approx(scores[i, t] / most[t])
                assert e.shares.sum() == pytest.approx(e.score)


def test_many_labels_in_little_memory(collection):
    """With hundreds of labels the union is long; blocks follow it."""
    X, X_new = collection.X, collection.X_new[:8]
    Y = scipy.sparse.random_array((150, 300), density=0.02, rng=np.random.default_rng(0))
    model = TwoPassKNN(2).fit(X, Y > 0)
    expected = model.decision_function(X_new)
    with tagkin.memory_budget(50_000):
        np.testing.assert_allclose(model.decision_function(X_new), expected, atol=1e-12)


# --- metric learning ---


def made_margins(seed=0):
    rng = np.random.default_rng(seed)
    near, far = rng.random((7, 3, 4)), rng.random((7, 5, 4))
    is_target, is_impostor = rng.random((7, 3)) < 0.7, rng.random((7, 5)) < 0.7
    is_target[:, 0] = is_impostor[:, 0] = True
    near[~is_target], far[~is_impostor] = 0, 0
    return near, far, is_target, is_impostor


def test_the_margin_loss_in_loops():
    near, far, is_target, is_impostor = made_margins()
    weights = np.array([0.5, 1.0, 0.0, 2.0])
    total = 0.0
    for i in range(7):
        targets = [near[i, j] @ weights for j in range(3) if is_target[i, j]]
        impostors = [far[i, j] @ weights for j in range(5) if is_impostor[i, j]]
        short = [max(0, 1 + a - b) ** 2 for a in targets for b in impostors]
        total += sum(short) / len(short) + 0.1 * sum(targets) / len(targets)
    value, gradient = margin_loss(weights, near, far, is_target, is_impostor)
    assert value == pytest.approx(total / 7)
    step = 1e-6 * np.eye(4)
    numerical = [
        (
            margin_loss(weights + s, *made_margins())[0]
            - margin_loss(weights - s, *made_margins())[0]
        )
        / 2e-6
        for s in step
    ]
    np.testing.assert_allclose(gradient, numerical, atol=1e-8)


def noisy(n=400, seed=0):
    """Labels show in the first three of thirty dimensions; the others are louder."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 6, n)
    Y = np.eye(6)[kind]
    Z = 3 * rng.standard_normal((n, 30))
    Z[:, :3] = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T[kind]
    Z[:, :3] += 0.1 * rng.standard_normal((n, 3))
    return Z, Y, kind


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_learned_weights_find_the_dimensions_that_matter(metric):
    Z, Y, kind = noisy()
    right = []
    for learning in (False, True):
        model = TwoPassKNN(5, metric=metric, metric_learning=learning, random_state=0)
        model.fit(Z[:300], Y[:300])
        right.append((model.decision_function(Z[300:]).argmax(axis=1) == kind[300:]).mean())
    weights = model.dimension_weights_
    assert right[1] > right[0] + 0.1
    assert weights[:3].mean() > 5 * weights[3:].mean()
    assert weights.mean() == pytest.approx(1)
    assert (weights >= 0).all()


def test_distances_are_weighted_squares():
    Z, Y, _ = noisy(120)
    model = TwoPassKNN(2, metric="euclidean", metric_learning=True, random_state=0).fit(Z, Y)
    neighbors = model.kneighbors(Z[:5] + 0.1)
    for z, row, far in zip(Z[:5] + 0.1, neighbors.indices, neighbors.distances, strict=True):
        is_there = row >= 0
        expected = ((Z[row[is_there]] - z) ** 2 * model.dimension_weights_).sum(axis=1)
        np.testing.assert_allclose(far[is_there], expected, rtol=1e-10)


def test_learning_is_the_same_every_time_and_another_fit_forgets_it():
    Z, Y, _ = noisy(120)
    learned = TwoPassKNN(metric_learning=True, random_state=3).fit(Z, Y)
    again = TwoPassKNN(metric_learning=True, random_state=3).fit(Z, Y)
    assert_same(learned.dimension_weights_, again.dimension_weights_)
    before = learned.decision_function(Z[:9])
    learned.set_params(metric_learning=False)
    np.testing.assert_array_equal(learned.decision_function(Z[:9]), before)  # as it was fitted
    plain = TwoPassKNN().fit(Z, Y).decision_function(Z[:9])
    np.testing.assert_array_equal(learned.fit(Z, Y).decision_function(Z[:9]), plain)
    assert learned.dimension_weights_ is None


def test_weights_are_one_where_there_is_nothing_to_learn():
    Z = np.random.default_rng(0).standard_normal((10, 3))
    for Y in (np.zeros((10, 2)), np.ones((10, 2)), np.eye(10)):
        model = TwoPassKNN(metric_learning=True).fit(Z, Y)
        np.testing.assert_array_equal(model.dimension_weights_, 1)
    np.testing.assert_array_equal(
        TwoPassKNN(metric_learning=True)
        .fit(np.ones((4, 3)), np.eye(2)[[0, 0, 1, 1]])
        .dimension_weights_,
        1,
    )


def test_an_image_is_no_target_of_itself(monkeypatch):
    """Two dimensions: common labels show in the first; only itself is near in both."""
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 2
    Z = np.stack([kind + 0.05 * rng.standard_normal(60), 2 * rng.standard_normal(60)], axis=1)
    labels = scipy.sparse.csr_array(np.eye(2)[kind])
    neighbors = balanced_neighbors(ExactNeighbors("euclidean").fit(Z), Z, labels, 3)
    assert (neighbors.indices[:, 0] == np.arange(60)).all()
    weights = learn_dimension_weights(Z, labels, np.arange(60), neighbors)
    others = [np.delete(row, 0) for row in neighbors.indices]
    without = type(neighbors)(np.array(others), neighbors.distances[:, 1:])
    assert_same(learn_dimension_weights(Z, labels, np.arange(60), without), weights)
    assert weights[0] > 10 * weights[1]
    # room for more targets and impostors than there are makes no difference
    monkeypatch.setattr(margins, "TARGETS", 2)
    monkeypatch.setattr(margins, "IMPOSTORS", 3)
    again = learn_dimension_weights(Z, labels, np.arange(60), neighbors)
    np.testing.assert_allclose(again, weights, rtol=1e-6)


def test_one_image_a_label_is_enough_to_learn_from():
    Z, Y, _ = noisy(120)
    model = TwoPassKNN(1, metric="euclidean", metric_learning=True, random_state=0).fit(Z, Y)
    assert model.dimension_weights_[:3].min() > 1


def test_wide_features_are_learned_from_fewer_images():
    assert sample_size(100) == 1000
    assert 30 * 4096 * sample_size(4096) <= 3 * 10**7
    assert sample_size(10**9) == 1


def test_metric_learning_looks_past_the_own_group():
    """The first dimension tells bursts apart, the others labels: with groups those count more."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 4)
    Y = (rng.random((60, 3)) < 0.4)[groups]
    X = np.column_stack([5 * rng.random(60)[groups], Y + 0.4 * rng.normal(size=Y.shape)])
    method = TwoPassKNN(metric_learning=True, metric="euclidean")
    alone = method.fit(X, Y).dimension_weights_
    together = method.fit(X, Y, groups=groups).dimension_weights_
    alike = TwoPassKNN(metric_learning=True, metric="euclidean").fit(X, Y, groups=np.arange(240))
    np.testing.assert_array_equal(alike.dimension_weights_, alone)
    assert together[0] < 0.95 * alone[0]
