"""What every method of label transfer keeps: images that come later, another index, storage."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from tagkin import SemanticSpace, load, save
from tagkin.errors import InvalidInput
from tagkin.neighbors import nearest
from tagkin.paper import TagProp
from tagkin.transfer import KinReadout
from tests.conftest import assert_same, needs_torch
from tests.transfer.contract.methods import (
    each_method,
    each_neighbor_method,
    each_searched_method,
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
