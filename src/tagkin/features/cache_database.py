"""The database of a feature cache, which a run can do without.

A read-only folder, a full disk or a damaged file causes a warning, and the run continues.
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

__all__ = ["CacheDatabase"]

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_NAME = "features.sqlite"
_DAMAGED = f"{_NAME}.damaged"
_VERSION = 2
_SCHEMA = """
CREATE TABLE vectors (
    id INTEGER PRIMARY KEY,    -- ascending in time
    key BLOB NOT NULL UNIQUE,  -- hash of the backbone and of the photograph's file, or of a text
    checksum INTEGER NOT NULL, -- CRC-32 of the key and the vector
    data BLOB NOT NULL         -- float32, little endian
);
CREATE TABLE files (
    key BLOB PRIMARY KEY,      -- hash of its path, size, time of change and inode
    digest BLOB NOT NULL       -- SHA-256 of the file
) WITHOUT ROWID;
"""
_PAGE = 16384  # bytes: three vectors of 1,280 numbers
_LOG = 4 * 2**20  # bytes of the log before SQLite moves it into the database
_WAIT = 30.0  # seconds to wait for another process's transaction
_abandoned: list[sqlite3.Connection] = []  # of a parent process: not even closing them is safe


class _Damaged(sqlite3.DatabaseError):
    """A database that this version of tagkin did not write."""

    sqlite_errorcode = sqlite3.SQLITE_NOTADB


class CacheDatabase:
    """One connection that threads share under a lock; each process opens it at first use."""

    def __init__(self, folder: Path, *, read_only: bool):
        self._folder, self._path = folder, folder / _NAME
        self._readable, self._writable = True, not read_only
        self._warns = True
        self._was_damaged = False
        self._connection: sqlite3.Connection | None = None
        self._start_in_process()

    def _start_in_process(self) -> None:
        """Start without a connection; a parent process keeps its own."""
        if self._connection is not None:
            _abandoned.append(self._connection)
        self._connection, self._opened_inode = None, 0
        self._process, self._lock = os.getpid(), threading.RLock()

    def do(self, work: Work[T], otherwise: T, *, create: bool = False) -> T:
        """Return `work(connection)`, or `otherwise` if there is no database and not `create`."""
        if self._process != os.getpid():
            self._start_in_process()
        with self._lock:
            if self._connection is None:
                self._opened_inode = self._inode()
                self._connection = _connect(self._path, create=create)
            return otherwise if self._connection is None else work(self._connection)

    def read(self, work: Work[T], otherwise: T) -> T:
        """Return `work(connection)`, or `otherwise` if it fails; read nothing after a failure."""
        while self._readable:
            try:
                return self.do(work, otherwise)
            except (sqlite3.Error, OSError) as error:
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
                return self.do(in_transaction, None, create=True)
            except (sqlite3.Error, OSError) as error:
                if not self._set_aside(error):
                    self._give_up(error)

    def clear(self) -> None:
        """Remove everything, damaged databases included."""

        def empty(connection: sqlite3.Connection) -> None:
            with sqlite.transaction(connection):
                connection.execute("DELETE FROM vectors")
                connection.execute("DELETE FROM files")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        (self._folder / _DAMAGED).unlink(missing_ok=True)
        try:
            self.do(empty, None)  # other processes may have it open: its files stay
        except (sqlite3.Error, StorageError) as error:
            if sqlite.is_busy(error):
                raise
            # a damaged database, or a database on a full disk, can still be deleted
            self.close()
            for path in self._files():
                path.unlink()

    def close(self) -> None:
        """Close the database; a later use opens it again."""
        if self._process == os.getpid():
            with self._lock:
                connection, self._connection = self._connection, None
                if connection is not None:
                    connection.close()

    def size(self) -> int:
        """Return the bytes of its files."""
        return sum(path.stat().st_size for path in self._files())

    def _files(self) -> list[Path]:
        """Return the database and SQLite's extra files."""
        paths = [self._path.with_name(_NAME + suffix) for suffix in ("", *sqlite.LOG_SUFFIXES)]
        return [path for path in paths if path.exists()]

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
                    for path in self._files()[1:]:  # they would damage the next database
                        path.unlink(missing_ok=True)
                    self._path.replace(self._folder / _DAMAGED)
            except OSError:
                return False
        warnings.warn(
            f"The feature cache in {self._folder} is damaged ({_reason(error)}). It was renamed to "
            f"{_DAMAGED}, and a new cache starts, so photographs are read again. `tagkin cache "
            "--clear` removes both.",
            stacklevel=2,
        )
        return True

    def _give_up(self, error: Exception) -> None:
        self._writable = False
        if self._warns:
            self._warns = False
            warnings.warn(
                f"Features cannot be kept in {self._folder}: {_reason(error)}. This run continues "
                "without the cache, and the next run has to compute them again. Free space in the "
                "folder, or choose another folder with TAGKIN_CACHE.",
                stacklevel=2,
            )

    @contextlib.contextmanager
    def named_errors(self, verb: str) -> Iterator[None]:
        """Raise a `StorageError` if a task that the user asked for fails."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            remedy = " `tagkin cache --clear` removes it." if sqlite.is_damage(error) else ""
            raise StorageError(
                f"The cache in {self._folder} cannot be {verb}: {_reason(error)}.{remedy}"
            ) from error


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
        _set_up(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA secure_delete = FAST")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG // _PAGE}")
    if _is_empty(connection):
        connection.execute(f"PRAGMA page_size = {_PAGE}")
        with sqlite.transaction(connection):
            if _is_empty(connection):  # another process may have been faster
                sqlite.run_script(connection, _SCHEMA)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
    # WAL allows readers beside a writer. If the file system cannot (a network's), or another
    # process uses the rollback journal, that journal stays: slower, and as safe.
    connection.execute("PRAGMA busy_timeout = 0")
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * _WAIT)}")


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Whether the file has no tables yet; reject a file of another program or version."""
    version = sqlite.read_number(connection, "PRAGMA user_version")
    n_tables = sqlite.read_number(connection, "SELECT count(*) FROM sqlite_master")
    if version != _VERSION and (version or n_tables):
        raise _Damaged(f"schema {version} is of another version of tagkin")
    return version != _VERSION
