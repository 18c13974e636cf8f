"""Walk through the blocks of JPEG, PNG, GIF and TIFF files, without decoding pixels."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import BinaryIO, NamedTuple

from tagkin.errors import UnreadableImage

__all__ = [
    "EXIF",
    "EXIF_DIRECTORY",
    "XMP",
    "Scan",
    "TooManySegments",
    "check_block_count",
    "directories",
    "first_directory",
    "first_scan",
    "segments",
]

_MAX_HEADER = 64 << 20  # bytes before the picture; usually far fewer
_MAX_SEGMENTS = 1 << 14  # a colour profile has up to 255, a long XMP packet a thousand
_MAX_BLOCKS = 1 << 18  # in a PNG or GIF file; the largest photographs have about ten thousand
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # markers of JPEG with the size of the picture
EXIF, XMP = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"  # starts of segments
EXIF_DIRECTORY = 0x8769  # the tag with the place of EXIF's own directory
_SCAN, _END = 0xDA, 0xD9
_MAX_VALUE = 16 << 20  # bytes of all values in a directory; metadata are far smaller
_MAX_ENTRIES = 1 << 12  # in a directory; cameras write about a hundred
_MAX_BELOW = 16  # raw files have up to five
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 13: 4, 16: 8, 17: 8}  # by type


class TooManySegments(ValueError):
    """The file has far more segments than any photograph."""


def segments(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Yield the marker and length of each segment up to the first scan.

    The file is positioned at the content of the segment. After `_MAX_SEGMENTS` segments this
    raises `TooManySegments`.
    """
    file.seek(2)
    for _ in range(_MAX_SEGMENTS):
        if file.tell() >= _MAX_HEADER or file.read(1) != b"\xff":
            return
        code = file.read(1)
        if code == b"\xff":  # markers may be padded
            file.seek(-1, 1)
            continue
        if not code or code[0] == _END:
            return
        marker = code[0]
        if marker == 0x01 or 0xD0 <= marker <= 0xD7:  # these have no content
            continue
        size = file.read(2)
        if len(size) < 2:
            return
        length = max(0, int.from_bytes(size, "big") - 2)
        after = file.tell() + length
        yield marker, length
        if marker == _SCAN:
            return
        file.seek(after)
    raise TooManySegments(f"more than {_MAX_SEGMENTS:,} segments before its picture")


class Scan(NamedTuple):
    """The start and the encoding of the picture in a JPEG file."""

    start: int
    """0 if there is no valid start; decoders tolerate more."""
    huffman: bool
    """Whether it uses Huffman coding."""
    is_all: bool
    """Whether it is the only scan. With several scans, decoders keep all coefficients."""


def first_scan(file: BinaryIO) -> Scan:
    """Return the first scan of a JPEG file; may raise `TooManySegments`."""
    huffman, n_components, progressive = False, 0, False
    for marker, _ in segments(file):
        if marker in _FRAMES:
            huffman = huffman or marker <= 0xC2
            progressive = progressive or marker in (0xC2, 0xC6, 0xCA, 0xCE)
            frame = file.read(6)
            n_components = frame[5] if len(frame) == 6 else 0
        elif marker == _SCAN:
            start = file.tell()
            n_in_scan = (file.read(1) or b"\0")[0]
            return Scan(start, huffman, not progressive and n_in_scan >= n_components)
    return Scan(0, huffman, False)


def check_block_count(kind: str, data: bytes) -> None:
    """Raise `UnreadableImage` for a PNG or GIF file with `_MAX_BLOCKS` or more blocks."""
    count = {"PNG": _count_png_chunks, "GIF": _count_gif_blocks}.get(kind)
    if count is not None and count(data) >= _MAX_BLOCKS:
        raise UnreadableImage(f"it has more than {_MAX_BLOCKS:,} blocks")


def _count_png_chunks(data: bytes) -> int:
    """Return the number of chunks, at most `_MAX_BLOCKS`."""
    at = 8
    for n in range(_MAX_BLOCKS):
        if at + 8 > len(data) or data[at + 4 : at + 8] == b"IEND":
            return n
        at += int.from_bytes(data[at : at + 4], "big") + 12
    return _MAX_BLOCKS


def _count_gif_blocks(data: bytes) -> int:
    """Return the number of blocks and padding bytes before the first picture, up to the limit."""
    flags = data[10] if len(data) > 10 else 0
    at = 13 + (3 * (2 << (flags & 7)) if flags & 0x80 else 0)
    in_extension = False  # whose parts start with their size
    for n in range(_MAX_BLOCKS):
        if at >= len(data) or (not in_extension and data[at] in b",;"):
            return n
        if in_extension:
            in_extension = data[at] > 0
            at += data[at] + 1
        elif data[at] == ord("!"):
            in_extension = True
            at += 2
        else:
            at += 1
    return _MAX_BLOCKS


class _Forms(NamedTuple):
    """`struct` formats of a file: of a number of entries, of an entry and of an offset."""

    number: str
    entry: str
    offset: str


def first_directory(source: bytes | BinaryIO, wanted: Collection[int]) -> dict[int, bytes]:
    """Return the raw bytes of the wanted tags in the first directory of a TIFF or BigTIFF file.

    A damaged directory gives the values before the damage.
    """
    return next(iter(directories(source, wanted)), {})


def directories(
    source: bytes | BinaryIO, wanted: Collection[int], below: int = -1
) -> list[dict[int, bytes]]:
    """Return the wanted tags of the first directory and of the directories in its tag `below`."""
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    file.seek(0)
    order = {b"II": "<", b"MM": ">"}.get(file.read(2), "")
    forms = _Forms(f"{order}H", f"{order}HHI4s", f"{order}I")
    try:
        if _unpack(file, f"{order}H") == (43,):  # BigTIFF, for files beyond 4 GB
            forms = _Forms(f"{order}Q", f"{order}HHQ8s", f"{order}Q")
            file.seek(8)
        (start,) = _unpack(file, forms.offset)
    except struct.error:
        return []
    first = _read_directory(file, forms, start, {*wanted, below}) if order else {}
    offsets, size = first.pop(below, b""), struct.calcsize(forms.offset)
    starts = struct.iter_unpack(forms.offset, offsets[: len(offsets) // size * size])
    return [first, *(_read_directory(file, forms, at, wanted) for (at,) in [*starts][:_MAX_BELOW])]


def _read_directory(
    file: BinaryIO, forms: _Forms, start: int, wanted: Collection[int]
) -> dict[int, bytes]:
    end = file.seek(0, os.SEEK_END)
    if start >= end:
        return {}
    entries, left = [], _MAX_VALUE
    values: dict[int, bytes] = {}
    file.seek(start)
    with suppress(struct.error):
        (n,) = _unpack(file, forms.number)
        for _ in range(min(n, _MAX_ENTRIES)):
            entries.append(_unpack(file, forms.entry))
    for tag, kind, length, value in entries:
        size = _SIZES.get(kind, 0) * length
        if tag not in wanted or tag in values or not 0 < size <= left:
            continue
        left -= size
        if size <= len(value):
            values[tag] = value[:size]
        elif (position := struct.unpack(forms.offset, value)[0]) < end:
            file.seek(position)
            values[tag] = file.read(size)
    return values


def _unpack(file: BinaryIO, form: str) -> tuple:
    return struct.unpack(form, file.read(struct.calcsize(form)))
