"""Word lists: tags for an untagged collection, first names, and made-up words."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

__all__ = ["common_tags", "first_names", "made_up_words"]


@cache
def common_tags() -> tuple[str, ...]:
    """Return several hundred common English tags of visible things."""
    return _lines("common_tags.txt")


@cache
def first_names() -> tuple[str, ...]:
    """Return common first names in several languages."""
    return _lines("first_names.txt")


@cache
def made_up_words() -> tuple[str, ...]:
    """Return 500 strings of random letters and 500 of random syllables, which mean nothing."""
    return _lines("made_up_words.txt")


def _lines(name: str) -> tuple[str, ...]:
    text = (files("tagkin.tag_meanings") / name).read_text(encoding="utf-8")
    return tuple(text.splitlines())
