"""Convert all of Pillow's pixel modes to 8-bit RGB, strip by strip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from PIL import Image, ImageCms

__all__ = ["STRIP", "rgb_pixels"]

_BITS_PER_SAMPLE, _PHOTOMETRIC, _MAX_SAMPLE_VALUE = 258, 262, 281  # tags of TIFF
_WHITE_IS_ZERO = 0
STRIP = 1 << 20  # pixels per step; intermediate results take up to 40 bytes per pixel


def rgb_pixels(image: Image.Image, factor: int = 1) -> np.ndarray:
    """Return the pixels of a loaded image as (height, width, 3) of uint8.

    Transparent parts become white, and deep greys are scaled to 8 bits. The result is smaller by
    `factor`, by means over squares of pixels. It does not depend on `STRIP`.
    """
    to_rgb = _choose_conversion(image)
    width, height = image.size
    pixels = np.empty((-(-height // factor), -(-width // factor), 3), dtype=np.uint8)
    done = 0
    for part in _strips(image, factor):
        rgb = to_rgb(part)
        rows = np.asarray(rgb if factor == 1 else rgb.reduce(factor))
        pixels[done : done + len(rows)] = rows
        done += len(rows)
    return pixels


def _strips(image: Image.Image, factor: int) -> Iterator[Image.Image]:
    """Cut an image into parts of full width whose heights are multiples of the factor."""
    width, height = image.size
    rows = max(1, STRIP // (width * factor)) * factor
    if rows >= height:
        yield image
        return
    for top in range(0, height, rows):
        yield image.crop((0, top, width, min(top + rows, height)))


def _choose_conversion(image: Image.Image) -> Callable[[Image.Image], Image.Image]:
    """Return the function that converts the image, or parts of it, to RGB."""
    if image.mode.startswith("I;16"):
        return _deep_grey_conversion(image)
    if image.has_transparency_data:
        return lambda part: _paste_on_white(part.convert("RGBA"))
    if image.mode == "LAB":
        return _lab_conversion()
    return lambda part: part if part.mode == "RGB" else part.convert("RGB")


def _paste_on_white(image: Image.Image) -> Image.Image:
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image.getchannel("A"))
    return white


def _lab_conversion() -> Callable[[Image.Image], Image.Image]:
    lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    transform = ImageCms.buildTransform(lab, srgb, "LAB", "RGB")

    def convert(image: Image.Image) -> Image.Image:
        converted = ImageCms.applyTransform(image, transform)
        if converted is None:
            raise ValueError("no conversion from L*a*b*")
        return converted

    return convert


# --- greys of 16 bits --------------------------------------------------------------------


def _deep_grey_conversion(image: Image.Image) -> Callable[[Image.Image], Image.Image]:
    """Return the function that scales greys of 16 bits.

    White is the largest number of the file's bits, or the declared maximum.
    """
    tags = getattr(image, "tag_v2", {})
    white, transparent = _white_of_16_bits(tags), image.info.get("transparency")
    is_inverted = tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO

    def convert(part: Image.Image) -> Image.Image:
        values = np.asarray(part).astype(np.float32)
        grey = np.rint(np.minimum(values, white) * (255 / white)).astype(np.uint8)
        if is_inverted:
            grey = 255 - grey
        if isinstance(transparent, int):
            grey[values == transparent] = 255
        return Image.fromarray(grey).convert("RGB")

    return convert


def _white_of_16_bits(tags: Mapping[int, object]) -> int:
    declared = tags.get(_MAX_SAMPLE_VALUE)
    declared = declared[0] if isinstance(declared, tuple) and declared else declared
    if isinstance(declared, int) and 0 < declared <= 0xFFFF:
        return declared
    return 0xFFF if tags.get(_BITS_PER_SAMPLE) == (12,) else 0xFFFF
