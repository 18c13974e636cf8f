"""The SQLite file of one collection: opened, up to date, with one writer at a time."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import sqlite3
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypedDict, cast

from tagkin import sqlite
from tagkin.catalogue.columns import REBUILD, damage_error, find_damage, read_json, sql_text
from tagkin.catalogue.migrations import (
    MIGRATIONS,
    check_schema,
    migrate,
    read_pending,
    record_migrations,
)
from tagkin.catalogue.schema import SCHEMA
from tagkin.catalogue.writer_lock import WriterLock
from tagkin.errors import InvalidInput, StorageError, TagkinError

__all__ = [
    "ALL",
    "HAS_FILE",
    "LISTED",
    "CataloguePart",
    "Database",
    "Row",
    "Run",
    "ScanSettings",
    "SqlValue",
    "as_list",
    "set_fields",
    "utc_now",
]

_APPLICATION = 0x7461676C  # "tagl": the application ID in the file
# Seconds to wait for another process's transaction. If all cores are busy, a fit in the background
# hardly advances, and a person decides meanwhile.
_WAIT = 60.0
_LONGEST_TURN = 0.1  # seconds that a writer with a lent right leaves to the lender
_LOG = 16 * 2**20  # bytes of the log before SQLite moves it into the database
_PAGE = 4096
_IMMUTABLE = "ro&immutable=1"  # SQLite makes no files beside the database
_UNFORESEEN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error)

SqlValue = int | float | str | bytes | None
Values = Sequence[SqlValue] | Mapping[str, SqlValue]
Row = tuple[Any, ...]  # sqlite3 does not know the types of columns


ALL = -1
"""SQL: the limit of a query that returns everything."""
LISTED = "IN (SELECT value FROM json_each(?))"
"""SQL: a number or a text is in a list, which is passed with `as_list`."""
HAS_FILE = "EXISTS (SELECT 1 FROM photographs e WHERE e.content = {} AND e.gone IS NULL)"
"""SQL: a content has an existing photograph."""


class ScanSettings(TypedDict, total=False):
    """Where the last scan read tags from; see `tagkin.catalogue.tag_file`."""

    tags: str
    column: str
    tag_file: str
    """The tag file, from the root."""
    tag_state: list[int]


@dataclass
class Run:
    """A run in progress: a command, or a step on the review page."""

    id: int
    outcome: dict[str, int] = field(default_factory=dict)
    """Its results as numbers, stored when it ends."""
    model: str | None = None
    """Fingerprint of the model that it made or used."""


class Database:
    """One connection that threads share.

    A second writer gets an error that names the first's `command`; readers are always allowed. With
    `is_lent`, the process that started this one lends it the right to write: both write, and wait
    for each other's transactions. A dry run works on a copy in memory, which leaves the file
    unchanged and unlocked.
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
        self._root: Path | None = None
        self._writer = WriterLock(path, command) if write and not (is_lent or dry_run) else None
        try:
            with self._named_errors("opened"):
                self._connection = self._open(create)
        except BaseException:
            if self._writer is not None:
                self._writer.release()
            raise

    # --- queries -------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Apply all changes of the block or none, durably; a nested one joins the outer."""
        if not self.is_writer:
            raise StorageError(f"The catalogue {self.path} was opened for reading only.")
        with self._lock, self._named_errors("written"):
            if self._depth:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            self._depth += 1
            start = time.monotonic()
            try:
                with self._connection:
                    yield
            finally:
                self._depth -= 1
                if self._is_lent:
                    time.sleep(min(time.monotonic() - start, _LONGEST_TURN))

    def execute(self, statement: str, values: Values = ()) -> int:
        """Change rows, durably at the end of the transaction; return the number of an added row."""
        with self.transaction():
            return self._connection.execute(statement, values).lastrowid or 0

    def execute_many(self, statement: str, values: Iterable[Values]) -> None:
        """Change rows with each of some values."""
        with self.transaction():
            self._connection.executemany(statement, values)

    def rows(self, query: str, values: Values = ()) -> list[Row]:
        """Return all rows of a query's result."""
        with self._lock, self._named_errors("read"):
            return self._connection.execute(query, values).fetchall()

    def row(self, query: str, values: Values = ()) -> Row | None:
        """Return the first row of a query's result, or None."""
        with self._lock, self._named_errors("read"):
            row: Row | None = self._connection.execute(query, values).fetchone()
            return row

    def column(self, query: str, values: Values = ()) -> list[Any]:
        """Return the first column of a query's result."""
        return [row[0] for row in self.rows(query, values)]

    def groups(self, query: str, values: Values = ()) -> dict[Any, list[Any]]:
        """Return the values in the second column of a query's result by those in the first."""
        groups: dict[Any, list[Any]] = {}
        for key, value in self.rows(query, values):
            groups.setdefault(key, []).append(value)
        return groups

    def value(self, query: str, values: Values = ()) -> Any:
        """Return the first column of the first row, or None without a row.

        sqlite3 does not know its type.
        """
        row = self.row(query, values)
        return None if row is None else row[0]

    def close(self) -> None:
        """Close the file and let the next writer in."""
        with self._lock:
            with contextlib.suppress(sqlite3.Error):
                if self.is_writer:
                    self._connection.execute("PRAGMA optimize")
            self._connection.close()
            if self._writer is not None:
                self._writer.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        try:
            if isinstance(error, _UNFORESEEN) and not isinstance(error, TagkinError):
                self._explain_damage(error)
        finally:
            self.close()

    def _explain_damage(self, error: BaseException) -> None:
        """Raise `StorageError` if a value of the catalogue may have caused an unforeseen error."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            if (place := find_damage(self._connection)) is not None:
                raise damage_error(place) from error

    # --- the collection ------------------------------------------------------------------

    @property
    def root(self) -> Path:
        """The folder of photographs."""
        if self._root is None:
            root = self.value("SELECT root FROM collection")
            if not isinstance(root, str):
                raise damage_error("the root of the collection")
            self._root = Path(root)
        return self._root

    @root.setter
    def root(self, root: Path) -> None:
        self.execute(
            "INSERT INTO collection (id, root, settings) VALUES (1, CAST(? AS TEXT), '{}') "
            "ON CONFLICT (id) DO UPDATE SET root = excluded.root",
            (sql_text(str(root)),),
        )
        self._root = root

    @property
    def settings(self) -> ScanSettings:
        """The parameters of the last scan: where tags are read from."""
        return cast(ScanSettings, read_json(self.value("SELECT settings FROM collection"), dict))

    def absolute(self, path: str) -> str:
        """Return the absolute path of a file, from its path in the catalogue."""
        return os.path.join(self.root, *path.split("/"))

    def relative(self, path: str | os.PathLike[str]) -> str:
        """Return the path of a file as the catalogue stores it.

        Raises
        ------
        InvalidInput
            If it is outside the collection.
        """
        whole, root = os.path.abspath(path), str(self.root)
        for file, folder in ((whole, root), (os.path.realpath(whole), os.path.realpath(root))):
            if file == folder:
                return ""
            if file.startswith(os.path.join(folder, "")):
                return os.path.relpath(file, folder).replace(os.sep, "/")
        raise InvalidInput(f"{path} is not in {root}, the folder of this catalogue.")

    @contextlib.contextmanager
    def run(
        self,
        what: str,
        parameters: Mapping[str, object] | None = None,
        *,
        model: str | None = None,
        undoes: int | None = None,
    ) -> Iterator[Run]:
        """Record a run in the history; its outcome follows when the block ends.

        A run that fails or is killed has no end. Inside a transaction it is all or nothing.
        """
        number = self.execute(
            "INSERT INTO runs (what, started_at, model, parameters, undoes) VALUES (?, ?, ?, ?, ?)",
            (what, utc_now(), model, json.dumps(dict(parameters or {})), undoes),
        )
        run = Run(number, model=model)
        yield run
        self.execute(
            "UPDATE runs SET ended_at = ?, outcome = ?, model = ? WHERE id = ?",
            (utc_now(), json.dumps(run.outcome), run.model, run.id),
        )

    # --- opening -------------------------------------------------------------------------

    def _open(self, create: bool) -> sqlite3.Connection:
        exists = self.path.exists()
        if not create and not exists:
            raise StorageError(
                f"There is no catalogue {self.path}. `tagkin scan FOLDER` makes one."
            )
        try:
            return self._connect("rwc" if create and not self.is_copy else "rw", exists)
        except sqlite3.OperationalError as error:
            changes_file = self.is_writer and not self.is_copy
            if changes_file or not sqlite.is_read_only_medium(error, self.path):
                raise
            # there, older tables can only be brought up to date in memory
            self.is_copy = self.is_copy or self._is_outdated(_IMMUTABLE)
            return self._connect(_IMMUTABLE, exists)

    def _is_outdated(self, mode: str) -> bool:
        with contextlib.closing(sqlite.connect(self.path, mode, wait=_WAIT)) as connection:
            return not self._is_empty(connection) and bool(read_pending(connection, self.path))

    def _connect(self, mode: str, exists: bool) -> sqlite3.Connection:
        try:
            connection = sqlite.connect(None if self.is_copy else self.path, mode, wait=_WAIT)
        except StorageError:
            raise
        except OSError as error:
            raise StorageError(
                f"The catalogue {self.path} cannot be opened: {error.strerror}."
            ) from error
        try:
            if self.is_copy and exists:
                with contextlib.closing(sqlite.connect(self.path, mode, wait=_WAIT)) as source:
                    source.backup(connection)
            self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        connection.execute("PRAGMA trusted_schema = OFF")  # the file may come from anybody
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # no decision gets lost
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG // _PAGE}")
        connection.execute("PRAGMA cache_size = -65536")  # KiB
        connection.execute("PRAGMA temp_store = MEMORY")
        if self._is_empty(connection):
            connection.execute(f"PRAGMA page_size = {_PAGE}")
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            with sqlite.transaction(connection):
                sqlite.run_script(connection, SCHEMA)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                record_migrations(connection, MIGRATIONS)
        elif read_pending(connection, self.path):
            self._migrate(connection)
        check_schema(connection, self.path)
        if not self.is_writer:
            connection.execute("PRAGMA query_only = ON")

    def _is_empty(self, connection: sqlite3.Connection) -> bool:
        """Whether the tables have to be made; an error if another program made the file."""
        application = sqlite.read_number(connection, "PRAGMA application_id")
        if sqlite.read_number(connection, "SELECT count(*) FROM sqlite_master") == 0:
            if not self.is_writer:
                raise StorageError(f"The catalogue {self.path} is empty. `tagkin scan` fills it.")
            return True
        if application != _APPLICATION:
            raise StorageError(
                f"{self.path} is a database of another program. Name another file for the "
                "catalogue."
            )
        return False

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Bring the tables up to date, as the only writer; a reader writes for this alone."""
        if self._writer is not None or self._is_lent or self.is_copy:
            migrate(connection, self.path, in_memory=self.is_copy)
            return
        writer = WriterLock(self.path, "tagkin")
        try:
            migrate(connection, self.path, in_memory=False)
        finally:
            writer.release()

    # --- errors --------------------------------------------------------------------------

    @contextlib.contextmanager
    def _named_errors(self, verb: str) -> Iterator[None]:
        """Turn errors of SQLite into messages that say what to do."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise StorageError(self._describe(error, verb)) from error

    def _describe(self, error: sqlite3.Error | UnicodeDecodeError, verb: str) -> str:
        if sqlite.is_busy(error):
            return (
                f"Another program is writing to the catalogue {self.path}. Try again when it has "
                "finished."
            )
        # damaged text can also be in SQLite's own message
        if sqlite.is_damage(error) or isinstance(error, UnicodeDecodeError):
            return f"The catalogue {self.path} is damaged ({error}). {REBUILD}"
        if sqlite.is_full(error):
            return f"The disk is full; the catalogue {self.path} is unchanged. Free some space."
        return f"The catalogue {self.path} cannot be {verb}: {error}."


class CataloguePart:
    """A part of a catalogue: the queries about one kind of thing."""

    def __init__(self, database: Database):
        self._db = database


def as_list(values: Iterable[int | str]) -> str:
    """Return numbers or texts as a value for `LISTED`; there may be thousands."""
    return json.dumps(list(values))


def set_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a record that say something, for the history."""
    empty: list[object] = [None, "", (), [], {}]
    return {n: value for n, value in fields.items() if value not in empty and value is not False}


def utc_now() -> str:
    """Return the time as the catalogue stores it: UTC, to the microsecond."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
