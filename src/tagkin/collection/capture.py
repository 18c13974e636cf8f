"""When and by which camera a photograph was taken."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from tagkin.collection.facts import Facts

__all__ = ["Capture", "capture_of"]


class Capture(NamedTuple):
    """When a photograph was taken, and by which camera."""

    time: datetime
    """By the camera's clock."""
    camera: str
    """Make, model and serial number, without missing ones."""


def capture_of(facts: Facts) -> Capture | None:
    """Return the time and the camera; None if the time of day is unknown.

    A time in the name of a file and the time of the file do not count, because copying and editing
    change them.
    """
    taken = str(facts.get("taken", ""))
    if "T" not in taken:
        return None
    camera = " ".join(str(facts[name]) for name in ("camera", "serial") if name in facts)
    return Capture(datetime.fromisoformat(taken), camera)
