"""Recognize formats by their first bytes, and open images of the supported formats.

The readers are listed here. Pillow's registry, with formats such as EPS that run other programs,
is never used.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import BinaryIO

from PIL import (
    BmpImagePlugin,
    GifImagePlugin,
    ImageFile,
    Jpeg2KImagePlugin,
    JpegImagePlugin,
    PngImagePlugin,
    PsdImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
    features,
)

from tagkin.errors import InvalidInput, UnreadableImage
from tagkin.images.file_blocks import directories
from tagkin.installing import install_command

__all__ = [
    "RAW",
    "format_of",
    "format_of_file",
    "is_raw_tiff",
    "open_header",
    "raw_suffixes",
    "suffixes",
    "suffixes_of_type",
]


_PLANES, _TILE_WIDTH, _TILE_HEIGHT = 284, 322, 323  # tags of TIFF
_LARGEST_TILE = 1 << 22  # pixels; libtiff allocates a whole tile, however small the picture
RAW = "a raw file of a camera"
_RAW_SUFFIXES = (
    "3fr ari arw bay cr2 cr3 crw dcr dng erf fff gpr iiq k25 kdc mef mos mrw nef nrw orf pef raf "
    "raw rw2 rwl sr2 srf srw x3f"
)
_PHOTOMETRIC, _SUB_DIRECTORIES, _DNG_VERSION = 262, 330, 50706
_MOSAIC, _LINEAR = 32803, 34892  # kinds of sensor data: a colour filter array, or all colours


class _TiffImageFile(TiffImagePlugin.TiffImageFile):
    """Pillow's reader for TIFF with two corrections.

    Damaged metadata after decoding do not discard the pixels. libtiff also reads uncompressed
    planes, because Pillow's own reader takes planes of 16 bits for 8 bits.
    """

    @property
    def use_load_libtiff(self) -> bool:
        """Whether libtiff decodes the file; Pillow sets it for compressed files."""
        return self._is_compressed or self.tag_v2.get(_PLANES) == 2

    @use_load_libtiff.setter
    def use_load_libtiff(self, value: bool) -> None:
        self._is_compressed = value

    def load_end(self) -> None:
        """Rotate it upright, as Pillow does."""
        try:
            super().load_end()
        except Exception:
            self._size = self.im.size


def _open_tiff(file: BinaryIO) -> ImageFile.ImageFile:
    image = _TiffImageFile(file)
    width, height = image.tag_v2.get(_TILE_WIDTH, 0), image.tag_v2.get(_TILE_HEIGHT, 0)
    if width * height > max(_LARGEST_TILE, image.width * image.height):
        raise UnreadableImage(
            f"TIFF of {image.width:,} × {image.height:,} pixels in tiles of {width:,} × {height:,}"
        )
    return image


# An MPO file is a JPEG with more pictures after the first.
_READERS: dict[str, Callable[[BinaryIO], ImageFile.ImageFile]] = {
    "BMP": BmpImagePlugin.BmpImageFile,
    "GIF": GifImagePlugin.GifImageFile,
    "JPEG": JpegImagePlugin.JpegImageFile,
    "JPEG 2000": Jpeg2KImagePlugin.Jpeg2KImageFile,
    "PNG": PngImagePlugin.PngImageFile,
    "PSD": PsdImagePlugin.PsdImageFile,
    "TIFF": _open_tiff,
    "WebP": WebPImagePlugin.WebPImageFile,
}
_HEIF, _AVIF = (".heic", ".heif", ".hif"), (".avif",)
_SAME_TYPE = (
    (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"),
    (".tif", ".tiff"),
    (".png", ".apng"),
    (".jp2", ".jpx", ".jpf", ".j2k"),
    _HEIF,
)
_SUFFIXES = {".webp", ".gif", ".bmp", ".psd", *_AVIF}.union(*_SAME_TYPE)

_NO_READER = {".jxl": "JPEG XL, which tagkin does not read; export it as JPEG or TIFF"}
_NEEDS_AVIF = f"AVIF, which needs a newer Pillow: {install_command('avif')}"

_SIGNATURES = (
    (rb"\xff\xd8\xff", "JPEG"),
    (rb"\x89PNG\r\n\x1a\n", "PNG"),
    (rb"RIFF....WEBP", "WebP"),
    (rb"II\*\0|MM\0\*|II\+\0|MM\0\+", "TIFF"),
    (rb"GIF8[79]a", "GIF"),
    (rb"BM.{12}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0", "BMP"),
    (rb"....ftyp(avif|avis)", "AVIF"),
    (rb"....ftyp(mif1|msf1).{4}(.{4})*?avif", "AVIF"),
    (rb"....ftyp(hei[cxms]|hev[cxms]|mif1|msf1)", "HEIF"),
    (rb"....ftypcrx |FUJIFILMCCD-RAW|IIU\0|IIR[OS]|MMOR|FOVb|\0MRM|II.{4}HEAPCCDR", RAW),
    (rb"....ftyp", "a film"),
    (rb"%PDF|.{1,1000}%PDF-", "PDF"),
    (rb"%!|\xc5\xd0\xd3\xc6", "PostScript"),
    (rb"8BPS", "PSD"),
    (rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51", "JPEG 2000"),
    (rb"\0\0\0\x0cJXL |\xff\x0a", "JPEG XL"),
    (rb"\0\0[\x01\x02]\0", "an icon"),
    (rb"PK\x03\x04", "a ZIP archive"),
    (rb"\x1a\x45\xdf\xa3|RIFF....AVI ", "a film"),
    (rb"(?i:\s*<(\?xml|!--|!DOCTYPE svg).*<svg|\s*<svg)", "SVG"),
    (rb"(?i:\s*<(!DOCTYPE )?html)", "a web page"),
    (rb"\0+$", "nothing but zeros"),
    (rb"(\xef\xbb\xbf)?[\t\n\r\x20-\x7e]+$", "text"),
)
_PATTERNS = [(re.compile(p, re.DOTALL), name) for p, name in _SIGNATURES]


def format_of(head: bytes) -> str:
    """Return the name of a file's format, given its first 1,024 bytes."""
    return next((name for p, name in _PATTERNS if p.match(head[:1024])), "unknown data")


def format_of_file(data: bytes) -> str:
    """Return the format of a whole file; most raw files start like TIFF files."""
    kind = format_of(data)
    return RAW if kind == "TIFF" and is_raw_tiff(data) else kind


def suffixes() -> frozenset[str]:
    """Return the suffixes of readable photographs, in lower case."""
    return frozenset((_SUFFIXES - unreadable_suffixes().keys()) | raw_suffixes())


def unreadable_suffixes() -> dict[str, str]:
    """Return suffixes of photographs, not RAW, that cannot be read, each with a reason."""
    return _NO_READER | dict.fromkeys(() if _has_avif() else _AVIF, _NEEDS_AVIF)


def suffixes_of_type(name: str) -> list[str]:
    """Return all suffixes of the file type that has this suffix, or of ``raw`` files."""
    suffix = f".{name.lower().removeprefix('.')}"
    for group in _SAME_TYPE:
        if suffix in group:
            return list(group)
    if suffix == ".raw":
        return sorted(raw_suffixes())
    if suffix in suffixes():
        return [suffix]
    raise InvalidInput(
        f"{name!r} is not a type of photographs. Use a type such as jpg, tif or raw."
    )


def open_header(file: BinaryIO, kind: str) -> ImageFile.ImageFile:
    """Open an image of the format `kind`, reading only its header.

    Raises `UnreadableImage` if tagkin does not read that format. A damaged header raises Pillow's
    errors.
    """
    if kind in _READERS:
        return _READERS[kind](file)
    if kind == "HEIF":
        from pi_heif import HeifImageFile  # slow to import

        return HeifImageFile(file)
    if kind == "AVIF":
        if not _has_avif():
            raise UnreadableImage(_NEEDS_AVIF)
        from PIL.AvifImagePlugin import AvifImageFile

        return AvifImageFile(file)
    raise UnreadableImage(f"not an image tagkin reads (found {kind})")


def _has_avif() -> bool:
    return "avif" in features.modules and bool(features.check("avif"))  # Pillow 11.0 lacks it


def raw_suffixes() -> frozenset[str]:
    """Return the suffixes of raw files, in lower case."""
    return frozenset(f".{suffix}" for suffix in _RAW_SUFFIXES.split())


def is_raw_tiff(data: bytes) -> bool:
    """Whether a TIFF file is a raw file; most raw formats are TIFF with sensor data."""
    if data[8:10] == b"CR":  # Canon's files, whose directories do not say so
        return True
    tags = directories(data, {_PHOTOMETRIC, _DNG_VERSION}, below=(_SUB_DIRECTORIES,))
    sensor = [struct.pack("<H", kind) for kind in (_MOSAIC, _LINEAR)]
    return any(_DNG_VERSION in d or d.get(_PHOTOMETRIC) in sensor for d in tags)
