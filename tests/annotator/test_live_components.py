"""Principal components of features, of few images and of many, against a decomposition in full."""

import numpy as np
import pytest

from tagkin import FeatureAnnotator, SemanticSpace
from tagkin.annotator.live import LiveImages, leading_directions
from tagkin.transfer import NeighborVoting
from tests.conftest import assert_same

D = 60
HALF = 2e-3  # rounding of float16, in sums of a few products


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def centred(X):
    """Of unit length, then centred, then so that the mean of their squared lengths is 1."""
    rows = unit(X) - unit(X).mean(axis=0)
    return rows / np.sqrt(np.mean(np.sum(rows**2, axis=1)))


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
    return FeatureAnnotator().fit(X, np.eye(12)[:, :3] + np.eye(12)[::-1, :3]).model_


def test_all_directions_keep_every_product(model, images):
    found = LiveImages.of(model, images).components.astype(np.float32)
    expected = centred(images)
    assert_same(found @ found.T, expected @ expected.T, tolerance=HALF)


def test_images_are_added_in_blocks(model, images):
    whole, parts = LiveImages.of(model, images), LiveImages(model, images, 300)
    for block in np.array_split(images, 2):
        parts.add(block)
    assert_same(parts.components, whole.components, tolerance=HALF)
    assert_same(parts.embeddings, whole.embeddings, tolerance=HALF)
    expected = unit(model.embed(images))
    assert_same(whole.embeddings, expected, tolerance=HALF)
    votes = np.exp(10 * (expected @ unit(model.method.index.points_).T - 1)).sum(axis=1)
    assert_same(whole.support, votes, tolerance=1e-4)


def test_embeddings_of_many_labels_keep_their_cosines_in_512_dimensions():
    rng = np.random.default_rng(0)
    X = rng.random((600, 12)) @ rng.random((12, D)) + rng.random((600, D))
    Y = rng.random((600, 540)) < 0.02
    model = FeatureAnnotator(SemanticSpace(), NeighborVoting()).fit(X, Y).model_
    images, expected = LiveImages.of(model, X), unit(model.embed(X))
    assert images.embeddings.shape[1] == 512 < expected.shape[1]
    found = images.embeddings.astype(np.float32)
    assert_same(np.linalg.norm(found, axis=1), np.ones(600), tolerance=HALF)
    assert np.abs(found @ found.T - expected @ expected.T).max() < 0.1
    votes = np.exp(10 * (expected @ unit(model.method.index.points_).T - 1)).sum(axis=1)
    assert_same(images.support, votes, tolerance=1e-4)  # of all dimensions


def test_the_leading_ones_lose_least(images):
    center, leading = leading_directions(images, 5)
    assert leading.shape[1] <= 5
    found = (unit(images) - center) @ leading
    found /= np.sqrt(np.mean(np.sum(found**2, axis=1)))
    U, values, _ = np.linalg.svd(centred(images), full_matrices=False)
    best = U[:, :5] * values[:5]
    best /= np.sqrt(np.mean(np.sum(best**2, axis=1)))
    assert_same(found @ found.T, best @ best.T, tolerance=1e-4)


def test_an_image_that_is_alone_has_no_direction(model):
    found = LiveImages.of(model, np.ones((1, D))).components
    assert len(found) == 1
    assert not found.any()
    assert np.isfinite(LiveImages.of(model, np.zeros((4, D))).components).all()


@pytest.mark.filterwarnings("error")
def test_no_images_are_no_fault(model):
    images = LiveImages.of(model, np.zeros((0, D)))
    assert images.embeddings.shape == (0, 3)
    assert images.support.shape == (0,)
