"""Small copies of photographs, and pixels as files."""

from __future__ import annotations

import io
import os

import numpy as np
from PIL import Image

from tagkin.errors import InvalidInput
from tagkin.images.decoding import decode
from tagkin.images.files import read_bytes

__all__ = ["encode_jpeg", "encode_png", "thumbnail", "thumbnail_of"]


def thumbnail(path: str | os.PathLike[str], size: int) -> np.ndarray:
    """A photograph made small: its longer side is `size` pixels, or what it was if shorter.

    Returns
    -------
    (height, width, 3) array of uint8

    Raises
    ------
    UnreadableImage
        If the file cannot be read or decoded.
    """
    _check_size(size)
    return thumbnail_of(read_bytes(path), size)


def thumbnail_of(data: bytes, size: int) -> np.ndarray:
    """The same from a file's content."""
    _check_size(size)
    pixels = decode(data, min_side=size)
    height, width = pixels.shape[:2]
    scale = size / max(height, width)
    if scale >= 1:
        return pixels
    small = (max(1, round(width * scale)), max(1, round(height * scale)))
    # the gap of 3 averages far larger pictures first: as good to the eye, and much faster
    return np.array(
        Image.fromarray(pixels).resize(small, Image.Resampling.LANCZOS, reducing_gap=3.0)
    )


def _check_size(size: int) -> None:
    if size < 1:
        raise InvalidInput(f"size is {size}; expected a number of pixels, at least 1.")


def encode_jpeg(pixels: np.ndarray, quality: int = 80) -> bytes:
    """Pixels, (height, width, 3) of uint8, as a JPEG file without metadata."""
    return _encoded(pixels, "JPEG", quality=quality, optimize=True)


def encode_png(pixels: np.ndarray) -> bytes:
    """Pixels, (height, width, 3) of uint8, as a PNG file without metadata."""
    return _encoded(pixels, "PNG")


def _encoded(pixels: np.ndarray, form: str, **options: int) -> bytes:
    pixels = np.asarray(pixels)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise InvalidInput(
            f"Found pixels of {pixels.dtype} in the shape {pixels.shape}; "
            "expected uint8 in the shape (height, width, 3)."
        )
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, form, **options)
    return out.getvalue()
