"""Several views of each photograph, against the single views."""

import numpy as np
import pytest
from PIL import Image

from tagkin.errors import InvalidInput
from tagkin.features import Backbone, FeatureCache, Preprocessing, extract, get_backbone
from tagkin.features.combined_backbones import MAX_VIEWS, Views


class Corners(Backbone):
    """Nine sums, one for each third of a square: what a test can write down."""

    name, dimension, fingerprint = "corners", 9, "c"

    def __init__(self, resize="crop"):
        self.preprocessing = Preprocessing(24, resize, 36 if resize == "crop" else None)

    def __call__(self, batch):
        thirds = batch.astype(np.float32).sum(axis=3).reshape(len(batch), 3, 8, 3, 8)
        return thirds.sum(axis=(2, 4)).reshape(len(batch), 9)


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(0, 256, (90, 60, 3), dtype=np.uint8)


def squares(pixels, size, resize):
    """The middle of a photograph with a margin, and the whole, by Pillow alone."""
    image = Image.fromarray(pixels)
    if resize == "warp":
        return np.asarray(image.resize((size, size), Image.Resampling.BICUBIC))
    width, height = image.size
    side = size * min(width, height) / resize
    left, top = (width - side) / 2, (height - side) / 2
    box = (left, top, left + side, top + side)
    return np.asarray(image.resize((size, size), Image.Resampling.BICUBIC, box))


@pytest.mark.parametrize(("own", "margin"), [("crop", 36), ("warp", 24 * 8 / 7)])
@pytest.mark.parametrize("n_views", [2, 3, 4])
def test_the_mean_of_the_features_of_each_view(pixels, own, margin, n_views):
    plain = Corners(own)
    several = Views(plain, n_views)
    middle, whole = margin, "warp"
    order = [middle, whole] if own == "crop" else [whole, middle]
    seen = [squares(pixels, 24, view) for view in order]
    seen += [squares(pixels[:, ::-1], 24, view) for view in order]
    expected = np.mean([plain(view[None])[0] for view in seen[:n_views]], axis=0)
    batch = np.stack([several.prepare(pixels), np.zeros((24, 24 * n_views, 3), np.uint8)])
    features = several(batch)
    np.testing.assert_allclose(features[0], expected, rtol=1e-5)
    np.testing.assert_array_equal(features[1], 0)
    assert features.dtype == np.float32


def test_names_and_fingerprints():
    several = [Views(Corners(), n) for n in (2, 3, 4)]
    assert [backbone.name for backbone in several] == ["corners@2", "corners@3", "corners@4"]
    assert len({"c", *(backbone.fingerprint for backbone in several)}) == 4
    assert several[0].fingerprint == Views(Corners(), 2).fingerprint
    assert (several[0].dimension, several[0].min_side) == (9, Corners().min_side)
    for n in (1, MAX_VIEWS + 1):
        with pytest.raises(
            InvalidInput, match=rf"n_views must be a whole number from 2 to 4; found {n}"
        ):
            Views(Corners(), n)
    with pytest.raises(InvalidInput, match="corners@2 already has several views"):
        Views(several[0], 2)
    with pytest.raises(InvalidInput, match="takes uint8 pixels"):
        several[0](np.zeros((1, 24, 47, 3), np.uint8))


def test_by_name_and_from_the_cache(pixels, tmp_path):
    """A real network; what its views gave is kept apart from what the single view gave."""
    file = tmp_path / "a.png"
    Image.fromarray(pixels).resize((300, 400)).save(file)
    single, two = get_backbone("efficientnet-lite0"), get_backbone("efficientnet-lite0@2")
    with FeatureCache(tmp_path / "cache") as cache:
        extract([file], single, cache=cache)
        first = extract([file], two, cache=cache)
        again = extract([file], "efficientnet-lite0@2", cache=cache)
    assert (first.n_computed, again.n_computed) == (1, 0)
    np.testing.assert_array_equal(first.features, again.features)
    assert two.caption_columns == single.caption_columns == slice(0, 1280)
    assert get_backbone("efficientnet-lite0-gem@2").caption_columns is None
    shown = np.asarray(Image.open(file))
    views = [single(single.prepare(shown, resize=resize)[None])[0] for resize in ("crop", "warp")]
    np.testing.assert_allclose(first.features[0], np.mean(views, axis=0), atol=1e-4)
