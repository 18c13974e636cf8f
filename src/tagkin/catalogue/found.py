"""Tags that were found in files: which, and where each stands."""

from __future__ import annotations

import json
import sqlite3
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from tagkin.catalogue.texts import from_text
from tagkin.collection.levels import tidy
from tagkin.errors import InvalidInput
from tagkin.labels import normalize_tag

__all__ = ["Places", "TagNumbers", "checked_tag", "replace_places", "spelled"]

Places = Mapping[str, list[tuple[str, str]]]
"""Tag → (spelling, file) for each file that holds it; the file "" is the photograph itself."""


_NO_CHARACTERS = "\ufffe\uffff"  # XML has no place for them


class TagNumbers:
    """Numbers of tags by name. A tag that was renamed or merged has the number of the other."""

    def __init__(self, connection: sqlite3.Connection):
        self._connection = connection
        names = connection.execute("SELECT name, coalesce(same_as, id) FROM tags")
        self._known: dict[str, int] = dict(names)

    def __contains__(self, name: str) -> bool:
        return _storable(name) in self._known

    def __getitem__(self, name: str) -> int:
        """The number of a tag, which gets one where it has none."""
        name = _storable(name)
        if name not in self._known:
            added = self._connection.execute(
                "INSERT INTO tags (name, key) VALUES (?, ?)", (name, normalize_tag(name))
            )
            self._known[name] = int(added.lastrowid or 0)
        return self._known[name]


def _storable(name: str) -> str:
    """A tag as SQLite holds it: halves of characters, which JSON can write, are none."""
    return name.encode("utf-8", "replace").decode("utf-8")


def checked_tag(name: str) -> str:
    """Return a tag that a person typed, tidied.

    Raises
    ------
    InvalidInput
        If nothing of it can be seen, or it has a character that no file of tags can hold.
    """
    tag = tidy(name)
    kinds = {unicodedata.category(one) for one in tag}
    if not normalize_tag(tag) or kinds == {"Cf"}:
        raise InvalidInput(f"A tag has a name; found {name!r}.")
    if "\0" in name or kinds & {"Cc", "Cs"} or any(one in _NO_CHARACTERS for one in tag):
        raise InvalidInput(f"The tag {name!r} has a character that no file can hold. Leave it out.")
    return tag


def spelled(row: Callable[[str, tuple[str, str]], tuple[Any, ...] | None], name: str) -> str:
    """A tag that a person typed, as it is spelled: in the usual way where it is known.

    `row` gives the first row of a query. What is no tag is an `InvalidInput`, as in `checked_tag`.
    """
    tag = checked_tag(name)
    found = row(
        "SELECT name FROM tags WHERE name = ?1 OR key = ?2 "
        "ORDER BY name <> ?1, n_found + n_accepted DESC, id LIMIT 1",
        (tag, normalize_tag(tag)),
    )
    return tag if found is None else str(found[0])


def replace_places(
    connection: sqlite3.Connection,
    numbers: TagNumbers,
    photograph: int,
    places: Places,
    of: Callable[[str], bool],
) -> bool:
    """Note where the tags of a photograph stand now, in files that `of` answers for.

    What stands in other files stays noted. Suggestions of tags that it carries now are removed.

    Returns
    -------
    changed : bool
    """
    before: dict[int, list[Any]] = {
        tag: from_text(text, list)
        for tag, text in connection.execute(
            "SELECT tag, places FROM found WHERE photograph = ?", (photograph,)
        )
    }
    after: dict[int, list[Any]] = {}
    for tag, some in before.items():
        if kept := [place for place in some if not of(place[1])]:
            after[tag] = kept
    for name, some in places.items():
        there = after.setdefault(numbers[name], [])
        there += [[_storable(word), file] for word, file in some]
    for tag in before.keys() - after.keys():
        connection.execute("DELETE FROM found WHERE photograph = ? AND tag = ?", (photograph, tag))
    for tag, some in after.items():
        text = json.dumps(some, ensure_ascii=False).encode("utf-8", "surrogateescape")
        if tag not in before:
            connection.execute(
                "INSERT INTO found VALUES (?, ?, CAST(? AS TEXT))", (photograph, tag, text)
            )
        elif before[tag] != some:
            connection.execute(
                "UPDATE found SET places = CAST(? AS TEXT) WHERE photograph = ? AND tag = ?",
                (text, photograph, tag),
            )
    if new := after.keys() - before.keys():
        _end_suggestions(connection, photograph, new)
    return before != after


def _end_suggestions(connection: sqlite3.Connection, photograph: int, tags: set[int]) -> None:
    """Remove suggestions and doubts about tags that a photograph carries now."""
    for tag in tags:
        for table, condition in (("suggestions", ""), ("doubts", " AND kind = 'missing'")):
            connection.execute(
                f"DELETE FROM {table} WHERE content = "
                "(SELECT content FROM photographs WHERE id = ?) AND tag IN "
                "(SELECT id FROM tags WHERE key = (SELECT key FROM tags WHERE id = ?))" + condition,
                (photograph, tag),
            )
