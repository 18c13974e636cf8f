"""Which format a file is, by its first bytes, and the reader for each that tagkin reads.

The readers are named here one by one. Pillow's registry, with formats such as EPS that run
other programs, is never asked.
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
_LARGEST_TILE = 1 << 22  # pixels; libtiff takes memory for a whole tile, however small the picture


class _TiffImageFile(TiffImagePlugin.TiffImageFile):
    """TIFF as Pillow reads it, less two faults, and without tiles far larger than the picture.

    When its pixels are there, Pillow reads its metadata; damaged ones must not cost it. And Pillow
    takes the bytes of colours for pixels where they have 16 bits, are kept one colour after the
    other, and not compressed.
    """

    def _setup(self) -> None:
        bits = self.tag_v2.get(_BITS_PER_SAMPLE, (1,))
        if len(bits) == 1:
            self.tag_v2[_PLANES] = 1  # there is one colour, whatever is said of the others
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
            raise UnreadableImage(f"TIFF of 16 bits in planes of {self.mode}, which is not read")
        order = "L" if self.tag_v2.prefix == b"II" else "B"
        for i, tile in enumerate(self.tile):
            plane, *others = tile.args if isinstance(tile.args, tuple) else (tile.args,)
            self.tile[i] = tile._replace(args=(f"{plane};16{order}", *others))

    def load_end(self) -> None:
        """Turn it upright, as Pillow does."""
        try:
            super().load_end()
        except Exception:
            self._size = self.im.size


# An MPO file is a JPEG with more pictures behind the first.
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
    """The format of a file that starts so, as a person names it; about 1,000 bytes are enough."""
    return next((name for p, name in _PATTERNS if p.match(head[:1024])), "unknown data")


def format_of_file(data: bytes) -> str:
    """As `format_of`, of a whole file: most raw files of cameras start as TIFF files do."""
    found = format_of(data)
    return RAW if found == "TIFF" and is_raw_tiff(data) else found


def suffixes() -> frozenset[str]:
    """Suffixes of the photographs that can be read here, in lower case."""
    heif = {".heic", ".heif", ".hif"} if _has_pillow_heif() else set()
    avif = {".avif"} if _has_avif() else set()
    return _SUFFIXES | heif | avif | (raw_suffixes() if has_rawpy() else set())


def suffixes_of_type(name: str) -> list[str]:
    """All suffixes of the type of files that a person names by one of them, or of ``raw`` files.

    Raises
    ------
    InvalidInput
        If photographs never have such a suffix.
    """
    suffix = f".{name.lower().removeprefix('.')}"
    for group in _SAME_TYPE:
        if suffix in group:
            return list(group)
    if suffix == ".raw":
        return sorted(raw_suffixes())
    if suffix in suffixes() | raw_suffixes():
        return [suffix]
    raise InvalidInput(f"{name!r} is not a type of photographs. Name one such as jpg, tif or raw.")


def open_header(file: BinaryIO, found: str) -> ImageFile.ImageFile:
    """An image of the format `found`, of which only the header was looked at.

    Raises
    ------
    UnreadableImage
        If tagkin does not read that format. Damaged headers raise what Pillow raises.
    """
    if found in _READERS:
        return _READERS[found](file)
    if found == "HEIF":
        if not _has_pillow_heif():
            raise UnreadableImage(f"HEIF, which needs an extra: {pip_install('heif')}")
        from pillow_heif import HeifImageFile

        return HeifImageFile(file)
    if found == "AVIF":
        if not _has_avif():
            raise UnreadableImage("AVIF, which needs a newer Pillow: pip install 'pillow>=11.3'")
        from PIL.AvifImagePlugin import AvifImageFile

        return AvifImageFile(file)
    raise UnreadableImage(f"not an image tagkin reads (found {found})")


def _has_avif() -> bool:
    return "avif" in features.modules and bool(features.check("avif"))  # Pillow 11.0 has not


def _has_pillow_heif() -> bool:
    try:
        import pillow_heif
    except ImportError:
        return False
    return hasattr(pillow_heif, "HeifImageFile")
