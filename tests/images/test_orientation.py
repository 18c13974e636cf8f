"""Photographs are turned as their tags say, whatever else is in these."""

import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from tagkin.images import decode
from tests.images.synthetic import HAS_AVIF, picture, saved, tiff

RGB = Image.fromarray(picture())


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_orientation_is_applied(form, orientation):
    if form == "AVIF" and not HAS_AVIF:
        pytest.skip("this Pillow has no AVIF")
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"WEBP": {"lossless": True}, "JPEG": {"quality": 95}}.get(form, {})
    image = decode(saved(RGB, form, exif=exif, **options))
    upright = np.asarray(RGB)
    expected = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright, -1),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright),
    }[orientation]
    assert image.shape == expected.shape
    assert np.abs(image - expected.astype(float)).mean() < 8


def test_orientation_as_pillow_has_it_and_odd_values_are_upright():
    for orientation in (0, 1, 6, 8, 9, 255):
        exif = Image.Exif()
        exif[0x0112] = orientation
        data = saved(RGB, "PNG", exif=exif)
        expected = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        np.testing.assert_array_equal(decode(data), np.asarray(expected))


def test_damaged_tags_of_tiff_do_not_cost_the_photograph():
    values = np.arange(12, dtype=np.uint8).reshape(3, 4)
    for tags in ({"t700": 10**6}, {"t34665": 10**6}, {"t700": 7, "t274": 6}, {"t33723": 2**32 - 1}):
        assert decode(tiff(values, 8, **tags)).size == 36


@pytest.mark.parametrize(
    "exif", [b"Exif\0\0", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff", b"Exif\0\0garbage"]
)
def test_damaged_exif_does_not_cost_the_photograph(exif):
    for form in ("JPEG", "PNG", "WEBP"):
        assert decode(saved(RGB, form, exif=exif)).shape == (32, 48, 3)
