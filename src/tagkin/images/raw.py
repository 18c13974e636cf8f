"""Read raw files of cameras, preferably their embedded preview."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tagkin.errors import UnreadableImage, pip_install
from tagkin.images.formats import RAW, has_rawpy
from tagkin.images.image_files import one_line
from tagkin.images.memory import decoding_memory

__all__ = ["develop", "extract_preview"]

_BYTES_PER_PIXEL = 8  # of the sensor's pixels: themselves, and four channels at half size


def extract_preview(data: bytes, max_pixels: int) -> bytes | None:
    """Return the largest JPEG in a raw file, rotated like the camera, or None."""
    with _open(data, max_pixels) as raw:
        import rawpy

        try:
            preview = raw.extract_thumb()
        except rawpy.LibRawNonFatalError:  # missing, or of an old kind
            return None
        return preview.data if preview.format == rawpy.ThumbFormat.JPEG else None


def develop(data: bytes, max_pixels: int) -> np.ndarray:
    """Return the sensor's picture upright at half its size, as (height, width, 3) of uint8."""
    with _open(data, max_pixels) as raw:
        n_pixels = raw.sizes.raw_width * raw.sizes.raw_height
        with decoding_memory.reserve(_BYTES_PER_PIXEL * n_pixels):
            return np.array(raw.postprocess(half_size=True, use_camera_wb=True, output_bps=8))


@contextmanager
def _open(data: bytes, max_pixels: int) -> Iterator[Any]:
    """Open a raw file and read its header; all errors become `UnreadableImage`."""
    if not has_rawpy():
        raise UnreadableImage(f"{RAW}, which needs an extra: {pip_install('raw')}")
    import rawpy

    try:
        with rawpy.imread(io.BytesIO(data)) as raw:
            n_pixels = raw.sizes.raw_width * raw.sizes.raw_height
            if n_pixels > max_pixels:
                cap = f"above the cap of {max_pixels / 1e6:,.3g}"
                raise UnreadableImage(f"{n_pixels / 1e6:,.3g} megapixels, {cap}")
            yield raw
    except UnreadableImage:
        raise
    except Exception as error:  # decoders raise nearly everything
        message = error.args[0] if error.args else type(error).__name__
        text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        raise UnreadableImage(f"{RAW} that cannot be read ({one_line(text.lower())})") from error
