"""Find the preview that a camera wrote into a JPEG file.

Decoding a photograph of 12 megapixels takes five times as long as all other work on it, and its
preview is large enough for a network or a thumbnail. A preview is used only if

- a camera or a phone wrote the file: its EXIF block names the maker, and nothing says that a
  program has edited the picture since: no later time of change, no name of an editor, no history
  of edits, no header of JFIF, which programs write and cameras do not;
- nothing says that a phone computed the picture, such as a blurred background, because phones also
  keep the picture before that: no special rendering in EXIF, no depth and no portrait in XMP;
- the file says that it is a preview: a "large thumbnail" in the index of pictures (MPF), the
  thumbnail of EXIF, or, in a file without that index, a JPEG after the end of the picture, where
  maker notes keep theirs;
- it is a colour picture with the proportions and the orientation of the photograph, and its shorter
  side is long enough.

The smallest such preview is used.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from tagkin.images.file_blocks import (
    EXIF,
    EXIF_DIRECTORY,
    FRAMES,
    XMP,
    TooManySegments,
    directories,
    first_directory,
    second_directory,
    segments,
)

__all__ = ["Preview", "find_preview"]

_APP0, _APP1, _APP2, _SCAN = 0xE0, 0xE1, 0xE2, 0xDA
_MPF = b"MPF\0"
_START, _END = b"\xff\xd8\xff", b"\xff\xd9"
_ORIENTATION, _SOFTWARE, _CHANGED, _MAKER, _MODEL = 0x0112, 0x0131, 0x0132, 0x010F, 0x0110
_TAKEN, _RENDERED = 0x9003, 0xA401
_THUMBNAIL, _THUMBNAIL_LENGTH = 0x0201, 0x0202
_ENTRIES, _ENTRY = 0xB002, 16  # of MPF
_MAX_ENTRIES = 64  # of MPF; cameras write up to four, and panoramas some dozens
_LARGE_THUMBNAILS = range(0x010001, 0x010006)  # for VGA, full HD, 4K and more
_TOLERANCE = 0.01  # of the proportions, because sides are whole numbers
_MAX_TRAILING = 4  # pictures after the end of the first
_EDITORS = re.compile(
    rb"adobe|photo|lightroom|gimp|snapseed|darktable|digikam|rawtherapee|capture|picasa|luminar"
    rb"|affinity|acdsee|paint|pixelmator|instagram|vsco|dxo|xnview|irfan|magick|shotwell|edit",
    re.IGNORECASE,
)
_EDITED = re.compile(rb"crs:|xmpMM:History|stEvt:")
_COMPUTED = re.compile(rb"depth|portrait|GImage", re.IGNORECASE)


class Preview(NamedTuple):
    """A preview, and how it becomes upright."""

    jpeg: bytes
    orientation: int
    """EXIF orientation of the photograph."""
    camera: bytes
    """Maker and model."""


class _Header(NamedTuple):
    """The data of a JPEG file before its picture."""

    size: tuple[int, int]
    n_channels: int
    scan: int
    """Where the picture starts."""
    has_jfif: bool
    exif: bytes
    xmp: bytes
    mpf: bytes
    mpf_start: int


def find_preview(data: bytes, min_side: int) -> Preview | None:
    """Return the smallest usable preview of a JPEG file, its shorter side at least `min_side`."""
    header = _read_header(data) if data.startswith(_START) else None
    camera = b"" if header is None else _camera(header)
    if header is None or not camera:
        return None
    orientation = _orientation(header.exif)
    smallest, n_pixels = b"", 0
    for jpeg in _candidates(data, header):
        preview = _read_header(jpeg)
        if preview is None or not _fits(preview, header, orientation, min_side):
            continue
        if not smallest or preview.size[0] * preview.size[1] < n_pixels:
            smallest, n_pixels = jpeg, preview.size[0] * preview.size[1]
    return Preview(smallest, orientation, camera) if smallest else None


def _read_header(data: bytes) -> _Header | None:
    """Read a JPEG file up to its picture; None if it has no picture or is damaged."""
    file = io.BytesIO(data)
    size, n_channels, has_jfif = (0, 0), 0, False
    exif = xmp = mpf = b""
    mpf_start = 0
    try:
        for marker, length in segments(file):
            start = file.tell()
            if marker in FRAMES and length >= 6:
                height, width, n_channels = struct.unpack(">xHHB", file.read(6))
                size = width, height
            elif marker == _APP0:
                has_jfif = has_jfif or file.read(4) == b"JFIF"
            elif marker in (_APP1, _APP2):
                block = file.read(length)
                if block.startswith(EXIF):
                    exif = exif or block[len(EXIF) :]
                elif block.startswith(XMP):
                    xmp += block
                elif block.startswith(_MPF) and not mpf:
                    mpf, mpf_start = block[len(_MPF) :], start + len(_MPF)
            elif marker == _SCAN:
                return _Header(size, n_channels, start, has_jfif, exif, xmp, mpf, mpf_start)
    except (TooManySegments, struct.error):
        pass
    return None


def _camera(header: _Header) -> bytes:
    """Return the camera that wrote the file; empty if none did, or its picture was changed."""
    wanted = {_MAKER, _MODEL, _SOFTWARE, _CHANGED, _TAKEN, _RENDERED}
    tags = directories(header.exif, wanted, below=EXIF_DIRECTORY) if header.exif else []
    values = {number: value.strip(b"\0 ") for tag in tags for number, value in tag.items()}
    changed, taken = values.get(_CHANGED), values.get(_TAKEN)
    is_edited = (
        header.has_jfif
        or (changed and taken and changed != taken)
        or _EDITORS.search(values.get(_SOFTWARE, b""))
        or _EDITED.search(header.xmp)
        or values.get(_RENDERED)  # without its zeros
        or _COMPUTED.search(header.xmp)
    )
    maker = values.get(_MAKER, b"")
    return b"" if is_edited or not maker else maker + b" " + values.get(_MODEL, b"")


def _orientation(exif: bytes) -> int:
    value = first_directory(exif, {_ORIENTATION}).get(_ORIENTATION, b"")
    if len(value) != 2:
        return 1
    (orientation,) = struct.unpack("<H" if exif[:1] == b"I" else ">H", value)
    return int(orientation) if 1 <= orientation <= 8 else 1


def _candidates(data: bytes, header: _Header) -> Iterator[bytes]:
    """Yield pictures that may be previews."""
    thumbnail = second_directory(header.exif, {_THUMBNAIL, _THUMBNAIL_LENGTH})
    if len(thumbnail) == 2 and all(len(value) == 4 for value in thumbnail.values()):
        order = "<I" if header.exif[:1] == b"I" else ">I"
        start, length = (
            struct.unpack(order, thumbnail[tag])[0] for tag in (_THUMBNAIL, _THUMBNAIL_LENGTH)
        )
        yield header.exif[start : start + length]
    if header.mpf:
        order = "<" if header.mpf[:1] == b"I" else ">"
        entries = first_directory(header.mpf, {_ENTRIES}).get(_ENTRIES, b"")
        whole = entries[: min(len(entries) // _ENTRY, _MAX_ENTRIES) * _ENTRY]
        ranges = dict.fromkeys(
            (offset, size)
            for kind, size, offset in struct.iter_unpack(f"{order}III4x", whole)
            if kind & 0xFFFFFF in _LARGE_THUMBNAILS and offset
        )
        for offset, size in ranges:
            yield data[header.mpf_start + offset : header.mpf_start + offset + size]
        return
    end = data.find(_END, header.scan)  # coded pixels do not contain it
    for _ in range(_MAX_TRAILING):
        start = data.find(_START, end) if end > 0 else -1
        trailing = None if start < 0 else _read_header(data[start:])
        if trailing is None:
            return
        end = data.find(_END, start + trailing.scan) + len(_END)
        if end < start:
            return
        yield data[start:end]


def _fits(preview: _Header, photograph: _Header, orientation: int, min_side: int) -> bool:
    (width, height), (full_width, full_height) = preview.size, photograph.size
    if preview.n_channels != 3 or min(width, height) < min_side or not full_height:
        return False
    own = _orientation(preview.exif) if preview.exif else 1
    proportion = (width * full_height) / (height * full_width)
    return (
        own in (1, orientation)
        and abs(proportion - 1) <= _TOLERANCE
        and 2 * width <= full_width  # otherwise it saves little
    )
