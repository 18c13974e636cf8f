"""Recognize formats by their first bytes, and open images of the supported formats.

The readers are listed here. Pillow's registry, with formats such as EPS that run other programs,
is never used.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from PIL import (
    BmpImagePlugin,
    GifImagePlugin,
    ImageFile,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
    features,
)

from tagkin.errors import InvalidInput, UnreadableImage, pip_install
from tagkin.images.raw import RAW, has_rawpy, is_raw_tiff, raw_suffixes

__all__ = ["format_of", "format_of_file", "open_header", "suffixes", "suffixes_of_type"]


_BITS_PER_SAMPLE, _PLANES, _TILE_WIDTH, _TILE_HEIGHT = 258, 284, 322, 323  # tags of TIFF
_LARGEST_TILE = 1 << 22  # pixels; libtiff allocates a whole tile, however small the picture


class _TiffImageFile(TiffImagePlugin.TiffImageFile):
    """Pillow's reader for TIFF with two corrections, and without huge tiles.

    Damaged metadata after decoding do not discard the pixels. Uncompressed planes of 16 bits are
    read as such, not as 8 bits.
    """

    def _setup(self) -> None:
        bits = self.tag_v2.get(_BITS_PER_SAMPLE, (1,))
        if len(bits) == 1:
            self.tag_v2[_PLANES] = 1  # one colour has one plane, whatever the file declares
        super()._setup()
        sides = self.tag_v2.get(_TILE_WIDTH, 0), self.tag_v2.get(_TILE_HEIGHT, 0)
        if sides[0] * sides[1] > max(_LARGEST_TILE, self.width * self.height):
            raise UnreadableImage(
                f"TIFF of {self.width:,} × {self.height:,} pixels in tiles of {sides[0]:,} × "
                f"{sides[1]:,}"
            )
        if set(bits) != {16} or self.tag_v2.get(_PLANES) != 2 or self._compression != "raw":
            return
        if self.mode not in ("RGB", "RGBA"):
            raise UnreadableImage(f"TIFF of 16 bits in planes of {self.mode}, not supported")
        order = "L" if self.tag_v2.prefix == b"II" else "B"
        for i, tile in enumerate(self.tile):
            plane, *others = tile.args if isinstance(tile.args, tuple) else (tile.args,)
            self.tile[i] = tile._replace(args=(f"{plane};16{order}", *others))

    def load_end(self) -> None:
        """Rotate it upright, as Pillow does."""
        try:
            super().load_end()
        except Exception:
            self._size = self.im.size


# An MPO file is a JPEG with more pictures after the first.
_READERS: dict[str, type[ImageFile.ImageFile]] = {
    "BMP": BmpImagePlugin.BmpImageFile,
    "GIF": GifImagePlugin.GifImageFile,
    "JPEG": JpegImagePlugin.JpegImageFile,
    "PNG": PngImagePlugin.PngImageFile,
    "TIFF": _TiffImageFile,
    "WebP": WebPImagePlugin.WebPImageFile,
}
_SUFFIXES = frozenset(
    (
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng"),
        *(".webp", ".tif", ".tiff", ".gif", ".bmp"),
    )
)

_SAME_TYPE = (
    (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"),
    (".tif", ".tiff"),
    (".png", ".apng"),
    (".heic", ".heif", ".hif"),
)

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
    (rb"8BPS", "a Photoshop file"),
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
    heif = {".heic", ".heif", ".hif"} if _has_pillow_heif() else set()
    avif = {".avif"} if _has_avif() else set()
    return _SUFFIXES | heif | avif | (raw_suffixes() if has_rawpy() else set())


def suffixes_of_type(name: str) -> list[str]:
    """Return all suffixes of the file type that has this suffix, or of ``raw`` files.

    Raises
    ------
    InvalidInput
        If no photograph has this suffix.
    """
    suffix = f".{name.lower().removeprefix('.')}"
    for group in _SAME_TYPE:
        if suffix in group:
            return list(group)
    if suffix == ".raw":
        return sorted(raw_suffixes())
    if suffix in suffixes() | raw_suffixes():
        return [suffix]
    raise InvalidInput(
        f"{name!r} is not a type of photographs. Use a type such as jpg, tif or raw."
    )


def open_header(file: BinaryIO, kind: str) -> ImageFile.ImageFile:
    """Open an image of the format `kind`, reading only its header.

    Raises
    ------
    UnreadableImage
        If tagkin does not read that format. A damaged header raises Pillow's errors.
    """
    if kind in _READERS:
        return _READERS[kind](file)
    if kind == "HEIF":
        if not _has_pillow_heif():
            raise UnreadableImage(f"HEIF, which needs an extra: {pip_install('heif')}")
        from pillow_heif import HeifImageFile

        return HeifImageFile(file)
    if kind == "AVIF":
        if not _has_avif():
            raise UnreadableImage("AVIF, which needs a newer Pillow: pip install 'pillow>=11.3'")
        from PIL.AvifImagePlugin import AvifImageFile

        return AvifImageFile(file)
    raise UnreadableImage(f"not an image tagkin reads (found {kind})")


def _has_avif() -> bool:
    return "avif" in features.modules and bool(features.check("avif"))  # Pillow 11.0 lacks it


def _has_pillow_heif() -> bool:
    try:
        import pillow_heif
    except ImportError:
        return False
    return hasattr(pillow_heif, "HeifImageFile")
