"""When a photograph was taken and by which camera: EXIF, or a time in the file's name."""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from tagkin.collection.containers import CAMERA, SERIAL, TAKEN, find_metadata
from tagkin.errors import UnreadableImage
from tagkin.images.files import open_file

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
    """Make, model and number as far as the file has them; empty where it has none."""


def read_capture(path: str | os.PathLike[str]) -> Capture | None:
    """When and by which camera a photograph was taken; None where nothing says when.

    EXIF goes before a time in the file's name, such as ``IMG_20240131_154500.jpg``. The time at
    which a file was last written is not looked at: copying changes it. A file that is not there or
    cannot be read has no EXIF.
    """
    return _from_exif(path) or _from_name(Path(path).stem)


def _from_exif(path: str | os.PathLike[str]) -> Capture | None:
    try:
        with open_file(path) as file:
            found = find_metadata(file).capture
    except (OSError, UnreadableImage):
        return None
    try:
        time = datetime.strptime(_text(found.get(TAKEN, b"")), _EXIF_FORM)
    except ValueError:  # none, or zeros as cameras write whose clock was never set
        return None
    return Capture(
        time, " ".join(filter(None, (_text(found.get(t, b"")) for t in (*CAMERA, SERIAL))))
    )


def _from_name(stem: str) -> Capture | None:
    found = _IN_NAME.search(stem)
    if found is None:
        return None
    try:
        return Capture(datetime(*map(int, found.groups())), "")  # type: ignore[arg-type]
    except ValueError:  # digits that are no date
        return None


def _text(value: bytes) -> str:
    return " ".join(value.partition(b"\0")[0].decode("latin-1").split())
