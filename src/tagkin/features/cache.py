"""A cache of features in an SQLite database, by the content of the photograph.

It stores the features of every content that a backbone has processed, and the content of each file
by a hash of its state, so unchanged files need not be read again. It also stores vectors of tag
names, by the hash of the name. It stores no names, pixels or times, and can be deleted at any time.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from platformdirs import user_cache_dir

from tagkin import sqlite
from tagkin.errors import InvalidInput, StorageError
from tagkin.features.cache_database import CacheDatabase
from tagkin.records.forms import resource

__all__ = ["MAX_BYTES", "CacheInfo", "FeatureCache", "default_cache_folder"]

MAX_BYTES = 10 * 10**9
"""Size of the database, enough for two million photographs; beyond it, the oldest features go."""

_FLOAT = np.dtype("<f4")
_AT_ONCE = 500  # parameters of a query; old versions of SQLite take 999
_RACY_NS = 2 * 10**9  # a file changed this recently may change again with the same time


class VectorSource(Protocol):
    """A backbone, or another network whose vectors are kept."""

    @property
    def fingerprint(self) -> str: ...


@dataclass(frozen=True)
class CacheInfo:
    """Contents of a cache."""

    folder: Path
    n_entries: int
    """Number of vectors, one for each content and backbone."""
    n_bytes: int
    """Size of the cache's files."""


def default_cache_folder() -> Path:
    """Return ``TAGKIN_CACHE`` if set, else ``tagkin`` in the user's cache folder."""
    chosen = os.environ.get("TAGKIN_CACHE")
    try:
        return Path(chosen or user_cache_dir("tagkin", appauthor=False)).expanduser()
    except RuntimeError as error:  # a container may run as any user
        raise StorageError(
            "This user has no home folder to keep features in. Choose a folder with TAGKIN_CACHE."
        ) from error


@resource
class FeatureCache:
    """Features by content and backbone, and contents by file, in a folder.

    Several threads and processes may use one folder at once. A killed process loses at most the
    features it was storing. If the database cannot be written, its features are still used; if it
    cannot be read either, the run continues without it. One warning says so. A damaged database is
    renamed, and its features are computed again. Beyond 10 GB, the oldest features are removed.

    Parameters
    ----------
    folder : path
        Created when features are first stored. Use a local disk rather than a network disk, and
        a separate folder for each machine.
    read_only : bool, default False
        Whether to use only what is there, and store nothing.
    """

    def __init__(self, folder: str | os.PathLike[str], *, read_only: bool = False):
        self.folder, self.read_only = Path(folder), read_only
        if os.path.exists(self.folder) and not os.path.isdir(self.folder):  # False if not readable
            raise InvalidInput(f"{self.folder} is a file; a feature cache is a folder.")
        self._database = CacheDatabase(self.folder, read_only=read_only)

    def __sklearn_clone__(self) -> FeatureCache:
        """Share the cache among clones of an estimator."""
        return self

    def __reduce__(self) -> tuple[Callable[..., FeatureCache], tuple[Path]]:
        return functools.partial(FeatureCache, read_only=self.read_only), (self.folder,)

    def __repr__(self) -> str:
        limit = ", read_only=True" if self.read_only else ""
        return f"FeatureCache({os.fspath(self.folder)!r}{limit})"

    # --- features by content -------------------------------------------------------------

    def load(
        self, source: VectorSource, digests: Sequence[str | None], out: np.ndarray
    ) -> np.ndarray:
        """Copy cached features into the rows of `out` (n, dimension); return which were there.

        Rows of missing or damaged features stay unchanged.

        Parameters
        ----------
        source : VectorSource
            What computes the vectors: a backbone or an encoder.
        digests : sequence of str or None
            SHA-256 of the contents; None if unknown.
        out : array of shape (n, dimension)
            Where to copy the features.
        """
        is_cached = np.zeros(len(digests), dtype=bool)
        rows_of: dict[bytes, list[int]] = {}
        for i, digest in enumerate(digests):
            if digest is not None:
                rows_of.setdefault(_vector_key(source, digest), []).append(i)
        n_bytes = out.shape[1] * _FLOAT.itemsize

        def read(connection: sqlite3.Connection) -> None:
            ids = [row[0] for row in _select(connection, "id FROM vectors", "key", [*rows_of])]
            columns = "key, checksum, data FROM vectors"
            for key, checksum, data in _select(connection, columns, "id", ids):
                is_whole = isinstance(data, bytes) and len(data) == n_bytes
                if is_whole and key in rows_of and _checksum(key, data) == checksum:
                    for i in rows_of[key]:
                        out[i] = np.frombuffer(data, _FLOAT)
                        is_cached[i] = True

        self._database.read(read, None)
        return is_cached

    def store(self, source: VectorSource, digests: Sequence[str], rows: np.ndarray) -> None:
        """Store features (n, dimension), one row for each content.

        Parameters
        ----------
        source : VectorSource
            What computes the vectors: a backbone or an encoder.
        digests : sequence of str
            SHA-256 of the contents.
        rows : array of shape (n, dimension)
            The vectors, one row for each content.
        """
        keys = [_vector_key(source, digest) for digest in digests]
        data = [row.tobytes() for row in np.ascontiguousarray(rows, _FLOAT)]
        entries = [(key, _checksum(key, d), d) for key, d in zip(keys, data, strict=True)]

        def write(connection: sqlite3.Connection) -> None:
            # another process that reads has the numbers of rows: they stay
            connection.executemany(
                "INSERT INTO vectors (key, checksum, data) VALUES (?, ?, ?) ON CONFLICT (key) "
                "DO UPDATE SET checksum = excluded.checksum, data = excluded.data",
                entries,
            )
            if sqlite.used_bytes(connection) > MAX_BYTES:
                oldest_tenth = "10 * id <= (SELECT 9 * min(id) + max(id) FROM vectors)"
                connection.execute(f"DELETE FROM vectors WHERE {oldest_tenth}")  # noqa: S608
                connection.execute("DELETE FROM files")  # a part of them is as old

        self._database.write(write)

    # --- contents by file ----------------------------------------------------------------

    def digests(
        self, files: Sequence[str], statuses: Sequence[os.stat_result | None]
    ) -> list[str | None]:
        """Return the SHA-256 of files that are unchanged since they were read; else None.

        Parameters
        ----------
        files : sequence of str
            Paths.
        statuses : sequence of os.stat_result or None
            Their sizes and times.
        """
        keys = [
            b"" if status is None else _file_key(file, status)
            for file, status in zip(files, statuses, strict=True)
        ]

        def read(connection: sqlite3.Connection) -> dict[bytes, bytes]:
            return dict(_select(connection, "key, digest FROM files", "key", keys))

        nothing: dict[bytes, bytes] = {}
        known = self._database.read(read, nothing)
        digests = [known.get(key) for key in keys]
        return [digest.hex() if isinstance(digest, bytes) else None for digest in digests]

    def remember(
        self, files: Sequence[str], statuses: Sequence[os.stat_result], digests: Sequence[str]
    ) -> None:
        """Store the SHA-256 of files.

        Files that changed a moment ago are left out: clocks of file systems are coarse, and a
        second change could have the same time.

        Parameters
        ----------
        files : sequence of str
            Paths.
        statuses : sequence of os.stat_result
            Their sizes and times when they were read.
        digests : sequence of str
            SHA-256 of the contents.
        """
        now = time.time_ns()
        rows = [
            (_file_key(file, status), bytes.fromhex(digest))
            for file, status, digest in zip(files, statuses, digests, strict=True)
            if now - status.st_mtime_ns >= _RACY_NS
        ]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?)", rows)

        if rows:
            self._database.write(write)

    # --- maintenance ---------------------------------------------------------------------

    def info(self) -> CacheInfo:
        """Return the number of vectors, and the size of the files."""

        def count(connection: sqlite3.Connection) -> int:
            return sqlite.read_number(connection, "SELECT count(*) FROM vectors")

        with self._database.named_errors("read"):
            return CacheInfo(self.folder, self._database.do(count, 0), self._database.size())

    def clear(self) -> None:
        """Remove everything, damaged databases included."""
        with self._database.named_errors("written"):
            self._database.clear()

    def close(self) -> None:
        """Close the database; a later use opens it again."""
        self._database.close()

    def __enter__(self) -> FeatureCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# --- keys and rows -----------------------------------------------------------------------


def _vector_key(source: VectorSource, digest: str) -> bytes:
    return hashlib.sha256(f"{source.fingerprint} {digest}".encode()).digest()


def _file_key(file: str, status: os.stat_result) -> bytes:
    """Return a hash that changes with the file; a hash, because the cache stores no names."""
    state = f"{status.st_size} {status.st_mtime_ns} {status.st_ino} {os.path.abspath(file)}"
    return hashlib.blake2b(os.fsencode(state), digest_size=16).digest()


def _checksum(key: bytes, data: bytes) -> int:
    """Return a checksum of a key and its vector, because SQLite does not notice changed bytes."""
    return zlib.crc32(data, zlib.crc32(key))


def _select(
    connection: sqlite3.Connection, what: str, column: str, values: Sequence[bytes | int]
) -> Iterator[tuple[Any, ...]]:  # sqlite3 does not know the types of columns
    """Yield columns of the rows with these values, in a list of any length."""
    ordered = sorted(values)  # neighbours share a page
    for start in range(0, len(ordered), _AT_ONCE):
        batch = ordered[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(batch))
        yield from connection.execute(f"SELECT {what} WHERE {column} IN ({marks})", batch)
