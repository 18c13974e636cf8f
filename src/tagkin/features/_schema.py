"""The SQLite file of a feature cache: opening, replacing and removing it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from tagkin import sqlite

__all__ = [
    "DAMAGED",
    "Damaged",
    "Unusable",
    "connect",
    "delete",
    "files",
    "inode",
    "is_lost",
    "leftovers",
    "set_aside",
    "size",
]

NAME = "features.sqlite"
DAMAGED = f"{NAME}.damaged"
_VERSION = 1
_APPLICATION = 0x7461676B  # "tagk", the application ID of tagkin's SQLite files
_WAIT = 30.0  # seconds to wait for another process's transaction
_READ_ONLY = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)
_LOG = 4 * 2**20  # bytes of the log before SQLite moves it into the database
_PAGE = 16384  # bytes: three vectors of 1,280 numbers

# Vectors have their own table, so noting a use does not rewrite them.
_SCHEMA = """
CREATE TABLE backbones (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    dimension INTEGER NOT NULL
);
CREATE TABLE entries (
    backbone INTEGER NOT NULL REFERENCES backbones (id),
    digest BLOB NOT NULL,      -- SHA-256 of the photograph's file
    vector INTEGER NOT NULL REFERENCES vectors (id),
    checksum INTEGER NOT NULL, -- CRC-32 of the digest and the vector
    last_used INTEGER NOT NULL,
    PRIMARY KEY (backbone, digest)
) WITHOUT ROWID;
CREATE TABLE vectors (
    id INTEGER PRIMARY KEY,
    data BLOB NOT NULL         -- float32, little endian
);
CREATE TABLE files (
    key BLOB PRIMARY KEY,      -- hash of its path, size, time of change and inode
    digest BLOB NOT NULL       -- SHA-256 of the file
) WITHOUT ROWID;
CREATE TABLE clock (uses INTEGER NOT NULL, n_latest INTEGER NOT NULL);
INSERT INTO clock VALUES (0, 0);
"""


class Unusable(Exception):
    """The file is intact but belongs to another program or version; the message says which."""


class Damaged(sqlite3.DatabaseError):
    """A value in the file that no tagkin writes: SQLite keeps any kind of value anywhere."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def connect(folder: Path, *, create: bool) -> sqlite3.Connection | None:
    """Open the database of a folder, and create it if `create`; None if it does not exist.

    Raises sqlite3.Error or OSError if it cannot be opened, `Unusable` if it must not be.
    """
    path = folder / NAME
    if not create and not path.exists():
        return None
    try:
        return _open(path, "rwc" if create else "rw")
    except sqlite3.OperationalError as error:
        # SQLite cannot create its extra files in a read-only folder. If the log is empty, the
        # database can be read without them.
        log = path.with_name(f"{NAME}-wal")
        is_read_only = sqlite.error_kind(error) in _READ_ONLY
        if create or not is_read_only or (log.exists() and log.stat().st_size):
            raise
        return _open(path, "ro&immutable=1")


def _open(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite.connect(path, mode, wait=_WAIT)
    try:
        _set_up(connection, path.parent)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection, folder: Path) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA secure_delete = FAST")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG // _PAGE}")
    if _is_empty(connection, folder):
        connection.execute(f"PRAGMA page_size = {_PAGE}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # pruning shrinks the file
        with sqlite.transaction(connection):
            if _is_empty(connection, folder):  # another process may have been faster
                _make_tables(connection)
    # WAL allows readers beside a writer. If the file system cannot (a network's), or another
    # process uses the rollback journal, that journal stays: slower, and as safe.
    connection.execute("PRAGMA busy_timeout = 0")
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * _WAIT)}")


def _is_empty(connection: sqlite3.Connection, folder: Path) -> bool:
    """Whether the file has no tables yet; reject a file of another program or version."""
    version = sqlite.read_number(connection, "PRAGMA user_version")
    application = sqlite.read_number(connection, "PRAGMA application_id")
    if (version, application) == (_VERSION, _APPLICATION):
        return False
    if application == _APPLICATION:
        made_by = "a newer" if version > _VERSION else "another"
        raise Unusable(
            f"The feature cache in {folder} has schema {version}, of {made_by} tagkin; "
            f"this version reads schema {_VERSION}. The run continues without the cache. Install "
            "that version, or choose another folder with TAGKIN_CACHE."
        )
    n_tables = sqlite.read_number(connection, "SELECT count(*) FROM sqlite_master")
    if version or application or n_tables:
        raise Unusable(
            f"{folder / NAME} is a database of another program. The run continues without a cache. "
            "Choose another folder with TAGKIN_CACHE."
        )
    return True


def _make_tables(connection: sqlite3.Connection) -> None:
    sqlite.run_script(connection, _SCHEMA)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def is_lost(error: BaseException) -> bool:
    """Whether deleting the file is the only remedy."""
    return sqlite.is_damage(error) or sqlite.error_kind(error) in (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
    )


def inode(folder: Path) -> int:
    """Return the inode of the database, or 0 if there is no database."""
    try:
        return (folder / NAME).stat().st_ino
    except OSError:
        return 0


# --- the files in the folder -------------------------------------------------------------


def files(folder: Path) -> list[Path]:
    """Return the database and SQLite's extra files."""
    paths = [folder / (NAME + suffix) for suffix in ("", *sqlite.LOG_SUFFIXES)]
    return [path for path in paths if path.exists()]


def size(paths: list[Path]) -> int:
    """Return the total file size, without SQLite's shared-memory files."""
    return sum(path.stat().st_size for path in paths if not path.name.endswith("-shm"))


def set_aside(folder: Path) -> None:
    """Rename a damaged database."""
    for suffix in sqlite.LOG_SUFFIXES:  # they would damage the next database
        (folder / (NAME + suffix)).unlink(missing_ok=True)
    (folder / NAME).replace(folder / DAMAGED)


def leftovers(folder: Path) -> list[Path]:
    """Return the damaged database that `set_aside` renamed, if any."""
    damaged = folder / DAMAGED
    return [damaged] if damaged.exists() else []


def delete(paths: list[Path]) -> None:
    """Remove files."""
    for path in paths:
        path.unlink(missing_ok=True)
