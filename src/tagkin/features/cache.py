"""A cache of features in an SQLite database, by the content of the photograph.

It stores the features of every content that a backbone has processed, and the content of each file
by a hash of its state, so unchanged files need not be read again. It also stores vectors of tag
names, by the hash of the name. It stores no names, pixels or times, and can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from platformdirs import user_cache_dir

from tagkin.arrays import check_integer
from tagkin.errors import InvalidInput, StorageError
from tagkin.features import _cache_queries
from tagkin.features._cache_database import CacheDatabase
from tagkin.records.forms import resource
from tagkin.sqlite import is_busy, transaction, used_bytes

__all__ = [
    "BackboneUse",
    "CacheInfo",
    "FeatureCache",
    "Pruned",
    "ReadOnlyCache",
    "default_cache_folder",
]

_LIMIT = 10 * 10**9  # bytes: features of two million photographs
_AFTER_PRUNING = 0.9  # of the limit, to avoid pruning at every new photograph
_FLOAT = np.dtype("<f4")
_RACY_NS = 2 * 10**9  # a file changed this recently may change again with the same time


def default_cache_folder() -> Path:
    """Return ``TAGKIN_CACHE`` if set, else ``tagkin`` in the user's cache folder."""
    chosen = os.environ.get("TAGKIN_CACHE")
    try:
        return Path(chosen or user_cache_dir("tagkin", appauthor=False)).expanduser()
    except RuntimeError as error:  # a container may run as any user
        raise StorageError(
            "This user has no home folder to keep features in. Choose a folder with TAGKIN_CACHE."
        ) from error


class VectorSource(Protocol):
    """A backbone, or another network whose vectors are kept."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def dimension(self) -> int: ...


@dataclass(frozen=True)
class BackboneUse:
    """Cache entries of a backbone or of the encoder of tag names, and the bytes of their vectors.

    The name leaves out the folders of the backbone's file.
    """

    name: str
    fingerprint: str
    dimension: int
    n_entries: int
    n_bytes: int


@dataclass(frozen=True)
class CacheInfo:
    """Contents of a cache."""

    folder: Path
    n_entries: int
    """Number of vectors, one for each content and backbone."""
    n_bytes: int
    """Size of the cache's files."""
    max_bytes: int | None
    """The size limit."""
    backbones: tuple[BackboneUse, ...]
    """Most entries first."""


@dataclass(frozen=True)
class Pruned:
    """Number and size of the features that were removed from a cache, or would be."""

    n_entries: int
    n_bytes: int


@resource
class FeatureCache:
    """Features by content and backbone, and contents by file, in a folder.

    Several threads and processes may use one folder at once. A killed process loses at most the
    features it was storing. If the database cannot be written, its features are still used; if it
    cannot be read either, the run continues without it. One warning says so. A damaged database is
    renamed, and its features are computed again.

    Parameters
    ----------
    folder : path
        Created when features are first stored. Use a local disk rather than a network disk, and
        a separate folder for each machine.
    max_bytes : int or None, default 10 GB
        If the cache grows beyond this size, the least recently used features are removed.
        None means no limit.
    """

    def __init__(self, folder: str | os.PathLike[str], max_bytes: int | None = _LIMIT):
        self.folder = Path(folder)
        self.max_bytes = max_bytes
        if os.path.exists(self.folder) and not os.path.isdir(self.folder):  # False if not readable
            raise InvalidInput(f"{self.folder} is a file; a feature cache is a folder.")
        if max_bytes is not None:
            check_integer("max_bytes", max_bytes, 0)
        self._database = CacheDatabase(self.folder)
        self._used: _cache_queries.Used = {}  # entries whose use is not noted yet
        self._to_shrink = False

    # Two caches of a kind in one folder are equal, even after copying or pickling.

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureCache):
            return NotImplemented
        own, others = ((type(c), c.folder, c.max_bytes) for c in (self, other))
        return own == others

    def __hash__(self) -> int:
        return hash((self.folder, self.max_bytes))

    def __sklearn_clone__(self) -> FeatureCache:
        """Share the cache among clones of an estimator."""
        return self

    def __reduce__(self) -> tuple[type[FeatureCache], tuple[Path, int | None]]:
        return type(self), (self.folder, self.max_bytes)

    def __repr__(self) -> str:
        limit = "" if self.max_bytes == _LIMIT else f", max_bytes={self.max_bytes}"
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
                rows_of.setdefault(bytes.fromhex(digest), []).append(i)

        def read(connection: sqlite3.Connection) -> None:
            wanted = (source.fingerprint, source.dimension, list(rows_of))
            for content, data in _cache_queries.vectors(connection, *wanted, self._used):
                for i in rows_of[content]:
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
        contents = [bytes.fromhex(digest) for digest in digests]
        data = [row.tobytes() for row in np.ascontiguousarray(rows, _FLOAT)]
        source_row = (source.fingerprint, _without_folders(source.name), source.dimension)

        def write(connection: sqlite3.Connection) -> None:
            now = _cache_queries.note_uses(connection, self._used, len(contents))
            _cache_queries.put_vectors(connection, source_row, contents, data, now)
            if self.max_bytes is not None and used_bytes(connection) > self.max_bytes:
                _cache_queries.prune(connection, int(_AFTER_PRUNING * self.max_bytes))
                self._to_shrink = True
            self._used.clear()

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
        nothing: dict[bytes, bytes] = {}
        known = self._database.read(
            lambda connection: _cache_queries.contents(connection, keys), nothing
        )
        return [known[key].hex() if key in known else None for key in keys]

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
        if rows:
            self._database.write(lambda connection: _cache_queries.put_contents(connection, rows))

    # --- maintenance ---------------------------------------------------------------------

    def info(self) -> CacheInfo:
        """Return the contents of the cache, for each backbone."""
        with self._database.named_errors("read"):
            nothing: list[tuple[str, str, int, int, int]] = []
            uses = [
                BackboneUse(*row) for row in self._database.do(_cache_queries.backbones, nothing)
            ]
            n_bytes = _total_size(self._database.files())
        n_entries = sum(use.n_entries for use in uses)
        return CacheInfo(self.folder, n_entries, n_bytes, self.max_bytes, tuple(uses))

    def prune(self, max_bytes: int | None = None, *, dry_run: bool = False) -> Pruned:
        """Remove the least recently used features until the cache has at most `max_bytes`.

        Parameters
        ----------
        max_bytes : int, optional
            The size to shrink to. Default: the limit of the cache.
        dry_run : bool, default False
            Remove nothing, and return an estimate.
        """
        limit = self.max_bytes if max_bytes is None else max_bytes
        if limit is None:
            return Pruned(0, 0)
        check_integer("max_bytes", limit, 0)

        def remove(connection: sqlite3.Connection) -> tuple[int, int]:
            with transaction(connection):
                _cache_queries.note_uses(connection, self._used)
                removed = _cache_queries.prune(connection, limit)
            self._used.clear()
            _cache_queries.shrink(connection)
            return removed

        with self._database.named_errors("read" if dry_run else "written"):
            if dry_run:
                return Pruned(
                    *self._database.do(lambda c: _cache_queries.would_prune(c, limit), (0, 0))
                )
            return Pruned(*self._database.do(remove, (0, 0)))

    def clear(self, *, dry_run: bool = False) -> Pruned:
        """Remove everything, damaged databases included."""

        def remove(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                _cache_queries.clear(connection)
            self._used.clear()
            _cache_queries.shrink(connection)

        with self._database.named_errors("written"):
            leftovers = self._database.damaged_files()
            try:
                before = self.info()
                if before.n_bytes and not dry_run:
                    self._database.do(remove, None)
            except (StorageError, sqlite3.Error) as error:
                # a damaged database, or a database on a full disk, can still be deleted
                cause = error.__cause__ or error
                if not isinstance(cause, sqlite3.Error) or is_busy(cause):
                    raise
                self._used.clear()
                self.close()
                leftovers += self._database.files()
                before = CacheInfo(self.folder, 0, 0, self.max_bytes, ())
            removed = Pruned(before.n_entries, before.n_bytes + _total_size(leftovers))
            for path in () if dry_run else leftovers:
                path.unlink(missing_ok=True)
        return removed

    def close(self) -> None:
        """Record the uses and close the database; a later use opens it again."""

        def finish(connection: sqlite3.Connection) -> None:
            if self._used:
                with transaction(connection):
                    _cache_queries.note_uses(connection, self._used)
            if self._to_shrink:
                _cache_queries.shrink(connection)

        self._database.close(finish)
        self._used.clear()
        self._to_shrink = False

    def __enter__(self) -> FeatureCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ReadOnlyCache(FeatureCache):
    """A cache that is only read: it stores nothing and records no uses."""

    def store(self, source: VectorSource, digests: Sequence[str], rows: np.ndarray) -> None:
        """Do nothing."""

    def remember(
        self, files: Sequence[str], statuses: Sequence[os.stat_result], digests: Sequence[str]
    ) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Close the database; a later use opens it again."""
        self._used.clear()
        super().close()


def _total_size(paths: list[Path]) -> int:
    """Return the bytes of files, without SQLite's shared memory."""
    return sum(path.stat().st_size for path in paths if not path.name.endswith("-shm"))


def _without_folders(name: str) -> str:
    """Return a backbone's name without the folders of its path, which are private."""
    kind, colon, path = name.rpartition(":")
    return f"{kind}{colon}{os.path.basename(path)}"


def _file_key(file: str, status: os.stat_result) -> bytes:
    """Return a hash that changes with the file; a hash, because the cache stores no names."""
    state = f"{status.st_size} {status.st_mtime_ns} {status.st_ino} {os.path.abspath(file)}"
    return hashlib.blake2b(os.fsencode(state), digest_size=16).digest()
