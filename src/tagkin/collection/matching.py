"""Tables of tags by file name, and the photographs that their rows mean.

A catalogue names photographs by a root folder and a path below it.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tagkin.errors import InvalidInput
from tagkin.images import Failure
from tagkin.images.formats import raw_suffixes, suffixes

__all__ = ["Matches", "TagTable", "match_table"]

_NAMED = 5  # examples in a message
_LOOKED_AT = 20  # files that show whether a root is where the catalogue has it
_LEVELS = 12  # last levels of a root's path that are looked for


@dataclass(frozen=True)
class TagTable:
    """Images by file name, and their tags.

    Tags are stripped; blank and repeated tags of an image are dropped.
    """

    file_names: Sequence[str]
    tags: Sequence[Sequence[str]]
    """The tags of each file."""
    roots: Sequence[str] = ()
    """Folders that the names begin with, as the catalogue of another program has them."""
    synonyms: Mapping[str, str] = field(default_factory=dict)
    """Synonym → tag, as the catalogue of another program has them."""

    def __post_init__(self) -> None:
        tidy = ([tag.strip() for tag in row] for row in self.tags)
        object.__setattr__(self, "tags", [[t for t in dict.fromkeys(row) if t] for row in tidy])

    def __len__(self) -> int:
        return len(self.file_names)


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
        table = _locate_names(table, path, list(by_path), searched)
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


# --- roots of catalogues -----------------------------------------------------------------


def _locate_names(
    table: TagTable, path: Path, files: Iterable[str], folders: Sequence[Path]
) -> TagTable:
    """Return a catalogue's table with the absolute names that its photographs have here.

    The root may be on a volume that is mounted elsewhere now, on another machine, or moved.
    Photographs outside `folders`, which were searched, are left out. A root that is not where the
    catalogue has it is looked for by the last levels of its path, in the folders and above them.
    It is taken if at least half of its photographs there are among `files`, and no other root is
    there.
    """
    here = {_nfc(file): file for file in files}
    tops = [os.path.abspath(folder) for folder in folders]
    starts = tuple(os.path.join(_nfc(top), "") for top in tops)
    known = {parent for folder in set(map(os.path.dirname, here)) for parent in _parents(folder)}
    names = _names_by_root(table)
    places: dict[str, str] = {}
    for root, rows in names.items():
        first = list(rows)[:_LOOKED_AT]
        is_searched = any(_local(root, name) in here for name in rows)
        if is_searched or any(os.path.exists(_local(root, name)) for name in first):
            places[root] = root
    taken = set(places.values())
    for root, rows in sorted(names.items(), key=lambda item: -len(item[1])):
        if root not in places:
            counts = {
                base: _count(base, rows, here, starts)
                for base in _candidates(root, tops, known)
                if base not in taken
            }
            if counts and max(counts.values()):
                places[root] = max(counts, key=lambda base: counts[base])
                taken.add(places[root])
    tags: dict[str, list[str]] = {}
    for root, base in places.items():
        for name, row in names[root].items():
            local = _local(base, name)
            if local in here or local.startswith(starts):
                tags.setdefault(here.get(local, local), []).extend(table.tags[row])
    if not any(name in here for name in map(_nfc, tags)):
        shown = ", ".join(list(table.roots)[:_NAMED]) or "no folder"
        raise InvalidInput(
            f"{path} has tags for photographs in {shown}, and none of them is in "
            f"{', '.join(tops)}. Choose another folder, or another catalogue."
        )
    return replace(table, file_names=list(tags), tags=list(tags.values()))


def _names_by_root(table: TagTable) -> dict[str, dict[str, int]]:
    """Return the rows of a table by root and name below the root."""
    roots = set(table.roots)
    root_of: dict[str, str] = {}  # of a folder
    names: dict[str, dict[str, int]] = {}
    for row, name in enumerate(table.file_names):
        folder = name.rpartition("/")[0] or "/"
        if folder not in root_of:
            above = (folder, *map(str, PurePosixPath(folder).parents))
            root_of[folder] = next(parent for parent in above if parent in roots)
        root = root_of[folder]
        names.setdefault(root, {})[name[len(root.rstrip("/")) + 1 :]] = row
    return names


def _nfc(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _local(base: str, name: str) -> str:
    return _nfc(os.path.join(base, name).replace("/", os.sep))


def _candidates(root: str, tops: Sequence[str], known: Collection[str]) -> Iterator[str]:
    """Yield known folders that may be the root now, most levels of its path first."""
    levels = [level for level in root.split("/") if level][-_LEVELS:]
    for start in range(len(levels) + 1):
        for top in tops:
            for above in _parents(top):
                base = _nfc(os.path.join(above, *levels[start:]))
                if base in known:
                    yield base


def _parents(folder: str) -> list[str]:
    """Return a folder and all folders above it."""
    path = Path(folder)
    return [str(path), *map(str, path.parents)]


def _count(base: str, names: Iterable[str], here: Collection[str], starts: tuple[str, ...]) -> int:
    """Return how many names exist below a folder; 0 if less than half of those searched for."""
    local = [_local(base, name) for name in names]
    n_there = sum(file in here for file in local)
    n_searched = sum(file.startswith(starts) for file in local)
    return n_there if 2 * n_there >= n_searched else 0
