"""χ² distances in both forms, against the sum written out, and the kernel."""

import math

import numpy as np
import pytest
from sklearn.metrics import pairwise

from tagkin import memory_budget
from tagkin.errors import InvalidInput
from tagkin.paper.exp_chi2 import ExpChi2, chi2_distances
from tests.conftest import needs_torch

CASES = [
    (1.0, (7, 5, 4)),
    (0.3, (40, 30, 20)),
    (0.02, (300, 200, 50)),  # from here on rows share little: the form over shared features
    (0.3, (200, 150, 20)),
    (1.0, (150, 120, 4)),  # and here they share all
    (0.0, (200, 100, 3)),
    (0.1, (1, 3, 2)),
    (0.1, (0, 3, 2)),
]


def tag_vectors(density, n, d, dtype, seed):
    rng = np.random.default_rng(seed)
    return (rng.random((n, d)) * (rng.random((n, d)) < density)).astype(dtype)


def written_out(X, Y):
    x, y = X.astype(float)[:, None], Y.astype(float)[None]
    return np.divide((x - y) ** 2, x + y, where=x + y > 0, out=np.zeros((x + y).shape)).sum(axis=2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("density", "shape"), CASES)
def test_both_forms_are_the_sum(density, shape, dtype):
    n, m, d = shape
    X, Y = tag_vectors(density, n, d, dtype, 0), tag_vectors(density, m, d, dtype, 1)
    X[:1] = Y[:1] if n else X[:1]
    K = chi2_distances(X, Y)
    assert K.dtype == dtype
    assert (K >= 0).all()
    np.testing.assert_allclose(K, written_out(X, Y), atol=20 * d * np.finfo(dtype).eps)
    square = chi2_distances(X, X)
    np.testing.assert_array_equal(square, square.T)
    assert not square.diagonal().any()


def padded(rows, n):
    """The rows and as many empty ones as make n: with 200, all go through shared features."""
    return np.concatenate([rows, np.zeros((n - len(rows), rows.shape[1]), rows.dtype)])


@pytest.mark.parametrize("n", [2, 200])
def test_large_and_small_values_stay_in_range(n):
    X = padded(np.array([[1e30, 0.0, 2e-30], [1e30, 1e-20, 0.0]], np.float32), n)
    assert np.isfinite(chi2_distances(X / 1e12, X / 2e12)).all()


def test_huge_values_of_few_rows_stay_in_range():
    huge = padded(np.full((2, 1), 1e300), 200)
    assert np.isfinite(chi2_distances(huge, huge / 2)).all()


@needs_torch
def test_tensors_take_the_dense_form():
    import torch

    X = tag_vectors(0.05, 300, 40, np.float64, 0)
    K = chi2_distances(torch.from_numpy(X), torch.from_numpy(X))
    np.testing.assert_allclose(K.numpy(), chi2_distances(X, X), atol=1e-12)


def test_exp_chi2_by_hand():
    X = np.array([[0.0, 1.0, 3.0], [0.0, 2.0, 1.0]])
    chi2 = 1 / 3 + 4 / 4  # 0/0 counts as 0
    K = ExpChi2(scale=0.7)(X)
    np.testing.assert_allclose(K, [[1, np.exp(-chi2 / 1.4)], [np.exp(-chi2 / 1.4), 1]])
    # by default the scale is the mean over all pairs, diagonal included
    np.testing.assert_allclose(ExpChi2()(X), ExpChi2(scale=chi2 / 2)(X))
    assert ExpChi2().resolve(X).scale == pytest.approx(chi2 / 2)


def test_exp_chi2_is_scikit_learns():
    X, Y = (abs(np.random.default_rng(n).standard_normal((n, 20))) for n in (40, 33))
    X[X < 0.5] = 0
    expected = pairwise.chi2_kernel(X, Y, gamma=0.25)
    with memory_budget(2000):
        np.testing.assert_allclose(ExpChi2(scale=2.0)(X, Y), expected, atol=1e-12)


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, True, "wide"])
def test_a_scale_is_a_positive_number(value):
    with pytest.raises(InvalidInput, match="scale of the exp-χ² kernel must be a number above 0"):
        ExpChi2(scale=value)


def test_negative_values_are_refused():
    with pytest.raises(InvalidInput, match="non-negative"):
        ExpChi2()(np.array([[1.0, -1.0]]))
