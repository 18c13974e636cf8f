"""The first image directories of a TIFF file or an EXIF block, without any pixel."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

__all__ = ["directories", "first_directory"]

_MAX_VALUE = 16 << 20  # bytes of the values of a directory together; metadata are far smaller
_MAX_ENTRIES = 1 << 12  # of a directory; cameras write some hundred
_MAX_BELOW = 16  # raw files have up to five
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 6: 1, 7: 1, 8: 2, 9: 4, 13: 4, 16: 8, 17: 8}  # by type


@dataclass(frozen=True)
class _Layout:
    """How numbers are written in a file, and where its first directory starts."""

    big: bool  # BigTIFF, for files beyond 4 GB
    order: str
    start: int
    end: int  # of the file

    @property
    def forms(self) -> tuple[str, str, str]:
        """Forms of a count of entries, of an entry and of an offset."""
        forms = ("Q", "HHQ8s", "Q") if self.big else ("H", "HHI4s", "I")
        return forms[0], forms[1], forms[2]


def first_directory(source: bytes | BinaryIO, wanted: Collection[int]) -> dict[int, bytes]:
    """The values of the wanted tags, as the bytes that stand in the file.

    Reads TIFF and BigTIFF. Where the directory ends early or points out of the file, what was
    found so far is the answer.
    """
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    layout = _layout(file)
    return {} if layout is None else _directory(file, layout, layout.start, wanted)


def directories(
    source: bytes | BinaryIO, wanted: Collection[int], below: int
) -> list[dict[int, bytes]]:
    """As `first_directory`, for that one and for those that its tag `below` points to."""
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    layout = _layout(file)
    if layout is None:
        return []
    first = _directory(file, layout, layout.start, {*wanted, below})
    offsets, form = first.pop(below, b""), layout.order + layout.forms[2]
    whole = len(offsets) // struct.calcsize(form) * struct.calcsize(form)
    starts = [start for (start,) in struct.iter_unpack(form, offsets[:whole])]
    return [first, *(_directory(file, layout, start, wanted) for start in starts[:_MAX_BELOW])]


def _layout(file: BinaryIO) -> _Layout | None:
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(16)
    order = {b"II": "<", b"MM": ">"}.get(head[:2])
    if order is None or len(head) < 8:
        return None
    big = struct.unpack_from(order + "H", head, 2)[0] == 43
    if big and len(head) < 16:
        return None
    start = struct.unpack_from(order + ("Q" if big else "I"), head, 8 if big else 4)[0]
    return _Layout(big, order, start, end)


def _directory(
    file: BinaryIO, layout: _Layout, start: int, wanted: Collection[int]
) -> dict[int, bytes]:
    if start >= layout.end:
        return {}
    count, entry, offset = (layout.order + form for form in layout.forms)
    entries, left = [], _MAX_VALUE
    values: dict[int, bytes] = {}
    file.seek(start)
    with suppress(struct.error):
        (n,) = _unpacked(file, count)
        for _ in range(min(n, _MAX_ENTRIES)):
            entries.append(_unpacked(file, entry))
    for tag, kind, length, value in entries:
        size = _SIZES.get(kind, 0) * length
        if tag not in wanted or tag in values or not 0 < size <= left:
            continue
        left -= size
        if size <= len(value):
            values[tag] = value[:size]
        elif (position := struct.unpack(offset, value)[0]) < layout.end:
            file.seek(position)
            values[tag] = file.read(size)
    return values


def _unpacked(file: BinaryIO, form: str) -> tuple:
    return struct.unpack(form, file.read(struct.calcsize(form)))
