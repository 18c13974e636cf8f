"""Find the photographs of another program's catalogue on this machine.

A catalogue names photographs by a root folder and a path below it. The root may be on a volume that
is mounted elsewhere now, on another machine, or moved.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from tagkin.collection.tag_tables import TagTable
from tagkin.errors import InvalidInput

__all__ = ["locate_names"]

_LOOKED_AT = 20  # files that show whether a root is where the catalogue has it
_LEVELS = 12  # last levels of a root's path that are looked for
_NAMED = 5  # roots in a message


def locate_names(
    table: TagTable, path: Path, files: Iterable[str], folders: Sequence[Path]
) -> TagTable:
    """Return a catalogue's table with the absolute names that its photographs have here.

    Photographs outside `folders`, which were searched, are left out. A root that is not where the
    catalogue has it is looked for by the last levels of its path, in the folders and above them.
    It is taken if at least half of its photographs there are among `files`, and no other root is
    there.

    Parameters
    ----------
    table : TagTable with roots
    path : Path
        The catalogue, for messages.
    files : absolute paths of photographs
    folders : folders that were searched for them
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
