"""What every method of label transfer keeps: images that come later, another index, storage."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from tagkin import SemanticSpace, load, save
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, FaissNeighbors, nearest
from tagkin.transfer import (
    KinReadout,
    NeighborVoting,
    TagProp,
)
from tests.conftest import assert_same, make_collection, needs_torch
from tests.transfer.contract.methods import (
    each_method,
    each_neighbor_method,
    each_searched_method,
    needs_faiss,
)

# --- images that come later ---


@each_neighbor_method
def test_added_images_count_as_if_they_had_been_there(method, collection):
    X, Y, X_new = collection
    grown = clone(method).fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    assert grown.labels_.shape == (150, 6)
    if isinstance(method, TagProp):
        learned = vars(clone(method).fit(X[:100], Y[:100]))
        for name in ("rank_weights_", "decay_", "slopes_", "offsets_"):
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
    with pytest.raises(InvalidInput, match="5 labels, but 6 are known"):
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
    for explanation, other in zip(
        model.explain(X_new, [0]), exact.explain(X_new, [0]), strict=True
    ):
        assert set(explanation[0].indices.tolist()) == set(other[0].indices.tolist())
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
    neighbors = model.kneighbors(X_new)
    assert (neighbors.indices < 0).any()
    scores = model.decision_function(X_new)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(model.score_neighbors(*neighbors, X_new), scores, atol=1e-6)
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
