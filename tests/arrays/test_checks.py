import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator

import tagkin
from tagkin import arrays
from tagkin.errors import InvalidInput
from tests.conftest import needs_torch


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("float64", "float64"),
        ("int64", "float64"),
        ("float32", "float32"),
        ("float16", "float32"),
        ("int8", "float32"),
        ("bool", "float32"),
    ],
)
def test_blocks_are_float32_where_that_loses_nothing(given, used, as_array):
    block = arrays.as_block(as_array(np.ones((2, 3), dtype=given)))
    assert str(block.dtype).endswith(used)


@needs_torch
def test_torch_input_is_checked():
    import torch

    with pytest.raises(InvalidInput, match="Expected 2D tensor for X"):
        arrays.check_features(torch.ones(3))
    with pytest.raises(InvalidInput, match="Complex"):
        arrays.check_features(torch.ones((3, 2), dtype=torch.complex64))
    with pytest.raises(InvalidInput, match=r"0 sample\(s\)"):
        arrays.check_features(torch.ones((0, 2)))
    with pytest.raises(InvalidInput, match="Expected 2D tensor for Y"):
        arrays.check_label_matrix(torch.ones((3, 2, 2)), 3)
    with pytest.raises(InvalidInput, match="one column a class"):
        arrays.check_label_matrix(torch.arange(3), 3)
    with pytest.raises(InvalidInput, match="X is a sparse torch tensor"):
        arrays.check_features(torch.ones((3, 2)).to_sparse())
    with pytest.raises(InvalidInput, match=r"Input Y contains NaN or infinity in row 1\."):
        arrays.check_label_matrix(torch.tensor([[0.0], [float("nan")]]), 2)
    assert arrays.check_label_matrix(torch.tensor([0, 1, 1]), 3).shape == (3, 1)
    assert arrays.to_numpy(torch.ones(2, dtype=torch.bfloat16)).dtype == np.float32


def test_memory_maps_are_not_read_when_checked(tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float16, shape=(9, 4))
    checked = arrays.check_features(X)
    assert np.shares_memory(checked, X)
    assert checked.dtype == np.float16


def test_labels_keep_their_form():
    Y = scipy.sparse.coo_array(np.eye(3))
    assert arrays.check_label_matrix(Y, 3).format == "csr"
    assert arrays.check_label_matrix([[1, 0], [0, 1]], 2).shape == (2, 2)
    with pytest.raises(InvalidInput, match="4 rows in X and 3 in Y"):
        arrays.check_label_matrix(Y, 4)


TAGS = [["dog", "beach"], ["dog"], [], ["sea"]]
X4, Y4 = np.random.default_rng(0).random((4, 3)), np.eye(4)[:, :3]


@pytest.mark.parametrize(
    "use",
    [
        lambda X, Y: arrays.check_label_matrix(Y, 4),
        lambda X, Y: arrays.check_label_matrix(Y),
        tagkin.SemanticSpace().fit,
        tagkin.paper.TagDenoiser(n_neighbors=2, blend=0.5).fit,
        tagkin.paper.NeighborVoting(2).fit,
        tagkin.paper.LinearSVM().fit,
        tagkin.paper.NeighborVoting(2).fit(X4, Y4).score,
        lambda X, Y: tagkin.LabelCalibrator().fit(X, Y),
        lambda X, Y: tagkin.evaluate(Y, X),
    ],
    ids=lambda use: getattr(use, "__qualname__", None),
)
@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (TAGS, r"Row 0 of Y holds tags, .*tagkin\.Vocabulary\(\)\.fit_transform\(Y\)"),
        (["dog", "sea", "sea", "dog"], "Row 0 of Y holds tags, 'dog'"),
        (2 * Y4 - 1, r"negative entry in row 0 of Y\..*pass Y > 0"),
        (scipy.sparse.csr_array(2 * Y4 - 1), r"negative entry in row 0 of Y\..*pass Y > 0"),
        ([[0, 2], [1], [], [0]], "Y must have two dimensions.*different lengths.*as a text"),
    ],
    ids=["lists of tags", "tags", "minus one", "sparse minus one", "lists of numbers"],
)
def test_what_is_no_label_matrix_is_refused_the_same_everywhere(use, Y, message):
    with pytest.raises(InvalidInput, match=message):
        use(X4, Y)


class Named(BaseEstimator):
    n_features_in_ = 3
    feature_names_in_ = np.array(["a", "b", "c"], dtype=object)


class Plain(BaseEstimator):
    n_features_in_ = 3


def test_a_plain_array_of_the_right_width_is_taken_as_it_is():
    X = np.ones((2, 3), np.float32)
    assert arrays.check_features(X) is X
    arrays.check_same_features(Plain(), X)
    for other in (X[:, :2], np.ones((2, 4))):
        with pytest.raises(ValueError, match=f"X has {other.shape[1]} features"):
            arrays.check_same_features(Plain(), other)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        arrays.check_same_features(Named(), X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3, np.float32), "Expected 2D array"),
        (np.ones((0, 3), np.float32), "0 sample"),
        (np.ones((2, 0), np.float64), "0 feature"),
        (np.ones((2, 3), np.complex64), "Complex data"),
        (np.full((2, 3), "a"), "dtype='numeric'"),
    ],
)
def test_other_arrays_are_refused_as_scikit_learn_does(X, message):
    with pytest.raises(ValueError, match=message):
        arrays.check_features(X)


def test_rows_that_are_too_few_are_refused():
    X = np.ones((2, 3), np.float32)
    assert arrays.check_features(X, min_rows=2) is X
    with pytest.raises(ValueError, match="minimum of 3 is required"):
        arrays.check_features(X, min_rows=3)


@pytest.mark.parametrize("seed", ["7", -1, 2**32, 0.5])
def test_what_makes_no_generator_is_refused_of_few_images_too(collection, seed):
    """As scikit-learn refuses it, though nothing is drawn."""
    X, Y, _ = collection
    for estimator in (tagkin.SemanticSpace(), tagkin.transfer.LogisticReadout()):
        with pytest.raises(ValueError, match=r"[Ss]eed"):
            estimator.set_params(random_state=seed).fit(X, Y)
