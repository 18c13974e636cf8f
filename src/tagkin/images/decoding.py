"""From the bytes of a photograph to its pixels: upright, 8 bits, RGB."""

from __future__ import annotations

import io
import struct
from contextlib import suppress
from typing import Any

import numpy as np
from PIL import Image, ImageFile

from tagkin.errors import UnreadableImage
from tagkin.images._pixels import as_rgb
from tagkin.images.files import amount, one_line
from tagkin.images.formats import format_of_file, open_header
from tagkin.images.jpeg import scan_start
from tagkin.images.pillow_warnings import quiet
from tagkin.images.raw import RAW, developed, preview

__all__ = ["MAX_PIXELS", "decode"]

# Telephones take 200 megapixels. Pillow itself stops at 179 in TIFF and WebP.
MAX_PIXELS = 256_000_000

# What brings a picture with that EXIF orientation upright.
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def decode(data: bytes, *, min_side: int = 0, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """The pixels of a photograph; of its first picture, if it has several.

    Transparent parts are white. Greys of more than 8 bits are scaled to 8. Orientation is
    applied, colour profiles are not.

    Parameters
    ----------
    data : bytes
        A file's content: JPEG (MPO too), PNG, WebP, TIFF, GIF or BMP; HEIF, AVIF and raw files
        of cameras where they can be decoded. Its name is of no importance. Of a raw file it is
        the preview that the camera put into it, unless that is missing or too small.
    min_side : int
        If positive, a JPEG may come out 2, 4 or 8 times smaller, with its shorter side at least
        this long: far faster when it is made smaller afterwards anyway.
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
    with quiet():
        try:
            image = open_header(io.BytesIO(data), found)
            _check_size(image, max_pixels)
            if found == "JPEG":
                _refuse_hollow(data, image.size)
                if min_side > 0:
                    image.draft(None, (min_side, min_side))
            image.load()
            _check_size(image, max_pixels)
            rgb = as_rgb(image)
        except UnreadableImage:
            raise
        except Image.DecompressionBombError as error:
            raise UnreadableImage(
                f"too many pixels: {one_line(str(error)).split(',')[0]}"
            ) from error
        except MemoryError as error:
            raise UnreadableImage("not enough memory to decode it") from error
        except Exception as error:  # Pillow raises nearly everything on damaged files
            raise UnreadableImage(_damage(found, data, image, error)) from error
        turn = _UPRIGHT.get(_orientation(image))
    return np.array(rgb if turn is None else rgb.transpose(turn))


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


def _refuse_hollow(data: bytes, size: tuple[int, int]) -> None:
    """A JPEG decoder paints grey where the picture is missing before the file ends.

    That is seen in two cases: an interrupted copy ends in zeros, and no file is smaller than
    one bit for each 8 × 8 pixels.
    """
    start, huffman = scan_start(io.BytesIO(data))
    if huffman and size[0] * size[1] / 64 > 8 * (len(data) - start):
        what = f"{amount(len(data))} cannot hold {size[0]:,} × {size[1]:,} pixels"
        raise UnreadableImage(f"truncated: {what}")
    if not data.endswith(bytes(64)):
        return
    written = data.rstrip(b"\0")
    if b"\xff\xd9" not in written[start:]:
        zeros = amount(len(data) - len(written))
        raise UnreadableImage(f"truncated: the last {zeros} of {amount(len(data))} are zeros")


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
