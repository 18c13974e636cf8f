"""From pixels to what a network sees, against Pillow's own steps."""

import numpy as np
import pytest
from PIL import Image

from tagkin.features import Preprocessing


def photograph(height, width):
    """Smooth and coloured, with an edge."""
    y, x = np.mgrid[:height, :width] / max(height, width)
    pixels = np.stack([np.sin(9 * x + 3 * y), np.cos(7 * y * x), x > y], axis=2)
    return np.round(127.5 * (np.clip(pixels, -1, 1) + 1)).astype(np.uint8)


@pytest.mark.parametrize("shape", [(480, 640), (640, 427), (300, 300), (100, 140), (1000, 257)])
def test_the_middle_of_the_resized_photograph(shape):
    """Within rounding of half a pixel: a tenth of a grey level in the mean of smooth parts."""
    pixels = photograph(*shape)
    prepared = Preprocessing(224, "crop", 256).prepare(pixels)
    height, width = (round(256 * side / min(shape)) for side in shape)
    image = Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC)
    left, top = (width - 224) / 2, (height - 224) / 2
    right = np.asarray(image.crop((round(left), round(top), round(left) + 224, round(top) + 224)))
    assert prepared.shape == (224, 224, 3)
    assert prepared.dtype == np.uint8
    difference = np.abs(prepared.astype(int) - right)
    assert difference[..., :2].mean() < 0.8
    assert np.median(difference) <= 1


def test_a_photograph_of_the_right_size_is_only_cut():
    pixels = photograph(256, 256)
    prepared = Preprocessing(224, "crop", 256).prepare(pixels)
    np.testing.assert_array_equal(prepared, pixels[16:240, 16:240])
    wide = photograph(256, 301)
    prepared = Preprocessing(224, "crop", 256).prepare(wide)
    np.testing.assert_array_equal(prepared, wide[16:240, 38:262])
    square = photograph(32, 32)
    np.testing.assert_array_equal(Preprocessing(32, "warp").prepare(square), square)


def test_a_warped_photograph_is_whole():
    pixels = photograph(90, 200)
    prepared = Preprocessing(64, "warp", resample="bilinear").prepare(pixels)
    right = Image.fromarray(pixels).resize((64, 64), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(prepared, np.asarray(right))


@pytest.mark.parametrize("shape", [(1, 1), (1, 4000), (4000, 1), (2, 3)])
@pytest.mark.parametrize("resize", ["crop", "warp"])
def test_strange_shapes(shape, resize):
    pixels = np.full((*shape, 3), 77, dtype=np.uint8)
    prepared = Preprocessing(16, resize).prepare(pixels)
    np.testing.assert_array_equal(prepared, np.full((16, 16, 3), 77))


def test_numbers_for_the_network():
    batch = np.random.default_rng(0).integers(0, 256, (2, 4, 4, 3), dtype=np.uint8)
    preprocessing = Preprocessing(4, scale=1.0, mean=(127, 126, 125), std=(128, 64, 32))
    prepared = preprocessing.normalize(batch)
    assert prepared.dtype == np.float32
    assert prepared.flags.c_contiguous
    for channel, mean, std in ((0, 127, 128), (1, 126, 64), (2, 125, 32)):
        expected = (batch[..., channel].astype(float) - mean) / std
        np.testing.assert_allclose(prepared[:, channel], expected, rtol=1e-6)
