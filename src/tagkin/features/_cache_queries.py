"""Queries of a feature cache. Every function takes an open connection."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from tagkin.features._cache_database import Damaged
from tagkin.sqlite import used_bytes

__all__ = [
    "Entry",
    "Used",
    "backbones",
    "clear",
    "contents",
    "note_uses",
    "prune",
    "put_contents",
    "put_vectors",
    "shrink",
    "vectors",
    "would_prune",
]

Entry = tuple[int, bytes]  # backbone and digest
Used = dict[Entry, int]  # the clock's value at the previous use, by entry
_AT_ONCE = 500  # parameters of a query; old versions of SQLite take 999
_OVERHEAD = 150  # approximate bytes of an entry without its vector


def _rows(
    connection: sqlite3.Connection, query: str, keys: Sequence[bytes] | Sequence[int], *before: int
) -> Iterator[tuple[Any, ...]]:  # sqlite3 does not know the types of columns
    """Yield the rows of a query that ends in IN, for a list of any length."""
    ordered = sorted(keys)  # neighbours share a page
    for start in range(0, len(ordered), _AT_ONCE):
        batch = ordered[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(batch))
        yield from connection.execute(f"{query} ({marks})", (*before, *batch))


# --- features by content -----------------------------------------------------------------


def vectors(
    connection: sqlite3.Connection,
    fingerprint: str,
    dimension: int,
    digests: Sequence[bytes],
    used: Used,
) -> Iterator[tuple[bytes, bytes]]:
    """Yield digest and features of the undamaged contents, and add their entries to `used`."""
    key = _backbone(connection, fingerprint)
    if key is None:
        return
    query = (
        "SELECT vector, digest, checksum, last_used FROM entries WHERE backbone = ? AND digest IN"
    )
    entries = {row[0]: row for row in _rows(connection, query, digests, key)}
    query = "SELECT id, data FROM vectors WHERE id IN"
    for vector, data in _rows(connection, query, list(entries)):
        _, digest, checksum, last_used = entries[vector]
        complete = isinstance(data, bytes) and len(data) == 4 * dimension
        if complete and _checksum(digest, data) == checksum:
            used[key, digest] = last_used
            yield digest, data


def _backbone(connection: sqlite3.Connection, fingerprint: str) -> int | None:
    query = "SELECT id FROM backbones WHERE fingerprint = ?"
    row = connection.execute(query, (fingerprint,)).fetchone()
    return None if row is None else row[0]


def put_vectors(
    connection: sqlite3.Connection,
    backbone: tuple[str, str, int],
    digests: Sequence[bytes],
    data: Sequence[bytes],
    now: int,
) -> None:
    """Store features of a backbone (fingerprint, name, dimension); replace existing ones."""
    connection.execute(
        "INSERT OR IGNORE INTO backbones (fingerprint, name, dimension) VALUES (?, ?, ?)", backbone
    )
    key = _backbone(connection, backbone[0])
    for digest, vector in zip(digests, data, strict=True):
        query = "SELECT vector FROM entries WHERE backbone = ? AND digest = ?"
        existing = connection.execute(query, (key, digest)).fetchone()
        slot = connection.execute(
            "INSERT OR REPLACE INTO vectors VALUES (?, ?)", (existing and existing[0], vector)
        ).lastrowid
        connection.execute(
            "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)",
            (key, digest, slot, _checksum(digest, vector), now),
        )


def _checksum(digest: bytes, data: bytes) -> int:
    """Return a checksum of content and features, because SQLite does not notice changed bytes."""
    return zlib.crc32(data, zlib.crc32(digest))


def backbones(connection: sqlite3.Connection) -> list[tuple[str, str, int, int, int]]:
    """Return name, fingerprint, dimension, entries and bytes of features of each backbone."""
    return connection.execute(
        "SELECT name, fingerprint, dimension, count(*) AS n, 4 * dimension * count(*)"
        " FROM entries JOIN backbones ON backbones.id = backbone"
        " GROUP BY backbone ORDER BY n DESC, fingerprint"
    ).fetchall()


# --- contents by file --------------------------------------------------------------------


def contents(connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the SHA-256 of known files, by key."""
    query = "SELECT key, digest FROM files WHERE key IN"
    digests = dict(_rows(connection, query, keys))
    if not all(isinstance(digest, bytes) for digest in digests.values()):
        raise Damaged("a digest is not bytes")
    return digests


def put_contents(connection: sqlite3.Connection, rows: Sequence[tuple[bytes, bytes]]) -> None:
    """Store the keys and SHA-256 of files."""
    connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?)", rows)


# --- size --------------------------------------------------------------------------------


def note_uses(connection: sqlite3.Connection, used: Used, n_stored: int = 0) -> int:
    """Record that entries were used; return the clock's value for them and for stored entries.

    The clock counts transactions, so the order of uses is known but not their time.
    """
    clock = connection.execute("SELECT uses, n_latest FROM clock").fetchone() or (-1, -1)
    if not all(isinstance(count, int) and 0 <= count < 2**62 for count in clock):
        raise Damaged("its clock does not count")
    now, n_latest = clock
    if not n_stored and len(used) == n_latest and set(used.values()) == {now}:
        return now  # the same entries as in the last run
    connection.execute("UPDATE clock SET uses = ?, n_latest = ?", (now + 1, len(used) + n_stored))
    connection.executemany(
        "UPDATE entries SET last_used = ? WHERE backbone = ? AND digest = ?",
        [(now + 1, *entry) for entry in sorted(used)],
    )
    return now + 1


def would_prune(connection: sqlite3.Connection, max_bytes: int) -> tuple[int, int]:
    """Return how many entries `prune` would remove, and approximately how many bytes."""
    chosen = _least_recent(connection, used_bytes(connection) - max_bytes)
    return len(chosen), sum(size for _, _, size in chosen)


def prune(connection: sqlite3.Connection, max_bytes: int) -> tuple[int, int]:
    """Remove the least recently used entries beyond a size; return their number and bytes."""
    before, n_entries = used_bytes(connection), 0
    while chosen := _least_recent(connection, used_bytes(connection) - max_bytes):
        connection.executemany(
            "DELETE FROM entries WHERE backbone = ? AND digest = ?",
            [entry for entry, _, _ in chosen],
        )
        connection.executemany(
            "DELETE FROM vectors WHERE id = ?", [(vector,) for _, vector, _ in chosen]
        )
        n_entries += len(chosen)
    if n_entries:
        connection.execute("DELETE FROM files WHERE digest NOT IN (SELECT digest FROM entries)")
        connection.execute("DELETE FROM backbones WHERE id NOT IN (SELECT backbone FROM entries)")
    return n_entries, before - used_bytes(connection)


def _least_recent(connection: sqlite3.Connection, n_bytes: int) -> list[tuple[Entry, int, int]]:
    """Return key, vector and size of the least recently used entries that take `n_bytes`."""
    chosen: list[tuple[Entry, int, int]] = []
    if n_bytes > 0:
        query = (
            "SELECT backbone, digest, vector, 4 * dimension + ? FROM entries JOIN backbones"
            " ON backbones.id = backbone ORDER BY last_used, vector"
        )
        for backbone, digest, vector, size in connection.execute(query, (_OVERHEAD,)):
            chosen.append(((backbone, digest), vector, size))
            n_bytes -= size
            if n_bytes <= 0:
                break
    return chosen


def clear(connection: sqlite3.Connection) -> None:
    """Remove everything."""
    for table in ("vectors", "entries", "files", "backbones"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608


def shrink(connection: sqlite3.Connection) -> None:
    """Return free pages to the file system; call it outside of a transaction."""
    connection.executescript("PRAGMA incremental_vacuum")  # execute would free one page only
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
