"""Tags for a collection that has none."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

__all__ = ["common_tags"]


@cache
def common_tags() -> tuple[str, ...]:
    """Some hundred tags that people put on photographs: things that can be seen, in English."""
    text = (files("tagkin.names") / "common_tags.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())
