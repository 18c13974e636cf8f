"""The database of a feature cache, which a run can do without.

A read-only folder, a full disk, a damaged file or the file of another version causes a warning, and
the run continues.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from tagkin import sqlite
from tagkin.errors import StorageError

__all__ = ["CacheDatabase", "Damaged"]

_T = TypeVar("_T")
Work = Callable[[sqlite3.Connection], _T]

_NAME = "features.sqlite"
_DAMAGED = f"{_NAME}.damaged"
_VERSION = 1
_APPLICATION = 0x7461676B  # "tagk", the application ID of tagkin's SQLite files
_WAIT = 30.0  # seconds to wait for another process's transaction
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
    digest BLOB NOT NULL,      -- SHA-256 of the photograph's file, or of a text
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


class _Unusable(Exception):
    """The file is intact but belongs to another program or version; the message says which."""


class Damaged(sqlite3.DatabaseError):
    """A value of a kind that tagkin never writes; SQLite allows any kind in any column."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


_FAILURES = (sqlite3.Error, OSError, _Unusable)
_abandoned: list[sqlite3.Connection] = []  # of a parent process: not even closing them is safe


class CacheDatabase:
    """One connection that threads share under a lock; each process opens it at first use."""

    def __init__(self, folder: Path):
        self._path = folder / _NAME
        self._readable = self._writable = True
        self._was_damaged = False
        self._reset()

    def _reset(self) -> None:
        """Start without a connection in this process."""
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._opened_inode = 0

    def _leave_parent(self) -> None:
        """After a fork, abandon the parent's connection."""
        if self._process != os.getpid():
            if self._connection is not None:
                _abandoned.append(self._connection)
            self._reset()

    def do(self, work: Work[_T], otherwise: _T, *, create: bool = False) -> _T:
        """Return `work(connection)`, or `otherwise` if there is no database and not `create`."""
        self._leave_parent()
        with self._lock:
            if self._connection is None:
                self._opened_inode = self._inode()
                self._connection = _connect(self._path, create=create)
                self._opened_inode = self._inode()
            return otherwise if self._connection is None else work(self._connection)

    def read(self, work: Work[_T], otherwise: _T) -> _T:
        """Return `work(connection)`, or `otherwise` if it fails; read nothing after a failure."""
        if self._readable:
            try:
                return self.do(work, otherwise)
            except _FAILURES as error:
                if not self._set_aside(error):
                    self._readable = False
                    self._give_up(error)
        return otherwise

    def write(self, work: Work[None]) -> None:
        """Run `work` in a transaction, in a new database if needed; stop at the first failure."""

        def in_transaction(connection: sqlite3.Connection) -> None:
            with sqlite.transaction(connection):
                work(connection)

        while self._writable:
            try:
                self.do(in_transaction, None, create=True)
                return
            except _FAILURES as error:
                if not self._set_aside(error):
                    self._give_up(error)

    def close(self, finish: Work[None] = lambda connection: None) -> None:
        """Run `finish` and close; a later use opens the database again."""
        self._leave_parent()
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with contextlib.closing(connection), contextlib.suppress(sqlite3.Error):
                    finish(connection)

    # --- files ---------------------------------------------------------------------------

    def files(self) -> list[Path]:
        """Return the database and SQLite's extra files."""
        paths = [self._path, *self._extra_files()]
        return [path for path in paths if path.exists()]

    def damaged_files(self) -> list[Path]:
        """Return the damaged database that was renamed, if any."""
        damaged = self._path.with_name(_DAMAGED)
        return [damaged] if damaged.exists() else []

    def _extra_files(self) -> list[Path]:
        return [self._path.with_name(_NAME + suffix) for suffix in sqlite.LOG_SUFFIXES]

    def _inode(self) -> int:
        """Return the inode of the database, or 0 if there is no database."""
        try:
            return self._path.stat().st_ino
        except OSError:
            return 0

    # --- failures ------------------------------------------------------------------------

    def _set_aside(self, error: Exception) -> bool:
        """Rename a damaged database, once; whether a new database can replace it."""
        if self._was_damaged or not sqlite.is_damage(error):
            return False
        self._was_damaged = True
        with self._lock:
            self.close()
            try:
                if self._inode() == self._opened_inode:  # else another process has replaced it
                    for path in self._extra_files():  # they would damage the next database
                        path.unlink(missing_ok=True)
                    self._path.replace(self._path.with_name(_DAMAGED))
            except OSError:
                return False
        _warn(
            f"The feature cache in {self._path.parent} is damaged ({_reason(error)}). It was "
            f"renamed to {_DAMAGED}, and a new cache starts, so photographs are read again. "
            "`tagkin cache --max-size 0` removes both."
        )
        return True

    def _give_up(self, error: Exception) -> None:
        first, self._writable = self._writable, False
        if not first:
            return
        if isinstance(error, _Unusable):
            self._readable = False
            _warn(str(error))
        else:
            _warn(
                f"Features cannot be kept in {self._path.parent}: {_reason(error)}. This run "
                "continues without the cache, and the next run has to compute them again. Free "
                "space in the folder, or choose another folder with TAGKIN_CACHE."
            )

    @contextlib.contextmanager
    def named_errors(self, verb: str) -> Iterator[None]:
        """Raise a `StorageError` if a task that the user asked for fails."""
        try:
            yield
        except StorageError:
            raise
        except _Unusable as error:
            raise StorageError(str(error)) from error
        except (sqlite3.Error, OSError) as error:
            kinds = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
            is_lost = sqlite.is_damage(error) or sqlite.error_kind(error) in kinds
            remedy = " `tagkin cache --max-size 0` removes it." if is_lost else ""
            raise StorageError(
                f"The cache in {self._path.parent} cannot be {verb}: {_reason(error)}.{remedy}"
            ) from error


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


# --- opening -----------------------------------------------------------------------------


def _connect(path: Path, *, create: bool) -> sqlite3.Connection | None:
    """Open a database, and create it if `create`; None if it does not exist."""
    if not create and not path.exists():
        return None
    try:
        return _open(path, "rwc" if create else "rw")
    except sqlite3.OperationalError as error:
        if create or not sqlite.is_read_only_medium(error, path):
            raise
        return _open(path, "ro&immutable=1")


def _open(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite.connect(path, mode, wait=_WAIT)
    try:
        _set_up(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA secure_delete = FAST")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG // _PAGE}")
    if _is_empty(connection, path):
        connection.execute(f"PRAGMA page_size = {_PAGE}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # pruning shrinks the file
        with sqlite.transaction(connection):
            if _is_empty(connection, path):  # another process may have been faster
                sqlite.run_script(connection, _SCHEMA)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
    # WAL allows readers beside a writer. If the file system cannot (a network's), or another
    # process uses the rollback journal, that journal stays: slower, and as safe.
    connection.execute("PRAGMA busy_timeout = 0")
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * _WAIT)}")


def _is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file has no tables yet; reject a file of another program or version."""
    version = sqlite.read_number(connection, "PRAGMA user_version")
    application = sqlite.read_number(connection, "PRAGMA application_id")
    if (version, application) == (_VERSION, _APPLICATION):
        return False
    if application == _APPLICATION:
        made_by = "a newer" if version > _VERSION else "another"
        raise _Unusable(
            f"The feature cache in {path.parent} has schema {version}, of {made_by} tagkin; "
            f"this version reads schema {_VERSION}. The run continues without the cache. Install "
            "that version, or choose another folder with TAGKIN_CACHE."
        )
    n_tables = sqlite.read_number(connection, "SELECT count(*) FROM sqlite_master")
    if version or application or n_tables:
        raise _Unusable(
            f"{path} is a database of another program. The run continues without a cache. "
            "Choose another folder with TAGKIN_CACHE."
        )
    return True
