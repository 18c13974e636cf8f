"""Read the first image directories of a TIFF file or an EXIF block, without pixels."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

__all__ = ["directories", "first_directory"]

_MAX_VALUE = 16 << 20  # bytes of all values in a directory; metadata are far smaller
_MAX_ENTRIES = 1 << 12  # in a directory; cameras write about a hundred
_MAX_BELOW = 16  # raw files have up to five
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 6: 1, 7: 1, 8: 2, 9: 4, 13: 4, 16: 8, 17: 8}  # by type


@dataclass(frozen=True)
class _Layout:
    """The byte order of a file and the position of its first directory."""

    big: bool  # BigTIFF, for files beyond 4 GB
    order: str
    start: int
    end: int  # of the file

    @property
    def forms(self) -> tuple[str, str, str]:
        """`struct` formats of a count of entries, of an entry and of an offset."""
        return ("Q", "HHQ8s", "Q") if self.big else ("H", "HHI4s", "I")


def first_directory(source: bytes | BinaryIO, wanted: Collection[int]) -> dict[int, bytes]:
    """Return the raw bytes of the wanted tags in the first directory of a TIFF or BigTIFF file.

    A damaged directory gives the values before the damage.
    """
    return next(iter(directories(source, wanted)), {})


def directories(
    source: bytes | BinaryIO, wanted: Collection[int], below: int = -1
) -> list[dict[int, bytes]]:
    """Return the wanted tags of the first directory and of those that its tag `below` points to."""
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    layout = _read_layout(file)
    if layout is None:
        return []
    first = _read_directory(file, layout, layout.start, {*wanted, below})
    offsets, form = first.pop(below, b""), layout.order + layout.forms[2]
    whole = len(offsets) // struct.calcsize(form) * struct.calcsize(form)
    starts = [start for (start,) in struct.iter_unpack(form, offsets[:whole])][:_MAX_BELOW]
    return [first, *(_read_directory(file, layout, start, wanted) for start in starts)]


def _read_layout(file: BinaryIO) -> _Layout | None:
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


def _read_directory(
    file: BinaryIO, layout: _Layout, start: int, wanted: Collection[int]
) -> dict[int, bytes]:
    if start >= layout.end:
        return {}
    count, entry, offset = (layout.order + form for form in layout.forms)
    entries, left = [], _MAX_VALUE
    values: dict[int, bytes] = {}
    file.seek(start)
    with suppress(struct.error):
        (n,) = _unpack(file, count)
        for _ in range(min(n, _MAX_ENTRIES)):
            entries.append(_unpack(file, entry))
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


def _unpack(file: BinaryIO, form: str) -> tuple:
    return struct.unpack(form, file.read(struct.calcsize(form)))
