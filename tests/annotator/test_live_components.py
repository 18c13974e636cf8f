"""Principal components of features, of few images and of many, against a decomposition in full."""

import numpy as np
import pytest

from tagkin import FeatureAnnotator
from tagkin.annotator.live import LiveImages, leading_directions
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


@pytest.fixture(scope="module")
def model():
    """A model of features with D numbers."""
    X = np.random.default_rng(0).random((12, D), dtype=np.float32)
    return FeatureAnnotator(denoise=False).fit(X, np.eye(12)[:, :3] + np.eye(12)[::-1, :3]).model_


def test_all_directions_keep_every_product(model, images):
    found = LiveImages.of(model, images).components()
    assert found.dtype == np.float32
    expected = centred(images)
    assert_same(found @ found.T, expected @ expected.T, tolerance=1e-5)


def test_images_are_added_in_blocks(model, images):
    whole, parts = LiveImages.of(model, images), LiveImages(model, images, 300)
    for block in np.array_split(images, 2):
        parts.add(block)
    assert_same(parts.components(), whole.components(), tolerance=1e-5)
    assert_same(parts.embeddings, whole.embeddings, tolerance=1e-5)
    expected = model.embed(images)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert_same(whole.embeddings, expected, tolerance=1e-5)


def test_the_leading_ones_lose_least(images):
    center, leading = leading_directions(images, 5)
    assert leading.shape[1] <= 5
    found = (images / np.linalg.norm(images, axis=1, keepdims=True) - center) @ leading
    found /= np.sqrt(np.mean(np.sum(found**2, axis=1)))
    U, values, _ = np.linalg.svd(centred(images), full_matrices=False)
    best = U[:, :5] * values[:5]
    best /= np.sqrt(np.mean(np.sum(best**2, axis=1)))
    assert_same(found @ found.T, best @ best.T, tolerance=1e-4)


def test_an_image_that_is_alone_has_no_direction(model):
    found = LiveImages.of(model, np.ones((1, D))).components()
    assert len(found) == 1
    assert not found.any()
    assert np.isfinite(LiveImages.of(model, np.zeros((4, D))).components()).all()
