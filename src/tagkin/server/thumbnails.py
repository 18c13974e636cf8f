"""Small copies of photographs, each made once and kept by content.

They lie in one SQLite file in the user's folder for caches. Nothing in it is needed: it can be
deleted at any time. Where it cannot be written, thumbnails are made anew each time.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tagkin.errors import UnreadableImage
from tagkin.images import content_digest, encode_jpeg, read_bytes, thumbnail_of
from tagkin.sqlite import connect, used_bytes

__all__ = ["SIZES", "Picture", "Thumbnails"]

SIZES = (256, 512, 1024)
"""Pixels of the longer side: in a grid, in a grid on a fine screen, and alone on the page."""

_LIMIT = 4 * 10**9  # bytes: a grid of 300,000 photographs
_AFTER_PRUNING = 0.9
_NEARLY = 0.8
_CHECKED_EVERY = 500  # thumbnails that are stored between two looks at the size
_N_WAITING = 400  # that are made ahead; older wishes are dropped


class Picture(NamedTuple):
    """A JPEG file, and whether it is what was asked for, for good."""

    jpeg: bytes
    is_final: bool
    """False: the photograph cannot be decoded, or is another one since the last scan."""


class Wish(NamedTuple):
    """A thumbnail that will be asked for."""

    file: str
    digest: str
    size: int


class Thumbnails:
    """Thumbnails by content and size, for any number of threads.

    Parameters
    ----------
    folder : Path
        Of caches.
    max_bytes : int, default 4 GB
        Beyond it, those that were made first are removed.
    """

    def __init__(self, folder: Path, max_bytes: int = _LIMIT):
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._n_stored = 0
        self._database = _opened(folder / "thumbnails.sqlite")
        self._wishes: OrderedDict[Wish, None] = OrderedDict()
        self._wished = threading.Condition()
        self._is_closed = False
        self._maker = threading.Thread(target=self._make_ahead, name="thumbnails", daemon=True)
        self._maker.start()

    def picture(self, file: str, digest: str, size: int) -> Picture:
        """A thumbnail; a placeholder where the photograph cannot be decoded."""
        kept = self._kept(digest, size)
        if kept is not None:
            return Picture(kept, True)
        try:
            data = read_bytes(file)
            jpeg = encode_jpeg(thumbnail_of(data, size))
        except UnreadableImage:
            return Picture(placeholder(size), False)
        if content_digest(data) != digest:
            return Picture(jpeg, False)
        self._keep(digest, size, jpeg)
        return Picture(jpeg, True)

    def has(self, digest: str, size: int) -> bool:
        """Whether a thumbnail is kept."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            if self._database is not None:
                row = self._database.execute(
                    "SELECT 1 FROM thumbnails WHERE digest = ? AND size = ?",
                    (bytes.fromhex(digest), size),
                ).fetchone()
                return row is not None
        return False

    @property
    def is_nearly_full(self) -> bool:
        """Whether some would soon have to make room for others, or none can be kept."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            if self._database is not None:
                return used_bytes(self._database) > _NEARLY * self._max_bytes
        return True

    def wish(self, some: list[tuple[str, str, int]]) -> None:
        """Make thumbnails ahead, in the background: what the next page will ask for."""
        with self._wished:
            for one in some:
                self._wishes[Wish(*one)] = None
                self._wishes.move_to_end(Wish(*one))
            while len(self._wishes) > _N_WAITING:
                self._wishes.popitem(last=False)
            self._wished.notify()

    def close(self) -> None:
        """End what goes on in the background."""
        with self._wished:
            self._is_closed = True
            self._wished.notify()
        self._maker.join(timeout=5)
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    # --- the file ---------------------------------------------------------------------------

    def _kept(self, digest: str, size: int) -> bytes | None:
        with self._lock, contextlib.suppress(sqlite3.Error):
            if self._database is not None:
                row = self._database.execute(
                    "SELECT jpeg FROM thumbnails WHERE digest = ? AND size = ?",
                    (bytes.fromhex(digest), size),
                ).fetchone()
                # SQLite keeps any kind of value, and takes a damaged row for another one
                return row[0] if row is not None and isinstance(row[0], bytes) else None
        return None

    def _keep(self, digest: str, size: int, jpeg: bytes) -> None:
        with self._lock, contextlib.suppress(sqlite3.Error):
            if self._database is not None:
                self._database.execute(
                    "INSERT OR REPLACE INTO thumbnails (digest, size, jpeg) VALUES (?, ?, ?)",
                    (bytes.fromhex(digest), size, jpeg),
                )
                self._n_stored += 1
                if self._n_stored % _CHECKED_EVERY == 1:
                    _prune(self._database, self._max_bytes)

    # --- ahead ------------------------------------------------------------------------------

    def _make_ahead(self) -> None:
        while True:
            with self._wished:
                while not self._wishes and not self._is_closed:
                    self._wished.wait()
                if self._is_closed:
                    return
                wish, _ = self._wishes.popitem(last=False)
            self.picture(*wish)


def _opened(path: Path) -> sqlite3.Connection | None:
    """The database; a damaged one is made again, and None is one that cannot be."""
    for _ in range(2):
        try:
            database = connect(path, "rwc")
            database.execute("PRAGMA journal_mode = WAL").fetchone()
            database.execute("PRAGMA synchronous = NORMAL")  # a kill may lose a few: made again
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
    """Remove the oldest where there are too many bytes."""
    used = used_bytes(database)
    if used <= max_bytes:
        return
    share = 1 - _AFTER_PRUNING * max_bytes / used
    database.execute(
        "DELETE FROM thumbnails WHERE id IN (SELECT id FROM thumbnails ORDER BY id "
        "LIMIT (SELECT cast(ceil(count(*) * ?) AS INTEGER) FROM thumbnails))",
        (share,),
    )


@cache
def placeholder(size: int) -> bytes:
    """A grey picture with a cross, for a photograph that cannot be decoded."""
    side = np.arange(size)
    pixels = np.full((size, size, 3), 0xD8, np.uint8)
    margin = size // 4
    inside = (side >= margin) & (side < size - margin)
    for other in (side[:, None], size - 1 - side[:, None]):
        pixels[(abs(side - other) <= size // 64) & inside & inside[:, None]] = 0x9A
    return encode_jpeg(pixels)
