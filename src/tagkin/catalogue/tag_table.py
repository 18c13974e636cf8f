"""The tag file of a collection: read again when it changed, or when photographs did."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.found import TagNumbers, replace_places
from tagkin.catalogue.listing import RACY, Listing, state_of
from tagkin.collection import METADATA, match_table, read_tags
from tagkin.errors import InvalidInput

__all__ = ["TableRead", "read_tag_file"]


@dataclass(frozen=True)
class TableRead:
    """What reading a tag file told."""

    changed: list[str]
    """Photographs whose tags are others now."""
    absent: list[str]
    """Photographs that it names and that are not there."""


def read_tag_file(
    catalogue: Catalogue, listing: Listing, asked: dict[str, Any], *, is_stale: bool
) -> TableRead | None:
    """Note the tags in the tag file of a collection; None where there is nothing new to note.

    Parameters
    ----------
    catalogue : Catalogue
    listing : Listing
        What is in the folder now.
    asked : dict
        What the person asked for: "tags" and "column".
    is_stale : bool
        Whether photographs changed, so that the file has to be read whatever its state.
    """
    settings = catalogue.settings
    wanted = settings | asked
    file = _file_for(catalogue.root, wanted.get("tags"))
    former = settings.get("tag_file", "")
    name = "" if file is None else _name(catalogue.root, file)
    state = [] if file is None else list(state_of(str(file)))
    is_stale = is_stale or bool(asked) or RACY in state
    if not is_stale and (name, state) == (former, settings.get("tag_state", [])):
        return None
    if file is None and not former and not asked:
        return None
    matched, absent = ({}, []) if file is None else _matched(catalogue, listing, file, wanted)
    changed = _put(catalogue, matched, {former, name} - {""}, name)
    kept = {key: wanted[key] for key in ("tags", "column") if wanted.get(key)}
    kept |= {"tag_file": name, "tag_state": state}
    with catalogue.transaction() as connection:
        connection.execute("UPDATE collection SET settings = ?", (json.dumps(kept),))
    return TableRead(changed, absent)


def _file_for(root: Path, tags: str | None) -> Path | None:
    if tags == "embedded":
        return None
    if tags:
        file = Path(tags) if os.path.isabs(tags) else root / tags
        if not file.is_file():
            raise InvalidInput(f"There is no tag file {file}. Name it with --tags.")
        return file
    found = [root / name for name in METADATA if (root / name).is_file()]
    if len(found) > 1:
        raise InvalidInput(
            f"Found several tag files: {', '.join(map(str, found))}. Say which one to use with "
            "--tags, or read the keywords alone with --tags embedded."
        )
    return found[0] if found else None


def _name(root: Path, file: Path) -> str:
    """From the root where it lies below it, else as it is."""
    inside = file.is_relative_to(root)
    return file.relative_to(root).as_posix() if inside else str(file)


def _matched(
    catalogue: Catalogue, listing: Listing, file: Path, wanted: dict[str, Any]
) -> tuple[dict[str, list[str]], list[str]]:
    """Tags by the paths of the photographs that a tag file names, and those not there."""
    table = read_tags(file, column=wanted.get("column"))
    if not len(table):
        return {}, []
    paths = list(listing.photographs)
    files = [Path(listing.photographs[path].file) for path in paths]
    matched, absent, _ = match_table(table, file, files, listing.raw_of, [catalogue.root])
    return {paths[i]: tags for i, tags in matched.items()}, absent


def _put(
    catalogue: Catalogue, matched: dict[str, list[str]], files: set[str], name: str
) -> list[str]:
    """Put the tags of a tag file in the place of what stood there; whose tags changed."""
    changed = []
    had = {
        path
        for (path,) in catalogue.rows(
            "SELECT path FROM photographs WHERE id IN (SELECT photograph FROM found, "
            "json_each(found.places) AS place WHERE json_extract(place.value, '$[1]') IN "
            "(SELECT value FROM json_each(?)))",
            (json.dumps(sorted(files)),),
        )
    }
    with catalogue.transaction() as connection:
        numbers = TagNumbers(connection)
        ids = dict(connection.execute("SELECT path, id FROM photographs WHERE gone IS NULL"))
        for path in sorted(had | matched.keys()):
            places = {tag: [(tag, name)] for tag in matched.get(path, ())}
            if path in ids and replace_places(
                connection, numbers, ids[path], places, lambda file: file in files
            ):
                changed.append(path)
    return changed
