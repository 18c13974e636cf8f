"""Write records after photographs were moved, renamed or swapped, so writes can be undone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterable
from typing import NamedTuple

from tagkin.catalogue.columns import read_json, sql_text, unpack_before
from tagkin.catalogue.database import Database
from tagkin.catalogue.write_records import PastWrite
from tagkin.collection.sidecars import provenance_of
from tagkin.errors import SidecarError, UnreadableImage
from tagkin.images import content_digest, read_bytes

__all__ = [
    "Move",
    "is_of_another",
    "known_digests",
    "move_writes",
    "photographs_written_into",
    "swap_writes",
]


class Move(NamedTuple):
    """A photograph that moved to a path of another photograph."""

    photograph: int
    old: str
    """Its former path, from the root."""
    now: int
    """The number of the photograph at the new path."""
    new: str


def move_writes(
    database: Database, connection: sqlite3.Connection, photograph: int, old: str, new: str
) -> None:
    """Update the write records of a photograph that moved with its files."""
    rows = connection.execute(
        "SELECT id, file FROM writes WHERE photograph = ? AND state IN ('planned', 'done')",
        (photograph,),
    ).fetchall()
    for number, file in rows:
        moved = _moved_path(file, old, new)
        if moved is None or os.path.lexists(database.absolute(file)):
            continue
        if os.path.lexists(database.absolute(moved)):
            connection.execute(
                "UPDATE writes SET file = CAST(? AS TEXT) WHERE id = ?", (sql_text(moved), number)
            )


def photographs_written_into(connection: sqlite3.Connection) -> dict[str, int]:
    """Return photographs with embedded tags, by the digest after writing."""
    rows = connection.execute(
        "SELECT after, photograph FROM writes WHERE backup IS NOT NULL AND state = 'done'"
    )
    return {after.hex(): photograph for after, photograph in rows}


def _moved_path(file: str, old: str, new: str) -> str | None:
    """Return the new path of a photograph's file; None if the file is not its own."""
    if file == old:
        return new
    name, suffix = os.path.splitext(file)
    if name == old:
        return new + suffix
    stem = os.path.splitext(old)[0]  # of img.xmp, and of img.cr2.xmp beside img.jpg
    if not file.startswith(f"{stem}.") or "/" in file[len(stem) :]:
        return None
    return os.path.splitext(new)[0] + file[len(stem) :]


def swap_writes(database: Database, connection: sqlite3.Connection, moves: Iterable[Move]) -> None:
    """Update the write records of photographs that took each other's names, all at once.

    A file that stayed in place, with the written tags, keeps its record.
    """
    changes = []
    for move in moves:
        rows = connection.execute(
            "SELECT id, run, file, tags, after, backup FROM writes "
            "WHERE photograph = ? AND state IN ('planned', 'done')",
            (move.photograph,),
        ).fetchall()
        for number, run, file, tags, after, backup in rows:
            moved = _moved_path(file, move.old, move.new)
            if moved is None or not os.path.lexists(database.absolute(moved)):
                continue
            words = None if backup is not None else read_json(tags, list)
            if not _holds_write(database.absolute(file), run, words, after.hex()):
                changes.append((move.now, sql_text(moved), number))
    connection.executemany(
        "UPDATE writes SET photograph = ?, file = CAST(? AS TEXT) WHERE id = ?", changes
    )


def is_of_another(database: Database, write: PastWrite) -> bool:
    """Whether a file may belong to another photograph now, which took the former one's name.

    That is so if nothing in it is from this write, and its photograph changed since the scan.
    """
    path = database.absolute(write.file)
    words = None if write.backup is not None else write.tags
    if not os.path.lexists(path) or _holds_write(path, write.run, words, write.after):
        return False
    photograph = database.value(
        "SELECT path FROM photographs WHERE id = ? AND gone IS NULL AND content IS NOT NULL",
        (write.photograph,),
    )
    if photograph is None:
        return False
    try:
        digest = content_digest(read_bytes(database.absolute(photograph)))
    except UnreadableImage:
        return False
    return digest not in known_digests(database, write.photograph)


def known_digests(database: Database, photograph: int) -> set[str]:
    """Return the digests of a photograph: at the last scan, before and after embedding tags."""
    scanned = database.rows(
        "SELECT c.digest FROM photographs p JOIN contents c ON c.id = p.content WHERE p.id = ?",
        (photograph,),
    )
    written = database.rows(
        "SELECT after, before FROM writes WHERE photograph = ? AND backup IS NOT NULL",
        (photograph,),
    )
    before = {(unpack_before(packed) or b"").decode("latin-1") for _, packed in written}
    return before | {digest.hex() for (digest, *_) in [*scanned, *written]}


def _holds_write(path: str, run: int, tags: Collection[str] | None, after: str) -> bool:
    """Whether a file is as a run wrote it, or a sidecar names the run for all its tags."""
    try:
        data = read_bytes(path)
    except UnreadableImage:
        return False
    if content_digest(data) == after:
        return True
    if not tags:  # a photograph, or a sidecar that only lost tags
        return False
    try:
        return {tag.tag for tag in provenance_of(data) if tag.run == str(run)} >= set(tags)
    except SidecarError:
        return False
