"""Convert all of Pillow's pixel modes to 8-bit RGB, strip by strip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

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
    if image.mode.startswith(("I", "F")):
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


# --- greys of 16 and 32 bits and floating point ------------------------------------------


def _deep_grey_conversion(image: Image.Image) -> Callable[[Image.Image], Image.Image]:
    """Return the function that scales deep greys.

    With 16 bits, white is the largest number of the file's bits, or the declared maximum. Other
    files do not declare white: it is 1 if no float is larger, else 255, else 65,535. Larger or
    negative numbers are spread from the smallest to the largest.
    """
    tags = getattr(image, "tag_v2", {})
    if image.mode.startswith("I;16"):
        low, high = 0.0, float(_white_of_16_bits(tags))
    else:
        ends = [(v.min(), v.max()) for v in map(_finite, _strips(image, 1))]
        lowest, highest = min(low for low, _ in ends), max(high for _, high in ends)
        low, high = _range(float(lowest), float(highest), ones=image.mode == "F")
    transparent = image.info.get("transparency")
    return partial(
        _scale_grey,
        low=low,
        high=high,
        white_is_zero=tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO,
        transparent=transparent if isinstance(transparent, int) else None,
    )


def _scale_grey(
    image: Image.Image, *, low: float, high: float, white_is_zero: bool, transparent: int | None
) -> Image.Image:
    values = _values(image)
    scaled = np.clip(values, low, high)
    scaled -= low
    scaled *= 255 / (high - low)
    grey = np.rint(scaled, out=scaled).astype(np.uint8)
    if white_is_zero:
        grey = 255 - grey
    if transparent is not None:
        grey[values == transparent] = 255
    return Image.fromarray(grey).convert("RGB")


def _values(image: Image.Image) -> np.ndarray:
    if image.mode.startswith("I;16"):
        return np.asarray(image).astype(np.float32)
    return _finite(image).astype(np.float64)


def _finite(image: Image.Image) -> np.ndarray:
    """Return the stored greys of 32 bits, with 0 for NaN and infinity.

    `np.nan_to_num` is several times slower, and a small file can hold millions of pixels.
    """
    values = np.asarray(image)
    finite = np.isfinite(values)
    return values if finite.all() else np.where(finite, values, 0)


def _white_of_16_bits(tags: Mapping[int, object]) -> int:
    declared = tags.get(_MAX_SAMPLE_VALUE)
    declared = declared[0] if isinstance(declared, tuple) and declared else declared
    if isinstance(declared, int) and 0 < declared <= 0xFFFF:
        return declared
    return 0xFFF if tags.get(_BITS_PER_SAMPLE) == (12,) else 0xFFFF


def _range(low: float, high: float, *, ones: bool) -> tuple[float, float]:
    for white in (1.0,) * ones + (255.0, 65535.0):
        if low >= 0 and high <= white:
            return 0.0, white
    return low, max(high, low + 1)
