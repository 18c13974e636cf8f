"""When a photograph was taken and by which camera: EXIF, or a time in the file's name."""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from tagkin.collection.containers import CAMERA, SERIAL, TAKEN, find_metadata
from tagkin.errors import UnreadableImage
from tagkin.images.image_files import open_file

__all__ = ["Capture", "read_capture"]

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
    """Make, model and serial number, or those of them that the file has."""


def read_capture(path: str | os.PathLike[str]) -> Capture | None:
    """Read when and by which camera a photograph was taken; None if the time is unknown.

    The time comes from EXIF, else from the file's name, such as ``IMG_20240131_154500.jpg``. The
    modification time does not count, because copying changes it. If the file is missing or
    unreadable, only its name is used.
    """
    return _from_exif(path) or _from_name(Path(path).stem)


def _from_exif(path: str | os.PathLike[str]) -> Capture | None:
    try:
        with open_file(path) as file:
            exif = find_metadata(file).capture
    except (OSError, UnreadableImage):
        return None
    texts = {tag: _decode(exif.get(tag, b"")) for tag in (TAKEN, *CAMERA, SERIAL)}
    try:
        time = datetime.strptime(texts.pop(TAKEN), _EXIF_FORM)
    except ValueError:  # missing, or zeros from a camera whose clock was never set
        return None
    return Capture(time, " ".join(filter(None, texts.values())))


def _from_name(stem: str) -> Capture | None:
    match = _IN_NAME.search(stem)
    if match is None:
        return None
    try:
        return Capture(datetime(*map(int, match.groups())), "")  # type: ignore[arg-type]
    except ValueError:  # the digits are not a date
        return None


def _decode(value: bytes) -> str:
    return " ".join(value.partition(b"\0")[0].decode("latin-1").split())
