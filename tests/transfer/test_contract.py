"""What every method of label transfer keeps, by one battery."""

import copy
import functools
import importlib.util
import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tagkin
from tagkin import SemanticSpace, load, save
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, FaissNeighbors, Neighbors, nearest
from tagkin.transfer import (
    KinReadout,
    LinearSVM,
    LogisticReadout,
    NeighborVoting,
    RidgeTransfer,
    Suggestion,
    TagProp,
    TagRelevance,
    TwoPassKNN,
)
from tests.conftest import assert_same, make_collection, needs_torch

NEIGHBOR_METHODS = {
    "voting": NeighborVoting(7),
    "voting of all": NeighborVoting(1000, metric="euclidean"),
    "relevance": TagRelevance(7),
    "tagprop": TagProp(7),
    "tagprop, any slope": TagProp(7, monotone=False),
    "tagprop, by distance": TagProp(7, weights="distance"),
    "tagprop, no sigmoids": TagProp(7, sigmoids=False),
    "kin and read-out": KinReadout(7),
    "2pknn": TwoPassKNN(),
    "2pknn of the authors": TwoPassKNN(3, 5.0, form="authors", metric="euclidean"),
    "2pknn-ml": TwoPassKNN(metric_learning=True, random_state=0),
}
METHODS = NEIGHBOR_METHODS | {
    "logistic read-out": LogisticReadout(),
    "ridge": RidgeTransfer(),
    "svm": LinearSVM(),
    "svm, squared hinge": LinearSVM(loss="squared-hinge"),
}
SEARCHED = [
    "voting",
    "relevance",
    "tagprop",
    "tagprop, by distance",
    "kin and read-out",
]  # that take an index

each_method = pytest.mark.parametrize("method", list(METHODS.values()), ids=list(METHODS))
each_neighbor_method = pytest.mark.parametrize(
    "method", list(NEIGHBOR_METHODS.values()), ids=list(NEIGHBOR_METHODS)
)
each_searched_method = pytest.mark.parametrize(
    "method", [METHODS[name] for name in SEARCHED], ids=SEARCHED
)
needs_faiss = pytest.mark.skipif(
    importlib.util.find_spec("faiss") is None,
    reason="FAISS is not installed",
)


@functools.cache
def learned(method):
    X, Y, _ = make_collection()
    return clone(method).fit(X, Y)


@pytest.fixture
def fitted(method):
    """The method, fitted to the collection: a copy of its own."""
    return copy.deepcopy(learned(method))


@functools.cache
def learned_scores(method):
    found = learned(method).decision_function(make_collection().X_new)
    found.flags.writeable = False
    return found


@pytest.fixture
def scores(method):
    """Of the new images of the collection, by the method that was fitted to it."""
    return learned_scores(method)


# --- scores and suggestions ---


@each_method
def test_labels_that_go_with_the_features_are_found(fitted, collection):
    """Every label's images score higher on average, on images that were not learned from."""
    X, Y, _ = make_collection(n=260)
    fitted.fit(X[:150], Y[:150])
    if getattr(fitted, "n_neighbors", 0) > 150:
        fitted.set_params(n_neighbors=20)
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
        if hasattr(fitted, "kneighbors") and not isinstance(fitted, KinReadout):
            np.testing.assert_array_equal(other, whole)
        else:  # products, whose rounding depends on their size
            np.testing.assert_allclose(other, whole, atol=1e-11)


@each_method
def test_a_fit_in_small_blocks_is_the_same(method, collection, scores):
    with tagkin.memory_budget(3000):
        again = clone(method).fit(collection.X, collection.Y)
    np.testing.assert_allclose(again.decision_function(collection.X_new), scores, atol=1e-9)


@each_method
@pytest.mark.parametrize("kind", ["bool", "sparse", "messy sparse", "list", "weights", "csc"])
def test_labels_of_every_kind_are_the_same_labels(method, collection, scores, kind):
    X, Y, X_new = collection
    row, column = np.nonzero(Y)
    zeros = np.argwhere(Y == 0)[:50].T
    given = {
        "bool": Y > 0,
        "sparse": scipy.sparse.csr_matrix(Y),
        "csc": scipy.sparse.csc_array(Y.astype(np.int8)),
        "list": Y.tolist(),
        "weights": 0.3 * Y,
        # every label twice, and zeros that are written down
        "messy sparse": scipy.sparse.coo_array(
            (
                np.append(np.ones(2 * len(row), np.int8), np.zeros(50, np.int8)),
                (np.concatenate([row, row, zeros[0]]), np.concatenate([column, column, zeros[1]])),
            ),
            shape=Y.shape,
        ),
    }[kind]
    again = clone(method).fit(X, given)
    assert_same(again.decision_function(X_new), scores)


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
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_and_numpy_agree(method, collection, dtype):
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
        found = model.kneighbors(torch.from_numpy(X_new))
        assert all(isinstance(part, torch.Tensor) for part in found)
        again = model.score_neighbors(*found, torch.from_numpy(X_new))
        assert isinstance(again, torch.Tensor)
        np.testing.assert_allclose(again.numpy(), expected, atol=tolerance)


@each_method
def test_the_precision_is_that_of_the_embeddings(method, collection, scores):
    X, Y, X_new = collection
    model = clone(method).fit(X.astype(np.float32), Y)
    found = model.decision_function(X_new.astype(np.float32))
    assert found.dtype == np.float32
    # two images are equally far but for rounding: in float32 they may change ranks
    by_rank = isinstance(method, TagProp) and method.weights == "rank"
    np.testing.assert_allclose(found, scores, atol=0.03 if by_rank else 2e-3)


def labels_of(suggestions):
    return [[one.label for one in row] for row in suggestions]


@each_method
def test_suggestions_are_the_best_labels(fitted, collection):
    X_new = collection.X_new[:15]
    scores = fitted.decision_function(X_new)
    for n in (1, 3, 6, 10):
        found, expected = [], []
        for row, suggested in zip(scores, fitted.suggest(X_new, n), strict=True):
            order = sorted(range(6), key=lambda t, row=row: (-row[t], t))[:n]
            assert all(isinstance(one, Suggestion) for one in suggested)
            assert [one.label for one in suggested] == order
            assert [one.name for one in suggested] == order
            found += [one.score for one in suggested]
            expected += [row[label] for label in order]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    five = labels_of(fitted.suggest(X_new))
    assert five == labels_of(fitted.suggest(X_new, n_best=5))
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
        with pytest.raises(InvalidInput, match="No label at all: none of the 150 images"):
            clone(method).fit(X, 0 * Y)
        return
    scores = clone(method).fit(X, 0 * Y).decision_function(X_new)
    if isinstance(method, KinReadout | LogisticReadout | LinearSVM | RidgeTransfer):
        assert (scores < -5).all()  # logits
        np.testing.assert_allclose(scores, scores[0, 0])
        return
    np.testing.assert_array_equal(scores, 0.0)


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


# --- what may go wrong ---


@each_method
def test_unfitted(method, collection):
    model = clone(method)
    for call in ("decision_function", "suggest", "kneighbors"):
        if hasattr(model, call):
            with pytest.raises(NotFittedError, match=r"fit\(X, y\) first"):
                getattr(model, call)(collection.X_new)
    if hasattr(model, "explain"):
        with pytest.raises(NotFittedError, match="first"):
            model.explain(collection.X_new, [0])
        with pytest.raises(NotFittedError, match="first"):
            model.score_neighbors([[0]], [[0.5]])


def nan_in_row_30(X):
    X = X.copy()
    X[30, 2] = np.nan
    return X


@each_method
@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda m, X, Y: m.fit(X, None), "y to be passed"),
        (lambda m, X, Y: m.fit(X, Y[:-1]), "150 rows in X and 149 in Y"),
        (lambda m, X, Y: m.fit(X, 2 * Y - 1), "negative entry in row 0 of Y"),
        (lambda m, X, Y: m.fit(X, -scipy.sparse.csr_array(Y)), "negative entry in row"),
        (lambda m, X, Y: m.fit(X, np.where(Y, np.nan, 0)), "NaN"),
        (lambda m, X, Y: m.fit(X, np.arange(150)), "Expected 2D array for Y"),
        (lambda m, X, Y: m.fit(nan_in_row_30(X), Y), "Input X contains NaN or infinity in row 30"),
        (lambda m, X, Y: m.fit(X[0], Y), "2D array"),
        (lambda m, X, Y: m.fit(scipy.sparse.csr_array(X), Y), "features must be dense"),
    ],
)
def test_a_fit_that_fails_leaves_what_was_learned(fitted, collection, scores, fit, message):
    with pytest.raises(ValueError, match=message):
        fit(fitted, collection.X[:, ::-1], collection.Y[:, ::-1])
    assert_same(fitted.decision_function(collection.X_new), scores)
    if hasattr(fitted, "partial_fit"):
        with pytest.raises(ValueError, match=message):
            fit(type("", (), {"fit": fitted.partial_fit}), collection.X, collection.Y)
        assert_same(fitted.decision_function(collection.X_new), scores)


@each_method
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, Z: m.decision_function(Z[:, :4]), "4 features, but .* is expecting 12"),
        (
            lambda m, Z: m.decision_function(nan_in_row_30(Z)),
            "X contains NaN or infinity in row 30",
        ),
        (lambda m, Z: m.suggest(Z, 0), "n_best must be a whole number from 1; found 0"),
        (lambda m, Z: m.suggest(Z, 2.5), "whole number"),
        (
            lambda m, Z: m.suggest(Z, min_score=[1.0, 2.0]),
            r"each of the 6 labels; found shape \(2,",
        ),
        (lambda m, Z: m.suggest(Z, min_score=np.nan), "with NaN"),
    ],
)
def test_bad_queries(fitted, collection, call, message):
    with pytest.raises(ValueError, match=message), tagkin.memory_budget(1000):
        call(fitted, collection.X_new)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (NeighborVoting(0), "n_neighbors must be a whole number from 1; found 0"),
        (TagProp().set_params(n_neighbors=2.5), "found 2.5"),
        (NeighborVoting(metric="manhattan"), "metric must be one of cosine, euclidean"),
        (NeighborVoting().set_params(index="HNSW32"), "index must be an index of tagkin.neighbors"),
        (TagProp(weights="none"), "weights must be one of rank, distance"),
        (TwoPassKNN(0), "from 1; found 0"),
        (TwoPassKNN(decay=0), "decay must be a number above 0"),
        (TwoPassKNN(decay=np.nan), "decay must be"),
        (TwoPassKNN(form="other"), "form must be one of paper, authors"),
        (TwoPassKNN(metric="manhattan"), "metric must be one of"),
        (TwoPassKNN(metric="manhattan", metric_learning=True), "metric must be one of"),
        (LinearSVM(C=0), "C must be a number above 0"),
        (LinearSVM(loss="hinge"), "loss must be one of least-squares, squared-hinge"),
        (RidgeTransfer(-1.0), "regularization must be a number above 0; found -1.0"),
    ],
)
def test_bad_parameters(method, message, collection):
    with pytest.raises(InvalidInput, match=message):
        method.fit(collection.X, collection.Y)
    assert not hasattr(method, "n_labels_")


@each_method
def test_feature_names_are_kept_and_give_no_warning(method, collection, recwarn):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    names = [f"f{i}" for i in range(12)]
    X, X_new = (pandas.DataFrame(a, columns=names) for a in (collection.X, collection.X_new))
    model = clone(method).fit(X, collection.Y)
    model.suggest(X_new)
    if hasattr(model, "kneighbors"):
        model.kneighbors(X_new)
        model.explain(X_new, [0])
        model.partial_fit(X_new, collection.Y[:40])
    assert model.feature_names_in_.tolist() == names
    assert not [w for w in recwarn if "feature names" in str(w.message)]


# --- neighbours ---


@each_neighbor_method
def test_scores_come_from_the_neighbours(fitted, collection):
    X_new = collection.X_new
    found = fitted.kneighbors(X_new)
    np.testing.assert_array_equal(found.distances, np.sort(found.distances, axis=1))
    np.testing.assert_array_equal(np.isinf(found.distances), found.indices < 0)
    scores = fitted.decision_function(X_new)
    tolerance = 1e-11 if isinstance(fitted, KinReadout) else 0  # of products
    assert_same(fitted.score_neighbors(*found, X_new), scores, tolerance)
    with tagkin.memory_budget(2000):
        assert_same(fitted.score_neighbors(*found, X_new), scores, tolerance)
    lists = [part.tolist() for part in found]
    assert_same(fitted.score_neighbors(*lists, X_new), scores, tolerance)


@each_neighbor_method
def test_neighbours_that_are_known_serve_as_places_do(fitted, method, collection):
    X, Y, X_new = collection
    if getattr(method, "metric_learning", False):
        with pytest.raises(InvalidInput, match="Metric learning needs embeddings"):
            clone(method).fit_neighbors([[1], [0]], [[0.5], [0.5]], [[1], [0]])
        return
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
    found = fitted.kneighbors(collection.X_new)
    short = Neighbors(found.indices[:, :4].copy(), found.distances[:, :4].copy())
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


@each_neighbor_method
@pytest.mark.parametrize(
    ("indices", "distances", "message"),
    [
        ([[0, 150]], [[0.1, 0.2]], "index 150 among 150 images"),
        ([[0, -2]], [[0.1, 0.2]], "index -2 among 150"),
        ([[0.0, 1.0]], [[0.1, 0.2]], "whole numbers; found float64"),
        ([[0, 1]], [[0.1]], r"found \(1, 2\) and \(1, 1\)"),
        ([0, 1], [0.1, 0.2], "of one shape"),
        ([[0, 1]], [[0.1, np.nan]], "NaN or infinity among the distances"),
        ([[0, 1]], [[0.1, np.inf]], "NaN or infinity among the distances"),
    ],
)
def test_bad_neighbours(fitted, collection, indices, distances, message):
    with pytest.raises(InvalidInput, match=message):
        fitted.score_neighbors(np.array(indices), np.array(distances))


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
    scores, found = fitted.decision_function(X_new), fitted.kneighbors(X_new)
    evidence = fitted.explain(X_new, range(6))
    for i in range(40):
        far = dict(zip(found.indices[i].tolist(), found.distances[i].tolist(), strict=True))
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
        for one, other in zip(explained, again, strict=True):
            assert_same(one.shares, other.shares, 1e-12)
    columns = np.array([[s.label for s in row] for row in suggestions])
    by_column = fitted.explain(X_new, columns)
    assert [[e.label for e in row] for row in by_column] == columns.tolist()
    assert fitted.explain(X_new[:1], []) == [[]]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
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
    ],
)
def test_labels_that_cannot_be_explained(labels, message, collection):
    model = NeighborVoting(3).fit(collection.X, collection.Y)
    with pytest.raises(InvalidInput, match=message):
        model.explain(collection.X_new[:2], labels)


# --- images that come later ---


@each_neighbor_method
def test_added_images_count_as_if_they_had_been_there(method, collection):
    X, Y, X_new = collection
    grown = clone(method).fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    assert grown.labels_.shape == (150, 6)
    if isinstance(method, TagProp) or getattr(method, "metric_learning", False):
        learned = vars(clone(method).fit(X[:100], Y[:100]))
        for name in ("rank_weights_", "decay_", "slopes_", "offsets_", "dimension_weights_"):
            if learned.get(name) is not None:
                assert_same(getattr(grown, name), learned[name], 1e-5)
        assert (grown.kneighbors(X_new).indices >= 100).any()
        return
    if isinstance(method, KinReadout):  # the read-out is learned by `fit` alone
        first = clone(method).fit(X[:100], Y[:100])
        assert_same(grown.components(X_new).readout, first.components(X_new).readout)
        assert (grown.kneighbors(X_new).indices >= 100).any()
        return
    whole = clone(method).fit(X, Y)
    np.testing.assert_allclose(
        grown.decision_function(X_new), whole.decision_function(X_new), rtol=1e-12
    )


@each_neighbor_method
def test_partial_fit_begins_as_fit_does(method, collection, scores):
    first = clone(method).partial_fit(collection.X, collection.Y)
    assert_same(first.decision_function(collection.X_new), scores)


@each_neighbor_method
def test_a_new_label_is_suggested_without_a_new_space(method):
    """A space that was fitted without snow finds the images on which it lies."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((3, 20))
    # photographs of three kinds, and of a fourth between the first two, which comes later
    kind = rng.integers(0, 4, 600)
    X = np.vstack([directions, directions[0] + directions[1]])[kind]
    X += 0.3 * rng.standard_normal((600, 20))
    Y = np.eye(4)[kind]
    snow, parts = 3, np.split(np.arange(600), [300, 450])
    before, later, new = parts[0][kind[parts[0]] != snow], parts[1], parts[2]

    space = SemanticSpace().fit(X[before], Y[before, :3])
    model = clone(method).fit(space.transform(X[before]), Y[before, :3])
    assert {s.label for (s,) in model.suggest(space.transform(X[new]), 1)} <= {0, 1, 2}

    model.partial_fit(space.transform(X[later]), scipy.sparse.csr_array(Y[later]))
    assert model.n_labels_ == 4
    scores = model.decision_function(space.transform(X[new]))
    snowy = kind[new] == snow
    if getattr(method, "n_neighbors", 0) > 600:
        assert (scores[:, snow] == Y[later, snow].sum()).all()  # all images count
        return
    best = scores.argmax(axis=1)
    assert (best[snowy] == snow).mean() > 0.9
    assert (best[~snowy] == snow).mean() < 0.1
    (evidence,) = model.explain(space.transform(X[new][snowy][:1]), [snow])[0]
    assert (Y[np.concatenate([before, later])][evidence.indices, snow] == 1).all()


@each_neighbor_method
def test_images_with_fewer_labels_are_refused(fitted, collection):
    with pytest.raises(InvalidInput, match="5 labels where 6 are known"):
        fitted.partial_fit(collection.X_new, collection.Y[:40, :5])
    with pytest.raises(ValueError, match="4 features"):
        fitted.partial_fit(collection.X_new[:, :4], collection.Y[:40])
    assert fitted.labels_.shape == (150, 6)
    assert fitted.index_.n_points_ == 150


# --- another index ---


@each_searched_method
@needs_faiss
def test_faiss_searches_as_the_exact_search_does(method, collection, tmp_path):
    X, Y, X_new = collection
    exact = clone(method).fit(X, Y)
    model = clone(method).set_params(index=FaissNeighbors("Flat")).fit(X, Y)
    np.testing.assert_array_equal(model.kneighbors(X_new).indices, exact.kneighbors(X_new).indices)
    # in float32 two images change ranks, from which TagProp learns
    tolerance = 0.03 if isinstance(method, TagProp) else 1e-3
    np.testing.assert_allclose(
        model.decision_function(X_new), exact.decision_function(X_new), atol=tolerance
    )
    for one, other in zip(model.explain(X_new, [0]), exact.explain(X_new, [0]), strict=True):
        assert set(one[0].indices.tolist()) == set(other[0].indices.tolist())
    model.partial_fit(X_new, Y[:40])
    exact.partial_fit(X_new, Y[:40])
    np.testing.assert_allclose(
        model.decision_function(X_new), exact.decision_function(X_new), atol=tolerance
    )
    again = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.decision_function(X_new), model.decision_function(X_new))
    again.partial_fit(X[:20], Y[:20])
    assert again.index_.n_points_ == 210


@each_searched_method
@needs_faiss
def test_an_index_that_finds_few_neighbours_is_borne(method):
    """Of 60 lists one is looked into, so that most neighbours are missing."""
    X, Y, X_new = make_collection(400)
    index = FaissNeighbors("IVF10,Flat", search="nprobe=1")
    model = clone(method).set_params(index=index, n_neighbors=100).fit(X, Y)
    found = model.kneighbors(X_new)
    assert (found.indices < 0).any()
    scores = model.decision_function(X_new)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(model.score_neighbors(*found, X_new), scores, atol=1e-6)
    for i, (e,) in enumerate(model.explain(X_new, [0])):
        assert (e.indices >= 0).all()
        assert not len(e.indices) or e.shares.sum() + e.readout == pytest.approx(scores[i, 0])
    model.partial_fit(X_new, Y[:40])
    assert np.isfinite(model.decision_function(X_new)).all()


def test_the_index_that_was_passed_stays_as_it_was(collection):
    index = ExactNeighbors("euclidean")
    model = NeighborVoting(5, index=index).fit(collection.X, collection.Y)
    assert not hasattr(index, "points_")
    expected = NeighborVoting(5, metric="euclidean").fit(collection.X, collection.Y)
    np.testing.assert_array_equal(
        model.decision_function(collection.X_new), expected.decision_function(collection.X_new)
    )
    assert "(euclidean)" in model.describe()[1]


# --- storage ---


@each_method
def test_a_loaded_model_is_the_saved_one(fitted, method, collection, tmp_path):
    X, Y, X_new = collection
    again = load(save(fitted, tmp_path / "model"))
    assert type(again) is type(method)
    assert again.get_params() == method.get_params()
    assert again.describe() == fitted.describe()
    assert_same(again.decision_function(X_new), fitted.decision_function(X_new))
    if hasattr(again, "partial_fit"):
        for model in (again, fitted):
            model.partial_fit(X_new, np.hstack([Y[:40], Y[:40, :1]]))
        assert_same(again.decision_function(X), fitted.decision_function(X))


@each_searched_method
def test_a_model_of_neighbours_alone_is_stored_too(method, collection, tmp_path):
    X, Y, _ = collection
    known = nearest(X, X, 20, exclude=np.arange(150))
    model = clone(method).fit_neighbors(*known, Y)
    again = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.score_neighbors(*known), model.score_neighbors(*known))


@each_method
@needs_torch
def test_a_model_moves_to_torch(fitted, collection, tmp_path):
    import torch

    X_new = collection.X_new
    again = load(save(fitted, tmp_path / "model"), device="cpu")
    scores = again.decision_function(torch.from_numpy(X_new))
    assert isinstance(scores, torch.Tensor)
    np.testing.assert_allclose(scores.numpy(), fitted.decision_function(X_new), atol=1e-12)
    if hasattr(again, "explain"):
        again.explain(torch.from_numpy(X_new), [0])


@needs_torch
@needs_faiss
def test_faiss_stays_on_the_host_and_takes_torch(collection, tmp_path):
    import torch

    X, Y, X_new = collection
    model = NeighborVoting(7, index=FaissNeighbors()).fit(X, Y)
    again = load(save(model, tmp_path / "model"), device="cpu")
    assert isinstance(again.index_.points_, np.ndarray)
    scores = again.decision_function(torch.from_numpy(X_new))
    np.testing.assert_array_equal(scores.numpy(), model.decision_function(X_new))
