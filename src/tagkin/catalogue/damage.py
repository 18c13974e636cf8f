"""Find values in a catalogue that tagkin cannot have written, such as text in place of a number.

SQLite stores any value in any column, and a person can edit the file by hand. Checking every value
that is read would be slow, so a catalogue is searched only after an unforeseen error.
"""

from __future__ import annotations

import sqlite3

__all__ = ["find_damage"]

_TYPES = {
    "INTEGER": "'integer'",
    "REAL": "'real', 'integer'",
    "TEXT": "'text'",
    "BLOB": "'blob'",
}
_JSON = {
    *("settings", "kinds", "parameters", "outcome", "places", "lists", "stale"),
    *("tags", "added", "removed", "removed_tags"),
}
_TIMES = {"started_at", "ended_at", "made_at", "taken"}


def find_damage(connection: sqlite3.Connection) -> str | None:
    """Return where a value has a wrong type or form, breaks a rule or refers to nothing.

    None if there is no such value.
    """
    ((problem,), *_) = connection.execute("PRAGMA quick_check(1)").fetchall()
    if problem != "ok":
        return str(problem)
    if (broken := connection.execute("PRAGMA foreign_key_check").fetchone()) is not None:
        return f"a reference in the table {broken[0]} to nothing in the table {broken[2]}"
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    ).fetchall()
    for (table,) in tables:
        for _, column, kind, *_ in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
            wrong = f"typeof({column}) NOT IN ({_TYPES.get(kind, 'typeof(' + column + ')')})"
            if column in _JSON:
                wrong += f" OR NOT json_valid(CAST({column} AS TEXT))"
            elif column in _TIMES:
                wrong += f" OR datetime({column}) IS NULL"
            query = f'SELECT 1 FROM "{table}" WHERE {column} IS NOT NULL AND ({wrong}) LIMIT 1'
            if connection.execute(query).fetchone() is not None:
                return f"in the column {column} of the table {table}"
    return None
