"""Raw files: seen through their preview, or developed."""

import numpy as np
import pytest
from PIL import Image

from tagkin.errors import UnreadableImage
from tagkin.images import decode
from tagkin.images.formats import RAW, format_of_file
from tests.images.raw_writer import dng
from tests.images.synthetic import picture, saved

RGB = Image.fromarray(picture())


MOSAIC = np.full((128, 192), 20_000, np.uint16)


def upright(orientation):
    turned = {1: RGB, 6: RGB.transpose(Image.Transpose.ROTATE_270)}[orientation]
    return np.asarray(turned, float)


@pytest.mark.parametrize("orientation", [1, 6])
def test_raw_files_are_seen_through_their_preview(orientation):
    data = dng(MOSAIC, saved(RGB, "JPEG", quality=95), orientation=orientation)
    image = decode(data)
    assert image.shape == upright(orientation).shape
    assert np.abs(image - upright(orientation)).mean() < 8
    with pytest.raises(UnreadableImage, match="megapixels, above the cap"):
        decode(data, max_pixels=100)


@pytest.mark.parametrize("orientation", [1, 6])
def test_raw_files_without_a_preview_or_with_a_small_one_are_developed(orientation):
    shape = (64, 96, 3) if orientation == 1 else (96, 64, 3)
    none = dng(MOSAIC, orientation=orientation)
    small = dng(MOSAIC, saved(RGB, "JPEG"), orientation=orientation)
    for data, min_side in ((none, 0), (none, 40), (small, 40)):
        image = decode(data, min_side=min_side)
        assert image.shape == shape
        assert image.std(axis=(0, 1)).max() < 3  # the mosaic is of one colour
    assert decode(small, min_side=30).shape == upright(orientation).shape
    tiny = dng(MOSAIC[:32, :64], saved(RGB, "JPEG"), orientation=orientation)
    assert decode(tiny, min_side=40).shape == upright(orientation).shape  # larger than developed


def test_damaged_raw_files():
    for head in (b"IIU\0", b"FUJIFILMCCD-RAW ", b"II*\0\x10\0\0\0CR\2\0", b"....ftypcrx "):
        with pytest.raises(UnreadableImage, match="a raw file of a camera that cannot be read"):
            decode(head + bytes(300))
    jpeg = saved(RGB, "JPEG")
    whole = dng(MOSAIC, jpeg)
    for n in (4, 200, len(jpeg) - 300):
        damaged = whole.replace(jpeg[n:], bytes(len(jpeg) - n))
        assert decode(damaged).shape == (64, 96, 3)  # what the sensor saw is still there


def test_raw_files_are_known_by_their_content():
    assert format_of_file(dng(MOSAIC)) == format_of_file(dng(MOSAIC, saved(RGB, "JPEG"))) == RAW
    # not by their version, either: a mosaic below the first directory is enough
    assert format_of_file(dng(MOSAIC).replace(b"\x12\xc6\1\0", b"\x11\xc6\1\0")) == RAW
    scans = saved(RGB, "TIFF", tiffinfo={330: (8,)})  # points to a directory that makes no sense
    for data in (saved(RGB, "TIFF"), scans, b"II*\0", b"II*\0\xff\xff\xff\xff"):
        assert format_of_file(data) == "TIFF"
