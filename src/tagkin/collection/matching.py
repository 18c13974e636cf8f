"""Tables of tags by file name, and the photographs that their rows mean.

A catalogue names photographs by a root folder and a path below it.
"""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from tagkin.errors import InvalidInput

__all__ = ["TagTable", "match_table"]

_NAMED = 5  # examples in a message
_LOOKED_AT = 20  # files that show whether a root is where the catalogue has it


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

    def __post_init__(self) -> None:
        tidy = ([tag.strip() for tag in row] for row in self.tags)
        object.__setattr__(self, "tags", [[t for t in dict.fromkeys(row) if t] for row in tidy])

    def __len__(self) -> int:
        return len(self.file_names)


def match_table(
    table: TagTable, path: Path, files: Sequence[Path], raw_of: Mapping[str, str], folder: Path
) -> tuple[dict[int, list[str]], list[str]]:
    """Match the rows of the tag file at `path` with the photographs in a folder.

    Return tags by the index of their photograph in `files`, and the names of missing photographs.
    `raw_of` has the photograph of each RAW file beside one.

    Names in a tag file are relative to its folder or to the `folder`, or to the folder above one of
    them. A bare name may also be that of a photograph in a subfolder, if no other has the same
    name. Names may have backslashes between folders, as on Windows, and be in either Unicode form.
    """
    folders = list(dict.fromkeys([path.parent, folder]))
    folders = list(dict.fromkeys([*folders, *(Path(os.path.abspath(f)).parent for f in folders)]))
    by_path = {os.path.abspath(file): i for i, file in enumerate(files)}
    for raw, developed in raw_of.items():
        by_path[os.path.abspath(raw)] = by_path[os.path.abspath(developed)]
    by_name: dict[str, list[int]] = {}
    for i, file in enumerate(files):
        by_name.setdefault(file.name, []).append(i)
    if table.roots:
        table = _locate_names(table, path, list(by_path), folder)
    matched: dict[int, list[str]] = {}
    absent = []
    for name, tags in zip(table.file_names, table.tags, strict=True):
        names = _spellings(name)
        paths = [name] if name in by_path else _paths(names, folders)
        indices = [by_path[path] for path in paths if path in by_path][:1]
        indices = indices or next((by_name[n] for n in names if n in by_name), [])
        if len(indices) == 1:
            known = matched.get(indices[0], [])
            matched[indices[0]] = list(dict.fromkeys([*known, *tags]))
        elif not any(map(os.path.exists, paths)):  # else it exists, and is no photograph here
            absent.append(name)
    if len(absent) == len(table):
        first = ", ".join(absent[:_NAMED])
        raise InvalidInput(
            f"None of the {len(table)} photographs that {path} names exists: {first}, … Searched "
            f"in {', '.join(map(str, folders))}."
        )
    return matched, absent


def _paths(names: Sequence[str], folders: Sequence[Path]) -> list[str]:
    return [os.path.abspath(folder / name) for name in names for folder in folders]


def _spellings(name: str) -> list[str]:
    """Return a name unchanged, with / as separator, and in both Unicode forms."""
    own = name.replace("\\", "/")
    forms = (unicodedata.normalize(form, own) for form in ("NFC", "NFD"))
    return list(dict.fromkeys((name, own, *forms)))


# --- roots of catalogues -----------------------------------------------------------------


def _locate_names(table: TagTable, path: Path, files: Iterable[str], folder: Path) -> TagTable:
    """Return a catalogue's table with the absolute names that its photographs have here.

    The root may be on a volume that is mounted elsewhere now, on another machine, or moved; see
    `_find_base`. Photographs outside `folder`, which was searched, are left out.
    """
    here = {_nfc(file): file for file in files}
    start = os.path.join(_nfc(os.path.abspath(folder)), "")
    names = _names_by_root(table)
    bases = {root: root for root, rows in names.items() if _is_in_place(root, rows, here)}
    for root, rows in sorted(names.items(), key=lambda item: -len(item[1])):
        if root not in bases and (base := _find_base(root, rows, here, start, bases.values())):
            bases[root] = base
    tags: dict[str, list[str]] = {}
    for root, base in bases.items():
        for name, row in names[root].items():
            local = _local(base, name)
            if local in here or local.startswith(start):
                tags.setdefault(here.get(local, local), []).extend(table.tags[row])
    if not any(name in here for name in map(_nfc, tags)):
        shown = ", ".join(list(table.roots)[:_NAMED]) or "no folder"
        raise InvalidInput(
            f"{path} has tags for photographs in {shown}, and none of them is in {folder}. Choose "
            "another folder, or another catalogue."
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


def _is_in_place(root: str, names: Iterable[str], here: Collection[str]) -> bool:
    """Whether a root is where the catalogue has it."""
    locations = [_local(root, name) for name in names]
    return any(file in here for file in locations) or any(
        map(os.path.exists, locations[:_LOOKED_AT])
    )


def _find_base(
    root: str,
    names: Iterable[str],
    here: Collection[str],
    start: str,
    taken: Collection[str],
) -> str | None:
    """Return the folder that has most of a root's photographs now, or None.

    It has the name of the root, or the searched folder `start` is in it, and it is the base of
    no other root. At least half of the photographs that were searched for there must be there.
    """
    by_name: dict[str, list[str]] = {}
    for file in here:
        by_name.setdefault(os.path.basename(file), []).append(file)
    n_there: Counter[str] = Counter()
    ends = [os.sep + _local("", name) for name in names]
    for end in ends:
        same_name = by_name.get(os.path.basename(end), ())
        n_there.update(file.removesuffix(end) for file in same_name if file.endswith(end))
    last_level = _nfc(root.rstrip("/").rpartition("/")[2])
    for base, n in n_there.most_common():
        is_above = start.startswith(os.path.join(base, ""))
        n_searched = sum((base + end).startswith(start) for end in ends)
        is_named = is_above or os.path.basename(base) == last_level
        if is_named and base not in taken and 2 * n >= n_searched:
            return base
    return None


def _nfc(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _local(base: str, name: str) -> str:
    return _nfc(os.path.join(base, name).replace("/", os.sep))
