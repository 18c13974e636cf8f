"""Tags of other kinds than keywords: names of folders, places and people.

They say where a photograph is, where it was taken and who is on it. tagkin shows and finds them,
and neither learns nor suggests them.
"""

from __future__ import annotations

import fnmatch
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from lxml import etree

from tagkin.collection.capture import Position, exif_position, xmp_position
from tagkin.collection.containers import find_metadata
from tagkin.collection.levels import tidy
from tagkin.collection.places import find_place
from tagkin.collection.sidecar_naming import sidecars_of
from tagkin.collection.xmp import (
    MAX_BYTES,
    Element,
    descriptions,
    items_of,
    parse_packet,
    value_of,
)
from tagkin.errors import InvalidInput, UnreadableImage
from tagkin.images.image_files import open_file, read_bytes

__all__ = ["FOLDER", "KINDS", "PERSON", "PLACE", "KindTag", "Kinds", "read_kinds"]

FOLDER, PLACE, PERSON = KINDS = ("folder", "place", "person")
_MOST = 1000  # names in a photograph
_LONGEST = 500  # characters of a name
_LEVELS = re.compile(r"(\d+)(?:(-)(\d*))?")
# names of people in XMP
_REGIONS = "http://www.metadataworkinggroup.com/schemas/regions/"  # mwg-rs
_MICROSOFT = "{http://ns.microsoft.com/photo/1.2/t/Region#}PersonDisplayName"  # MPReg
_PERSONS = "{http://iptc.org/std/Iptc4xmpExt/2008-02-29/}PersonInImage"
_NAME, _TYPE = f"{{{_REGIONS}}}Name", f"{{{_REGIONS}}}Type"


class KindTag(NamedTuple):
    """A tag of another kind than keyword."""

    kind: str
    """folder, place or person."""
    name: str
    file: str
    """The file that has it; empty for the name of a folder."""


@dataclass(frozen=True)
class Kinds:
    """Which tags of other kinds to read."""

    folders: str = ""
    """Levels of folders whose names are tags, such as "1", "2-3", "1,3-" or "all"; empty: none."""
    without: Sequence[str] = ()
    """Names of folders that are not tags, such as "DCIM" or "1??CANON"."""
    places: str = ""
    """The language of places, such as "en"; empty: no places."""
    people: bool = False

    def __post_init__(self) -> None:
        self._levels()

    def _levels(self) -> list[range]:
        """Return the levels whose names are tags, from 1; reject a text that is not a list."""
        if self.folders in ("", "all"):
            return [range(1, sys.maxsize)] if self.folders else []
        ranges = []
        for part in self.folders.split(","):
            match = _LEVELS.fullmatch(part.strip())
            if match is None or not 1 <= int(match[1]) <= int(match[3] or match[1]):
                raise InvalidInput(
                    f"Levels of folders are numbers from the top, such as 1, 2-3 or 2-, or all; "
                    f"found {self.folders!r}."
                )
            is_open = match[2] and not match[3]
            last = sys.maxsize if is_open else int(match[3] or match[1])
            ranges.append(range(int(match[1]), last + 1))
        return ranges

    def to_dict(self) -> dict[str, object]:
        """Return the settings that are set, ready for JSON."""
        plain = asdict(self) | {"without": list(self.without)}
        return {name: value for name, value in plain.items() if value}

    def folder_tags(self, path: str) -> list[str]:
        """Return the names of folders that are tags, by a path from the root."""
        levels, without = self._levels(), [name.casefold() for name in self.without]
        return [
            tag
            for level, name in enumerate(path.split("/")[:-1], 1)
            if any(level in some for some in levels)
            and not any(fnmatch.fnmatchcase(name.casefold(), other) for other in without)
            and (tag := tidy(name.replace("|", " ")))
        ]


def read_kinds(files: Sequence[str | os.PathLike[str]], path: str, kinds: Kinds) -> list[KindTag]:
    """Return the tags of other kinds of a photograph, each once.

    `files` are the photograph and its raw files, and `path` is the photograph from
    the root of the collection. A place comes with its country and region: ``Italy``,
    ``Italy|Tuscany`` and ``Italy|Tuscany|Florence``.
    """
    tags = [KindTag(FOLDER, name, "") for name in kinds.folder_tags(path)]
    if kinds.places or kinds.people:
        position: tuple[Position, str] | None = None
        for file in files:
            people, here = _read_file(Path(file))
            position = position or here
            tags += people if kinds.people else []
        if kinds.places and position is not None:
            place = find_place(position[0], kinds.places)
            levels = place.split("|") if place else []
            for n in range(1, len(levels) + 1):
                tags.append(KindTag(PLACE, "|".join(levels[:n]), position[1]))
    usable = [tag for tag in tags if len(tag.name) <= _LONGEST]
    return list({tag[:2]: tag for tag in reversed(usable)}.values())[::-1][:_MOST]


def _read_file(path: Path) -> tuple[list[KindTag], tuple[Position, str] | None]:
    """Return the people in a photograph and its sidecars, and its position with the file.

    A position in a sidecar overrides the position in the photograph, because people correct
    positions there. Damaged metadata are skipped; reading keywords reports them.
    """
    packets: list[tuple[bytes, Path]] = []
    in_exif: Position | None = None
    for sidecar in sidecars_of(path):
        with suppress(UnreadableImage):
            packets.append((read_bytes(sidecar, MAX_BYTES), sidecar))
    with suppress(UnreadableImage), open_file(path) as file:
        metadata = find_metadata(file)
        packets += [(packet, path) for packet in metadata.xmp]
        in_exif = exif_position(metadata)
    people: list[KindTag] = []
    position: tuple[Position, str] | None = None
    for packet, source in packets:
        root = parse_packet(packet)
        if root is not None:
            people += [KindTag(PERSON, name, str(source)) for name in _people_of(root)]
            here = xmp_position(descriptions(root))
            position = position or (here and (here, str(source)))
    return people, position or (in_exif and (in_exif, str(path)))


def _people_of(root: Element) -> list[str]:
    """Return the names of faces (``mwg-rs``, ``MP``) and of ``Iptc4xmpExt:PersonInImage``."""
    # a name has no levels
    names = (tidy(name.replace("|", " ")) for name in _names(root))
    return list(dict.fromkeys(filter(None, names)))


def _names(root: Element) -> Iterator[str]:
    for node in root.iter(etree.Element):
        if _property(node, _TYPE) in ("", "Face"):  # not pets and barcodes
            yield _property(node, _NAME)
        yield _property(node, _MICROSOFT)
    for description in descriptions(root):
        yield description.get(_PERSONS) or ""
        for element in description.findall(_PERSONS):
            yield from map(value_of, items_of(element) or [element])


def _property(node: Element, name: str) -> str:
    """Return a property of a structure, which is an attribute or a child element."""
    return node.get(name) or node.findtext(name) or ""
