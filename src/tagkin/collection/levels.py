"""Tags with levels, such as ``animal|dog``."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

__all__ = ["INTERNAL", "last_level", "merge_tags", "tidy"]

INTERNAL = {"darktable", "_Digikam_Internal_Tags_"}
"""Top levels below which programs keep internal tags."""


def tidy(word: str) -> str:
    """Normalize a tag to composed letters, single spaces and no empty level."""
    composed = unicodedata.normalize("NFC", word.replace("\0", ""))
    return "|".join(filter(None, (" ".join(level.split()) for level in composed.split("|"))))


def last_level(tag: str) -> str:
    """Return the last level of a tag."""
    return tag.rsplit("|", 1)[-1]


def merge_tags(words: Iterable[str]) -> list[str]:
    """Return each tag once: first tags with levels, then tags that are not a last level."""
    tags = list(dict.fromkeys(filter(None, map(tidy, words))))
    deep = [tag for tag in tags if "|" in tag]
    known = {last_level(tag) for tag in deep}
    internal = [tag for tag in deep if tag.split("|", 1)[0] in INTERNAL]
    known.update(level for tag in internal for level in tag.split("|"))
    flat = [tag for tag in tags if "|" not in tag and tag not in known]
    return [tag for tag in deep if tag not in internal] + flat
