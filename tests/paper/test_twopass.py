"""2PKNN against both passes in plain loops."""

import functools
import math

import numpy as np
import pytest
import scipy.sparse

import tagkin
from tagkin.neighbors import nearest
from tagkin.paper import TwoPassKNN
from tests.conftest import make_collection


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


def test_many_labels_in_little_memory(collection):
    """With hundreds of labels the union is long; blocks follow it."""
    X, X_new = collection.X, collection.X_new[:8]
    Y = scipy.sparse.random_array((150, 300), density=0.02, random_state=np.random.default_rng(0))
    model = TwoPassKNN(2).fit(X, Y > 0)
    expected = model.decision_function(X_new)
    with tagkin.memory_budget(50_000):
        np.testing.assert_allclose(model.decision_function(X_new), expected, atol=1e-12)
