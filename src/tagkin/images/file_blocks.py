"""Walk through the blocks of JPEG, PNG, GIF and TIFF files, without decoding pixels."""

from __future__ import annotations

import io
import os
import re
import struct
from array import array
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import BinaryIO, NamedTuple

__all__ = [
    "EXIF",
    "EXIF_DIRECTORY",
    "GPS_DIRECTORY",
    "XMP",
    "JpegScan",
    "TooManySegments",
    "check_block_count",
    "chunks",
    "directories",
    "first_directory",
    "first_scan",
    "gif_blocks",
    "segments",
]

_MAX_HEADER = 64 << 20  # bytes before the picture; usually far fewer
_MAX_SEGMENTS = 1 << 14  # a colour profile has up to 255, a long XMP packet a thousand
_MAX_BLOCKS = 1 << 18  # in a PNG or GIF file; the largest photographs have about ten thousand
_CHUNK = re.compile(rb"[\w ]{4}")  # the names that Pillow takes for PNG; WebP has "XMP "
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # markers of JPEG with the size of the picture
EXIF, XMP = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"  # starts of segments
EXIF_DIRECTORY, GPS_DIRECTORY = 0x8769, 0x8825  # tags with the places of EXIF's own directories
_SCAN, _END = 0xDA, 0xD9
_MAX_VALUE = 16 << 20  # bytes of all values in a directory; metadata are far smaller
_MAX_ENTRIES = 1 << 12  # in a directory; cameras write about a hundred
_MAX_BELOW = 16  # raw files have up to five
_NUMBERS = {3: "H", 5: "I"}  # the types of short numbers and of fractions, as arrays have them
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 13: 4, 16: 8, 17: 8}  # by type


class TooManySegments(ValueError):
    """The file has far more segments, chunks or blocks than any photograph."""


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


class JpegScan(NamedTuple):
    """The start and the encoding of the picture in a JPEG file."""

    start: int
    """0 if there is no valid start; decoders tolerate more."""
    huffman: bool
    """Whether it uses Huffman coding."""
    is_all: bool
    """Whether it is the only scan. With several scans, decoders keep all coefficients."""


def first_scan(file: BinaryIO) -> JpegScan:
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
            return JpegScan(start, huffman, not progressive and n_in_scan >= n_components)
    return JpegScan(0, huffman, False)


def check_block_count(kind: str, data: bytes) -> None:
    """Raise `TooManySegments` for a PNG or GIF file with far more blocks than a photograph has."""
    if kind == "PNG":
        for _ in chunks(io.BytesIO(data), is_png=True):
            pass
    elif kind == "GIF":  # of which only the first picture is decoded
        any(label == b"," for label, _, _ in gif_blocks(io.BytesIO(data)))


def chunks(file: BinaryIO, *, is_png: bool) -> Iterator[tuple[bytes, int]]:
    """Yield the name and length of each chunk of a PNG or WebP file.

    At each of them, the file is at its content. A damaged header ends it. Raises `TooManySegments`.
    """
    file.seek(8 if is_png else 12)
    for _ in range(_MAX_BLOCKS):
        head = file.read(8)
        name, size = (head[4:], head[:4]) if is_png else (head[:4], head[4:])
        if not _CHUNK.fullmatch(name) or len(head) < 8 or name == b"IEND":
            return
        length = int.from_bytes(size, "big" if is_png else "little")
        after = file.tell() + length + (4 if is_png else length % 2)  # 4 for a checksum
        yield name, length
        file.seek(after)
    raise TooManySegments(f"more than {_MAX_BLOCKS:,} chunks")


def gif_blocks(file: BinaryIO) -> Iterator[tuple[bytes, int, int]]:
    """Yield the label, the start and the end of the parts of each block of a GIF file.

    The label is "," for a picture, whose end is not known yet, and "!" and a byte for an extension.
    Raises `TooManySegments`.
    """
    n_left = _MAX_BLOCKS

    def skip_colours(flags: bytes) -> None:
        if flags and flags[0] & 0x80:
            file.seek(3 * (2 << (flags[0] & 7)), os.SEEK_CUR)

    skip_colours(file.read(13)[10:11])
    while n_left > 0:
        n_left -= 1
        label = file.read(1)
        if label in (b"", b";"):
            return
        if label == b",":
            skip_colours(file.read(9)[8:])
            file.read(1)  # code size of the pixels
            yield label, file.tell(), file.tell()
        elif label == b"!":
            label += file.read(1)
        else:  # padding
            continue
        start = file.tell()
        while n_left > 0 and (size := file.read(1)) not in (b"", b"\0"):
            file.seek(size[0], os.SEEK_CUR)
            n_left -= 1
        end = file.tell()
        if label != b",":
            yield label, start, end
            file.seek(end)
    raise TooManySegments(f"more than {_MAX_BLOCKS:,} blocks")


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
    source: bytes | BinaryIO, wanted: Collection[int], below: Collection[int] = ()
) -> list[dict[int, bytes]]:
    """Return the wanted tags of the first directory and of those in its tags `below`.

    Values are raw bytes, except that short numbers and fractions are little-endian.
    """
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
    first = _read_directory(file, forms, start, {*wanted, *below}) if order else {}
    offsets, size = b"".join(first.pop(tag, b"") for tag in below), struct.calcsize(forms.offset)
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
        if kind in _NUMBERS and tag in values and forms.offset.startswith(">"):
            numbers = array(_NUMBERS[kind])
            numbers.frombytes(
                values[tag][: len(values[tag]) // numbers.itemsize * numbers.itemsize]
            )
            numbers.byteswap()
            values[tag] = numbers.tobytes()
    return values


def _unpack(file: BinaryIO, form: str) -> tuple:
    return struct.unpack(form, file.read(struct.calcsize(form)))
