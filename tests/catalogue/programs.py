"""The habits of other programs with the tags of a photograph, by exiftool.

A program shows the first of its lists that is there, and writes all of them. Tags have ``|``
between levels here, as in Lightroom.
"""

import json
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from tagkin.collection.sidecars import ExifTool

TAGS_LIST, HIERARCHICAL = "XMP-digiKam:TagsList", "XMP-lr:HierarchicalSubject"
SUBJECT, KEYWORDS = "XMP-dc:Subject", "IPTC:Keywords"
LAST_KEYWORD, CATALOG_SETS = "XMP-microsoft:LastKeywordXMP", "XMP-mediapro:CatalogSets"
CATEGORIES, WINDOWS = "XMP-acdsee:Categories", "IFD0:XPKeywords"
EVERY = (TAGS_LIST, LAST_KEYWORD, HIERARCHICAL, CATALOG_SETS, SUBJECT, KEYWORDS)


def swap(tag: str) -> str:
    """``a/b|c`` for ``a|b/c``, and back."""
    return tag.translate(str.maketrans("/|", "|/"))


def last(tag: str) -> str:
    return tag.rsplit("|", 1)[-1]


class Program:
    """A program that keeps tags in sidecars."""

    def __init__(self, exiftool: ExifTool, photograph: Path):
        self.exiftool, self.photograph = exiftool, photograph
        self.sidecar = photograph.with_name(f"{photograph.name}.xmp")

    def lists(self, file: Path) -> dict[str, list[str]]:
        """The lists of a file, by exiftool's names."""
        if not file.exists():
            return {}
        names = [f"-{name}" for name in EVERY]
        (output,) = json.loads(self.exiftool.run("-j", "-G1", "-struct", *names, str(file)))
        return {n: list(map(str, as_list(output[n]))) for n in EVERY if n in output}

    def put(self, file: Path, lists: Mapping[str, Iterable[str]]) -> None:
        """Replace lists of a file."""
        arguments = [f"-{n}={v}" for n, values in lists.items() for v in [*values] or [""]]
        if not file.exists() and not any("=" in a and a[-1] != "=" for a in arguments):
            return  # exiftool makes no empty file
        self.exiftool.run("-sep", "\x1f", *arguments, "-overwrite_original", str(file))

    def has_lists(self) -> bool:
        """Whether it has written, or found, lists where it writes."""
        return bool(self.lists(self.sidecar))

    def shown(self) -> set[str]:
        """The tags that the program shows."""
        raise NotImplementedError

    def save(self, tags: set[str]) -> None:
        """Write the tags that the program has now."""
        raise NotImplementedError


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def immich_tags(photograph: dict[str, list[str]], sidecar: dict[str, list[str]]) -> list[str]:
    """Immich's rule: the first list that is there; a sidecar's list wins over the photograph's.

    The result has ``/`` between levels.
    """
    lists = photograph | sidecar
    if TAGS_LIST in lists:
        return lists[TAGS_LIST]
    if HIERARCHICAL in lists:
        return [swap(tag) for tag in lists[HIERARCHICAL]]
    return lists.get(KEYWORDS, [])


class Immich(Program):
    """It writes digiKam's list alone."""

    def shown(self) -> set[str]:
        return set(map(swap, immich_tags(self.lists(self.photograph), self.lists(self.sidecar))))

    def save(self, tags: set[str]) -> None:
        self.put(self.sidecar, {TAGS_LIST: map(swap, sorted(tags))})


class Darktable(Program):
    """It repeats every parent in dc:subject."""

    def shown(self) -> set[str]:
        lists = self.lists(self.sidecar) or self.lists(self.photograph)
        return set(lists.get(HIERARCHICAL) or lists.get(SUBJECT) or ())

    def save(self, tags: set[str]) -> None:
        levels = {level for tag in tags for level in tag.split("|")}
        self.put(self.sidecar, {SUBJECT: sorted(levels), HIERARCHICAL: sorted(tags)})


class Lightroom(Program):
    """It reads and writes two lists, in the sidecar of a RAW file or inside a JPEG."""

    is_inside = False

    @property
    def file(self) -> Path:
        return self.photograph if self.is_inside else self.sidecar

    def has_lists(self) -> bool:
        return bool(self.lists(self.file))

    def shown(self) -> set[str]:
        lists = self.lists(self.file)
        deep = lists.get(HIERARCHICAL, [])
        levels = {level.casefold() for tag in deep for level in tag.split("|")}
        return {*deep, *(w for w in lists.get(SUBJECT, ()) if w.casefold() not in levels)}

    def save(self, tags: set[str]) -> None:
        names = sorted(set(map(last, tags)))
        lists = {SUBJECT: names, HIERARCHICAL: sorted(tags)}
        if self.is_inside:
            lists[KEYWORDS] = names
        self.put(self.file, lists)


class DigiKam(Lightroom):
    """It writes every list that there is, and knows no slash in a name."""

    def shown(self) -> set[str]:
        lists = self.lists(self.file)
        first = next((name for name in EVERY if name in lists), SUBJECT)
        is_slashed = first in (TAGS_LIST, LAST_KEYWORD)
        return {swap(w) if is_slashed else w for w in lists.get(first, ())}

    def save(self, tags: set[str]) -> None:
        slashed = sorted(map(swap, tags))
        names = sorted(set(map(last, tags)))
        categories = "".join(_category(tag.split("|")) for tag in sorted(tags))
        lists: dict[str, Iterable[str]] = dict.fromkeys((TAGS_LIST, LAST_KEYWORD), slashed)
        lists |= dict.fromkeys((HIERARCHICAL, CATALOG_SETS), sorted(tags))
        lists |= {SUBJECT: names, CATEGORIES: [f"<Categories>{categories}</Categories>"]}
        if self.is_inside:
            lists |= {KEYWORDS: names, WINDOWS: [";".join(names)]}
        self.put(self.file, lists)


def _category(levels: list[str]) -> str:
    inside = _category(levels[1:]) if levels[1:] else ""
    return f'<Category Assigned="{int(not inside)}">{escape(levels[0])}{inside}</Category>'


class LightroomInside(Lightroom):
    is_inside = True


class DigiKamInside(DigiKam):
    is_inside = True
