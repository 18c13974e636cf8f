"""Every kind of pixel that Pillow knows, as 8-bit RGB."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageCms

__all__ = ["as_rgb"]

_BITS_PER_SAMPLE, _PHOTOMETRIC, _MAX_SAMPLE_VALUE = 258, 262, 281  # tags of TIFF
_WHITE_IS_ZERO = 0


def as_rgb(image: Image.Image) -> Image.Image:
    """A loaded image in mode RGB: alpha over white, deep greys scaled to 8 bits."""
    if image.mode.startswith(("I", "F")):
        return _from_deep_grey(image)
    if image.has_transparency_data:
        return _over_white(image.convert("RGBA"))
    if image.mode == "LAB":
        return _from_lab(image)
    return image if image.mode == "RGB" else image.convert("RGB")


def _over_white(image: Image.Image) -> Image.Image:
    paper = Image.new("RGB", image.size, "white")
    paper.paste(image, mask=image.getchannel("A"))
    return paper


def _from_lab(image: Image.Image) -> Image.Image:
    lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    transform = ImageCms.buildTransform(lab, srgb, "LAB", "RGB")
    converted = ImageCms.applyTransform(image, transform)
    if converted is None:
        raise ValueError("no conversion from L*a*b*")
    return converted


def _from_deep_grey(image: Image.Image) -> Image.Image:
    """Greys of 16 and 32 bits and floating point.

    16 bits: white is the largest number that the file's bits can hold, or that it says it has.
    Others do not say what is white: 1 if no float is larger, else 255, else 65,535; numbers
    beyond these, or negative ones, are spread from the smallest to the largest.
    """
    tags = getattr(image, "tag_v2", {})
    if image.mode.startswith("I;16"):
        values = np.asarray(image).astype(np.float32)
        low, high = 0.0, float(_white_of_16_bits(tags))
    else:
        values = np.nan_to_num(np.asarray(image, np.float64), posinf=0, neginf=0)
        low, high = _range(values, ones=image.mode == "F")
    scaled = (np.clip(values, low, high) - low) * (255 / (high - low))
    grey = np.rint(scaled).astype(np.uint8)
    if tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO:
        grey = 255 - grey
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        grey[values == transparent] = 255
    return Image.fromarray(grey).convert("RGB")


def _white_of_16_bits(tags: dict[int, object]) -> int:
    told = tags.get(_MAX_SAMPLE_VALUE)
    told = told[0] if isinstance(told, tuple) and told else told
    if isinstance(told, int) and 0 < told <= 0xFFFF:
        return told
    return 0xFFF if tags.get(_BITS_PER_SAMPLE) == (12,) else 0xFFFF


def _range(values: np.ndarray, *, ones: bool) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    for white in (1.0,) * ones + (255.0, 65535.0):
        if low >= 0 and high <= white:
            return 0.0, white
    return low, max(high, low + 1)
