"""Decode the bytes of a photograph to upright RGB pixels of 8 bits."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageFile

from tagkin.errors import UnreadableImage
from tagkin.images.file_blocks import JpegScan, TooManySegments, check_block_count, first_scan
from tagkin.images.formats import RAW, format_of_file, open_header
from tagkin.images.image_files import amount, one_line
from tagkin.images.memory import decoding_memory
from tagkin.images.pillow_warnings import quiet
from tagkin.images.pixels import rgb_pixels

if TYPE_CHECKING:
    from rawpy import RawPy

__all__ = ["MAX_PIXELS", "decode"]

MAX_PIXELS = 256_000_000  # telephones take 200 megapixels; of TIFF and WebP, Pillow takes 179
# Larger pictures are reduced first, to save memory.
_LARGE = 48_000_000
_RAW_BYTES_PER_PIXEL = 8  # of the sensor's pixels: themselves, and four channels at half size


def decode(data: bytes, *, min_side: int = 0, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """Return pixels (height, width, 3) of uint8 of a photograph, or of its first picture.

    Transparent parts become white. Greys of 16 bits are scaled to 8 bits. The
    orientation is applied, colour profiles are not. Threads that decode at the same time share a
    limit of memory, see `tagkin.images.memory`.

    Parameters
    ----------
    data : bytes
        The content of a JPEG (or MPO), PNG, WebP, TIFF, GIF, BMP, PSD or JPEG 2000 file, or of a
        HEIF, AVIF or raw file if a package for it is installed. A raw file gives its embedded
        preview, unless that is missing or too small; a PSD file the picture of all its layers.
    min_side : int
        If positive, a JPEG may come out 2, 4 or 8 times smaller, which is far faster, but with
        its shorter side at least this long. Other pictures of more than 48 megapixels may come
        out smaller by any whole factor, which takes less memory.
    max_pixels : int
        Larger pictures are rejected before any pixel is decoded.

    Raises
    ------
    UnreadableImage
        If it cannot be decoded completely.
    """
    if not data:
        raise UnreadableImage("empty file")
    kind = format_of_file(data)
    if kind == RAW:
        return _decode_raw(data, min_side, max_pixels)
    with quiet():
        try:
            check_block_count(kind, data)
            scan = first_scan(io.BytesIO(data)) if kind == "JPEG" else None
            image = open_header(io.BytesIO(data), kind)
            _check_size(image, max_pixels)
            _check_length(data, image.size, scan)
            pixels = _load_pixels(image, kind, scan, min_side, max_pixels)
            return _turn_upright(pixels, _orientation(image))
        except UnreadableImage:
            raise
        except Image.DecompressionBombError as error:
            message = one_line(str(error)).split(",")[0]
            raise UnreadableImage(f"too many pixels: {message}") from error
        except TooManySegments as error:
            raise UnreadableImage(str(error)) from error
        except MemoryError as error:
            raise UnreadableImage("not enough memory to decode it") from error
        except Exception as error:  # Pillow raises nearly everything on damaged files
            raise UnreadableImage(_describe_damage(kind, error)) from error


def _load_pixels(
    image: ImageFile.ImageFile, kind: str, scan: JpegScan | None, min_side: int, max_pixels: int
) -> np.ndarray:
    """Decode an image after its header."""
    if image.mode in ("I", "F"):
        raise UnreadableImage("a picture with numbers of 32 bits; export it with 8 or 16 bits")
    n_coefficients = 0 if scan is None or scan.is_all else 3 * image.width * image.height
    factor = 1
    if scan is not None and min_side > 0:
        image.draft(None, (min_side, min_side))
    elif min_side > 0 and image.width * image.height > _LARGE:
        factor = max(1, min(image.size) // min_side)
    n_pixels = image.width * image.height
    n_bytes = _bytes_per_pixel(kind, image.mode, factor) * n_pixels + 2 * n_coefficients
    with decoding_memory.reserve(n_bytes):
        image.load()
        _check_size(image, max_pixels)
        return rgb_pixels(image, factor)


def _bytes_per_pixel(kind: str, mode: str, factor: int) -> int:
    """Return the peak memory of decoding, per pixel."""
    loaded = 1 if mode in ("1", "L", "P") else 2 if mode.startswith("I;16") else 4
    # the decoder's own memory: a strip of TIFF can be the whole picture; WebP draws on a canvas
    decoder = {"TIFF": loaded, "WebP": 12, "HEIF": 12, "AVIF": 12, "JPEG 2000": 20}.get(kind, 0)
    return loaded + max(decoder, 3 if factor == 1 else 0)  # the result replaces the decoder


def _check_size(image: ImageFile.ImageFile, max_pixels: int) -> None:
    width, height = image.size
    if width < 1 or height < 1:
        raise UnreadableImage(f"a picture of {width} × {height} pixels")
    if width * height > max_pixels:
        n, cap = width * height / 1e6, max_pixels / 1e6
        raise UnreadableImage(f"{n:,.3g} megapixels, above the cap of {cap:,.3g}")


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation of an image; damaged metadata have none."""
    with suppress(Exception):
        return int(image.getexif().get(0x0112, 1))
    return 1


def _turn_upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Apply an EXIF orientation."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


# --- raw files ---------------------------------------------------------------------------


def _decode_raw(data: bytes, min_side: int, max_pixels: int) -> np.ndarray:
    jpeg, pixels = _extract_preview(data, max_pixels), None
    if jpeg is not None:
        with suppress(UnreadableImage):
            pixels = decode(jpeg, min_side=min_side, max_pixels=max_pixels)
    if pixels is not None and min(pixels.shape[:2]) >= min_side:
        return pixels
    try:
        full = _develop(data, max_pixels)
    except UnreadableImage:
        if pixels is None:
            raise
        return pixels  # a small picture is better than none
    return full if pixels is None or full.size > pixels.size else pixels


def _extract_preview(data: bytes, max_pixels: int) -> bytes | None:
    """Return the largest JPEG in a raw file, rotated like the camera, or None."""
    with _open_raw(data, max_pixels) as raw:
        import rawpy

        try:
            preview = raw.extract_thumb()
        except rawpy.LibRawNonFatalError:  # missing, or of an old kind
            return None
        return preview.data if preview.format == rawpy.ThumbFormat.JPEG else None


def _develop(data: bytes, max_pixels: int) -> np.ndarray:
    """Return the sensor's picture upright at half its size, as (height, width, 3) of uint8."""
    with _open_raw(data, max_pixels) as raw:
        n_pixels = raw.sizes.raw_width * raw.sizes.raw_height
        with decoding_memory.reserve(_RAW_BYTES_PER_PIXEL * n_pixels):
            return np.array(raw.postprocess(half_size=True, use_camera_wb=True, output_bps=8))


@contextmanager
def _open_raw(data: bytes, max_pixels: int) -> Iterator[RawPy]:
    """Open a raw file and read its header; all errors become `UnreadableImage`."""
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


# --- damaged files -----------------------------------------------------------------------


def _check_length(data: bytes, size: tuple[int, int], scan: JpegScan | None) -> None:
    """Reject a truncated JPEG, and a large picture in a tiny file.

    A picture takes at least one bit for each 8 × 8 pixels. A JPEG decoder paints missing parts
    grey; an interrupted copy may end in zeros. Other tiny files would take seconds and gigabytes.
    """
    n_pixels, length = size[0] * size[1], amount(len(data))
    if scan is not None and scan.huffman and n_pixels / 64 > 8 * (len(data) - scan.start):
        pixels = f"{size[0]:,} × {size[1]:,} pixels"
        raise UnreadableImage(f"truncated: {length} cannot hold {pixels}")
    if scan is not None and data.endswith(bytes(64)):
        written = data.rstrip(b"\0")
        if b"\xff\xd9" not in written[scan.start :]:
            zeros = amount(len(data) - len(written))
            raise UnreadableImage(f"truncated: the last {zeros} of {length} are zeros")
    if n_pixels > _LARGE and n_pixels / 64 > 8 * len(data):
        claim = f"{n_pixels / 1e6:,.3g} megapixels in a file of {length}"
        raise UnreadableImage(f"{claim}, so not a photograph")


def _describe_damage(kind: str, error: Exception) -> str:
    """Say what a decoder says; it cannot tell a truncated file from a damaged one."""
    message = one_line(str(error)) if isinstance(error, OSError | SyntaxError | ValueError) else ""
    return f"truncated or damaged {kind} file ({message or type(error).__name__})"
