"""Tags with levels, such as ``animal|dog``."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable

__all__ = ["INTERNAL", "last_level", "merge_tags", "tidy", "without_parents"]

INTERNAL = {"darktable", "_Digikam_Internal_Tags_"}
"""Top levels below which programs keep internal tags."""


def tidy(word: str) -> str:
    """Normalize a tag to composed letters, single spaces and no empty level."""
    composed = unicodedata.normalize("NFC", word.replace("\0", ""))
    return "|".join(filter(None, (" ".join(level.split()) for level in composed.split("|"))))


def last_level(tag: str) -> str:
    """Return the last level of a tag."""
    return tag.rsplit("|", 1)[-1]


def without_parents(words: Iterable[str], parents: Collection[str]) -> list[str]:
    """Return words without a parent below which tagkin wrote tags: ``auto|dog`` as ``dog``.

    The parents themselves are left out.
    """
    if not parents:
        return list(words)
    left = []
    for word in words:
        tag = tidy(word)
        parent = next((p for p in parents if tag == p or tag.startswith(f"{p}|")), None)
        if parent is None:
            left.append(word)
        elif tag != parent:
            left.append(tag[len(parent) + 1 :])
    return left


def merge_tags(words: Iterable[str]) -> list[str]:
    """Return each tag once: first tags with levels, then tags that are not a last level."""
    tags = list(dict.fromkeys(filter(None, map(tidy, words))))
    deep = [tag for tag in tags if "|" in tag]
    known = {last_level(tag) for tag in deep}
    internal = [tag for tag in deep if tag.split("|", 1)[0] in INTERNAL]
    known.update(level for tag in internal for level in tag.split("|"))
    flat = [tag for tag in tags if "|" not in tag and tag not in known]
    return [tag for tag in deep if tag not in internal] + flat
