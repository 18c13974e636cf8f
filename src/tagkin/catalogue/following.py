"""Writes that follow their photographs: what was moved, renamed or swapped can be taken back."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.database import sql_text
from tagkin.catalogue.texts import from_text
from tagkin.catalogue.writes import PastWrite, unpack_before
from tagkin.collection.sidecars import provenance_of
from tagkin.errors import SidecarError, UnreadableImage
from tagkin.images import content_digest, read_bytes

__all__ = [
    "Move",
    "embedded_writes",
    "is_of_another",
    "known_digests",
    "writes_follow",
    "writes_go_along",
]


class Move(NamedTuple):
    """What was at one path is at another that had a photograph, too."""

    photograph: int
    old: str
    """Its path, from the root."""
    now: int
    """The photograph that is at the other path."""
    new: str


def writes_follow(
    catalogue: Catalogue, connection: sqlite3.Connection, photograph: int, old: str, new: str
) -> None:
    """Know the files that a photograph took along when it was moved, so that they can be undone."""
    rows = connection.execute(
        "SELECT id, file FROM writes WHERE photograph = ? AND state IN ('planned', 'done')",
        (photograph,),
    ).fetchall()
    for number, file in rows:
        moved = _moved_along(file, old, new)
        if moved is None or os.path.lexists(catalogue.absolute(file)):
            continue
        if os.path.lexists(catalogue.absolute(moved)):
            connection.execute(
                "UPDATE writes SET file = CAST(? AS TEXT) WHERE id = ?", (sql_text(moved), number)
            )


def embedded_writes(connection: sqlite3.Connection) -> dict[str, int]:
    """Photographs that were written into, by the digests of what they hold since."""
    rows = connection.execute(
        "SELECT after, photograph FROM writes WHERE backup IS NOT NULL AND state = 'done'"
    )
    return {after.hex(): photograph for after, photograph in rows}


def _moved_along(file: str, old: str, new: str) -> str | None:
    """Where a photograph that is called `new` now would have a file; None where it was not its."""
    if file == old:
        return new
    name, suffix = os.path.splitext(file)
    if name == old:
        return new + suffix
    stem = os.path.splitext(old)[0]  # of img.xmp, and of img.cr2.xmp beside img.jpg
    if not file.startswith(f"{stem}.") or "/" in file[len(stem) :]:
        return None
    return os.path.splitext(new)[0] + file[len(stem) :]


def writes_go_along(
    catalogue: Catalogue, connection: sqlite3.Connection, moves: Iterable[Move]
) -> None:
    """Know the files of photographs that took each other's names, as of all at once.

    A file that stayed where it was, and holds what was written, is still the one.
    """
    changes = []
    for move in moves:
        rows = connection.execute(
            "SELECT id, run, file, tags, after, backup FROM writes "
            "WHERE photograph = ? AND state IN ('planned', 'done')",
            (move.photograph,),
        ).fetchall()
        for number, run, file, tags, after, backup in rows:
            moved = _moved_along(file, move.old, move.new)
            if moved is None or not os.path.lexists(catalogue.absolute(moved)):
                continue
            words = None if backup is not None else from_text(tags, list)
            if not _holds(catalogue.absolute(file), run, words, after.hex()):
                changes.append((move.now, sql_text(moved), number))
    connection.executemany(
        "UPDATE writes SET photograph = ?, file = CAST(? AS TEXT) WHERE id = ?", changes
    )


def is_of_another(catalogue: Catalogue, write: PastWrite) -> bool:
    """Whether a file may be that of another photograph now, which took the name of the write's.

    Nothing in it says that tagkin wrote it, and what the photograph is no scan has seen.
    """
    path = catalogue.absolute(write.file)
    words = None if write.backup is not None else write.tags
    if not os.path.lexists(path) or _holds(path, write.run, words, write.after):
        return False
    row = catalogue.row(
        "SELECT path FROM photographs WHERE id = ? AND gone IS NULL AND content IS NOT NULL",
        (write.photograph,),
    )
    if row is None or (now := _digest(catalogue.absolute(row[0]))) is None:
        return False
    return now not in known_digests(catalogue, write.photograph)


def known_digests(catalogue: Catalogue, photograph: int) -> set[str]:
    """Digests that tell a photograph: at the last scan, and before and after tags went into it."""
    scanned = catalogue.rows(
        "SELECT c.digest FROM photographs p JOIN contents c ON c.id = p.content WHERE p.id = ?",
        (photograph,),
    )
    written = catalogue.rows(
        "SELECT after, before FROM writes WHERE photograph = ? AND backup IS NOT NULL",
        (photograph,),
    )
    before = {(unpack_before(packed) or b"").decode("latin-1") for _, packed in written}
    return before | {digest.hex() for (digest, *_) in [*scanned, *written]}


def _holds(path: str, run: int, tags: Iterable[str] | None, after: str) -> bool:
    """Whether a file holds what a run wrote, or a sidecar says that it does."""
    try:
        data = read_bytes(path)
    except UnreadableImage:
        return False
    if content_digest(data) == after:
        return True
    if tags is None:
        return False
    try:
        said = {one.tag for one in provenance_of(data) if one.run == str(run)}
    except SidecarError:
        return False
    return said >= set(tags)


def _digest(path: str) -> str | None:
    try:
        return content_digest(read_bytes(path))
    except UnreadableImage:
        return None
