"""Changes of the tables, by name; an older catalogue gets those that it lacks when it is opened.

To change the tables, change `tagkin.catalogue.schema` for new catalogues, append a function to
`MIGRATIONS` that changes existing ones in the same way, and replace `SCHEMA_DIGEST` by what
``tests/catalogue/test_migrations.py`` prints. A function is never changed or removed later: the
catalogue stores the names of those that it got. All run in one transaction without foreign keys,
which are checked at the end.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tagkin import sqlite
from tagkin.errors import StorageError
from tagkin.filesystem import replace_file

__all__ = [
    "MIGRATIONS",
    "SCHEMA_DIGEST",
    "check_schema",
    "digest_schema",
    "former_copy",
    "migrate",
    "read_facts_again",
    "read_pending",
    "record_migrations",
]

Migration = Callable[[sqlite3.Connection], None]
_UNNAMED, _NAMED = 6, 7  # the file's version before migrations were recorded, and ever since
_N_NAMED = 5  # migrations in a message
_WORD = re.compile(r"'(?:[^']|'')*'|--.*|\w+|[^\w\s\"]")  # of SQL: texts, comments, names, signs


def name_migrations(connection: sqlite3.Connection) -> None:
    """Record migrations by name."""
    connection.execute(
        "CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL) WITHOUT ROWID"
    )


def add_places(connection: sqlite3.Connection) -> None:
    """Add where photographs were taken."""
    for column in ("latitude", "longitude"):
        connection.execute(f"ALTER TABLE photographs ADD COLUMN {column} REAL")
    read_facts_again(connection)


def compare_spellings(connection: sqlite3.Connection) -> None:
    """Count the tags of a photograph once, however they are spelled."""
    of_content = (
        "FROM ( SELECT f.tag FROM photographs p JOIN found f ON f.photograph = p.id "
        "WHERE p.content = contents.id UNION SELECT tag FROM decisions "
        "WHERE content = contents.id AND holds AND verdict = 1 ) "
        "o JOIN tags t ON t.id = o.tag WHERE NOT t.forgotten AND "
    )
    exact = (
        f"SELECT count(*) {of_content}NOT EXISTS ( SELECT 1 FROM decisions "
        "WHERE content = contents.id AND tag = o.tag AND holds AND verdict = -1 )"
    )
    folded = (
        f"SELECT count(DISTINCT t.key) {of_content}coalesce(( "
        "SELECT max(d.verdict) FROM decisions d JOIN tags s ON s.id = d.tag "
        "WHERE d.content = contents.id AND d.holds AND s.key = t.key ), 1) = 1"
    )
    triggers = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    for name, script in connection.execute(triggers).fetchall():
        if not re.match(rf"CREATE TRIGGER {name}\b", script) or not name.isidentifier():
            raise StorageError(f"The catalogue has a trigger that tagkin did not make: {name!r}.")
        connection.execute(f"DROP TRIGGER {name}")
        connection.execute(" ".join(script.split()).replace(exact, folded))
    connection.execute(f"UPDATE contents SET n_tags = ({folded})")


MIGRATIONS: tuple[Migration, ...] = (name_migrations, add_places, compare_spellings)
"""All migrations, in order."""
SCHEMA_DIGEST = "888d35891d2a8cfd"
"""`digest_schema` of the tables after the last migration."""


def read_facts_again(connection: sqlite3.Connection) -> None:
    """Let the next scan read the metadata of all photographs, for facts with a new column."""
    connection.execute("UPDATE photographs SET beside = x''")  # as no state of sidecars


def digest_schema(connection: sqlite3.Connection) -> str:
    """Return a digest of all tables, indexes and triggers, without their layout and comments."""
    scripts = connection.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL "
        "AND NOT (type = 'table' AND name GLOB 'sqlite_*')"  # SQLite's own
    )
    words = [
        [word for word in _WORD.findall(script) if not word.startswith("--")]
        for (script,) in scripts
    ]
    return hashlib.sha256(json.dumps(sorted(words)).encode()).hexdigest()[:16]


def read_pending(connection: sqlite3.Connection, path: Path) -> list[Migration]:
    """Return the migrations that a catalogue lacks, in order.

    Raises
    ------
    StorageError
        If a newer tagkin has changed it, or it is older than any migration.
    """
    version = sqlite.read_number(connection, "PRAGMA user_version")
    if version < _UNNAMED:
        raise StorageError(
            f"The catalogue {path} is of an early version of tagkin (its tables are of version "
            f"{version}, the oldest that can be read is {_UNNAMED}). Export your decisions with "
            "that version, put the file and the folder of its model aside, then scan and import "
            "again."
        )
    names = "SELECT CAST(name AS TEXT) FROM migrations ORDER BY name"
    applied = [name for (name,) in connection.execute(names)] if version >= _NAMED else []
    unknown = set(applied) - {migration.__name__ for migration in MIGRATIONS}
    if unknown or version > _NAMED:
        raise StorageError(_describe_newer(path, sorted(unknown)))
    return [migration for migration in MIGRATIONS if migration.__name__ not in applied]


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Reject tables that are not tagkin's: a view or a trigger can stand for endless work."""
    if digest_schema(connection) != SCHEMA_DIGEST:
        raise StorageError(
            f"The catalogue {path} has other tables than tagkin makes: another program changed "
            "them. Put the file aside, and scan again."
        )


def _describe_newer(path: Path, unknown: Sequence[str]) -> str:
    changes = f" ({', '.join(unknown[:_N_NAMED])})" if unknown else ""
    text = f"The catalogue {path} was changed by a newer tagkin{changes}. Install that version."
    if (former := former_copy(path)).exists():
        text += f" Or put the catalogue aside and rename {former}, which lacks what was done since."
    return text


def record_migrations(connection: sqlite3.Connection, migrations: Iterable[Migration]) -> None:
    """Store the names of migrations that a catalogue has."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
    rows = [(migration.__name__, now) for migration in migrations]
    connection.executemany("INSERT INTO migrations (name, applied_at) VALUES (?, ?)", rows)
    connection.execute(f"PRAGMA user_version = {_NAMED}")


def migrate(connection: sqlite3.Connection, path: Path, *, in_memory: bool) -> None:
    """Apply the migrations that a catalogue lacks: all of them or none.

    A copy of the file before is kept as `former_copy`, unless the connection is a copy in memory.
    """
    connection.execute("PRAGMA foreign_keys = OFF")  # has no effect within a transaction
    with sqlite.transaction(connection):
        pending = read_pending(connection, path)  # another process may have applied them
        if pending and not in_memory:
            _keep_former(path)
        for migration in pending:
            migration(connection)
        record_migrations(connection, pending)
        if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
            raise StorageError(
                f"The catalogue {path} cannot be brought up to date: a reference in it leads to "
                "nothing. It is unchanged."
            )
    connection.execute("PRAGMA foreign_keys = ON")


def former_copy(path: Path) -> Path:
    """Return the path of the copy of a catalogue before its last migrations."""
    return path.with_name(f"{path.name}-former")


def _keep_former(path: Path) -> None:
    """Copy a catalogue that nobody writes to now, completely or not at all."""
    former = former_copy(path)
    scratch = former.with_name(f"{former.name}-unfinished")
    try:
        scratch.unlink(missing_ok=True)  # of a killed process
        with (
            contextlib.closing(sqlite.connect(path, "ro")) as source,
            contextlib.closing(sqlite.connect(scratch, "rwc")) as target,
        ):
            target.execute("PRAGMA journal_mode = OFF").fetchone()
            source.backup(target)
        replace_file(scratch, former)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"The catalogue {path} needs a copy before its tables change, and {former} cannot be "
            f"written: {error.strerror}. The catalogue is unchanged."
        ) from error
    finally:
        scratch.unlink(missing_ok=True)
