"""Small pictures of photographs, with a grey placeholder if a photograph is unreadable."""

from __future__ import annotations

import os

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tagkin.errors import UnreadableImage
from tagkin.images import encode_jpeg, thumbnail

__all__ = ["jpeg", "picture"]

_GREY, _DARKER, _WORD = (214, 214, 218), (168, 168, 176), "#6b6b70"


def picture(file: str, size: int) -> np.ndarray:
    """Return a photograph with its longer side at most `size` pixels, (h, w, 3) of uint8.

    A grey square with a note replaces a missing or damaged photograph.
    """
    try:
        return thumbnail(file, size)
    except (UnreadableImage, OSError, ValueError):  # ValueError: a name with a zero byte
        return _placeholder(size, "unreadable" if os.path.exists(file) else "missing")


def jpeg(file: str, size: int) -> tuple[bytes, int, int]:
    """Return a small copy as a JPEG file, and its width and height."""
    pixels = picture(file, size)
    height, width = pixels.shape[:2]
    return encode_jpeg(pixels, quality=70), width, height


def _placeholder(size: int, word: str) -> np.ndarray:
    image = Image.new("RGB", (size, size), _GREY)
    near, far, width = round(0.36 * size), round(0.64 * size), max(1, size // 40)
    draw = ImageDraw.Draw(image)
    draw.line([(near, near), (far, far)], _DARKER, width)
    draw.line([(near, far), (far, near)], _DARKER, width)
    font = ImageFont.load_default(max(10, size // 8))
    draw.text((size / 2, 0.72 * size), word, fill=_WORD, font=font, anchor="mt")
    return np.asarray(image)
