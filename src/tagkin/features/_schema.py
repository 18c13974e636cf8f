"""The SQLite file of a feature cache: how it is opened, and when it cannot be used."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tagkin.filesystem import make_private_file, make_private_folder

__all__ = [
    "DAMAGED",
    "Damaged",
    "Unusable",
    "connect",
    "delete",
    "files",
    "inode",
    "is_busy",
    "is_damage",
    "is_damage_or_full",
    "leftovers",
    "number",
    "set_aside",
    "size",
    "transaction",
]

NAME = "features.sqlite"
DAMAGED = f"{NAME}.damaged"
_BESIDE = ("-wal", "-journal", "-shm")
_VERSION = 1
_APPLICATION = 0x7461676B  # "tagk": what an SQLite file of ours says of itself
_WAIT = 30.0  # seconds for another process to end its transaction
_READ_ONLY = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)
_LOG = 4 * 2**20  # bytes that the log takes before it goes into the database
_PAGE = 16384  # three vectors of 1,280 numbers fill one

# A vector lies apart from what is said of it, so that noting its use does not rewrite it.
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
    digest BLOB NOT NULL       -- SHA-256 of what is in it
) WITHOUT ROWID;
CREATE TABLE clock (uses INTEGER NOT NULL, n_latest INTEGER NOT NULL);
INSERT INTO clock VALUES (0, 0);
"""


class Unusable(Exception):
    """The file is sound but not for this program; the message says what it is."""


class Damaged(sqlite3.DatabaseError):
    """A value in the file that no tagkin writes: SQLite keeps any kind of value anywhere."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def connect(folder: Path, *, create: bool) -> sqlite3.Connection | None:
    """The database of a folder, made where `create` says so; None where there is none.

    Raises sqlite3.Error or OSError where it cannot be opened, `Unusable` where it should not.
    """
    path = folder / NAME
    if create:
        make_private_folder(folder)
        make_private_file(path)
    elif not path.exists():
        return None
    try:
        return _opened(path, "mode=rwc" if create else "mode=rw")
    except sqlite3.OperationalError as error:
        # A folder that cannot be written has no room for the files that SQLite puts beside its
        # database. Where all is in the one file, it can be read without them.
        log = path.with_name(f"{NAME}-wal")
        if create or _kind(error) not in _READ_ONLY or (log.exists() and log.stat().st_size):
            raise
        return _opened(path, "mode=ro&immutable=1")


def _opened(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}",
        uri=True,
        timeout=_WAIT,
        isolation_level=None,
        check_same_thread=False,  # the cache has a lock of its own
    )
    try:
        _set_up(connection, path.parent)
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing, and no other writer in between."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        yield


def _set_up(connection: sqlite3.Connection, folder: Path) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA secure_delete = FAST")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG // _PAGE}")
    if _is_empty(connection, folder):
        connection.execute(f"PRAGMA page_size = {_PAGE}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # what is pruned makes room
        with transaction(connection):
            if _is_empty(connection, folder):  # still: another process may have been faster
                _make_tables(connection)
    # One writer and many readers at once. Where the file system cannot do that (a network's),
    # or others have it open without, the rollback journal serves: slower, and as safe.
    connection.execute("PRAGMA busy_timeout = 0")
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * _WAIT)}")


def _is_empty(connection: sqlite3.Connection, folder: Path) -> bool:
    """Whether there are no tables yet; a file that is neither empty nor ours is refused."""
    version = number(connection, "PRAGMA user_version")
    application = number(connection, "PRAGMA application_id")
    if (version, application) == (_VERSION, _APPLICATION):
        return False
    if application == _APPLICATION:
        made_by = "a newer" if version > _VERSION else "another"
        raise Unusable(
            f"The cache of features in {folder} has schema {version}, of {made_by} tagkin; this "
            f"one reads schema {_VERSION}. The run goes on without it. Install that version, or "
            "name another folder with TAGKIN_CACHE."
        )
    if version or application or number(connection, "SELECT count(*) FROM sqlite_master"):
        raise Unusable(
            f"{folder / NAME} is a database of another program. The run goes on without a cache. "
            "Name another folder with TAGKIN_CACHE."
        )
    return True


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def number(connection: sqlite3.Connection, query: str) -> int:
    """The one number that a query answers."""
    return int(connection.execute(query).fetchone()[0])


def is_damage(error: BaseException) -> bool:
    """Whether an error says that the file itself is broken, or no database at all."""
    return _kind(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_damage_or_full(error: BaseException) -> bool:
    """Whether all that is left to do is to delete the file."""
    return is_damage(error) or _kind(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def is_busy(error: BaseException) -> bool:
    """Whether an error says that somebody else is writing."""
    return _kind(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _kind(error: BaseException) -> int:
    """SQLite's code of an error; extended codes have the kind in their lowest byte."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def inode(folder: Path) -> int:
    """Which file the database is now; 0 where there is none."""
    try:
        return (folder / NAME).stat().st_ino
    except OSError:
        return 0


# --- the files in the folder -------------------------------------------------------------


def files(folder: Path) -> list[Path]:
    """The database and what SQLite puts beside it."""
    paths = [folder / (NAME + end) for end in ("", *_BESIDE)]
    return [path for path in paths if path.exists()]


def size(paths: list[Path]) -> int:
    """Bytes of files; those of shared memory are none of the disk's."""
    return sum(path.stat().st_size for path in paths if not path.name.endswith("-shm"))


def set_aside(folder: Path) -> None:
    """Move a damaged database out of the way."""
    for end in _BESIDE:  # of no use without it, and harm to the next one
        (folder / (NAME + end)).unlink(missing_ok=True)
    (folder / NAME).replace(folder / DAMAGED)


def leftovers(folder: Path) -> list[Path]:
    """Files that are of no more use: a damaged database that was set aside."""
    damaged = folder / DAMAGED
    return [damaged] if damaged.exists() else []


def delete(paths: list[Path]) -> None:
    """Remove files."""
    for path in paths:
        path.unlink(missing_ok=True)
