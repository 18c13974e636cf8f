"""When, where and how a photograph was taken: EXIF, XMP, or a time in the file's name."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tagkin.collection.containers import (
    CAMERA,
    GPS,
    LENS,
    RATING,
    SERIAL,
    TAKEN,
    Metadata,
    find_metadata,
)
from tagkin.errors import UnreadableImage
from tagkin.images.image_files import open_file

if TYPE_CHECKING:  # lxml takes long to import
    from tagkin.collection.xmp import Element

__all__ = [
    "Capture",
    "Position",
    "Shot",
    "exif_position",
    "read_capture",
    "shot_of",
    "xmp_position",
]

Position = tuple[float, float]
"""Latitude and longitude, in degrees."""

_LONGEST = 100  # bytes of a text; cameras write fewer
_EXIF_FORM = "%Y:%m:%d %H:%M:%S"
# IMG_20240131_154500, PXL_20240131_154500123, 2024-01-31 15.45.00
_IN_NAME = re.compile(
    r"(?<!\d)((?:19|20)\d\d)[-_.]?(\d\d)[-_.]?(\d\d)[-_ T.]?(\d\d)[-_.:]?(\d\d)[-_.:]?(\d\d)"
)
_EXIF = "http://ns.adobe.com/exif/1.0/"
# 48,8.25N and 48,8,15N
_XMP_ANGLE = re.compile(r"(\d{1,3}),(\d{1,2}(?:\.\d+)?)(?:,(\d{1,2}(?:\.\d+)?))?([NSEW])")


class Capture(NamedTuple):
    """When a photograph was taken, and by which camera."""

    time: datetime
    """By the camera's clock, to the second."""
    camera: str
    """Make, model and serial number, without missing ones."""


class Shot(NamedTuple):
    """The capture of a photograph, as its file records it; unknown values are empty."""

    taken: datetime | None = None
    """By the camera's clock, to the second."""
    camera: str = ""
    """Make and model."""
    serial: str = ""
    """The camera's serial number."""
    lens: str = ""
    rating: int | None = None
    """From 1 to 5 stars, or -1 if it was rejected."""

    def or_else(self, other: Shot) -> Shot:
        """Return this shot, with unknown values taken from another."""
        return Shot._make(own or others for own, others in zip(self, other, strict=True))

    @property
    def capture(self) -> Capture | None:
        """The time and the camera; None if the time is unknown."""
        if self.taken is None:
            return None
        return Capture(self.taken, " ".join(filter(None, (self.camera, self.serial))))


def read_capture(path: str | os.PathLike[str]) -> Capture | None:
    """Read when and by which camera a photograph was taken; None if the time is unknown.

    The time comes from EXIF, else from the file's name, such as ``IMG_20240131_154500.jpg``. The
    modification time does not count, because copying changes it. If the file is missing or
    unreadable, only its name is used.
    """
    try:
        with open_file(path) as file:
            metadata = find_metadata(file)
    except (OSError, UnreadableImage):
        metadata = Metadata()
    return shot_of(metadata, path).capture


def shot_of(metadata: Metadata, path: str | os.PathLike[str]) -> Shot:
    """Return the capture from the EXIF tags of a file.

    The time may come from the file's name, if EXIF has no time.
    """
    texts = {tag: _decode(metadata.capture.get(tag, b"")) for tag in (TAKEN, *CAMERA, SERIAL, LENS)}
    make, model = (texts[tag] for tag in CAMERA)
    stars = max(metadata.capture.get(RATING, b"")[:2], default=0)  # in either order of bytes
    repeats_make = bool(make) and model.casefold().startswith(make.split()[0].casefold())
    shot = Shot(
        camera=model if repeats_make else " ".join(filter(None, (make, model))),
        serial=texts[SERIAL],
        lens=texts[LENS],
        rating=stars if 1 <= stars <= 5 else None,
    )
    try:
        return shot._replace(taken=datetime.strptime(texts[TAKEN], _EXIF_FORM))
    except ValueError:  # missing, or zeros from a camera whose clock was never set
        return shot._replace(taken=_parse_name(Path(path).stem))


def _parse_name(stem: str) -> datetime | None:
    match = _IN_NAME.search(stem)
    if match is None:
        return None
    try:
        return datetime(*map(int, match.groups()))  # type: ignore[arg-type]
    except ValueError:  # the digits are not a date
        return None


def _decode(value: bytes) -> str:
    return " ".join(value[:_LONGEST].partition(b"\0")[0].decode("latin-1").split())


# --- positions ---------------------------------------------------------------------------


def exif_position(metadata: Metadata) -> Position | None:
    """Return the position in the EXIF tags of a file, or None."""
    for order, tags in metadata.gps:
        south, latitude, west, longitude = (tags.get(tag, b"") for tag in GPS)
        position = _check(_read_angle(latitude, south, order), _read_angle(longitude, west, order))
        if position is not None:
            return position
    return None


def xmp_position(descriptions: Iterable[Element]) -> Position | None:
    """Return the position in the descriptions of an XMP packet, or None."""
    for description in descriptions:
        latitude, longitude = (
            _parse_angle(description.get(name) or description.findtext(name) or "")
            for name in (f"{{{_EXIF}}}GPSLatitude", f"{{{_EXIF}}}GPSLongitude")
        )
        if (position := _check(latitude, longitude)) is not None:
            return position
    return None


def _read_angle(value: bytes, reference: bytes, order: bytes) -> float | None:
    """Return an angle from degrees, minutes and seconds, each a fraction of two numbers."""
    form = f"{'<' if order == b'II' else '>'}{len(value) // 8 * 2}I"
    numbers = struct.unpack(form, value[: len(value) // 8 * 8])
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
