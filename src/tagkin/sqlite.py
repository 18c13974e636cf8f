"""SQLite files: how tagkin opens them, and what their errors mean.

The catalogue, the feature cache and the thumbnails are SQLite files. Each opens its file here.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

from tagkin.errors import StorageError
from tagkin.filesystem import make_private_file, make_private_folder

__all__ = [
    "LOG_SUFFIXES",
    "check_journal",
    "connect",
    "error_kind",
    "has_hot_journal",
    "is_busy",
    "is_damage",
    "is_full",
    "is_read_only_medium",
    "read_number",
    "run_script",
    "transaction",
    "used_bytes",
]

LOG_SUFFIXES = ("-wal", "-journal", "-shm")
"""Suffixes of the files that SQLite keeps beside a database."""
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")  # before a journal, and after the name in it
_READ_ONLY = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)
_NO_ROOM = (sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_WRITE)


def connect(path: Path | None, mode: str = "rw", *, wait: float = 5.0) -> sqlite3.Connection:
    """Open a database without implicit transactions, for threads that share a lock.

    Parameters
    ----------
    path : Path or None
        None opens an empty database in memory.
    mode : str, default "rw"
        As in an SQLite URI. "rwc" creates the file and its folder, for this user alone.
    wait : float, default 5.0
        Seconds to wait for another process's transaction.

    Raises
    ------
    sqlite3.Error, OSError
        If the file cannot be opened or created.
    StorageError
        If the journal beside it names another file.
    """
    address = ":memory:"
    if path is not None:
        check_journal(path)
        if mode == "rwc":
            make_private_folder(path.parent)
            make_private_file(path)  # SQLite gives its extra files the same permissions
        address = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(
        address, uri=True, timeout=wait, isolation_level=None, check_same_thread=False
    )


def has_hot_journal(path: Path) -> bool:
    """Whether a transaction is running or was interrupted, so the file alone is incomplete."""
    start, _ = _read_journal(_journal_of(path))
    return start not in (b"", b"\0")  # a finished journal is absent, empty or begins with 0


def check_journal(path: Path) -> None:
    """Reject a journal that makes SQLite delete another file, or a log that is another file.

    SQLite rolls back what ``NAME-journal`` holds. If a super-journal is named at its end, SQLite
    then deletes the file of that name, whatever it is. Only transactions in several databases have
    a super-journal, and tagkin attaches no database.
    """
    journal = _journal_of(path)
    for suffix in LOG_SUFFIXES:
        beside = Path(f"{os.path.realpath(path)}{suffix}")
        with contextlib.suppress(FileNotFoundError):
            status = beside.lstat()  # SQLite itself refuses symbolic links
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                raise StorageError(
                    f"{beside} is the same file as another one, which would be overwritten. Move "
                    "it to another folder."
                )
    _, end = _read_journal(journal)
    if end == _JOURNAL_MAGIC:
        raise StorageError(
            f"{journal} names another file, which every program that opens the database would "
            "delete. Move the journal to another folder, then try again."
        )


def _journal_of(path: Path) -> Path:
    """Return where SQLite looks for a journal: beside the file that a link leads to."""
    return Path(f"{os.path.realpath(path)}-journal")


def _read_journal(journal: Path) -> tuple[bytes, bytes]:
    """Return the first byte and the last eight bytes of a journal; empty without a journal."""
    try:
        if not stat.S_ISREG(journal.stat().st_mode):  # a pipe would block SQLite as well
            raise StorageError(f"{journal} is not a file. Move it to another folder.")
        with journal.open("rb") as file:
            start = file.read(1)
            file.seek(-min(len(_JOURNAL_MAGIC), file.seek(0, os.SEEK_END)), os.SEEK_END)
            return start, file.read()
    except FileNotFoundError:
        return b"", b""


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in a transaction that excludes other writers."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        yield


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Execute the statements of a script one by one, so they can be part of a transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def read_number(connection: sqlite3.Connection, query: str) -> int:
    """Return the single number of a query's result."""
    return int(connection.execute(query).fetchone()[0])


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of the database, without its free pages."""
    pages, free, size = (
        read_number(connection, f"PRAGMA {name}")
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def error_kind(error: BaseException) -> int:
    """Return SQLite's primary error code, the lowest byte of an extended code."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_damage(error: BaseException) -> bool:
    """Whether an error means that the file is damaged or not a database."""
    return error_kind(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_full(error: BaseException) -> bool:
    """Whether an error means that the disk is full, or a quota or a limit of files is reached."""
    code = getattr(error, "sqlite_errorcode", 0)
    return error_kind(error) == sqlite3.SQLITE_FULL or code in _NO_ROOM


def is_read_only_medium(error: BaseException, path: Path) -> bool:
    """Whether SQLite could not create its extra files, and the database is complete without them.

    Then the mode "ro&immutable=1" reads it.
    """
    log = path.with_name(f"{path.name}-wal")
    is_complete = not (log.exists() and log.stat().st_size) and not has_hot_journal(path)
    return error_kind(error) in _READ_ONLY and is_complete


def is_busy(error: BaseException) -> bool:
    """Whether an error means that another process is writing."""
    return error_kind(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
