"""Features that were computed once, kept by the content of the photograph.

Two things are kept in the folder of a cache:

- ``features/FINGERPRINT/``: for each backbone the features of every content it has seen. A
  ledger says which content has which row, and with which checksum; the rows lie beside it as
  plain float32. A row is written before its record, so that what is recorded is there.
- ``contents/``: a ledger that says which content a file has, by its path, size, time of change
  and inode, so that files which stayed as they are need not be read again.

Nothing in it is needed: a cache can be deleted at any time.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, ParamSpec

import numpy as np

from tagkin.errors import InvalidInput
from tagkin.features._ledgers import LedgerFile, ledger_files, open_for_writing

__all__ = ["FeatureCache", "default_cache_folder"]

_DIGEST = 32  # bytes of a SHA-256
_ROWS_AT_ONCE = 256
_BINARY = getattr(os, "O_BINARY", 0)  # Windows
_RACY_NS = 2 * 10**9  # a file that changed this recently may change again at the same time
_P = ParamSpec("_P")


def default_cache_folder() -> Path:
    """Where features are kept unless another folder is asked for.

    ``TAGKIN_CACHE`` where it is set, else ``tagkin`` in the user's folder for caches.
    """
    chosen = os.environ.get("TAGKIN_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    home = Path.home()
    if sys.platform == "darwin":
        base = home / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "tagkin"


class FeatureCache:
    """Features by content and backbone, and contents by file, in a folder.

    Several threads and several processes may use one folder at once. Where the folder cannot be
    written, what it holds is still used, new features are not kept, and one warning says so.

    Parameters
    ----------
    folder : path
        Made when something is to be kept.
    """

    is_resource = True  # of this machine: not saved with a model

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise InvalidInput(f"{self.folder} is a file; a cache of features is a folder.")
        self.contents = Contents(self.folder / "contents", self._give_up)
        self._shelves: dict[str, Shelf] = {}
        self._writable = True
        self._lock = threading.Lock()

    def __sklearn_clone__(self) -> FeatureCache:
        """Clones of an estimator keep features in the same place, through the same files."""
        return self

    def shelf(self, fingerprint: str, dimension: int) -> Shelf:
        """The features of one backbone."""
        with self._lock:
            if fingerprint not in self._shelves:
                folder = self.folder / "features" / fingerprint
                self._shelves[fingerprint] = Shelf(folder, dimension, self._give_up)
            return self._shelves[fingerprint]

    def close(self) -> None:
        """Let other processes go on with the files that this one was writing."""
        self.contents.close()
        for shelf in self._shelves.values():
            shelf.close()

    def __enter__(self) -> FeatureCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _give_up(self, error: OSError) -> None:
        with self._lock:
            first, self._writable = self._writable, False
        if first:
            reason = error.strerror or error
            warnings.warn(
                f"Features cannot be kept in {self.folder}: {reason}. The run goes on without; "
                "the next one has to compute them again. Make room there, or choose another "
                "folder with TAGKIN_CACHE.",
                stacklevel=2,
            )


def _unless_it_fails(write: Callable[_P, None]) -> Callable[_P, None]:
    """One thread at a time; after the first failure nothing is written any more."""

    @functools.wraps(write)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> None:
        book: _Book = args[0]  # type: ignore[assignment]
        with book._lock:
            if book._failed:
                return
            try:
                write(*args, **kwargs)
            except OSError as error:
                book._failed = True
                book._give_up(error)

    return guarded


class _Book:
    """A ledger that is read once and then continued by this process."""

    def __init__(self, folder: Path, size: int, give_up: Callable[[OSError], None]):
        self._folder = folder
        self._size = size
        self._give_up = give_up
        self._failed = False
        self._lock = threading.RLock()
        self._ledger: LedgerFile | None = None
        self._file: IO[bytes] | None = None
        self._process = os.getpid()

    def _open(self) -> tuple[LedgerFile, IO[bytes]]:
        if self._process != os.getpid():  # a fork: the files that are open are the parent's
            self._forget()
            self._process = os.getpid()
        if self._ledger is None or self._file is None:
            self._ledger, self._file = open_for_writing(self._folder, self._size)
        return self._ledger, self._file

    def _append(self, records: list[bytes]) -> None:
        ledger, file = self._open()
        _write_all(file, ledger.sealed(records))

    def _forget(self) -> None:
        """Close what is open."""
        if self._file is not None:
            self._file.close()
        self._ledger = self._file = None

    def close(self) -> None:
        """Let others continue the file; a later write opens one again."""
        with self._lock:
            self._forget()


def _write_all(file: IO[bytes], data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


# --- features by content -----------------------------------------------------------------


class Shelf(_Book):
    """The features of one backbone, by the SHA-256 of the photograph's file."""

    def __init__(self, folder: Path, dimension: int, give_up: Callable[[OSError], None]):
        super().__init__(folder, _DIGEST + 4, give_up)
        self.dimension = dimension
        self._row_bytes = 4 * dimension
        self._rows: IO[bytes] | None = None
        self._readers: dict[Path, int] = {}
        self._places: dict[bytes, tuple[Path, int, bytes]] = {}
        for ledger in ledger_files(folder, self._size):
            rows = self._rows_of(ledger)
            for place, record in _readable(ledger):
                self._places[record[:_DIGEST]] = (rows, place, record[_DIGEST:])

    def _rows_of(self, ledger: LedgerFile) -> Path:
        return ledger.path.with_suffix(f".{self.dimension}.float32")

    def __contains__(self, digest: str) -> bool:
        return bytes.fromhex(digest) in self._places

    def __len__(self) -> int:
        return len(self._places)

    def get(self, digest: str) -> np.ndarray | None:
        """The features of a content, or None where they are not there or damaged."""
        row = np.empty((1, self.dimension), dtype=np.float32)
        return row[0] if self.fill([digest], row)[0] else None

    def fill(self, digests: Sequence[str | None], out: np.ndarray) -> np.ndarray:
        """Copy the features of these contents into the rows of `out`; which were there, (n,)."""
        found = np.zeros(len(digests), dtype=bool)
        keys = [bytes.fromhex(digest) if digest else b"" for digest in digests]
        there = [i for i, key in enumerate(keys) if key in self._places]
        # in the order of the files, and neighbours in one go
        there.sort(key=lambda i: self._places[keys[i]][:2])
        start = 0
        while start < len(there):
            path, first, _ = self._places[keys[there[start]]]
            stop = start + 1
            while stop < min(len(there), start + _ROWS_AT_ONCE):
                if self._places[keys[there[stop]]][:2] != (path, first + stop - start):
                    break
                stop += 1
            data = memoryview(self._read(path, first, stop - start))
            for place, i in enumerate(there[start:stop]):
                row = data[place * self._row_bytes : (place + 1) * self._row_bytes]
                found[i] = self._copy(keys[i], row, out[i])
            start = stop
        return found

    def _copy(self, key: bytes, data: memoryview, out: np.ndarray) -> bool:
        """Put the numbers of a row into `out`, unless they are not what was kept."""
        if len(data) != self._row_bytes or _checksum(key, data) != self._places[key][2]:
            return False
        out[:] = np.frombuffer(data, dtype="<f4")
        return True

    def _read(self, path: Path, place: int, n_rows: int) -> bytes:
        with self._lock:
            try:
                if path not in self._readers:
                    self._readers[path] = os.open(path, os.O_RDONLY | _BINARY)
                number = self._readers[path]
                # read, not mapped: a file that somebody cuts short must not end the process
                if hasattr(os, "pread"):
                    return os.pread(number, n_rows * self._row_bytes, place * self._row_bytes)
                os.lseek(number, place * self._row_bytes, os.SEEK_SET)
                return os.read(number, n_rows * self._row_bytes)
            except OSError:
                return b""

    @_unless_it_fails
    def add(self, digests: Sequence[str], rows: np.ndarray) -> None:
        """Keep features (n, dimension), one row a content."""
        ledger, file = self._open()
        if self._rows is None:
            # one row a record: whatever else a killed process left is written over
            number = os.open(self._rows_of(ledger), os.O_RDWR | os.O_CREAT | _BINARY, 0o666)
            self._rows = os.fdopen(number, "r+b", buffering=0)
        place = ledger.count(file.tell())
        self._rows.seek(place * self._row_bytes)
        rows = np.ascontiguousarray(rows, dtype="<f4")
        _write_all(self._rows, rows.tobytes())
        keys = [bytes.fromhex(digest) for digest in digests]
        checks = [_checksum(key, row.tobytes()) for key, row in zip(keys, rows, strict=True)]
        self._append([key + check for key, check in zip(keys, checks, strict=True)])
        path = self._rows_of(ledger)
        for i, (key, check) in enumerate(zip(keys, checks, strict=True)):
            self._places[key] = (path, place + i, check)

    def _forget(self) -> None:
        super()._forget()
        if self._rows is not None:
            self._rows.close()
        for number in self._readers.values():
            os.close(number)
        self._rows = None
        self._readers = {}


def _checksum(key: bytes, data: bytes | memoryview) -> bytes:
    """Of a row and the content it belongs to."""
    return zlib.crc32(data, zlib.crc32(key)).to_bytes(4, "little")


def _readable(ledger: LedgerFile) -> list[tuple[int, bytes]]:
    try:
        return list(ledger.read())
    except OSError:
        return []  # then it is computed again


# --- contents by file --------------------------------------------------------------------


class Contents(_Book):
    """The SHA-256 of files that were read before, as long as they stay as they were."""

    def __init__(self, folder: Path, give_up: Callable[[OSError], None]):
        super().__init__(folder, 2 * _DIGEST, give_up)
        self._known: dict[bytes, bytes] = {}
        for ledger in ledger_files(folder, self._size):
            self._known.update((r[:_DIGEST], r[_DIGEST:]) for _, r in _readable(ledger))

    def digest(self, path: str, status: os.stat_result) -> str | None:
        """The content of a file, or None where it is not known."""
        known = self._known.get(_identity(path, status))
        return None if known is None else known.hex()

    @_unless_it_fails
    def remember(self, path: str, status: os.stat_result, digest: str) -> None:
        """Keep what a file contains.

        Not of a file that changed a moment ago: clocks of file systems are coarse, and a second
        change could leave the same time of change.
        """
        if time.time_ns() - status.st_mtime_ns < _RACY_NS:
            return
        key, content = _identity(path, status), bytes.fromhex(digest)
        if self._known.get(key) != content:
            self._append([key + content])
            self._known[key] = content


def _identity(path: str, status: os.stat_result) -> bytes:
    parts = (os.path.abspath(path), status.st_size, status.st_mtime_ns, status.st_ino)
    return hashlib.sha256(os.fsencode("\0".join(map(str, parts)))).digest()
