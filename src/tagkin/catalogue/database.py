"""The SQLite file of a catalogue: opened, brought up to date, with one writer at a time."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tagkin.catalogue.migrations import MIGRATIONS, applied, statements
from tagkin.catalogue.writer import WriterLock
from tagkin.errors import StorageError
from tagkin.filesystem import make_private_file

__all__ = ["Database", "sql_text"]

_APPLICATION = 0x7461676C  # "tagl": what an SQLite file of ours says of itself
# Seconds for another process to end its transaction: where all are busy, a fit in the background
# gets next to nothing of a core, and a person decides meanwhile.
_WAIT = 60.0
_TURN = 0.1  # seconds at most in which a writer by a lent right lets the other one write
_LOG = 16 * 2**20  # bytes that the log takes before it goes into the database
_PAGE = 4096


class Database:
    """One connection, that threads take turns with.

    Parameters
    ----------
    path : Path
    write : bool
        Whether anything will be written: there is one writer at a time, whoever comes second is
        refused with a sentence. Readers are welcome at any time.
    create : bool
        Whether a file that is not there is made.
    command : str
        What the writer is doing, for whoever comes second.
    is_lent : bool
        Whether the right to write is that of the process which started this one, and which
        writes as well: the two wait for each other's transactions.
    dry_run : bool
        Whether nothing is to stay: all work is on a copy in memory, and nobody is kept from
        writing meanwhile.
    """

    def __init__(
        self,
        path: Path,
        *,
        write: bool,
        create: bool = False,
        command: str = "tagkin",
        is_lent: bool = False,
        dry_run: bool = False,
    ):
        self.path, self.is_writer, self.is_copy = path, write, dry_run
        self._lock = threading.RLock()
        self._depth = 0
        self._is_lent = is_lent
        self._writer = WriterLock(path, command) if write and not (is_lent or dry_run) else None
        try:
            with self.named_errors("opened"):
                self._connection = self._opened(create)
        except BaseException:
            if self._writer is not None:
                self._writer.release()
            raise

    # --- work ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing, on the disk when it ends; one within another is part of it."""
        if not self.is_writer:
            raise StorageError(f"The catalogue {self.path} was opened for reading only.")
        with self._lock, self.named_errors("written"):
            if self._depth:
                yield self._connection
                return
            self._connection.execute("BEGIN IMMEDIATE")
            self._depth += 1
            start = time.monotonic()
            try:
                with self._connection:
                    yield self._connection
            finally:
                self._depth -= 1
                if self._is_lent:  # whoever lent the right to write has a turn
                    time.sleep(min(time.monotonic() - start, _TURN))

    def rows(
        self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()
    ) -> list[tuple[Any, ...]]:
        """All rows that a query answers."""
        with self._lock, self.named_errors("read"):
            return self._connection.execute(query, values).fetchall()

    def row(
        self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()
    ) -> tuple[Any, ...] | None:
        """The first row that a query answers."""
        with self._lock, self.named_errors("read"):
            found: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
            return found

    def value(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Any:
        """The first column of the first row; None where there is no row."""
        found = self.row(query, values)
        return None if found is None else found[0]

    def close(self) -> None:
        """Close the file, and let the next writer in."""
        with self._lock:
            with contextlib.suppress(sqlite3.Error):
                if self.is_writer:
                    self._connection.execute("PRAGMA optimize")
            self._connection.close()
            if self._writer is not None:
                self._writer.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- opening -------------------------------------------------------------------------

    def _opened(self, create: bool) -> sqlite3.Connection:
        if not create and not self.path.exists():
            raise StorageError(
                f"There is no catalogue {self.path}. `tagkin scan FOLDER` makes one."
            )
        if create and not self.is_copy:
            self._make_file()
        file = f"{self.path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
        connection = _connected(":memory:" if self.is_copy else file)
        try:
            if self.is_copy and self.path.exists():
                with contextlib.closing(_connected(file)) as source:
                    source.backup(connection)
            self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_file(self) -> None:
        """Make the file for this user alone; SQLite's files beside it have its permissions."""
        try:
            make_private_file(self.path)
        except OSError as error:
            raise StorageError(
                f"The catalogue {self.path} cannot be opened: {error.strerror}."
            ) from error

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.text_factory = _read_text
        connection.execute("PRAGMA trusted_schema = OFF")  # a file may come from anybody
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # a decision that was taken stays taken
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG // _PAGE}")
        connection.execute("PRAGMA cache_size = -65536")  # KiB
        connection.execute("PRAGMA temp_store = MEMORY")
        missing = self._missing_migrations(connection)
        if missing and not self.is_writer:
            raise StorageError(
                f"The catalogue {self.path} is of an older tagkin. A command that writes, such as "
                "`tagkin scan`, brings it up to date."
            )
        if missing:
            connection.execute(f"PRAGMA page_size = {_PAGE}")
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            for name, script in missing:
                _migrate(connection, name, script)
        if not self.is_writer:
            connection.execute("PRAGMA query_only = ON")

    def _missing_migrations(self, connection: sqlite3.Connection) -> list[tuple[str, str]]:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != _APPLICATION and (application or n_tables):
            raise StorageError(
                f"{self.path} is a database of another program. Name another file for the "
                "catalogue."
            )
        there, known = applied(connection), [name for name, _ in MIGRATIONS]
        if there != known[: len(there)]:
            raise StorageError(
                f"The catalogue {self.path} is of a newer tagkin (it has been through "
                f"{there[-1]!r}). Install that version."
            )
        return list(MIGRATIONS[len(there) :])

    # --- what goes wrong -----------------------------------------------------------------

    @contextlib.contextmanager
    def named_errors(self, what: str) -> Iterator[None]:
        """Errors of SQLite as sentences that say what to do."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise StorageError(self._sentence(error, what)) from error

    def _sentence(self, error: sqlite3.Error | UnicodeDecodeError, what: str) -> str:
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if isinstance(error, UnicodeDecodeError):  # text that is none, also in what SQLite says
            kind = sqlite3.SQLITE_CORRUPT
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return (
                f"Another program is writing to the catalogue {self.path}. Try again when it has "
                "finished."
            )
        if kind in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return (
                f"The catalogue {self.path} is damaged ({error}). Put it aside and scan again: "
                "your tags are in your files; decisions come back with `tagkin import`, if they "
                "were exported."
            )
        if kind == sqlite3.SQLITE_FULL:
            return f"The disk is full: the catalogue {self.path} stayed as it was. Make room."
        return f"The catalogue {self.path} cannot be {what}: {error}."


def _connected(address: str) -> sqlite3.Connection:
    return sqlite3.connect(
        address,
        uri=True,
        timeout=_WAIT,
        isolation_level=None,
        check_same_thread=False,  # the lock is ours
    )


def _migrate(connection: sqlite3.Connection, name: str, script: str) -> None:
    """Go through one migration, all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT)"
        )
        for statement in statements(script):
            connection.execute(statement)
        connection.execute("INSERT INTO migrations VALUES (?, datetime('now'))", (name,))
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")


def sql_text(text: str) -> str | bytes:
    """A path for ``CAST(? AS TEXT)``: names that are not UTF-8 go in as the bytes that they are."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return os.fsencode(text)
    return text


def _read_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
