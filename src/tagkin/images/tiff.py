"""The first image directory of a TIFF file or an EXIF block, without any pixel."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Collection
from contextlib import suppress
from typing import BinaryIO

__all__ = ["first_directory"]

_MAX_VALUE = 64 << 20  # metadata are far smaller
_MAX_ENTRIES = 0xFFFF  # what TIFF can count; BigTIFF could claim as many as would fill the memory
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 6: 1, 7: 1, 8: 2, 9: 4, 13: 4, 16: 8, 17: 8}  # by type


def first_directory(source: bytes | BinaryIO, wanted: Collection[int]) -> dict[int, bytes]:
    """The values of the wanted tags, as the bytes that stand in the file.

    Reads TIFF and BigTIFF. Where the directory ends early or points out of the file, what was
    found so far is the answer.
    """
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(16)
    order = {b"II": "<", b"MM": ">"}.get(head[:2])
    if order is None or len(head) < 8:
        return {}
    big = struct.unpack_from(order + "H", head, 2)[0] == 43
    # count of entries, an entry, an offset
    count, entry, offset = ("Q", "HHQ8s", "Q") if big else ("H", "HHI4s", "I")
    entries, values = [], {}
    with suppress(struct.error):
        start = struct.unpack_from(order + offset, head, 8 if big else 4)[0]
        if start >= end:
            return {}
        file.seek(start)
        (n,) = _unpacked(file, order + count)
        for _ in range(min(n, _MAX_ENTRIES)):
            entries.append(_unpacked(file, order + entry))
    for tag, kind, length, value in entries:
        size = _SIZES.get(kind, 0) * length
        if tag not in wanted or not 0 < size <= _MAX_VALUE:
            continue
        if size <= len(value):
            values[tag] = value[:size]
        elif (start := struct.unpack(order + offset, value)[0]) < end:
            file.seek(start)
            values[tag] = file.read(size)
    return values


def _unpacked(file: BinaryIO, form: str) -> tuple:
    return struct.unpack(form, file.read(struct.calcsize(form)))
