"""Find the preview that a camera wrote into a JPEG file.

Decoding a photograph of 12 megapixels takes five times as long as all other work on it, and its
preview is large enough for a network or a thumbnail. A preview is used only if

- a camera or a phone wrote the file: its EXIF block names the maker, and nothing says that a
  program has edited the picture since: no later time of change, no name of an editor, no history
  of edits, no header of JFIF, which programs write and cameras do not;
- nothing says that a phone computed the picture, such as a blurred background, because phones also
  keep the picture before that: no special rendering in EXIF, no depth and no portrait in XMP;
- the file says that it is a preview: a "large thumbnail" in the index of pictures (MPF) or, in a
  file without that index, a JPEG after the end of the picture, where maker notes keep theirs;
- it is a colour picture with the proportions and the orientation of the photograph, and its shorter
  side is long enough.

The smallest such preview is used.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from PIL import ExifTags
from PIL.Image import Image
from PIL.JpegImagePlugin import JpegImageFile

from tagkin.images.file_blocks import XMP, first_directory, first_scan

__all__ = ["Preview", "find_preview", "read_orientation"]

_START, _END = b"\xff\xd8\xff", b"\xff\xd9"
_RENDERED = 0xA401  # a tag of EXIF
_ENTRIES, _ENTRY = 0xB002, 16  # of MPF
_MAX_ENTRIES = 64  # of MPF; cameras write up to four, and panoramas some dozens
_LARGE_THUMBNAILS = range(0x010001, 0x010006)  # for VGA, full HD, 4K and more
_TOLERANCE = 0.01  # of the proportions, because sides are whole numbers
_MAX_TRAILING = 4  # pictures after the end of the first
_EDITORS = re.compile(
    r"adobe|photo|lightroom|gimp|snapseed|darktable|digikam|rawtherapee|capture|picasa|luminar"
    r"|affinity|acdsee|paint|pixelmator|instagram|vsco|dxo|xnview|irfan|magick|shotwell|edit",
    re.IGNORECASE,
)
_EDITED = re.compile(rb"crs:|xmpMM:History|stEvt:")
_COMPUTED = re.compile(rb"depth|portrait|GImage", re.IGNORECASE)


class Preview(NamedTuple):
    """A preview, and how it becomes upright."""

    jpeg: bytes
    orientation: int
    """EXIF orientation of the photograph."""
    camera: str
    """Maker and model."""


class _Header(NamedTuple):
    """An opened JPEG file, and where its picture starts."""

    image: JpegImageFile
    scan: int


def find_preview(data: bytes, min_side: int) -> Preview | None:
    """Return the smallest usable preview of a JPEG file, its shorter side at least `min_side`."""
    header = _open(data) if data.startswith(_START) else None
    camera = "" if header is None else _find_camera(header.image)
    if header is None or not camera:
        return None
    smallest, n_pixels = b"", 0
    for jpeg in _candidates(data, header):
        preview = _open(jpeg)
        if preview is None or not _fits(preview.image, header.image, min_side):
            continue
        width, height = preview.image.size
        if not smallest or width * height < n_pixels:
            smallest, n_pixels = jpeg, width * height
    return Preview(smallest, read_orientation(header.image), camera) if smallest else None


def _open(data: bytes) -> _Header | None:
    """Open a JPEG file; None if it has no picture or is damaged before it."""
    with suppress(Exception):  # Pillow raises nearly everything on damaged files
        if scan := first_scan(io.BytesIO(data)).start:
            return _Header(JpegImageFile(io.BytesIO(data)), scan)
    return None


def _find_camera(image: JpegImageFile) -> str:
    """Return the camera that wrote the file; empty if none did, or its picture was changed."""
    exif = image.getexif()
    inner = exif.get_ifd(ExifTags.IFD.Exif)
    tags = ExifTags.Base
    maker, model, software, changed = (
        str(exif.get(tag, "")).strip("\0 ")
        for tag in (tags.Make, tags.Model, tags.Software, tags.DateTime)
    )
    taken = str(inner.get(tags.DateTimeOriginal, "")).strip("\0 ")
    xmp = b"".join(block for _, block in image.applist if block.startswith(XMP))
    is_edited = (
        "jfif" in image.info
        or (changed and taken and changed != taken)
        or _EDITORS.search(software)
        or _EDITED.search(xmp)
        or inner.get(_RENDERED)
        or _COMPUTED.search(xmp)
    )
    return "" if is_edited or not maker else f"{maker} {model}"


def read_orientation(image: Image) -> int:
    """Return the EXIF orientation of an image; damaged metadata have none."""
    with suppress(Exception):
        return int(image.getexif().get(ExifTags.Base.Orientation, 1))
    return 1


def _candidates(data: bytes, header: _Header) -> Iterator[bytes]:
    """Yield pictures that may be previews."""
    index = header.image.info.get("mp")
    if index:
        start = header.image.info["mpoffset"]
        order = "<" if index[:1] == b"I" else ">"
        entries = first_directory(index, {_ENTRIES}).get(_ENTRIES, b"")
        whole = entries[: min(len(entries) // _ENTRY, _MAX_ENTRIES) * _ENTRY]
        ranges = dict.fromkeys(
            (start + offset, size)
            for kind, size, offset in struct.iter_unpack(f"{order}III4x", whole)
            if kind & 0xFFFFFF in _LARGE_THUMBNAILS and offset
        )
        for at, size in ranges:
            yield data[at : at + size]
        return
    end = data.find(_END, header.scan)  # coded pixels do not contain it
    for _ in range(_MAX_TRAILING):
        start = data.find(_START, end) if end > 0 else -1
        trailing = None if start < 0 else _open(data[start:])
        if trailing is None:
            return
        end = data.find(_END, start + trailing.scan) + len(_END)
        if end < start:
            return
        yield data[start:end]


def _fits(preview: JpegImageFile, photograph: JpegImageFile, min_side: int) -> bool:
    (width, height), (full_width, full_height) = preview.size, photograph.size
    if preview.mode != "RGB" or min(width, height) < min_side or not full_height:
        return False
    proportion = (width * full_height) / (height * full_width)
    return (
        read_orientation(preview) in (1, read_orientation(photograph))
        and abs(proportion - 1) <= _TOLERANCE
        and 2 * width <= full_width  # otherwise it saves little
    )
