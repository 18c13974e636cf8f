"""Principal components of features, of few images and of many, against a decomposition in full."""

import numpy as np
import pytest

from tagkin.annotator.live import principal_components
from tests.conftest import assert_same

D = 60


def centred(X):
    """Of unit length, then centred, then so that the mean of their squared lengths is 1."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    unit = unit - unit.mean(axis=0)
    return unit / np.sqrt(np.mean(np.sum(unit**2, axis=1)))


@pytest.fixture(params=[2, 7, 40, D, 200])
def images(request):
    """Fewer than features, as many, and more; the first two alike."""
    X = np.random.default_rng(request.param).standard_normal((request.param, D)) + 1
    X[1 if request.param > 2 else 0] = 2 * X[0]
    return X


def test_all_directions_keep_every_product(images):
    found = principal_components(images, D)
    assert found.dtype == np.float32
    expected = centred(images)
    assert_same(found @ found.T, expected @ expected.T, tolerance=1e-5)


def test_the_leading_ones_lose_least(images):
    found = principal_components(images, 5)
    assert found.shape[1] <= 5
    U, values, _ = np.linalg.svd(centred(images), full_matrices=False)
    best = U[:, :5] * values[:5]
    best /= np.sqrt(np.mean(np.sum(best**2, axis=1)))
    assert_same(found @ found.T, best @ best.T, tolerance=1e-4)


def test_an_image_that_is_alone_has_no_direction():
    found = principal_components(np.ones((1, D)))
    assert len(found) == 1
    assert not found.any()
    assert np.isfinite(principal_components(np.zeros((4, D)))).all()
