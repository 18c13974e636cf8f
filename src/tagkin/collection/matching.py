"""Which photographs the rows of a tag file are about."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tagkin.collection.tag_files import TagTable
from tagkin.errors import InvalidInput
from tagkin.images import Failure
from tagkin.images.formats import suffixes
from tagkin.images.raw import raw_suffixes

__all__ = ["Matches", "match_table"]

_NAMED = 5  # examples in a message


class Matches(NamedTuple):
    """The rows of a tag file, by what they are about."""

    tags: dict[int, list[str]]
    """Tags by the numbers of their photographs."""
    absent: list[str]
    """Photographs that the file names and that are not there."""
    unread: list[Failure]
    """Files that are there, of a format that is not read."""


def match_table(
    table: TagTable,
    path: Path,
    files: Sequence[Path],
    raw_of: Mapping[str, str],
    locations: Sequence[Path],
) -> Matches:
    """Which photographs the rows of a tag file are about.

    Parameters
    ----------
    table, path : TagTable and Path
        The tag file.
    files, raw_of, locations
        As in `Collection`, and where the files were found.
    """
    folders = [path.parent, *(p if p.is_dir() else p.parent for p in locations)]
    # whoever wrote the table may have done so one folder up
    folders = list(dict.fromkeys([*folders, *(Path(os.path.abspath(f)).parent for f in folders)]))
    numbers = {os.path.abspath(file): i for i, file in enumerate(files)}
    for raw, beside in raw_of.items():
        numbers[os.path.abspath(raw)] = numbers[os.path.abspath(beside)]
    by_name: dict[str, list[int]] = {}
    for i, file in enumerate(files):
        by_name.setdefault(file.name, []).append(i)
    others = _OtherFiles(locations)
    matches = Matches({}, [], [])
    for name, tags in zip(table.file_names, table.tags, strict=True):
        spelled = _spellings(name)
        paths = [os.path.abspath(folder / one) for one in spelled for folder in folders]
        there = [numbers[path] for path in paths if path in numbers]
        there = there[:1] or next((by_name[one] for one in spelled if one in by_name), [])
        if len(there) == 1:
            row = matches.tags.setdefault(there[0], [])
            known = set(row)
            row += [tag for tag in dict.fromkeys(tags or ()) if tag not in known]
        elif (other := others.find(spelled, paths)) is not None:
            suffix = os.path.splitext(other)[1] or "no suffix"
            matches.unread.append(Failure(other, f"not an image tagkin reads ({suffix})"))
        elif not any(map(os.path.exists, paths)):  # else it is there, and nobody asked for it
            matches.absent.append(name)
    if len(matches.absent) == len(table):
        first = ", ".join(matches.absent[:_NAMED])
        raise InvalidInput(
            f"None of the {len(table)} photographs that {path} names is there: {first}, … Names "
            f"are looked for in {', '.join(map(str, folders))}."
        )
    return matches


class _OtherFiles:
    """Files in folders that have no suffix of a photograph; looked for when one is asked for."""

    def __init__(self, locations: Sequence[Path]):
        self._locations = locations
        self._photographs = suffixes() | raw_suffixes()
        self._by_name: dict[str, str] | None = None

    def find(self, names: Sequence[str], paths: Sequence[str]) -> str | None:
        """The file of one of the names or paths; None where it is a photograph, or not there."""
        if self._is_photograph(names[0]):
            return None
        for path in filter(os.path.isfile, paths):
            return path
        if self._by_name is None:
            self._by_name = self._searched()
        return next((self._by_name[name] for name in names if name in self._by_name), None)

    def _searched(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for location in self._locations:
            for folder, _, names in os.walk(location):
                for name in names:
                    if not self._is_photograph(name):
                        found.setdefault(name, os.path.join(folder, name))
        return found

    def _is_photograph(self, name: str) -> bool:
        return os.path.splitext(name)[1].lower() in self._photographs


def _spellings(name: str) -> list[str]:
    """A name as it stands, with the separators of this system, and in both Unicode forms."""
    own = name.replace("\\", "/")
    forms = (unicodedata.normalize(form, own) for form in ("NFC", "NFD"))
    return list(dict.fromkeys((name, own, *forms)))
