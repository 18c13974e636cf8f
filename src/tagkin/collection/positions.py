"""Where a photograph was taken: GPS positions in EXIF and XMP."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from typing import Any, BinaryIO

from tagkin.images.file_blocks import directories

__all__ = ["Position", "exif_position", "xmp_position"]

Position = tuple[float, float]
"""Latitude and longitude, in degrees."""

_GPS_DIRECTORY = 0x8825
_SOUTH, _LATITUDE, _WEST, _LONGITUDE = range(1, 5)  # tags; "S" and "W" make a number negative
_EXIF = "http://ns.adobe.com/exif/1.0/"
# 48,8.25N and 48,8,15N
_XMP_ANGLE = re.compile(r"(\d{1,3}),(\d{1,2}(?:\.\d+)?)(?:,(\d{1,2}(?:\.\d+)?))?([NSEW])")


def exif_position(source: bytes | BinaryIO) -> Position | None:
    """Return the position in an EXIF block or a TIFF file, or None."""
    file_order = source[:2] if isinstance(source, bytes) else _first_bytes(source)
    order = "<" if file_order == b"II" else ">"
    wanted = {_SOUTH, _LATITUDE, _WEST, _LONGITUDE}
    for tags in directories(source, wanted, _GPS_DIRECTORY)[1:]:
        latitude = _read_angle(tags.get(_LATITUDE, b""), tags.get(_SOUTH, b""), order)
        longitude = _read_angle(tags.get(_LONGITUDE, b""), tags.get(_WEST, b""), order)
        if (position := _check(latitude, longitude)) is not None:
            return position
    return None


def xmp_position(descriptions: Iterable[Any]) -> Position | None:
    """Return the position in the descriptions of an XMP packet, or None."""
    for description in descriptions:
        latitude, longitude = (
            _parse_angle(description.get(name) or description.findtext(name) or "")
            for name in (f"{{{_EXIF}}}GPSLatitude", f"{{{_EXIF}}}GPSLongitude")
        )
        if (position := _check(latitude, longitude)) is not None:
            return position
    return None


def _first_bytes(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read(2)


def _read_angle(value: bytes, reference: bytes, order: str) -> float | None:
    """Return an angle from degrees, minutes and seconds, each a fraction of two numbers."""
    numbers = struct.unpack(f"{order}{len(value) // 8 * 2}I", value[: len(value) // 8 * 8])
    parts = list(zip(numbers[::2], numbers[1::2], strict=True))
    if not parts or parts[0][1] == 0:
        return None
    angle = sum(n / (d or 1) / 60**k for k, (n, d) in enumerate(parts[:3]))
    return -angle if reference[:1] in (b"S", b"W") else angle


def _parse_angle(text: str) -> float | None:
    match = _XMP_ANGLE.fullmatch(text.strip())
    if match is None:
        return None
    angle = float(match[1]) + float(match[2]) / 60 + float(match[3] or 0) / 3600
    return -angle if match[4] in "SW" else angle


def _check(latitude: float | None, longitude: float | None) -> Position | None:
    if latitude is None or longitude is None or abs(latitude) > 90 or abs(longitude) > 180:
        return None
    # cameras without a fix write zeros
    return (latitude, longitude) if latitude or longitude else None
