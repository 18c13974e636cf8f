"""From the bytes of a photograph to its pixels: upright, 8 bits, RGB."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from PIL import Image, ImageFile

from tagkin.errors import UnreadableImage
from tagkin.images.blocks import refuse_shredded
from tagkin.images.files import amount, one_line
from tagkin.images.formats import format_of_file, open_header
from tagkin.images.jpeg import Scan, TooManySegments, first_scan
from tagkin.images.memory import decoding_memory
from tagkin.images.pillow_limit import pillow_limit
from tagkin.images.pillow_warnings import quiet
from tagkin.images.pixels import rgb_pixels
from tagkin.images.raw import RAW, developed, preview

__all__ = ["MAX_PIXELS", "decode"]

# Telephones take 200 megapixels.
MAX_PIXELS = 256_000_000

# Pictures of more pixels that a decoder cannot make smaller are made so before anything else.
_LARGE = 48_000_000

# What brings pixels with that EXIF orientation upright.
_UPRIGHT: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: pixels.swapaxes(0, 1),
    6: lambda pixels: pixels.swapaxes(0, 1)[:, ::-1],
    7: lambda pixels: pixels[::-1, ::-1].swapaxes(0, 1),
    8: lambda pixels: pixels.swapaxes(0, 1)[::-1],
}


def decode(data: bytes, *, min_side: int = 0, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """The pixels of a photograph; of its first picture, if it has several.

    Transparent parts are white. Greys of more than 8 bits are scaled to 8. Orientation is
    applied, colour profiles are not.

    Several threads may decode at once. What they take of the memory is limited together, see
    `tagkin.images.memory`: a huge photograph waits, and then goes alone.

    Parameters
    ----------
    data : bytes
        A file's content: JPEG (MPO too), PNG, WebP, TIFF, GIF or BMP; HEIF, AVIF and raw files
        of cameras where they can be decoded. Its name is of no importance. Of a raw file it is
        the preview that the camera put into it, unless that is missing or too small.
    min_side : int
        If positive, a JPEG may come out 2, 4 or 8 times smaller, with its shorter side at least
        this long: far faster when it is made smaller afterwards anyway. So may others of more
        than 48 megapixels, any whole number of times: that takes less memory.
    max_pixels : int
        More are refused. The header is asked, before any pixel is decoded.

    Returns
    -------
    (height, width, 3) array of uint8

    Raises
    ------
    UnreadableImage
        If it cannot be decoded whole.
    """
    if not data:
        raise UnreadableImage("empty file")
    found = format_of_file(data)
    if found == RAW:
        return _from_raw(data, min_side, max_pixels)
    image = None
    with quiet(), pillow_limit(MAX_PIXELS):
        try:
            refuse_shredded(found, data)
            scan = first_scan(io.BytesIO(data)) if found == "JPEG" else None
            image = open_header(io.BytesIO(data), found)
            _check_size(image, max_pixels)
            if scan is not None:
                _refuse_hollow(data, image.size, scan)
            _refuse_inflated(data, image.size)
            return _pixels_of(image, found, scan, min_side, max_pixels)
        except UnreadableImage:
            raise
        except Image.DecompressionBombError as error:
            said = one_line(str(error)).split(",")[0]
            raise UnreadableImage(f"too many pixels: {said}") from error
        except TooManySegments as error:
            raise UnreadableImage(str(error)) from error
        except MemoryError as error:
            raise UnreadableImage("not enough memory to decode it") from error
        except Exception as error:  # Pillow raises nearly everything on damaged files
            raise UnreadableImage(_damage(found, data, image, error)) from error


def _pixels_of(
    image: ImageFile.ImageFile, found: str, scan: Scan | None, min_side: int, max_pixels: int
) -> np.ndarray:
    """Decode an image of which the header was read."""
    kept = 0 if scan is None or scan.is_all else 6 * image.width * image.height  # coefficients
    factor = 1
    if scan is not None and min_side > 0:
        image.draft(None, (min_side, min_side))
    elif min_side > 0 and image.width * image.height > _LARGE:
        factor = max(1, min(image.size) // min_side)
    n_pixels = image.width * image.height
    with decoding_memory.taking(_bytes_per_pixel(found, image.mode, factor) * n_pixels + kept):
        image.load()
        _check_size(image, max_pixels)
        pixels = rgb_pixels(image, factor)
        turn = _UPRIGHT.get(_orientation(image))
        return pixels if turn is None else np.ascontiguousarray(turn(pixels))


def _bytes_per_pixel(found: str, mode: str, factor: int) -> int:
    """How much memory decoding takes at its peak, for each pixel."""
    loaded = 1 if mode in ("1", "L", "P") else 2 if mode.startswith("I;16") else 4
    # of the decoder beside it: a strip of TIFF can be all of it; WebP draws on a canvas
    beside = {"TIFF": loaded, "WebP": 12, "HEIF": 12, "AVIF": 12}.get(found, 0)
    return loaded + max(beside, 3 if factor == 1 else 0)  # the answer, when the decoder is done


def _from_raw(data: bytes, min_side: int, max_pixels: int) -> np.ndarray:
    jpeg, pixels = preview(data, max_pixels), None
    if jpeg is not None:
        with suppress(UnreadableImage):
            pixels = decode(jpeg, min_side=min_side, max_pixels=max_pixels)
    if pixels is not None and min(pixels.shape[:2]) >= min_side:
        return pixels
    try:
        full = developed(data, max_pixels)
    except UnreadableImage:
        if pixels is None:
            raise
        return pixels  # small, but all there is
    return full if pixels is None or full.size > pixels.size else pixels


def _check_size(image: ImageFile.ImageFile, max_pixels: int) -> None:
    width, height = image.size
    if width < 1 or height < 1:
        raise UnreadableImage(f"a picture of {width} × {height} pixels")
    if width * height > max_pixels:
        found, cap = width * height / 1e6, max_pixels / 1e6
        raise UnreadableImage(f"{found:,.3g} megapixels, above the cap of {cap:,.3g}")


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation; 1 is upright. Damaged metadata must not cost the photograph."""
    try:
        return int(image.getexif().get(0x0112, 1))
    except Exception:
        return 1


# --- what is wrong with it ---------------------------------------------------------------


def _refuse_hollow(data: bytes, size: tuple[int, int], scan: Scan) -> None:
    """A JPEG decoder paints grey where the picture is missing before the file ends.

    That is seen in two cases: an interrupted copy ends in zeros, and no file is smaller than
    one bit for each 8 × 8 pixels.
    """
    if scan.huffman and size[0] * size[1] / 64 > 8 * (len(data) - scan.start):
        what = f"{amount(len(data))} cannot hold {size[0]:,} × {size[1]:,} pixels"
        raise UnreadableImage(f"truncated: {what}")
    if not data.endswith(bytes(64)):
        return
    written = data.rstrip(b"\0")
    if b"\xff\xd9" not in written[scan.start :]:
        zeros = amount(len(data) - len(written))
        raise UnreadableImage(f"truncated: the last {zeros} of {amount(len(data))} are zeros")


def _refuse_inflated(data: bytes, size: tuple[int, int]) -> None:
    """Refuse a large picture in a file of less than one bit for each 8 × 8 pixels.

    No photograph is so plain, and such a file of a few kilobytes takes seconds and gigabytes.
    """
    n_pixels = size[0] * size[1]
    if n_pixels > _LARGE and n_pixels / 64 > 8 * len(data):
        what = f"{n_pixels / 1e6:,.3g} megapixels in a file of {amount(len(data))}"
        raise UnreadableImage(f"{what}, which is no photograph")


def _damage(found: str, data: bytes, image: Any, error: Exception) -> str:
    """Why a file of a known format could not be decoded: cut off, or damaged otherwise."""
    here, whole = len(data), _declared_size(found, data, image)
    if whole > here:
        return f"truncated after {amount(here)} of {amount(whole)}"
    end = {"JPEG": b"\xff\xd9", "PNG": b"IEND"}.get(found, b"")
    if "truncated" in str(error).lower() or end not in data[-65536:]:
        return f"truncated: the {found} file ends after {amount(here)}, before its picture does"
    told = one_line(str(error)) if isinstance(error, OSError | SyntaxError | ValueError) else ""
    return f"a damaged {found} file ({told or type(error).__name__})"


def _declared_size(found: str, data: bytes, image: Any) -> int:
    """How long a file is by what stands in it, at least; 0 where it does not say."""
    with suppress(struct.error, TypeError):
        if found == "WebP":
            return int(struct.unpack_from("<I", data, 4)[0]) + 8
        if found == "BMP":
            return int(struct.unpack_from("<I", data, 2)[0])
        if found == "TIFF" and image is None:  # the first thing that is read: the directory
            return int(struct.unpack_from("<I" if data[:1] == b"I" else ">I", data, 4)[0])
        if found == "TIFF":
            starts, sizes = (
                [image.tag_v2.get(t) for t in tags] for tags in ((273, 324), (279, 325))
            )
            ends = zip(starts[0] or starts[1], sizes[0] or sizes[1], strict=False)
            return max((start + size for start, size in ends), default=0)
    return 0
