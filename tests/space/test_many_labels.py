"""Large vocabularies: no matrix of labels by labels, no eigenproblem that nobody asked for."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

import tagkin
from tagkin import SemanticSpace
from tagkin.paper import RidgeTransfer
from tagkin.space import solution
from tagkin.space.views import IndicatorView


def collection(n, n_labels, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = np.maximum(rng.standard_normal((n, 20)), 0).astype(dtype)
    Y = (rng.random((n, n_labels)) < 0.05).astype(np.float64)
    Y[:, 3] = Y[:, 4]  # dependent
    Y[:, 5] = 0
    return X, Y


@pytest.mark.parametrize(("n", "n_landmarks"), [(400, 4096), (400, 100), (50, 4096)])
def test_the_space_without_its_rotation_is_the_same(n, n_landmarks, monkeypatch, as_array):
    """The same cosines, the same regression of the labels, and the correlations on demand."""
    X, Y = collection(n, 60)
    rotated = SemanticSpace(n_landmarks=n_landmarks).fit(X, Y)
    monkeypatch.setattr(solution, "ROTATED", 10)
    plain = SemanticSpace(n_landmarks=n_landmarks).fit(as_array(X), as_array(Y))
    expected, embeddings = rotated.transform(X), np.asarray(plain.transform(as_array(X)))
    np.testing.assert_allclose(embeddings @ embeddings.T, expected @ expected.T, atol=1e-12)
    np.testing.assert_allclose(
        embeddings @ np.asarray(plain.readout_), expected @ rotated.readout_, atol=1e-11
    )
    m = len(rotated.correlations_)
    np.testing.assert_allclose(
        np.asarray(plain.correlations_)[:m], rotated.correlations_, atol=1e-10
    )
    assert "correlations" not in plain.describe()[1]
    asked = SemanticSpace(n_landmarks=n_landmarks, n_components=5).fit(X, Y)
    np.testing.assert_allclose(asked.correlations_, rotated.correlations_[:5], atol=1e-12)


def test_more_labels_than_images_are_as_many_text_features_as_images():
    """Each image four times, with four times the ridge, says the same: labels are fewer then."""
    X, Y = collection(80, 300)
    reduced = SemanticSpace(selection=X, regularization=0.5).fit(X, Y)
    whole = SemanticSpace(selection=X, regularization=2.0).fit(
        np.tile(X, (4, 1)), np.tile(Y, (4, 1))
    )
    embeddings, expected = reduced.transform(X), whole.transform(X)
    np.testing.assert_allclose(embeddings @ embeddings.T, expected @ expected.T, atol=1e-10)
    np.testing.assert_allclose(embeddings @ reduced.readout_, expected @ whole.readout_, atol=1e-10)
    np.testing.assert_allclose(reduced.correlations_, whole.correlations_, atol=1e-10)
    reduced.partial_fit(X[:5], Y[:5])  # from sums, of all text features
    assert reduced.transform(X).shape[0] == 80


@pytest.mark.parametrize("sparse", [False, True])
def test_of_very_many_labels_the_most_frequent_are_text_features(sparse):
    X, Y = collection(300, 40)
    counts = Y.sum(axis=0)
    view = IndicatorView(max_labels=12)
    space = SemanticSpace(text_view=view).fit(X, scipy.sparse.csr_array(Y) if sparse else Y)
    columns = space.text_view_.kept_
    assert len(columns) == 12
    assert counts[columns].min() >= np.delete(counts, columns).max()
    expected = SemanticSpace().fit(X, Y[:, columns])
    np.testing.assert_allclose(space.transform(X), expected.transform(X), atol=1e-10)
    ridge = RidgeTransfer.of_space(space)
    scores = ridge.decision_function(space.transform(X))
    assert scores.shape == (300, 40)
    wanted = expected.text_mean_ + expected.transform(X) @ expected.readout_
    np.testing.assert_allclose(scores[:, columns], wanted, atol=1e-10)
    assert not np.delete(scores, columns, axis=1).any()


def test_such_a_space_is_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(solution, "ROTATED", 10)
    X, Y = collection(300, 40)
    space = SemanticSpace(text_view=IndicatorView(max_labels=12), n_landmarks=50).fit(X, Y)
    tagkin.save(space, tmp_path / "space")
    loaded = tagkin.load(tmp_path / "space")
    np.testing.assert_allclose(loaded.transform(X), space.transform(X), atol=1e-12)
    np.testing.assert_array_equal(loaded.text_view_.kept_, space.text_view_.kept_)
    loaded.partial_fit(X[:9], Y[:9])
    assert loaded.n_images_ == 309


def test_memory_is_linear_in_the_labels():
    """100,000 labels: no array of labels by labels, which would take 74.5 GiB."""
    rng = np.random.default_rng(0)
    n, n_labels = 600, 100_000
    X = np.maximum(rng.standard_normal((n, 16)), 0).astype(np.float32)
    rows = np.repeat(np.arange(n), 30)
    columns = np.minimum(rng.zipf(1.3, len(rows)), n_labels) - 1
    Y = scipy.sparse.csr_array(
        (np.ones(len(rows), np.float32), (rows, columns)), shape=(n, n_labels)
    )
    tracemalloc.start()
    space = SemanticSpace(text_view=IndicatorView(max_labels=700), n_landmarks=256).fit(X, Y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert space.transform(X).shape == (n, space.n_components_)
    assert peak < 64 * 2**20


def test_two_images_with_thousands_of_labels():
    """They share 5,000, and nobody else has any of those: no eigenproblem of that size."""
    rng = np.random.default_rng(0)
    X = np.maximum(rng.standard_normal((100, 16)), 0).astype(np.float32)
    Y = np.zeros((100, 5000), dtype=np.float32)
    Y[:2] = 1
    Y[np.arange(2, 100), rng.integers(0, 5, 98)] = 1
    tracemalloc.start()
    space = SemanticSpace().fit(X, scipy.sparse.csr_array(Y))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert space.n_components_ <= 99
    assert peak < 100 * 2**20  # one matrix of the size of the text features takes 134
