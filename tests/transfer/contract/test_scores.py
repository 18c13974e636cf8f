"""What every method of label transfer keeps: scores and suggestions."""

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import tagkin
from tagkin.errors import InvalidInput
from tagkin.paper import LinearSVM, TagProp, TagRelevance
from tagkin.transfer import KinReadout, LogisticReadout, Suggestion
from tests.conftest import assert_same, make_collection, needs_torch
from tests.transfer.contract.methods import (
    each_method,
    each_neighbor_method,
    learned,
    learned_scores,
)


@each_method
def test_labels_that_go_with_the_features_are_found(fitted, collection):
    """Every label's images score higher on average, on images that were not learned from."""
    X, Y, _ = make_collection(n=260)
    if getattr(fitted, "n_neighbors", 0) > 150:
        fitted.set_params(n_neighbors=20)
    fitted.fit(X[:150], Y[:150])
    scores, truth = fitted.decision_function(X[150:]), Y[150:] > 0
    assert scores.shape == (110, 6)
    assert scores.dtype == np.float64
    for t in range(6):
        assert scores[truth[:, t], t].mean() > scores[~truth[:, t], t].mean()


@each_method
def test_a_batch_is_its_images_one_by_one(fitted, collection):
    X_new = collection.X_new[:15]  # more than one to a block of so few bytes
    whole = fitted.decision_function(X_new)
    single = np.concatenate([fitted.decision_function(X_new[i : i + 1]) for i in range(15)])
    backwards = fitted.decision_function(X_new[::-1])[::-1]
    with tagkin.memory_budget(2000):
        small = fitted.decision_function(X_new)
    for other in (single, backwards, small):
        np.testing.assert_allclose(other, whole, atol=1e-11)


@each_method
def test_a_fit_in_small_blocks_is_the_same(method, collection, scores):
    with tagkin.memory_budget(3000):
        again = clone(method).fit(collection.X, collection.Y)
    np.testing.assert_allclose(again.decision_function(collection.X_new), scores, atol=1e-9)


@each_method
def test_labels_of_every_kind_are_the_same_labels(method, collection, scores):
    X, Y, X_new = collection
    row, column = np.nonzero(Y)
    zeros = np.argwhere(Y == 0)[:50].T
    kinds = {
        "bool": Y > 0,
        "sparse": scipy.sparse.csr_matrix(Y),
        "csc": scipy.sparse.csc_array(Y.astype(np.int8)),
        "list": Y.tolist(),
        "counts": 3.0 * Y,
        # every label twice, and zeros that are written down
        "messy sparse": scipy.sparse.coo_array(
            (
                np.append(np.ones(2 * len(row), np.int8), np.zeros(50, np.int8)),
                (np.concatenate([row, row, zeros[0]]), np.concatenate([column, column, zeros[1]])),
            ),
            shape=Y.shape,
        ),
    }
    for kind, given in kinds.items():
        again = clone(method).fit(X, given)
        assert_same(again.decision_function(X_new), scores, message=kind)


@each_method
def test_labels_between_0_and_1_are_refused(method, collection):
    X, Y, X_new = collection
    wrong = Y.astype(float)
    wrong[4, 2] = 0.3
    for given in (wrong, wrong.tolist(), scipy.sparse.csr_array(wrong)):
        with pytest.raises(InvalidInput, match=r"Row 4, column 2 of Y is 0\.3\b"):
            clone(method).fit(X, given)
    with pytest.raises(InvalidInput, match=r"Row 0, column 1 of Y is 0\.7\b"):
        learned(method).score(X_new[:2], np.array([[0, 0.7, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]]))


@each_method
def test_unsorted_csr_labels_with_duplicates_are_neither_misread_nor_changed(
    method, collection, scores
):
    X, Y, X_new = collection
    sorted_labels = scipy.sparse.csr_array(Y)
    order = np.concatenate(
        [np.arange(a, b)[::-1] for a, b in itertools.pairwise(sorted_labels.indptr)]
    ).astype(int)
    twice = np.repeat(sorted_labels.indices[order], 2)
    labels = scipy.sparse.csr_array(
        (np.ones(len(twice)), twice, 2 * sorted_labels.indptr), shape=Y.shape
    )
    again = clone(method).fit(X, labels)
    np.testing.assert_array_equal(labels.indices, twice)
    assert_same(again.decision_function(X_new), scores)


@each_method
@needs_torch
def test_torch_and_numpy_agree(method, collection):
    for dtype in ("float32", "float64"):
        assert_torch_and_numpy_agree(method, collection, dtype)


def assert_torch_and_numpy_agree(method, collection, dtype):
    import torch

    X, X_new = collection.X.astype(dtype), collection.X_new.astype(dtype)
    expected = learned_scores(method)
    if dtype == "float32":
        expected = clone(method).fit(X, collection.Y).decision_function(X_new)
    model = clone(method).fit(torch.from_numpy(X), torch.from_numpy(collection.Y))
    scores = model.decision_function(torch.from_numpy(X_new))
    assert isinstance(scores, torch.Tensor)
    assert scores.dtype == getattr(torch, dtype)
    tolerance = 1e-10 if dtype == "float64" else 1e-4
    if isinstance(method, TagProp) and dtype == "float32":
        tolerance = 0.03  # two images are equally far but for rounding, and change ranks
    np.testing.assert_allclose(scores.numpy(), expected, atol=tolerance)
    assert model.suggest(torch.from_numpy(X_new))[0][0].label in range(6)
    if hasattr(model, "kneighbors"):
        neighbors = model.kneighbors(torch.from_numpy(X_new))
        assert all(isinstance(part, torch.Tensor) for part in neighbors)
        again = model.score_neighbors(*neighbors, torch.from_numpy(X_new))
        assert isinstance(again, torch.Tensor)
        np.testing.assert_allclose(again.numpy(), expected, atol=tolerance)


@each_method
def test_the_precision_is_that_of_the_embeddings(method, collection, scores):
    X, Y, X_new = collection
    model = clone(method).fit(X.astype(np.float32), Y)
    actual = model.decision_function(X_new.astype(np.float32))
    assert actual.dtype == np.float32
    # two images are equally far but for rounding: in float32 they may change ranks
    by_rank = isinstance(method, TagProp) and method.weights == "rank"
    np.testing.assert_allclose(actual, scores, atol=0.03 if by_rank else 2e-3)


def labels_of(suggestions):
    return [[suggestion.label for suggestion in row] for row in suggestions]


@each_method
def test_suggestions_are_the_best_labels(fitted, collection):
    X_new = collection.X_new[:15]
    scores = fitted.decision_function(X_new)
    for n in (1, 3, 6, 10):
        best_scores, expected = [], []
        for row, suggested in zip(scores, fitted.suggest(X_new, n), strict=True):
            order = sorted(range(6), key=lambda t, row=row: (-row[t], t))[:n]
            assert all(isinstance(suggestion, Suggestion) for suggestion in suggested)
            assert [suggestion.label for suggestion in suggested] == order
            assert [suggestion.name for suggestion in suggested] == order
            best_scores += [suggestion.score for suggestion in suggested]
            expected += [row[label] for label in order]
        np.testing.assert_allclose(best_scores, expected, rtol=1e-9, atol=1e-12)
    five = labels_of(fitted.suggest(X_new))
    assert five == labels_of(fitted.suggest(X_new, n=5))
    with tagkin.memory_budget(500):
        assert labels_of(fitted.suggest(X_new, 3)) == [row[:3] for row in five]


@each_method
def test_a_least_score_says_how_many(fitted, collection):
    X_new = collection.X_new
    scores = fitted.decision_function(X_new)
    bars = np.median(scores, axis=0)
    for least in (bars, float(bars[0])):
        suggested = fitted.suggest(X_new, min_score=least)
        passed = [{s.label for s in row} for row in suggested]
        assert passed == [set(np.flatnonzero(row >= least).tolist()) for row in scores]
        fewer = labels_of(fitted.suggest(X_new, 2, min_score=least))
        assert fewer == [row[:2] for row in labels_of(suggested)]
    assert fitted.suggest(X_new, min_score=np.inf) == [[]] * 40


@each_method
def test_a_label_on_no_image_is_the_last(method):
    X, Y, X_new = make_collection()
    Y[:, 2] = 0
    model = clone(method).fit(X, Y)
    scores = model.decision_function(X_new)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores[:, 2], scores[0, 2], atol=1e-12)
    if hasattr(model, "explain"):
        assert all(len(e.indices) == 0 for (e,) in model.explain(X_new, [2]))
    else:
        assert (scores[:, 2] < np.delete(scores, 2, axis=1).max(axis=1)).all()


@each_method
def test_no_label_at_all(method, collection):
    X, Y, X_new = collection
    if isinstance(method, TagProp):
        with pytest.raises(InvalidInput, match="No labels: none of the 150 images"):
            clone(method).fit(X, 0 * Y)
        return
    scores = clone(method).fit(X, 0 * Y).decision_function(X_new)
    if isinstance(method, KinReadout | LogisticReadout):
        assert (scores < -5).all()  # logits
        np.testing.assert_allclose(scores, scores[0, 0])
        return
    absent = -1.0 if isinstance(method, LinearSVM) else 0.0
    np.testing.assert_allclose(scores, absent, atol=1e-12)


@each_method
def test_one_image_and_two(method):
    Z = np.array([[1.0, 0.0], [0.0, 1.0]])
    Y = np.array([[1, 0], [1, 1]])
    if isinstance(method, TagProp):
        with pytest.raises(InvalidInput, match=r"Found 1 sample\(s\).*at least 2"):
            clone(method).fit(Z[:1], Y[:1])
    else:
        alone = clone(method).fit(Z[:1], Y[:1]).decision_function(Z)
        assert (alone[:, 0] > alone[:, 1]).all() or isinstance(method, TagRelevance)
    both = clone(method).fit(Z, Y).decision_function(Z)
    assert both.shape == (2, 2)
    assert np.isfinite(both).all()


@each_neighbor_method
def test_many_labels_are_never_made_dense(method):
    """A hundred images with one of ten labels each, of 20,000: a dense matrix has 16 MB."""
    Z = np.random.default_rng(0).standard_normal((100, 3))
    labels = 2000 * np.repeat(np.arange(10), 10)
    Y = scipy.sparse.csr_array((np.ones(100), (np.arange(100), labels)), shape=(100, 20_000))
    tracemalloc.start()
    try:
        model = clone(method).fit(Z, Y)
        scores = model.decision_function(Z[:1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8e6
    assert model.labels_.nnz == 100
    assert scores[0].argmax() % 2000 == 0
