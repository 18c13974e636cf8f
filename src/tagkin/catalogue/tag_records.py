"""Tags in the database: their names and numbers, the files that have them, merging them."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Callable, Mapping

from tagkin.catalogue.columns import pack_json, read_json
from tagkin.catalogue.database import Row
from tagkin.collection.levels import tidy
from tagkin.errors import InvalidInput
from tagkin.labels import normalize_tag

__all__ = [
    "IN_FILES",
    "Places",
    "TagNumbers",
    "check_tag",
    "forget_tag",
    "hide_tag",
    "let_scan_read",
    "merge_tag",
    "replace_places",
    "resolve_spelling",
]

IN_FILES = (
    "EXISTS (SELECT 1 FROM photographs p JOIN found f ON f.photograph = p.id "
    "WHERE p.content = {} AND f.tag = {})"
)
"""SQL: files of a content have a tag."""
_NOT_IN_XML = "\ufffe\uffff"


class TagNumbers:
    """Numbers of tags by name. A renamed or merged tag has the number of its new tag."""

    def __init__(self, connection: sqlite3.Connection):
        self._connection = connection
        names = connection.execute("SELECT name, coalesce(same_as, id) FROM tags")
        self._known: dict[str, int] = dict(names)

    def __getitem__(self, name: str) -> int:
        """Return a tag's number; add the tag if needed."""
        name = _storable(name)
        if name not in self._known:
            cursor = self._connection.execute(
                "INSERT INTO tags (name, key) VALUES (?, ?)", (name, normalize_tag(name))
            )
            self._known[name] = int(cursor.lastrowid or 0)
        return self._known[name]


def _storable(text: str) -> str:
    """Replace lone surrogates, which SQLite cannot store."""
    return text.encode("utf-8", "replace").decode("utf-8")


def check_tag(name: str) -> str:
    """Return a tag that a person typed, tidied.

    Raises
    ------
    InvalidInput
        If it is blank, or has a character that files cannot store.
    """
    tag = tidy(name)
    categories = {unicodedata.category(char) for char in tag}
    if not normalize_tag(tag) or categories == {"Cf"}:
        raise InvalidInput(f"A tag name must not be blank; found {name!r}.")
    if "\0" in name or categories & {"Cc", "Cs"} or any(char in _NOT_IN_XML for char in tag):
        raise InvalidInput(f"The tag {name!r} has a character that no file can hold. Leave it out.")
    return tag


def resolve_spelling(fetch_row: Callable[[str, tuple[str, str]], Row | None], name: str) -> str:
    """Return a typed tag in its usual spelling, if the catalogue knows the tag.

    `fetch_row` returns the first row of a query. See `check_tag` for errors.
    """
    tag = check_tag(name)
    row = fetch_row(
        "SELECT name FROM tags WHERE name = ?1 OR key = ?2 "
        "ORDER BY name <> ?1, n_found + n_accepted DESC, id LIMIT 1",
        (tag, normalize_tag(tag)),
    )
    return tag if row is None else str(row[0])


# --- files that have a tag ----------------------------------------------------------------

Places = Mapping[str, list[tuple[str, str]]]
"""Tag → (spelling, file) for each file that holds it; the file "" is the photograph itself."""


def replace_places(
    connection: sqlite3.Connection,
    numbers: TagNumbers,
    photograph: int,
    places: Places,
    was_read: Callable[[str], bool],
) -> bool:
    """Store which tags a photograph has in the files that were read; whether any changed.

    Places in other files stay. Suggestions of tags that the photograph has now are removed.
    """
    before: dict[int, list[list[str]]] = {
        tag: read_json(text, list)
        for tag, text in connection.execute(
            "SELECT tag, places FROM found WHERE photograph = ?", (photograph,)
        )
    }
    after: dict[int, list[list[str]]] = {}
    for tag, tag_places in before.items():
        if unread := [place for place in tag_places if not was_read(place[1])]:
            after[tag] = unread
    for name, new_places in places.items():
        tag_places = after.setdefault(numbers[name], [])
        tag_places += [[_storable(word), file] for word, file in new_places]
    for tag in before.keys() - after.keys():
        connection.execute("DELETE FROM found WHERE photograph = ? AND tag = ?", (photograph, tag))
    for tag, tag_places in after.items():
        if before.get(tag) != tag_places:
            _store(connection, photograph, tag, tag_places)
    for tag in after.keys() - before.keys():
        _drop_suggestions(connection, photograph, tag)
    return before != after


def _move_places(connection: sqlite3.Connection, tag: int, into: int) -> None:
    """Store the places of a tag as places of another tag."""
    rows = connection.execute(
        "SELECT f.photograph, f.places, o.places FROM found f LEFT JOIN found o "
        "ON o.photograph = f.photograph AND o.tag = ? WHERE f.tag = ?",
        (into, tag),
    ).fetchall()
    for photograph, text, other_text in rows:
        places = read_json(other_text, list) if other_text is not None else []
        places += [place for place in read_json(text, list) if place not in places]
        connection.execute("DELETE FROM found WHERE photograph = ? AND tag = ?", (photograph, tag))
        _store(connection, photograph, into, places)


def _store(
    connection: sqlite3.Connection, photograph: int, tag: int, places: list[list[str]]
) -> None:
    connection.execute(
        "INSERT INTO found VALUES (?, ?, CAST(? AS TEXT)) "
        "ON CONFLICT (photograph, tag) DO UPDATE SET places = excluded.places",
        (photograph, tag, pack_json(places)),
    )


def _drop_suggestions(connection: sqlite3.Connection, photograph: int, tag: int) -> None:
    """Remove suggestions and doubts about a tag that a photograph has now."""
    for table, condition in (("suggestions", ""), ("doubts", " AND kind = 'missing'")):
        connection.execute(
            f"DELETE FROM {table} WHERE content = "
            "(SELECT content FROM photographs WHERE id = ?) AND tag IN "
            "(SELECT id FROM tags WHERE key = (SELECT key FROM tags WHERE id = ?))" + condition,
            (photograph, tag),
        )


def let_scan_read(connection: sqlite3.Connection, photographs: str, value: int) -> None:
    """Let the next scan read files again: of photographs by SQL with a value, and the tag file."""
    connection.execute(f"UPDATE photographs SET mtime = -1 WHERE id IN ({photographs})", (value,))
    connection.execute("UPDATE collection SET settings = json_set(settings, '$.tag_state', '[]')")


# --- merging -----------------------------------------------------------------------------


def forget_tag(connection: sqlite3.Connection, tag: int) -> bool:
    """Stop learning and suggesting a tag; return False if it was forgotten before."""
    cursor = connection.execute(
        "UPDATE tags SET forgotten = 1 WHERE id = ? AND NOT forgotten", (tag,)
    )
    for table in ("suggestions", "doubts"):
        connection.execute(f"DELETE FROM {table} WHERE tag = ?", (tag,))
    return bool(cursor.rowcount)


def hide_tag(connection: sqlite3.Connection, tag: int) -> bool:
    """Stop suggesting a tag; return False if it was hidden before."""
    cursor = connection.execute("UPDATE tags SET hidden = 1 WHERE id = ? AND NOT hidden", (tag,))
    connection.execute("DELETE FROM suggestions WHERE tag = ?", (tag,))
    connection.execute("DELETE FROM doubts WHERE tag = ? AND kind = 'missing'", (tag,))
    return bool(cursor.rowcount)


def merge_tag(connection: sqlite3.Connection, tag: int, into: int) -> None:
    """Move everything that is known of a tag to another tag."""
    pair = {"tag": tag, "into": into}
    _move_places(connection, tag, into)
    for table, condition in (("suggestions", ""), ("doubts", " AND kind = 'missing'")):
        in_files = IN_FILES.format(f"{table}.content", ":into")
        connection.execute(f"DELETE FROM {table} WHERE tag = :into AND {in_files}{condition}", pair)
    connection.execute(
        "INSERT INTO suggestions SELECT content, :into, run, confidence, evidence "
        "FROM suggestions s WHERE tag = :tag "
        "AND NOT (SELECT hidden FROM tags WHERE id = :into) "
        "AND NOT EXISTS (SELECT 1 FROM suggestions o "
        "WHERE o.content = s.content AND o.tag = :into) "
        "AND NOT EXISTS (SELECT 1 FROM decisions d "
        "WHERE d.content = s.content AND d.tag = :into AND d.holds) "
        f"AND NOT {IN_FILES.format('s.content', ':into')}",
        pair,
    )
    for table in ("suggestions", "doubts"):
        connection.execute(f"DELETE FROM {table} WHERE tag = :tag", pair)
    _move_decisions(connection, tag, into)
    connection.execute(
        "DELETE FROM suggestions WHERE tag = :into AND EXISTS (SELECT 1 FROM decisions d "
        "WHERE d.content = suggestions.content AND d.tag = :into AND d.holds)",
        pair,
    )
    connection.execute(
        "UPDATE tags SET quality = coalesce(quality, (SELECT quality FROM tags WHERE id = :tag)) "
        "WHERE id = :into",
        pair,
    )
    connection.execute("UPDATE tags SET same_as = :into WHERE id = :tag OR same_as = :tag", pair)


def _move_decisions(connection: sqlite3.Connection, tag: int, into: int) -> None:
    """Move the decisions on a tag; they stay part of their runs and can be undone.

    If both tags have a decision on a photograph, the other tag's decision applies.
    """
    moved = connection.execute(
        "SELECT d.id FROM decisions d WHERE d.tag = ?1 AND d.holds AND NOT EXISTS (SELECT 1 "
        "FROM decisions o WHERE o.content = d.content AND o.tag = ?2 AND o.holds)",
        (tag, into),
    ).fetchall()
    connection.execute("UPDATE decisions SET holds = 0 WHERE tag = ? AND holds", (tag,))
    connection.execute("UPDATE decisions SET tag = ? WHERE tag = ?", (into, tag))
    connection.executemany("UPDATE decisions SET holds = 1 WHERE id = ?", moved)
