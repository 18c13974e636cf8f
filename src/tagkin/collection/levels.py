"""Tags with levels, such as ``animal|dog``."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from tagkin.labels import normalize_tag

__all__ = ["INTERNAL", "first_spellings", "fold", "last_level", "merge_tags", "tidy"]

INTERNAL = {"darktable", "_Digikam_Internal_Tags_"}
"""Top levels below which programs keep internal tags."""


def tidy(word: str) -> str:
    """Normalize a tag to composed letters, single spaces and no empty level."""
    composed = unicodedata.normalize("NFC", word.replace("\0", ""))
    return "|".join(filter(None, (" ".join(level.split()) for level in composed.split("|"))))


@lru_cache(1 << 16)
def fold(tag: str) -> str:
    """Return a tag in the form that all its spellings share: Beach and beach are one tag."""
    return normalize_tag(tidy(tag))


def last_level(tag: str) -> str:
    """Return the last level of a tag."""
    return tag.rsplit("|", 1)[-1]


def merge_tags(words: Iterable[str]) -> list[str]:
    """Return each tag once: first tags with levels, then tags that are not a last level."""
    tags = first_spellings(filter(None, map(tidy, words)))
    deep = [tag for tag in tags if "|" in tag]
    known = {fold(last_level(tag)) for tag in deep}
    internal = [tag for tag in deep if tag.split("|", 1)[0] in INTERNAL]
    known.update(fold(level) for tag in internal for level in tag.split("|"))
    flat = [tag for tag in tags if "|" not in tag and fold(tag) not in known]
    return [tag for tag in deep if tag not in internal] + flat


def first_spellings(tags: Iterable[str]) -> list[str]:
    """Return each tag once, in its first spelling."""
    spellings: dict[str, str] = {}
    for tag in tags:
        spellings.setdefault(fold(tag), tag)
    return list(spellings.values())
