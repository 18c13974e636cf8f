"""Tags with levels, ``animal|dog``: one spelling for what looks the same, and each tag once."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

__all__ = ["last_level", "merged", "tidy"]

# Programs keep their own books among the tags under these.
_NOT_A_PERSONS = {"darktable", "_Digikam_Internal_Tags_"}


def tidy(word: str) -> str:
    """One spelling for what looks the same: composed letters, single spaces, no empty level."""
    composed = unicodedata.normalize("NFC", word.replace("\0", ""))
    return "|".join(filter(None, (" ".join(level.split()) for level in composed.split("|"))))


def last_level(tag: str) -> str:
    """The tag without the levels above it."""
    return tag.rsplit("|", 1)[-1]


def merged(words: Iterable[str]) -> list[str]:
    """Each tag once: those with levels first, then those that are not the last level of one."""
    tags = list(dict.fromkeys(filter(None, map(tidy, words))))
    deep = [tag for tag in tags if "|" in tag]
    known = {last_level(tag) for tag in deep}
    books = [tag for tag in deep if tag.split("|", 1)[0] in _NOT_A_PERSONS]
    known.update(level for tag in books for level in tag.split("|"))
    flat = [tag for tag in tags if "|" not in tag and tag not in known]
    return [tag for tag in deep if tag not in books] + flat
