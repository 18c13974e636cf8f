"""χ² distances in both forms, against the sum written out."""

import numpy as np
import pytest

from tagkin.kernels import chi2 as _chi2
from tagkin.kernels.chi2 import chi2_distances
from tests.conftest import needs_torch

CASES = [
    (1.0, (7, 5, 4)),
    (0.3, (40, 30, 20)),
    (0.02, (300, 200, 50)),
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
@pytest.mark.parametrize("form", [chi2_distances, _chi2._over_all, _chi2._over_shared])
def test_both_forms_are_the_sum(form, density, shape, dtype):
    n, m, d = shape
    X, Y = tag_vectors(density, n, d, dtype, 0), tag_vectors(density, m, d, dtype, 1)
    X[:1] = Y[:1] if n else X[:1]
    K = form(X, Y)
    assert K.dtype == dtype
    assert (K >= 0).all()
    np.testing.assert_allclose(K, written_out(X, Y), atol=20 * d * np.finfo(dtype).eps)
    square = form(X, X)
    np.testing.assert_array_equal(square, square.T)
    assert not square.diagonal().any()


def test_the_form_goes_by_what_rows_share():
    few, many = (tag_vectors(density, 300, 40, np.float64, 0) for density in (0.05, 0.9))
    assert _chi2._share_little(few, few)
    assert _chi2._share_little(few, many)
    assert not _chi2._share_little(many, many)
    assert not _chi2._share_little(few[:3], few)


def test_large_and_small_values_stay_in_range():
    X = np.array([[1e30, 0.0, 2e-30], [1e30, 1e-20, 0.0]], np.float32)
    for form in (_chi2._over_shared, _chi2._over_all):
        assert np.isfinite(form(X / 1e12, X / 2e12)).all()
    huge = np.full((2, 1), 1e300)
    assert np.isfinite(_chi2._over_shared(huge, huge / 2)).all()


@needs_torch
def test_tensors_take_the_dense_form():
    import torch

    X = tag_vectors(0.05, 300, 40, np.float64, 0)
    K = chi2_distances(torch.from_numpy(X), torch.from_numpy(X))
    np.testing.assert_allclose(K.numpy(), chi2_distances(X, X), atol=1e-12)
