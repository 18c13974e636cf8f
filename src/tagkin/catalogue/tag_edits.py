"""Edits of tags as runs that can be undone: each stores the rows that it changed."""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from tagkin.catalogue.columns import damage_error, read_json, sql_text
from tagkin.catalogue.database import HAS_FILE, Database, SqlValue, as_list
from tagkin.catalogue.decision_records import FINISHED
from tagkin.catalogue.runs import Runs
from tagkin.catalogue.tag_records import IN_FILES, SAME_TAG, let_scan_read
from tagkin.errors import InvalidInput

__all__ = ["is_edit", "record_edit", "undo_edit"]

# tables with rows of tags: the columns that identify a row, and the columns that may change
_TABLES = {
    "tags": (("id",), ("name", "key", "same_as", "forgotten", "quality")),
    "found": (("photograph", "tag"), ("places",)),
    "suggestions": (("content", "tag"), ("run", "confidence", "evidence")),
    "doubts": (("content", "tag"), ("run", "kind", "confidence", "evidence")),
    "decisions": (("id",), ("tag", "holds")),
}
_STILL_RIGHT = {
    "found": "EXISTS (SELECT 1 FROM photographs WHERE id = ?1 AND gone IS NULL)",
    "suggestions": f"{HAS_FILE.format('?1')} "
    "AND NOT EXISTS (SELECT 1 FROM tags WHERE id = ?2 AND forgotten) "
    "AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.content = ?1 "
    f"AND {SAME_TAG.format('d.tag', '?2')} AND d.holds) "
    f"AND NOT {FINISHED.format('?1')} AND NOT {IN_FILES.format('?1', '?2')}",
}
"""Conditions on a row to restore."""
_Value = int | float | str | list[str] | None
"""A value as JSON has it; bytes are a list."""
_Rows = dict[tuple[str, tuple[int, ...]], list[_Value]]
"""Values by table and key."""


class _Change(NamedTuple):
    """A row before and after an edit; None if there was no such row."""

    table: str
    key: tuple[int, ...]
    before: list[_Value] | None
    after: list[_Value] | None


@contextlib.contextmanager
def record_edit(
    database: Database, run: int, tags: Collection[int], into: str | None = None
) -> Iterator[None]:
    """Store the changes that the block makes to the rows of some tags, for `undo_edit`.

    `into` is the name of a tag that the block may create.
    """
    before = _read_rows(database, tags, into)
    yield
    after = _read_rows(database, tags, into)
    changes = [
        [table, key, before.get((table, key)), after.get((table, key))]
        for table, key in {**before, **after}
        if before.get((table, key)) != after.get((table, key))
    ]
    database.execute(
        "INSERT INTO tag_changes VALUES (?, ?)", (run, zlib.compress(json.dumps(changes).encode()))
    )


def _read_rows(database: Database, tags: Collection[int], into: str | None) -> _Rows:
    rows: _Rows = {}
    for table, (keys, values) in _TABLES.items():
        column = "id" if table == "tags" else "tag"
        aliases = " OR same_as IN (SELECT value FROM json_each(?1))" if table == "tags" else ""
        query = (
            f"SELECT {', '.join((*keys, *values))} FROM {table} WHERE {column} IN "
            "(SELECT value FROM json_each(?1) UNION SELECT id FROM tags WHERE name = ?2)" + aliases
        )
        for row in database.rows(query, (as_list(tags), into)):
            key = row[: len(keys)]
            rows[table, key] = [_to_json(value) for value in row[len(keys) :]]
    return rows


def _to_json(value: SqlValue) -> _Value:
    return [value.hex()] if isinstance(value, bytes) else value


def _from_json(value: _Value) -> SqlValue:
    if isinstance(value, list):
        return bytes.fromhex(value[0])
    return sql_text(value) if isinstance(value, str) else value


def is_edit(database: Database, run: int) -> bool:
    """Whether a run edited tags, or undid such a run."""
    return database.value("SELECT 1 FROM tag_changes WHERE run = ?", (run,)) is not None


def undo_edit(database: Database, number: int) -> tuple[int, list[str]]:
    """Undo an edit of tags; return the number of the undo and the names of the tags.

    Rows that changed since are not restored: later decisions stay with their tag, and the next scan
    reads changed files again. The undo is an edit as well, and can be undone.
    """
    run = Runs(database).get(number)
    if run.undone_by is not None:
        raise InvalidInput(f"Run {number} was undone already.")
    changes = _read_changes(database, number)
    names = [str(c.before[0]) for c in changes if c.table == "tags" and c.before and c.after]
    with (
        database.transaction(),
        database.run("undo", {"run": number}, undoes=number) as undo,
        record_edit(database, undo.id, _tags_of(changes)),
    ):
        _restore(database, changes)
    return undo.id, names


def _read_changes(database: Database, run: int) -> list[_Change]:
    packed = database.value("SELECT changes FROM tag_changes WHERE run = ?", (run,))
    try:
        lines = read_json(zlib.decompress(packed), list)
        return [_Change(table, tuple(key), before, after) for table, key, before, after in lines]
    except (TypeError, ValueError, zlib.error) as error:
        raise damage_error(str(error)) from error


def _tags_of(changes: Sequence[_Change]) -> set[int]:
    """Return the numbers of all tags whose rows an edit changed."""
    tags = {change.key[-1] for change in changes if change.table != "decisions"}
    rows = [row for c in changes if c.table == "decisions" for row in (c.before, c.after) if row]
    return tags.union(row[0] for row in rows if isinstance(row[0], int))


def _restore(database: Database, changes: Sequence[_Change]) -> None:
    database.execute("PRAGMA defer_foreign_keys = ON")  # until the end of the transaction
    by_table = {table: [c for c in changes if c.table == table] for table in _TABLES}
    for change in by_table["tags"]:
        if change.before is not None:
            _restore_tag(database, change.key[0], change.before)
        elif _current(database, change) == change.after:
            # a tag that the edit created stays, without photographs and not forgotten
            _restore_tag(database, change.key[0], ("", "", None, 0, None))
    # a tag that an undone write took out of the file since stays away
    left = {c.key[0] for c in by_table["found"] if c.after and _current(database, c) is None}
    in_files = [c for c in by_table["found"] if c.before is None or c.key[0] not in left]
    _restore_rows(database, "found", in_files)
    for change in by_table["found"]:
        if _current(database, change) != change.before:  # its file changed since
            let_scan_read(database, "?", change.key[0])
    for change in by_table["decisions"]:
        if change.before is not None and _current(database, change) == change.after:
            _restore_decision(database, change.key[0], *map(_from_json, change.before))
    for table in ("suggestions", "doubts"):
        _restore_rows(database, table, by_table[table])
    for change in by_table["tags"]:
        if change.before is None:  # its name is that of the former tag again
            _drop_unused(database, change.key[0])


def _drop_unused(database: Database, tag: int) -> None:
    """Drop what a training since suggested of a tag, if no file and no decision has the tag."""
    unused = "SELECT id FROM tags WHERE id = ? AND n_found + n_accepted + n_rejected = 0"
    for table in ("suggestions", "doubts"):
        database.execute(f"DELETE FROM {table} WHERE tag IN ({unused})", (tag,))


def _current(database: Database, change: _Change) -> list[_Value] | None:
    keys, values = _TABLES[change.table]
    where = " AND ".join(f"{key} = ?" for key in keys)
    query = f"SELECT {', '.join(values)} FROM {change.table} WHERE {where}"
    row = database.row(query, change.key)
    return None if row is None else [_to_json(value) for value in row]


def _restore_tag(database: Database, tag: int, before: Sequence[_Value]) -> None:
    """Restore the state of a tag; its name and key never change."""
    database.execute(
        "UPDATE tags SET same_as = ?, forgotten = ?, quality = ? WHERE id = ?",
        (*map(_from_json, before[2:]), tag),
    )


def _restore_rows(database: Database, table: str, changes: Sequence[_Change]) -> None:
    """Restore rows of a table, except rows that changed since or are no longer right."""
    keys, columns = _TABLES[table]
    # paths need not be UTF-8
    place = {name: "CAST({} AS TEXT)" if name == "places" else "{}" for name in (*keys, *columns)}
    is_same = " AND ".join(f"{name} = {text.format('?')}" for name, text in place.items())
    database.execute_many(
        f"DELETE FROM {table} WHERE {is_same}",
        [(*c.key, *map(_from_json, c.after)) for c in changes if c.after is not None],
    )
    values = ", ".join(text.format(f"?{i}") for i, text in enumerate(place.values(), 1))
    database.execute_many(
        f"INSERT OR IGNORE INTO {table} ({', '.join(place)}) "
        f"SELECT {values} WHERE {_STILL_RIGHT.get(table, '1')}",
        [(*c.key, *map(_from_json, c.before)) for c in changes if c.before is not None],
    )


def _restore_decision(database: Database, decision: int, tag: SqlValue, holds: SqlValue) -> None:
    """Give a decision its tag back; a later decision on that tag stays in force."""
    database.execute("UPDATE decisions SET holds = 0 WHERE id = ? AND holds", (decision,))
    database.execute("UPDATE decisions SET tag = ? WHERE id = ?", (tag, decision))
    database.execute(
        "UPDATE decisions SET holds = 1 WHERE id = ?1 AND ?2 AND NOT EXISTS (SELECT 1 FROM "
        "decisions o WHERE o.content = decisions.content AND o.tag = decisions.tag AND o.holds)",
        (decision, holds),
    )
