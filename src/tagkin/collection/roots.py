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
    tops = [Path(os.path.abspath(folder)) for folder in folders]
    known = {parent for folder in set(map(os.path.dirname, here)) for parent in _parents(folder)}
    names = _names_by_root(table)
    places: dict[str, str] = {}
    for root, rows in names.items():
        first = list(rows)[:_LOOKED_AT]
        is_searched = any(_local(root, name) in here for name in rows)
        if is_searched or any(os.path.exists(_local(root, name)) for name in first):
            places[root] = root
    for root, rows in sorted(names.items(), key=lambda item: -len(item[1])):
        if root not in places:
            counts = {
                base: _count(base, rows, here, tops)
                for base in _candidates(root, tops, known)
                if base not in places.values()
            }
            if counts and max(counts.values()):
                places[root] = max(counts, key=lambda base: counts[base])
    tags: dict[str, list[str]] = {}
    for root, base in places.items():
        for name, row in names[root].items():
            local = _local(base, name)
            if local in here or _is_below(local, tops):
                tags.setdefault(here.get(local, local), []).extend(table.tags[row])
    if not any(name in here for name in map(_nfc, tags)):
        shown = ", ".join(list(table.roots)[:_NAMED]) or "no folder"
        raise InvalidInput(
            f"{path} has tags for photographs in {shown}, and none of them is in "
            f"{', '.join(map(str, tops))}. Choose another folder, or another catalogue."
        )
    return replace(table, file_names=list(tags), tags=list(tags.values()))


def _names_by_root(table: TagTable) -> dict[str, dict[str, int]]:
    """Return the rows of a table by root and name below the root."""
    roots = set(table.roots)
    names: dict[str, dict[str, int]] = {}
    for row, name in enumerate(table.file_names):
        above = (str(parent) for parent in PurePosixPath(name).parents)
        root = next(parent for parent in above if parent in roots)
        names.setdefault(root, {})[name[len(root.rstrip("/")) + 1 :]] = row
    return names


def _nfc(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _local(base: str, name: str) -> str:
    return _nfc(os.path.normpath(os.path.join(base, name)))


def _is_below(file: str, tops: Iterable[Path]) -> bool:
    return any(file.startswith(os.path.join(_nfc(str(top)), "")) for top in tops)


def _candidates(root: str, tops: Sequence[Path], known: Collection[str]) -> Iterator[str]:
    """Yield known folders that may be the root now, most levels of its path first."""
    levels = [level for level in root.split("/") if level]
    for start in range(len(levels) + 1):
        for top in tops:
            for above in _parents(str(top)):
                base = _nfc(os.path.join(above, *levels[start:]))
                if base in known:
                    yield base


def _parents(folder: str) -> list[str]:
    """Return a folder and all folders above it."""
    path = Path(folder)
    return [str(path), *map(str, path.parents)]


def _count(base: str, names: Iterable[str], here: Collection[str], tops: Sequence[Path]) -> int:
    """Return how many names exist below a folder; 0 if less than half of those searched for."""
    local = [_local(base, name) for name in names]
    n_there = sum(file in here for file in local)
    n_searched = sum(_is_below(file, tops) for file in local)
    return n_there if 2 * n_there >= n_searched else 0
