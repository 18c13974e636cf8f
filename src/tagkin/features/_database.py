"""The database of a feature cache, which a run can do without.

Each process opens it at first use. A read-only folder, a full disk, a damaged file or the file of
another version causes a warning, and the run continues.
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

from tagkin.errors import StorageError
from tagkin.features import _schema
from tagkin.features._schema import Unusable
from tagkin.sqlite import is_damage, transaction

__all__ = ["Database"]

_T = TypeVar("_T")
Work = Callable[[sqlite3.Connection], _T]

_FAILURES = (sqlite3.Error, OSError, Unusable)
_abandoned: list[sqlite3.Connection] = []  # of a parent process: not even closing them is safe


class Database:
    """One connection that threads share under a lock."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._readable = self._writable = True
        self._was_damaged = False
        self._reset()

    def _reset(self) -> None:
        """Start without a connection in this process."""
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

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
                self._connection = self._open(create)
            return otherwise if self._connection is None else work(self._connection)

    def _open(self, create: bool) -> sqlite3.Connection | None:
        self._inode = _schema.inode(self._folder)
        connection = _schema.connect(self._folder, create=create)
        self._inode = _schema.inode(self._folder)
        return connection

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
        """Run `work` in a transaction; create the database if needed.

        Write nothing after the first failure.
        """

        def in_transaction(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                work(connection)

        while self._writable:
            try:
                self.do(in_transaction, None, create=True)
                return
            except _FAILURES as error:
                if not self._set_aside(error):
                    self._give_up(error)

    def close(self, finish: Work[None] | None = None) -> None:
        """Run `finish`, if given, and close; a later use opens the database again."""
        self._leave_parent()
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            with contextlib.closing(connection), contextlib.suppress(sqlite3.Error):
                if finish is not None:
                    finish(connection)

    # --- failures ------------------------------------------------------------------------

    def _set_aside(self, error: Exception) -> bool:
        """Move a damaged database away, once; whether a new database can replace it."""
        if self._was_damaged or not is_damage(error):
            return False
        self._was_damaged = True
        with self._lock:
            self.close()
            try:
                # unless another process has already replaced it
                if _schema.inode(self._folder) == self._inode:
                    _schema.set_aside(self._folder)
            except OSError:
                return False
        _warn(
            f"The feature cache in {self._folder} is damaged ({_reason(error)}). It was renamed "
            f"to {_schema.DAMAGED}, and a new cache starts, so photographs are read again. "
            "`tagkin cache clear` removes both."
        )
        return True

    def _give_up(self, error: Exception) -> None:
        first, self._writable = self._writable, False
        if not first:
            return
        if isinstance(error, Unusable):
            self._readable = False
            _warn(str(error))
        else:
            _warn(
                f"Features cannot be kept in {self._folder}: {_reason(error)}. This run continues "
                "without the cache, and the next run has to compute them again. Free space in the "
                "folder, or choose another folder with TAGKIN_CACHE."
            )

    @contextlib.contextmanager
    def named_errors(self, verb: str) -> Iterator[None]:
        """Raise a `StorageError` if a task that the user asked for fails."""
        try:
            yield
        except StorageError:
            raise
        except Unusable as error:
            raise StorageError(str(error)) from error
        except (sqlite3.Error, OSError) as error:
            lost = _schema.is_lost(error)
            remedy = " `tagkin cache clear` removes it." if lost else ""
            raise StorageError(
                f"The cache in {self._folder} cannot be {verb}: {_reason(error)}.{remedy}"
            ) from error


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
