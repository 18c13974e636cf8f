"""Raw files of cameras, seen through the preview that the camera put into them."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tagkin.errors import UnreadableImage, pip_install
from tagkin.images.files import one_line
from tagkin.images.memory import decoding_memory
from tagkin.images.tiff import directories

__all__ = ["RAW", "developed", "has_rawpy", "is_raw_tiff", "preview", "raw_suffixes"]

RAW = "a raw file of a camera"
_SUFFIXES = (
    "3fr ari arw bay cr2 cr3 crw dcr dng erf fff gpr iiq k25 kdc mef mos mrw nef nrw orf pef raf "
    "raw rw2 rwl sr2 srf srw x3f"
)
_PHOTOMETRIC, _SUB_DIRECTORIES, _DNG_VERSION = 262, 330, 50706
_BYTES_PER_PIXEL = 8  # of the sensor: itself, and four channels at half its size
_MOSAIC, _LINEAR = 32803, 34892  # of the sensor, as it is or per pixel


def raw_suffixes() -> frozenset[str]:
    """Suffixes of raw files, in lower case, whether or not they can be read here."""
    return frozenset(f".{suffix}" for suffix in _SUFFIXES.split())


def has_rawpy() -> bool:
    """Whether raw files can be read here."""
    try:
        import rawpy
    except ImportError:
        return False
    return hasattr(rawpy, "imread")


def is_raw_tiff(data: bytes) -> bool:
    """Whether a TIFF file is a raw file: most raw formats are TIFF with pixels of a sensor."""
    if data[8:10] == b"CR":  # Canon's, which does not say so in its directories
        return True
    found = directories(data, {_PHOTOMETRIC, _DNG_VERSION}, below=_SUB_DIRECTORIES)
    kinds = {one.get(_PHOTOMETRIC, b"") for one in found}
    order = "<" if data[:1] == b"I" else ">"
    return any(_DNG_VERSION in one for one in found) or any(
        struct.pack(f"{order}H", kind) in kinds for kind in (_MOSAIC, _LINEAR)
    )


def preview(data: bytes, max_pixels: int) -> bytes | None:
    """The largest JPEG in a raw file, turned as the camera was held; None if it has none."""
    with _opened(data, max_pixels) as raw:
        import rawpy

        try:
            found = raw.extract_thumb()
        except rawpy.LibRawNonFatalError:  # none, or of an old kind
            return None
        return found.data if found.format == rawpy.ThumbFormat.JPEG else None


def developed(data: bytes, max_pixels: int) -> np.ndarray:
    """The picture of the sensor at half its size: upright, (height, width, 3) of uint8."""
    with _opened(data, max_pixels) as raw:
        n_pixels = raw.sizes.raw_width * raw.sizes.raw_height
        with decoding_memory.taking(_BYTES_PER_PIXEL * n_pixels):
            return np.array(raw.postprocess(half_size=True, use_camera_wb=True, output_bps=8))


@contextmanager
def _opened(data: bytes, max_pixels: int) -> Iterator[Any]:
    """A raw file of which only the header was read; what goes wrong is an UnreadableImage."""
    if not has_rawpy():
        raise UnreadableImage(f"{RAW}, which needs an extra: {pip_install('raw')}")
    import rawpy

    try:
        with rawpy.imread(io.BytesIO(data)) as raw:
            found = raw.sizes.raw_width * raw.sizes.raw_height
            if found > max_pixels:
                cap = f"above the cap of {max_pixels / 1e6:,.3g}"
                raise UnreadableImage(f"{found / 1e6:,.3g} megapixels, {cap}")
            yield raw
    except UnreadableImage:
        raise
    except Exception as error:  # as in decoding: nearly everything
        said = error.args[0] if error.args else type(error).__name__
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise UnreadableImage(f"{RAW} that cannot be read ({one_line(text.lower())})") from error
