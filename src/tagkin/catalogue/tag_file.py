"""The tag file of a collection, read again if it or the photographs changed."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from tagkin.catalogue.database import LISTED, Database, as_list, set_fields
from tagkin.catalogue.listing import RACY, Listing, read_state
from tagkin.catalogue.tag_records import Places, replace_places
from tagkin.collection.matching import TagTable, match_table
from tagkin.collection.tag_files import (
    explain_found,
    find_tag_file,
    locate_tag_file,
    read_tags,
)
from tagkin.errors import InvalidInput

__all__ = ["FileTags", "TagFile", "begin_tag_file", "read_tag_file", "store_tag_file"]


@dataclass(frozen=True)
class TagFile:
    """Where tags are read from besides photographs and sidecars; see `Catalogue.scan`."""

    tags: str | None = None
    """A path, from the root if it is relative, or "embedded"."""
    column: str | None = None


@dataclass(frozen=True)
class FileTags:
    """The tags in the tag file of a collection."""

    name: str
    """The file, from the root; empty if there is none."""
    former: str
    """The file of the last scan."""
    tags: Mapping[str, Sequence[str]]
    """By path of the photograph."""
    absent: Sequence[str]
    """Names of missing photographs."""
    settings: Mapping[str, object]

    @property
    def replaces_another(self) -> bool:
        """Whether the last scan read another file, whose tags are replaced at once at the end."""
        return self.former not in ("", self.name)

    def places_of(self, path: str) -> Places:
        """Return the tags of a photograph, with their place."""
        return {tag: [(tag, self.name)] for tag in self.tags.get(path, ())}


def read_tag_file(
    database: Database, listing: Listing, chosen: TagFile | None, *, is_stale: bool
) -> FileTags | None:
    """Read the tag file of a collection; return None if nothing changed.

    The default of `chosen` is the tag file of the last scan. `is_stale` means that photographs
    changed, so an unchanged file is read as well.
    """
    settings = database.settings
    wanted = chosen or TagFile(settings.get("tags"), settings.get("column"))
    file = _choose_file(database.root, wanted.tags)
    former = settings.get("tag_file", "")
    name = "" if file is None else _name_from_root(database.root, file)
    state = [] if file is None else _read_states(file)
    is_stale = is_stale or chosen is not None or RACY in state
    if not is_stale and (name, state) == (former, settings.get("tag_state", [])):
        return None
    if file is None and not former and chosen is None:
        return None
    with nullcontext() if wanted.tags else explain_found():
        table = TagTable([], []) if file is None else read_tags(file, column=wanted.column)
        tags, absent = ({}, []) if file is None else _match_tags(database, listing, file, table)
    new_settings = {"tag_file": name, "tag_state": state, **set_fields(vars(wanted))}
    return FileTags(name, former, tags, absent, new_settings)


def begin_tag_file(database: Database, file: FileTags) -> None:
    """Note that photographs get tags of this file, even if the scan is interrupted."""
    _store_settings(database, {**database.settings, "tag_file": file.name, "tag_state": []})


def store_tag_file(database: Database, file: FileTags) -> list[str]:
    """Store the tags in a tag file in place of the former ones; return what photographs changed."""
    retagged = []
    files = {file.former, file.name} - {""}
    former = database.column(
        "SELECT path FROM photographs WHERE id IN (SELECT photograph FROM found, "
        "json_each(found.places) AS place WHERE json_extract(place.value, '$[1]') "
        f"{LISTED})",
        (as_list(files),),
    )
    with database.transaction():
        ids: dict[str, int] = dict(
            database.rows("SELECT path, id FROM photographs WHERE gone IS NULL")
        )
        for path in sorted({*former, *file.tags}):
            if path in ids and replace_places(
                database, ids[path], file.places_of(path), lambda other: other in files
            ):
                retagged.append(path)
    _store_settings(database, file.settings)
    return retagged


def _store_settings(database: Database, settings: Mapping[str, object]) -> None:
    database.execute("UPDATE collection SET settings = ?", (json.dumps(settings),))


def _choose_file(root: Path, tags: str | None) -> Path | None:
    if tags == "embedded":
        return None
    if tags:
        file = locate_tag_file(root / tags)  # an absolute path stays
        if not file.is_file():
            problem = "it is no file" if file.exists() else os.strerror(errno.ENOENT)
            raise InvalidInput(f"{file} cannot be read: {problem}.")
        return file
    return find_tag_file(root)


def _name_from_root(root: Path, file: Path) -> str:
    """Return the path from the root if the file is below it, else the whole path."""
    inside = file.is_relative_to(root)
    return file.relative_to(root).as_posix() if inside else str(file)


def _read_states(file: Path) -> list[int]:
    """Return the states of a tag file, and of the log where a database has its last changes."""
    log = Path(f"{file}-wal")
    return [*read_state(str(file)), *(read_state(str(log)) if log.is_file() else ())]


def _match_tags(
    database: Database, listing: Listing, file: Path, table: TagTable
) -> tuple[dict[str, list[str]], list[str]]:
    """Return tags by path of the photographs that a tag file names, and the absent ones."""
    if not len(table):
        return {}, []
    paths = list(listing.photographs)
    files = [Path(listing.photographs[path].file) for path in paths]
    matched, absent = match_table(table, file, files, listing.raw_of, database.root)
    return {paths[i]: tags for i, tags in matched.items()}, absent
