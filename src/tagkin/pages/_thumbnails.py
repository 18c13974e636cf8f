"""Small pictures of photographs; a grey one where the photograph is gone or cannot be read."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from tagkin.errors import UnreadableImage
from tagkin.images import encode_jpeg, thumbnail

__all__ = ["jpeg", "picture", "square"]

_GREY, _DARKER = (214, 214, 218), (168, 168, 176)


def picture(file: str, size: int) -> np.ndarray:
    """A photograph with its longer side `size` pixels at most, (h, w, 3) of uint8.

    Where it has vanished or is damaged, a grey square with a cross stands for it.
    """
    try:
        return thumbnail(file, size)
    except (UnreadableImage, OSError, ValueError):  # ValueError: a name with a zero byte
        return _placeholder(size)


def square(file: str, size: int) -> np.ndarray:
    """The middle of a photograph, (size, size, 3) of uint8."""
    pixels = picture(file, 2 * size)
    height, width = pixels.shape[:2]
    side = min(height, width)
    left, top = (width - side) // 2, (height - side) // 2
    box = (left, top, left + side, top + side)
    resized = Image.fromarray(pixels).resize((size, size), Image.Resampling.LANCZOS, box)
    return np.asarray(resized)


def jpeg(file: str, size: int) -> tuple[bytes, int, int]:
    """A small copy as a JPEG file, and its width and height."""
    pixels = picture(file, size)
    height, width = pixels.shape[:2]
    return encode_jpeg(pixels, quality=70), width, height


def _placeholder(size: int) -> np.ndarray:
    image = Image.new("RGB", (size, size), _GREY)
    near, far, width = round(0.36 * size), round(0.64 * size), max(1, size // 40)
    draw = ImageDraw.Draw(image)
    draw.line([(near, near), (far, far)], _DARKER, width)
    draw.line([(near, far), (far, near)], _DARKER, width)
    return np.asarray(image)
