"""Features that were computed once, kept by the content of the photograph.

A cache is a folder with one SQLite database, ``features.sqlite``. It keeps

- the features of every content that a backbone has seen, with a checksum, and
- which content a file has, by a hash of its path, size, time of change and inode, so that files
  which stayed as they are need not be read again.

No name and no pixel of a photograph is kept, and no time. Nothing in it is needed: a cache can be
deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from platformdirs import user_cache_dir

from tagkin.errors import InvalidInput, StorageError
from tagkin.features import _schema, _tables
from tagkin.features._database import Database
from tagkin.features._schema import transaction
from tagkin.features.base import Backbone

__all__ = [
    "BackboneUse",
    "CacheInfo",
    "FeatureCache",
    "Pruned",
    "ReadOnlyCache",
    "default_cache_folder",
]

_LIMIT = 10 * 10**9  # bytes: features of two million photographs
_AFTER_PRUNING = 0.9  # of the limit, so that not every new photograph prunes
_FLOAT = np.dtype("<f4")
_RACY_NS = 2 * 10**9  # a file that changed this recently may change again at the same time


def default_cache_folder() -> Path:
    """Where features are kept unless another folder is asked for.

    ``TAGKIN_CACHE`` where it is set, else ``tagkin`` in the user's folder for caches.

    Raises
    ------
    StorageError
        If the user has no home folder.
    """
    chosen = os.environ.get("TAGKIN_CACHE")
    try:
        return Path(chosen or user_cache_dir("tagkin", appauthor=False)).expanduser()
    except RuntimeError as error:  # a container may run as anybody
        raise StorageError(
            "This user has no home folder to keep features in. Name a folder with TAGKIN_CACHE."
        ) from error


@dataclass(frozen=True)
class BackboneUse:
    """What a cache holds of one backbone: so many photographs, and the bytes of their features.

    The name is without the folders of the backbone's file.
    """

    name: str
    fingerprint: str
    dimension: int
    n_entries: int
    n_bytes: int


@dataclass(frozen=True)
class CacheInfo:
    """What a cache holds.

    Attributes
    ----------
    folder : Path
    n_entries : int
        Features, one vector for each content and backbone.
    n_bytes : int
        Of the files of the cache.
    max_bytes : int or None
        The size limit.
    backbones : tuple of BackboneUse
        The one with most entries first.
    """

    folder: Path
    n_entries: int
    n_bytes: int
    max_bytes: int | None
    backbones: tuple[BackboneUse, ...]


@dataclass(frozen=True)
class Pruned:
    """What was removed from a cache, or would be: so many features, and so many bytes of it."""

    n_entries: int
    n_bytes: int


class FeatureCache:
    """Features by content and backbone, and contents by file, in a folder.

    Several threads and several processes may use one folder at once. A kill loses at most what
    was being stored. Where the database cannot be written, what it holds is still used; where it
    cannot be read either, the run goes on without. One warning says so. A damaged database is
    set aside, and what was in it is computed again.

    Parameters
    ----------
    folder : path
        Made when something is to be kept. Better on a local disk than on a network's; each
        machine should have its own.
    max_bytes : int or None, default 10 GB
        Where the cache grows beyond this size, the least recently used features are removed.
        None is no limit.
    """

    def __init__(self, folder: str | os.PathLike[str], max_bytes: int | None = _LIMIT):
        self.folder = Path(folder)
        self.max_bytes = max_bytes
        if os.path.exists(self.folder) and not os.path.isdir(self.folder):  # False in closed ones
            raise InvalidInput(f"{self.folder} is a file; a cache of features is a folder.")
        _check_limit(max_bytes)
        self._database = Database(self.folder)
        self._used: _tables.Used = {}  # entries whose use is not noted yet
        self._to_shrink = False

    # Two caches in one folder are the same, also copied or sent to another process.

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureCache):
            return NotImplemented
        return (self.folder, self.max_bytes) == (other.folder, other.max_bytes)

    def __hash__(self) -> int:
        return hash((self.folder, self.max_bytes))

    def __sklearn_clone__(self) -> FeatureCache:
        """Clones of an estimator keep features in the same place, through the same files."""
        return self

    def __reduce__(self) -> tuple[type[FeatureCache], tuple[Path, int | None]]:
        return type(self), (self.folder, self.max_bytes)

    def __repr__(self) -> str:
        limit = "" if self.max_bytes == _LIMIT else f", max_bytes={self.max_bytes}"
        return f"FeatureCache({os.fspath(self.folder)!r}{limit})"

    # --- features by content -------------------------------------------------------------

    def load(
        self, backbone: Backbone, digests: Sequence[str | None], out: np.ndarray
    ) -> np.ndarray:
        """Copy the features of contents into the rows of an array.

        Parameters
        ----------
        backbone : Backbone
        digests : sequence of n str or None
            SHA-256 of the photographs' files; None is never there.
        out : array (n, dimension), float32
            Rows of what is not there, or damaged, are left as they are.

        Returns
        -------
        found : array (n,), bool
        """
        found = np.zeros(len(digests), dtype=bool)
        rows_of: dict[bytes, list[int]] = {}
        for i, digest in enumerate(digests):
            if digest is not None:
                rows_of.setdefault(bytes.fromhex(digest), []).append(i)

        def read(connection: sqlite3.Connection) -> None:
            wanted = (backbone.fingerprint, backbone.dimension, list(rows_of))
            for content, data in _tables.vectors(connection, *wanted, self._used):
                for i in rows_of[content]:
                    out[i] = np.frombuffer(data, _FLOAT)
                    found[i] = True

        self._database.read(read, None)
        return found

    def store(self, backbone: Backbone, digests: Sequence[str], rows: np.ndarray) -> None:
        """Keep features (n, dimension), one row for each content."""
        contents = [bytes.fromhex(digest) for digest in digests]
        data = [row.tobytes() for row in np.ascontiguousarray(rows, _FLOAT)]
        described = (backbone.fingerprint, _without_folders(backbone.name), backbone.dimension)

        def write(connection: sqlite3.Connection) -> None:
            now = _tables.note_uses(connection, self._used, len(contents))
            _tables.put_vectors(connection, described, contents, data, now)
            if self.max_bytes is not None and _tables.used_bytes(connection) > self.max_bytes:
                _tables.prune(connection, int(_AFTER_PRUNING * self.max_bytes))
                self._to_shrink = True
            self._used.clear()

        self._database.write(write)

    # --- contents by file ----------------------------------------------------------------

    def digests(
        self, files: Sequence[str], statuses: Sequence[os.stat_result | None]
    ) -> list[str | None]:
        """SHA-256 of files that were read before and stayed as they were; None of others."""
        keys = [
            b"" if status is None else _file_key(file, status)
            for file, status in zip(files, statuses, strict=True)
        ]
        nothing: dict[bytes, bytes] = {}
        known = self._database.read(lambda connection: _tables.contents(connection, keys), nothing)
        return [known[key].hex() if key in known else None for key in keys]

    def remember(
        self, files: Sequence[str], statuses: Sequence[os.stat_result], digests: Sequence[str]
    ) -> None:
        """Keep what files contain.

        Not of a file that changed a moment ago: clocks of file systems are coarse, and a second
        change could leave the same time of change.
        """
        now = time.time_ns()
        rows = [
            (_file_key(file, status), bytes.fromhex(digest))
            for file, status, digest in zip(files, statuses, digests, strict=True)
            if now - status.st_mtime_ns >= _RACY_NS
        ]
        if rows:
            self._database.write(lambda connection: _tables.put_contents(connection, rows))

    # --- looking after it ----------------------------------------------------------------

    def info(self) -> CacheInfo:
        """What is there, for each backbone."""
        with self._database.named_errors("read"):
            nothing: list[tuple[str, str, int, int, int]] = []
            rows = self._database.do(_tables.backbones, nothing)
            uses = tuple(BackboneUse(*row) for row in rows)
            n_bytes = _schema.size(_schema.files(self.folder))
        n_entries = sum(use.n_entries for use in uses)
        return CacheInfo(self.folder, n_entries, n_bytes, self.max_bytes, uses)

    def prune(self, max_bytes: int | None = None, *, dry_run: bool = False) -> Pruned:
        """Remove the least recently used features until the cache is no larger than that.

        Parameters
        ----------
        max_bytes : int, optional
            By default the size limit of the cache.
        dry_run : bool, default False
            Remove nothing; tell what would be removed, by estimate.
        """
        _check_limit(max_bytes)
        limit = self.max_bytes if max_bytes is None else max_bytes
        if limit is None:
            return Pruned(0, 0)

        def remove(connection: sqlite3.Connection) -> tuple[int, int]:
            with transaction(connection):
                _tables.note_uses(connection, self._used)
                removed = _tables.prune(connection, limit)
            self._used.clear()
            _tables.shrink(connection)
            return removed

        with self._database.named_errors("read" if dry_run else "written"):
            if dry_run:
                return Pruned(*self._database.do(lambda c: _tables.would_prune(c, limit), (0, 0)))
            return Pruned(*self._database.do(remove, (0, 0)))

    def clear(self, *, dry_run: bool = False) -> Pruned:
        """Remove everything, also what an older or a damaged cache has left in the folder."""

        def remove(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                _tables.clear(connection)
            self._used.clear()
            _tables.shrink(connection)

        with self._database.named_errors("written"):
            leftovers = _schema.leftovers(self.folder)
            try:
                before = self.info()
                if before.n_bytes and not dry_run:
                    self._database.do(remove, None)
            except (StorageError, sqlite3.Error) as error:
                # what is damaged, or has no room for a transaction, can still be deleted
                cause = error.__cause__ or error
                if not isinstance(cause, sqlite3.Error) or _schema.is_busy(cause):
                    raise
                self._used.clear()
                self.close()
                leftovers += _schema.files(self.folder)
                before = CacheInfo(self.folder, 0, 0, self.max_bytes, ())
            removed = Pruned(before.n_entries, before.n_bytes + _schema.size(leftovers))
            if not dry_run:
                _schema.delete(leftovers)
        return removed

    def close(self) -> None:
        """Note what was used, and close the database; a later use opens it again."""

        def finish(connection: sqlite3.Connection) -> None:
            if self._used:
                with transaction(connection):
                    _tables.note_uses(connection, self._used)
            if self._to_shrink:
                _tables.shrink(connection)

        self._database.close(finish)
        self._used.clear()
        self._to_shrink = False

    def __enter__(self) -> FeatureCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ReadOnlyCache(FeatureCache):
    """A cache that is used as it is: nothing is added, and no use is noted."""

    def store(self, backbone: Backbone, digests: Sequence[str], rows: np.ndarray) -> None:
        """Keep nothing."""

    def remember(
        self, files: Sequence[str], statuses: Sequence[os.stat_result], digests: Sequence[str]
    ) -> None:
        """Keep nothing."""

    def close(self) -> None:
        """Close the database; a later use opens it again."""
        self._used.clear()
        super().close()


def _check_limit(max_bytes: int | None) -> None:
    whole = isinstance(max_bytes, int) and not isinstance(max_bytes, bool)
    if max_bytes is not None and not (whole and max_bytes >= 0):
        raise InvalidInput(f"max_bytes is a whole number of bytes, or None; found {max_bytes!r}.")


def _without_folders(name: str) -> str:
    """A backbone's name; where it is by path, without the folders, which are nobody's business."""
    kind, colon, path = name.rpartition(":")
    return f"{kind}{colon}{os.path.basename(path)}"


def _file_key(file: str, status: os.stat_result) -> bytes:
    """A hash of all that says that a file is still the same, so that no name is kept."""
    state = f"{status.st_size} {status.st_mtime_ns} {status.st_ino} {os.path.abspath(file)}"
    return hashlib.blake2b(os.fsencode(state), digest_size=16).digest()
