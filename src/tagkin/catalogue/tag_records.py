"""Tags in the database: their names and numbers, the files that have them, merging them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping

from tagkin.catalogue.columns import pack_json, read_json
from tagkin.catalogue.database import Database
from tagkin.collection.levels import fold, tidy
from tagkin.errors import InvalidInput
from tagkin.labels import normalize_tag

__all__ = [
    "IN_FILES",
    "IS_USED",
    "SAME_TAG",
    "SPELLINGS",
    "Places",
    "check_tag",
    "forget_tag",
    "let_scan_read",
    "merge_tag",
    "replace_places",
    "resolve_spelling",
    "tag_number",
]

SPELLINGS = "(SELECT id FROM tags WHERE key = (SELECT key FROM tags WHERE id = {}))"
"""SQL: the numbers of a tag in all its spellings."""
SAME_TAG = f"({{0}} IS {{1}} OR {{0}} IN {SPELLINGS.format('{1}')})"
"""SQL: two tags differ in their spelling at most, or both are none."""
IN_FILES = (
    "EXISTS (SELECT 1 FROM photographs p JOIN found f ON f.photograph = p.id "
    f"WHERE p.content = {{}} AND f.tag IN {SPELLINGS})"
)
"""SQL: files of a content have a tag in some spelling."""
IS_USED = "(forgotten OR n_found OR n_accepted OR n_rejected OR n_suggested)"
"""SQL: a tag is on photographs, decided on, suggested or forgotten."""
_NOT_IN_XML = "\ufffe\uffff"


def tag_number(database: Database, name: str) -> int:
    """Return the number of a tag, added if needed. A merged tag has the number of its new tag."""
    name = _storable(name)
    query = "SELECT coalesce(same_as, id) FROM tags WHERE name = ?"
    number: int | None = database.value(query, (name,))
    if number is not None:
        return number
    added = "INSERT INTO tags (name, key) VALUES (?, ?)"
    return database.execute(added, (name, fold(name)))


def _storable(text: str) -> str:
    """Replace lone surrogates and drop NUL, which ends a text for SQLite's functions."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


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


def resolve_spelling(database: Database, name: str) -> str:
    """Return a typed tag in its usual spelling, if the catalogue knows it; errors: `check_tag`."""
    tag = check_tag(name)
    known: str | None = database.value(
        "SELECT name FROM tags WHERE name = ?1 OR key = ?2 "
        f"ORDER BY same_as IS NULL AND NOT {IS_USED}, name <> ?1, n_found + n_accepted DESC, id "
        "LIMIT 1",
        (tag, normalize_tag(tag)),
    )
    return tag if known is None else known


# --- files that have a tag ----------------------------------------------------------------

Places = Mapping[str, list[tuple[str, str]]]
"""Tag → (spelling, file) for each file that holds it; the file "" is the photograph itself."""


def replace_places(
    database: Database,
    photograph: int,
    places: Places,
    was_read: Callable[[str], bool],
) -> bool:
    """Store which tags a photograph has in the files that were read; whether any changed.

    Places in other files stay. Suggestions of tags that the photograph has now are removed.
    """
    before: dict[int, list[list[str]]] = {
        tag: read_json(text, list)
        for tag, text in database.rows(
            "SELECT tag, places FROM found WHERE photograph = ?", (photograph,)
        )
    }
    after: dict[int, list[list[str]]] = {}
    for tag, tag_places in before.items():
        if unread := [place for place in tag_places if not was_read(place[1])]:
            after[tag] = unread
    for name, new_places in places.items():
        tag_places = after.setdefault(tag_number(database, name), [])
        tag_places += [[_storable(word), file] for word, file in new_places]
    for tag in before.keys() - after.keys():
        database.execute("DELETE FROM found WHERE photograph = ? AND tag = ?", (photograph, tag))
    for tag, tag_places in after.items():
        if before.get(tag) != tag_places:
            _store(database, photograph, tag, tag_places)
    for tag in after.keys() - before.keys():
        _drop_suggestions(database, photograph, tag)
    return before != after


def _move_places(database: Database, tag: int, into: int) -> None:
    """Store the places of a tag as places of another tag."""
    rows = database.rows(
        "SELECT f.photograph, f.places, o.places FROM found f LEFT JOIN found o "
        "ON o.photograph = f.photograph AND o.tag = ? WHERE f.tag = ?",
        (into, tag),
    )
    for photograph, text, other_text in rows:
        places = read_json(other_text, list) if other_text is not None else []
        places += [place for place in read_json(text, list) if place not in places]
        database.execute("DELETE FROM found WHERE photograph = ? AND tag = ?", (photograph, tag))
        _store(database, photograph, into, places)


def _store(database: Database, photograph: int, tag: int, places: list[list[str]]) -> None:
    database.execute(
        "INSERT INTO found VALUES (?, ?, CAST(? AS TEXT)) "
        "ON CONFLICT (photograph, tag) DO UPDATE SET places = excluded.places",
        (photograph, tag, pack_json(places)),
    )


def _drop_suggestions(database: Database, photograph: int, tag: int) -> None:
    """Remove suggestions and doubts about a tag that a photograph has now."""
    for table, condition in (("suggestions", ""), ("doubts", " AND kind = 'missing'")):
        database.execute(
            f"DELETE FROM {table} WHERE content = "
            f"(SELECT content FROM photographs WHERE id = ?) AND tag IN {SPELLINGS.format('?')}"
            + condition,
            (photograph, tag),
        )


def let_scan_read(database: Database, photographs: str, value: int) -> None:
    """Let the next scan read files again: of photographs by SQL with a value, and the tag file."""
    database.execute(f"UPDATE photographs SET mtime = -1 WHERE id IN ({photographs})", (value,))
    database.execute("UPDATE collection SET settings = json_set(settings, '$.tag_state', '[]')")


# --- merging -----------------------------------------------------------------------------


def forget_tag(database: Database, tag: int, forgotten: bool = True) -> None:
    """Stop learning and suggesting a tag, or start it again."""
    database.execute("UPDATE tags SET forgotten = ? WHERE id = ?", (forgotten, tag))
    for table in ("suggestions", "doubts") if forgotten else ():
        database.execute(f"DELETE FROM {table} WHERE tag = ?", (tag,))


def merge_tag(database: Database, tag: int, into: int) -> None:
    """Move everything that is known of a tag to another tag."""
    pair = {"tag": tag, "into": into}
    _move_places(database, tag, into)
    for table, condition in (("suggestions", ""), ("doubts", " AND kind = 'missing'")):
        in_files = IN_FILES.format(f"{table}.content", ":into")
        database.execute(f"DELETE FROM {table} WHERE tag = :into AND {in_files}{condition}", pair)
    database.execute(
        "INSERT INTO suggestions SELECT content, :into, run, confidence, evidence "
        "FROM suggestions s WHERE tag = :tag "
        "AND NOT EXISTS (SELECT 1 FROM suggestions o "
        "WHERE o.content = s.content AND o.tag = :into) "
        "AND NOT EXISTS (SELECT 1 FROM decisions d "
        "WHERE d.content = s.content AND d.tag = :into AND d.holds) "
        f"AND NOT {IN_FILES.format('s.content', ':into')}",
        pair,
    )
    for table in ("suggestions", "doubts"):
        database.execute(f"DELETE FROM {table} WHERE tag = :tag", pair)
    _move_decisions(database, tag, into)
    database.execute(
        "DELETE FROM suggestions WHERE tag = :into AND EXISTS (SELECT 1 FROM decisions d "
        "WHERE d.content = suggestions.content AND d.tag = :into AND d.holds)",
        pair,
    )
    database.execute(
        "UPDATE tags SET quality = coalesce(quality, (SELECT quality FROM tags WHERE id = :tag)) "
        "WHERE id = :into",
        pair,
    )
    database.execute("UPDATE tags SET same_as = :into WHERE id = :tag OR same_as = :tag", pair)


def _move_decisions(database: Database, tag: int, into: int) -> None:
    """Move the decisions on a tag; they stay part of their runs and can be undone.

    If both tags have a decision on a photograph, the other tag's decision applies.
    """
    moved = database.rows(
        "SELECT d.id FROM decisions d WHERE d.tag = ?1 AND d.holds AND NOT EXISTS (SELECT 1 "
        "FROM decisions o WHERE o.content = d.content AND o.tag = ?2 AND o.holds)",
        (tag, into),
    )
    database.execute("UPDATE decisions SET holds = 0 WHERE tag = ? AND holds", (tag,))
    database.execute("UPDATE decisions SET tag = ? WHERE tag = ?", (into, tag))
    database.execute_many("UPDATE decisions SET holds = 1 WHERE id = ?", moved)
