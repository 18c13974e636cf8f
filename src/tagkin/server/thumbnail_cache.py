"""Thumbnails of photographs, each made once and stored by content.

They are in one SQLite file in the user's cache folder, which can be deleted at any time. If it
cannot be written, thumbnails are made again each time.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import textwrap
import threading
from html import escape
from pathlib import Path
from typing import NamedTuple

from tagkin.errors import UnreadableImage
from tagkin.images import content_digest, encode_jpeg, read_bytes, thumbnail
from tagkin.server.readers import Readers
from tagkin.sqlite import connect, used_bytes
from tagkin.templating import shown

SIZES = (256, 512, 1024)
"""Pixels of the longer side: in a grid, in a grid on a fine screen, and alone on the page."""

CLOSER = 2048
"""Pixels of the longer side of the copy for a closer look."""

_LINE, _N_LINES = 28, 5  # letters and lines of a reason on a placeholder
_PLACEHOLDER = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 256 256" width="256" height="256">'
    '<rect width="256" height="256" fill="#d8d8d6"/>'
    '<path d="M104 72 152 120M152 72 104 120" stroke="#75797f" stroke-width="7"/>'
    '<g font-family="system-ui, sans-serif" font-size="15" fill="#3a3e44" text-anchor="middle">'
    "{}</g></svg>"
)
_LIMIT = 4 * 10**9  # bytes, enough for a grid of 300,000 photographs
_AFTER_PRUNING = 0.9
_NEARLY = 0.8
_CHECK_INTERVAL = 10**7  # bytes stored between two checks of the size
_BLOCK = 200  # photographs per query
_NICE = 15
_PAUSE = 0.002  # seconds after each thumbnail, so other threads can run
_PATIENCE = 5.0  # seconds for a thread to stop


class Thumbnail(NamedTuple):
    """A picture of a photograph, and whether it may be cached."""

    data: bytes
    is_final: bool
    """False if the photograph cannot be decoded, or changed since the last scan."""
    kind: str = "image/jpeg"


class Thumbnails:
    """Thumbnails by content and size in a cache folder, for any number of threads.

    If there are more than `max_bytes`, copies for a closer look and the oldest thumbnails are
    removed.
    """

    def __init__(self, folder: Path, max_bytes: int = _LIMIT):
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._unchecked = _CHECK_INTERVAL  # so the first thumbnail is followed by a check
        self._database = _open(folder / "thumbnails.sqlite")

    def picture(self, file: str, digest: str, size: int) -> Thumbnail:
        """Return a thumbnail, or a drawing with the reason if the photograph is unreadable.

        `digest` is the SHA-256 of the content, and `size` the longer side in pixels.
        """
        stored = self._look_up("jpeg", digest, size)
        if isinstance(stored, bytes):  # a damaged file may hold any kind of value
            return Thumbnail(stored, True)
        try:
            data = read_bytes(file)
            jpeg = encode_jpeg(thumbnail(data, size))
        except UnreadableImage as error:
            return Thumbnail(placeholder(str(error)), False, "image/svg+xml")
        if content_digest(data) != digest:
            return Thumbnail(jpeg, False)
        self._store(digest, size, jpeg)
        return Thumbnail(jpeg, True)

    def has(self, digest: str, size: int) -> bool:
        """Whether a thumbnail is stored."""
        return self._look_up("1", digest, size) is not None

    @property
    def is_nearly_full(self) -> bool:
        """Whether there is hardly any room for more, or nothing can be stored."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            if self._database is not None:
                return used_bytes(self._database) > _NEARLY * self._max_bytes
        return True

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    # --- the file ---------------------------------------------------------------------------

    def _look_up(self, column: str, digest: str, size: int) -> object:
        with self._lock, contextlib.suppress(sqlite3.Error):
            if self._database is not None:
                row = self._database.execute(
                    f"SELECT {column} FROM thumbnails WHERE digest = ? AND size = ?",  # noqa: S608
                    (bytes.fromhex(digest), size),
                ).fetchone()
                return None if row is None else row[0]
        return None

    def _store(self, digest: str, size: int, jpeg: bytes) -> None:
        with self._lock, contextlib.suppress(sqlite3.Error):
            if self._database is not None:
                self._database.execute(
                    "INSERT OR REPLACE INTO thumbnails (digest, size, jpeg) VALUES (?, ?, ?)",
                    (bytes.fromhex(digest), size, jpeg),
                )
                self._unchecked += len(jpeg)
                if self._unchecked > min(_CHECK_INTERVAL, self._max_bytes / 10):
                    self._unchecked = 0
                    _prune(self._database, self._max_bytes)


def _open(path: Path) -> sqlite3.Connection | None:
    """Open the database, replacing a damaged file; None if that fails."""
    for _ in range(2):
        try:
            database = connect(path, "rwc")
            database.execute("PRAGMA journal_mode = WAL").fetchone()
            database.execute("PRAGMA synchronous = NORMAL")  # a lost thumbnail is made again
            database.execute(
                "CREATE TABLE IF NOT EXISTS thumbnails (id INTEGER PRIMARY KEY, "
                "digest BLOB NOT NULL, size INTEGER NOT NULL, jpeg BLOB NOT NULL, "
                "UNIQUE (digest, size))"
            )
            return database
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                return None
            with contextlib.suppress(OSError):
                path.unlink()
        except OSError:
            return None
    return None


def _prune(database: sqlite3.Connection, max_bytes: int) -> None:
    """Remove larger copies and then the oldest thumbnails if there are too many bytes."""
    used = used_bytes(database)
    if used <= max_bytes:
        return
    share = 1 - _AFTER_PRUNING * max_bytes / used
    database.execute(
        "DELETE FROM thumbnails WHERE id IN (SELECT id FROM thumbnails ORDER BY size = ? DESC, id "
        "LIMIT (SELECT cast(ceil(count(*) * ?) AS INTEGER) FROM thumbnails))",
        (CLOSER, share),
    )


def placeholder(reason: str) -> bytes:
    """Return a drawing with a cross and the reason why a photograph cannot be shown."""
    lines = textwrap.wrap(shown(reason), _LINE)[:_N_LINES]
    texts = "".join(
        f'<text x="128" y="{158 + 19 * i}">{escape(line)}</text>' for i, line in enumerate(lines)
    )
    return _PLACEHOLDER.format(texts).encode()


# --- in advance ---------------------------------------------------------------------------


class ThumbnailPrefetcher:
    """Makes the missing thumbnails of grids one after the other, at a low priority.

    Scrolling is faster than making thumbnails of large photographs. The thread ends when all
    thumbnails exist, or when there is no room for more.
    """

    def __init__(self, readers: Readers, thumbnails: Thumbnails):
        self._readers, self._thumbnails = readers, thumbnails
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="thumbnail prefetcher", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after the current thumbnail."""
        self._is_closed.set()
        self._thread.join(_PATIENCE)

    def wait(self, seconds: float) -> bool:
        """Wait for all thumbnails; return whether they exist."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        _lower_priority()
        last = 0
        while True:
            with self._readers.connection() as catalogue:
                contents = catalogue.photographs.contents_after(last, _BLOCK)
                existing = catalogue.photographs.files_of(contents).values()
                files = [(catalogue.absolute(file.path), file.digest) for file in existing]
            if not contents:
                return
            missing = [pair for pair in files if not self._thumbnails.has(pair[1], SIZES[0])]
            for file, digest in missing:
                if self._is_closed.wait(_PAUSE) or self._thumbnails.is_nearly_full:
                    return
                self._thumbnails.picture(file, digest, SIZES[0])
            if self._is_closed.wait(_PAUSE):
                return
            last = contents[-1]


def _lower_priority() -> None:
    """Give this thread a low priority, on systems with priorities of threads."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
