"""When and by which camera a photograph was taken."""

from __future__ import annotations

import os
from datetime import datetime
from typing import NamedTuple

from tagkin.collection.facts import Facts
from tagkin.collection.keywords import read_metadata
from tagkin.errors import UnreadableImage

__all__ = ["Capture", "capture_of", "read_capture"]


class Capture(NamedTuple):
    """When a photograph was taken, and by which camera."""

    time: datetime
    """By the camera's clock."""
    camera: str
    """Make, model and serial number, without missing ones."""


def read_capture(path: str | os.PathLike[str]) -> Capture | None:
    """Read when and by which camera a photograph was taken.

    None if the time is unknown, or the file is missing or unreadable. A time in its name and the
    time of the file do not count, because copying and editing change them.
    """
    try:
        return capture_of(read_metadata(path).facts)
    except UnreadableImage:
        return None


def capture_of(facts: Facts) -> Capture | None:
    """Return the time and the camera; None if the time of day is unknown."""
    taken = str(facts.get("taken", ""))
    if "T" not in taken:
        return None
    camera = " ".join(str(facts[name]) for name in ("camera", "serial") if name in facts)
    return Capture(datetime.fromisoformat(taken), camera)
