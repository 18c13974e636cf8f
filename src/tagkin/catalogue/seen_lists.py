"""The lists of tags in the files of each photograph, as last seen, and what changed since.

A scan merges the lists with those that were last seen (`tagkin.collection.tag_lists`). Tags that a
person removed in another program become rejections with their origin. A write or an undo of tagkin
stores the lists that it leaves, so the next merge starts from them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from tagkin.catalogue.columns import read_json
from tagkin.catalogue.database import Database
from tagkin.catalogue.decision_records import REMOVED, end_removal, store_removal
from tagkin.catalogue.photographs import path_of
from tagkin.catalogue.tag_records import Places, replace_places, tag_number
from tagkin.collection.levels import fold, tidy
from tagkin.collection.tag_lists import (
    MergedTags,
    Removal,
    Seen,
    describe_lists,
    is_in_step,
    merge_lists,
    tags_to_drop,
)

__all__ = [
    "ListsRead",
    "SeenTags",
    "end_of_name",
    "read_seen",
    "seen_tags",
    "store_lists",
    "store_own_lists",
]


class ListsRead(NamedTuple):
    """The lists that were read from the files of a photograph."""

    files: Mapping[str, Mapping[str, Sequence[str]]]
    """By the end of the name of the file; see `end_of_name`."""
    unsure: Collection[str] = ()
    """The files whose lists may have more words than were read."""
    named: Places | None = None
    """The tags that a tag file has for the photograph; None if it was not read."""


def end_of_name(file: str, photograph: str) -> str:
    """Return what the name of a file adds to its photograph's name without suffix.

    It stays the same if both are renamed. It is empty for the photograph itself.
    """
    name, own = os.path.basename(file), os.path.basename(photograph)
    if name == own:
        return ""
    stem = os.path.splitext(own)[0]
    return name[len(stem) :] if name.startswith(stem) else f"/{name}"


def _path_of(end: str, photograph: str) -> str:
    """Return the path of a file by the end of its name, or "" for the photograph.

    An end with // is the name of a server that keeps tags.
    """
    folder, name = os.path.split(photograph)
    if not end or end.startswith("//"):
        return end[2:]
    name = end[1:] if end.startswith("/") else os.path.splitext(name)[0] + end
    return f"{folder}/{name}" if folder else name


def read_seen(database: Database, photograph: int) -> Seen | None:
    """Return the lists of a photograph as last seen, or None if it was never seen with lists."""
    query = "SELECT lists, stale FROM seen_lists WHERE photograph = ?"
    row = database.row(query, (photograph,))
    return None if row is None else Seen(read_json(row[0], dict), read_json(row[1], list))


def store_lists(
    database: Database,
    run: int,
    photograph: int,
    read: ListsRead,
    *,
    removed_from: int | None = None,
    is_same: bool = True,
) -> tuple[bool, list[str]]:
    """Merge the lists of a photograph, and store its tags.

    Return whether its tags changed, and the lists that a program overwrote while others keep the
    tags, which therefore count.

    Removals belong to a run, and are about the content `removed_from`, by default that of the
    photograph. `is_same` tells whether its files are surely the same files as before.
    """
    seen = read_seen(database, photograph)
    files = _with_unread(read, seen)
    merged = merge_lists(files, seen, is_same=is_same)
    places = _store(database, photograph, files, merged)
    spellings = {fold(tag): tag for tag in places}
    for tag, others in (read.named or {}).items():
        places.setdefault(spellings.get(fold(tag), tag), []).extend(others)
    is_retagged = _replace_places(database, photograph, places, read.named is not None)
    # a killed undo changed the lists, not a person; the next undo finishes it
    query = "SELECT 1 FROM writes WHERE photograph = ? AND is_undoing"
    is_undoing = database.row(query, (photograph,)) is not None
    content = removed_from or database.value(
        "SELECT content FROM photographs WHERE id = ?", (photograph,)
    )
    if content is not None and not is_undoing:
        for removal in merged.removed:
            pair = content, tag_number(database, removal.tag)
            store_removal(database, run, pair, _origin(removal))
        for tag in merged.added:
            end_removal(database, run, (content, tag_number(database, tag)))
    return is_retagged, [name for _, name in merged.overwritten]


def _with_unread(read: ListsRead, seen: Seen | None) -> dict[str, dict[str, list[str]]]:
    """Return the lists with words that were there before and could not be read now."""
    files = {file: {n: list(words) for n, words in ls.items()} for file, ls in read.files.items()}
    for file in read.unsure if seen is not None else ():
        for name, words in seen.files.get(file, {}).items() if seen is not None else ():
            now = files.setdefault(file, {}).setdefault(name, [])
            now += [word for word in words if word not in now]
    return files


def _origin(removal: Removal) -> str:
    """Return the lists that lost a tag, in words."""
    names = describe_lists(name for _, name in removal.lists)
    is_inside = not any(f.lower().endswith(".xmp") or f[:2] == "//" for f, _ in removal.lists)
    return f"{names}, inside the photograph" if is_inside else names


def _store(
    database: Database,
    photograph: int,
    files: Mapping[str, Mapping[str, Sequence[str]]],
    merged: MergedTags,
) -> dict[str, list[tuple[str, str]]]:
    """Store lists as last seen; return the places of the tags."""
    path = path_of(database, photograph) or ""
    if any(files.values()):
        text = json.dumps(files, separators=(",", ":"))
        database.execute(
            "INSERT OR REPLACE INTO seen_lists VALUES (?, ?, ?, ?, ?)",
            (
                photograph,
                text,
                json.dumps(merged.stale),
                is_in_step(files, merged),
                is_in_step(files, merged, is_inside=True),
            ),
        )
    else:  # the row of a photograph that had lists stays, so a later list is no first contact
        database.execute(
            "UPDATE seen_lists SET lists = '{}', stale = '[]', in_step = 1, in_step_inside = 1 "
            "WHERE photograph = ?",
            (photograph,),
        )
    return {
        tag: [(word, _path_of(file, path)) for file, word in words.items()]
        for tag, words in merged.tags.items()
    }


def store_own_lists(
    database: Database,
    photograph: int,
    end: str,
    lists: Mapping[str, Sequence[str]] | None,
) -> None:
    """Store the lists that tagkin left in a file of a photograph; None if it removed the file."""
    seen = read_seen(database, photograph) or Seen({})
    files = {other: seen.files[other] for other in seen.files if other != end}
    files |= {} if lists is None else {end: lists}
    merged = _without_removed(database, photograph, merge_lists(files, seen, is_ours=True))
    places = _store(database, photograph, files, merged)
    _replace_places(database, photograph, places, False)


def _replace_places(
    database: Database, photograph: int, places: Places, has_tag_file: bool
) -> bool:
    """Store the tags of a photograph; unless it was read, those of the tag file stay."""
    tag_file = None if has_tag_file else database.settings.get("tag_file")
    return replace_places(database, photograph, places, lambda f: not f or f != tag_file)


def _without_removed(database: Database, photograph: int, merged: MergedTags) -> MergedTags:
    """Return the tags without those that a person removed, which an undo puts back."""
    rejected = database.column(
        "SELECT t.name FROM photographs p JOIN contents c ON c.id = p.content "
        "JOIN decisions d ON d.content IN (c.id, c.was) "  # decisions on c.was wait
        "JOIN tags t ON coalesce(t.same_as, t.id) = d.tag "
        "WHERE p.id = ? AND d.holds AND d.verdict = -1 AND d.note LIKE ?",
        (photograph, f"{REMOVED}%"),
    )
    keys = set(map(fold, rejected))
    removed = {tag for tag in merged.added if fold(tag) in keys}
    tags = {tag: words for tag, words in merged.tags.items() if tag not in removed}
    return merged._replace(tags=tags, stale=[*merged.stale, *sorted(removed)])


class SeenTags(NamedTuple):
    """The tags of a photograph by its lists as last seen."""

    spellings: dict[str, str]
    """A spelling of each tag."""
    stale: dict[str, list[str]]
    """The tags to remove from each file, from the root: a person removed them in another list."""


def seen_tags(database: Database, photograph: int) -> SeenTags:
    """Return the tags of a photograph, and those to remove from its files."""
    row = database.row(
        "SELECT p.path, s.lists, s.stale FROM seen_lists s JOIN photographs p "
        "ON p.id = s.photograph WHERE p.id = ?",
        (photograph,),
    )
    if row is None:
        return SeenTags({}, {})
    path, lists, stale = row
    files = read_json(lists, dict)
    merged = merge_lists(files, Seen(files, read_json(stale, list)))
    spellings = {tag: next(iter(words.values()), tag) for tag, words in merged.tags.items()}
    spellings = {tag: word if tidy(word) == tag else tag for tag, word in spellings.items()}
    dropped = tags_to_drop(files, merged)
    return SeenTags(spellings, {_path_of(end, path) or path: dropped[end] for end in dropped})
