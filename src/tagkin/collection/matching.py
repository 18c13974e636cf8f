"""Match the rows of a tag file with photographs."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tagkin.collection.roots import locate_names
from tagkin.collection.tag_tables import TagTable
from tagkin.errors import InvalidInput
from tagkin.images import Failure
from tagkin.images.formats import raw_suffixes, suffixes

__all__ = ["Matches", "match_table"]

_NAMED = 5  # examples in a message


class Matches(NamedTuple):
    """The photographs of a tag file."""

    tags: dict[int, list[str]]
    """Tags by the index of their photograph."""
    absent: list[str]
    """Names of missing photographs."""
    unread: list[Failure]
    """Files in a format that tagkin does not read."""


def match_table(
    table: TagTable,
    path: Path,
    files: Sequence[Path],
    raw_of: Mapping[str, str],
    locations: Sequence[Path],
) -> Matches:
    """Match the rows of the tag file at `path` with photographs.

    `files` and `raw_of` are as in `Collection`; `locations` are the searched files and folders.

    Parameters
    ----------
    table : TagTable
        The rows of the tag file.
    path : Path
        The tag file.
    files : sequence of Path
        Photographs, as in `Collection`.
    raw_of : mapping of str to str
        RAW files beside photographs, as in `Collection`.
    locations : sequence of Path
        The searched files and folders.
    """
    searched = [p if p.is_dir() else p.parent for p in locations]
    # the names in a table may also start one folder higher
    folders = list(dict.fromkeys([path.parent, *searched]))
    folders = list(dict.fromkeys([*folders, *(Path(os.path.abspath(f)).parent for f in folders)]))
    by_path = {os.path.abspath(file): i for i, file in enumerate(files)}
    for raw, developed in raw_of.items():
        by_path[os.path.abspath(raw)] = by_path[os.path.abspath(developed)]
    by_name: dict[str, list[int]] = {}
    for i, file in enumerate(files):
        by_name.setdefault(file.name, []).append(i)
    if table.roots:
        table = locate_names(table, path, list(by_path), searched)
    others = _OtherFiles(locations)
    matches = Matches({}, [], [])
    for name, tags in zip(table.file_names, table.tags, strict=True):
        names = _spellings(name)
        paths = [name] if name in by_path else _paths(names, folders)
        indices = [by_path[path] for path in paths if path in by_path][:1]
        indices = indices or next((by_name[n] for n in names if n in by_name), [])
        if len(indices) == 1:
            known = matches.tags.get(indices[0], [])
            matches.tags[indices[0]] = list(dict.fromkeys([*known, *tags]))
        elif (other := others.find(names, paths)) is not None:
            suffix = os.path.splitext(other)[1] or "no suffix"
            matches.unread.append(Failure(other, f"not an image tagkin reads ({suffix})"))
        elif not any(map(os.path.exists, paths)):  # else it exists outside the locations
            matches.absent.append(name)
    if len(matches.absent) == len(table):
        first = ", ".join(matches.absent[:_NAMED])
        raise InvalidInput(
            f"None of the {len(table)} photographs that {path} names exists: {first}, … Searched "
            f"in {', '.join(map(str, folders))}."
        )
    return matches


class _OtherFiles:
    """Files without the suffix of a photograph; the folders are searched at first use."""

    def __init__(self, locations: Sequence[Path]):
        self._locations = locations
        self._photographs = suffixes() | raw_suffixes()

    def find(self, names: Sequence[str], paths: Sequence[str]) -> str | None:
        """Return the file with one of the names or paths; None for a photograph or no file."""
        if self._is_photograph(names[0]):
            return None
        for path in filter(os.path.isfile, paths):
            return path
        return next((self._by_name[name] for name in names if name in self._by_name), None)

    @cached_property
    def _by_name(self) -> dict[str, str]:
        paths: dict[str, str] = {}
        for location in self._locations:
            for folder, _, names in os.walk(location):
                for name in names:
                    if not self._is_photograph(name):
                        paths.setdefault(name, os.path.join(folder, name))
        return paths

    def _is_photograph(self, name: str) -> bool:
        return os.path.splitext(name)[1].lower() in self._photographs


def _paths(names: Sequence[str], folders: Sequence[Path]) -> list[str]:
    return [os.path.abspath(folder / name) for name in names for folder in folders]


def _spellings(name: str) -> list[str]:
    """Return a name unchanged, with / as separator, and in both Unicode forms."""
    own = name.replace("\\", "/")
    forms = (unicodedata.normalize(form, own) for form in ("NFC", "NFD"))
    return list(dict.fromkeys((name, own, *forms)))
