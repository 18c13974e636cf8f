"""Thumbnails of photographs as pixels and JPEG files."""

from __future__ import annotations

import io
from datetime import datetime

import numpy as np
from PIL import ExifTags, Image

from tagkin.errors import InvalidInput
from tagkin.images.decoding import decode

__all__ = ["encode_jpeg", "thumbnail"]


def thumbnail(data: bytes, size: int) -> np.ndarray:
    """Return pixels (height, width, 3) of a photograph, the longer side at most `size` long.

    Parameters
    ----------
    data : bytes
        The content of the file.
    size : int
        The longer side in pixels, at most.
    """
    if size < 1:
        raise InvalidInput(f"size is {size}; expected a number of pixels, at least 1.")
    pixels = decode(data, min_side=size)
    height, width = pixels.shape[:2]
    scale = size / max(height, width)
    if scale >= 1:
        return pixels
    small = (max(1, round(width * scale)), max(1, round(height * scale)))
    # the gap of 3 averages much larger pictures first, which looks the same and is much faster
    return np.array(
        Image.fromarray(pixels).resize(small, Image.Resampling.LANCZOS, reducing_gap=3.0)
    )


def encode_jpeg(
    pixels: np.ndarray, quality: int = 80, *, taken: datetime | None = None, camera: str = ""
) -> bytes:
    """Encode pixels, (height, width, 3) of uint8, as a JPEG file.

    Its only metadata is when and by which camera it was taken, if these are given.

    Parameters
    ----------
    pixels : uint8 array of shape (height, width, 3)
        The picture.
    quality : int, default 80
        JPEG quality, 1 to 95.
    taken : datetime, optional
        When it was taken.
    camera : str, optional
        The name of the camera.
    """
    pixels = np.asarray(pixels)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise InvalidInput(
            f"Found pixels of {pixels.dtype} in the shape {pixels.shape}; "
            "expected uint8 in the shape (height, width, 3)."
        )
    out = io.BytesIO()
    exif = Image.Exif()
    if camera:
        exif[ExifTags.Base.Model] = camera
    if taken is not None:
        exif[ExifTags.IFD.Exif] = {ExifTags.Base.DateTimeOriginal: f"{taken:%Y:%m:%d %H:%M:%S}"}
    metadata = {"exif": exif} if exif else {}
    Image.fromarray(pixels).save(out, "JPEG", quality=quality, optimize=True, **metadata)
    return out.getvalue()
