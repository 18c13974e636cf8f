"""Read the first image directories of a TIFF file or an EXIF block, without pixels."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Collection
from contextlib import suppress
from typing import BinaryIO, NamedTuple

__all__ = ["directories", "first_directory", "second_directory"]

_MAX_VALUE = 16 << 20  # bytes of all values in a directory; metadata are far smaller
_MAX_ENTRIES = 1 << 12  # in a directory; cameras write about a hundred
_MAX_BELOW = 16  # raw files have up to five
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 13: 4, 16: 8, 17: 8}  # by type


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


def second_directory(source: bytes, wanted: Collection[int]) -> dict[int, bytes]:
    """Return the raw bytes of the wanted tags in the second directory of a TIFF file or EXIF block.

    It describes the thumbnail of an EXIF block. Without it, the result is empty.
    """
    order = {b"II": "<", b"MM": ">"}.get(source[:2], "")
    forms = _Forms(f"{order}H", f"{order}HHI4s", f"{order}I")
    try:
        (first,) = struct.unpack_from(forms.offset, source, 4)
        (n,) = struct.unpack_from(forms.number, source, first)
        (start,) = struct.unpack_from(forms.offset, source, first + 2 + 12 * n)
    except struct.error:
        return {}
    return _read_directory(io.BytesIO(source), forms, start, wanted) if order and start else {}


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
