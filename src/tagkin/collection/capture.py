"""When and by which camera a photograph was taken: EXIF, or a time in the file's name."""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from tagkin.collection.containers import (
    CAMERA,
    LENS,
    RATING,
    SERIAL,
    TAKEN,
    Metadata,
    find_metadata,
)
from tagkin.errors import UnreadableImage
from tagkin.images.image_files import open_file

__all__ = ["Capture", "Shot", "read_capture", "shot_of"]

_LONGEST = 100  # bytes of a text; cameras write fewer
_EXIF_FORM = "%Y:%m:%d %H:%M:%S"
# IMG_20240131_154500, PXL_20240131_154500123, 2024-01-31 15.45.00
_IN_NAME = re.compile(
    r"(?<!\d)((?:19|20)\d\d)[-_.]?(\d\d)[-_.]?(\d\d)[-_ T.]?(\d\d)[-_.:]?(\d\d)[-_.:]?(\d\d)"
)


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
