"""Common tags, for a collection that has none."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

__all__ = ["common_tags"]


@cache
def common_tags() -> tuple[str, ...]:
    """Return several hundred common English tags of visible things."""
    text = (files("tagkin.tag_meanings") / "common_tags.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())
