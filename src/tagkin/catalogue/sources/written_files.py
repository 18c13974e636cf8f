"""Where the files of past writes are now, whatever names they have, and what killed runs wrote.

A write has a mark in `tagkin:Written` of its file. The file is the one that has this mark, at the
path where it was written or beside its photograph, which scans follow by its content. Nobody but
tagkin removes a mark from a file that still is as a later write left it. A write that adds no new
tag leaves no mark; its file is the one beside its photograph, if that has the content that the
catalogue knows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tagkin.catalogue.columns import sql_text, unpack_before
from tagkin.catalogue.database import Database
from tagkin.catalogue.photographs import path_of
from tagkin.catalogue.seen_lists import end_of_name, store_own_lists
from tagkin.catalogue.target_paths import target_path
from tagkin.catalogue.write_records import PastWrite, Writes
from tagkin.collection.keywords import read_file_lists
from tagkin.collection.sidecars import (
    Embedded,
    ExifTool,
    provenance_of,
    remove_scratch,
    restore_embedded,
    tags_of,
)
from tagkin.errors import SidecarError, UnreadableImage
from tagkin.images import content_digest, read_bytes
from tagkin.images.formats import raw_suffixes

__all__ = [
    "find_backup",
    "find_written",
    "finish_writes",
    "follow_writes",
    "has_write",
    "is_in_place",
    "known_digests",
    "photographs_beside",
    "store_own_change",
]


def find_written(database: Database, write: PastWrite) -> str | None:
    """Return the file of a write, from the root, or None if it is not found.

    Raises
    ------
    SidecarError
        If a link or a name in the catalogue leads elsewhere.
    """
    Writes(database).path_of(write)
    beside = list(_files_beside(path_of(database, write.photograph) or "", write.file))
    if not write.has_mark:
        files = [file for file in beside if os.path.lexists(database.absolute(file))]
        return files[0] if files and is_in_place(database, write.photograph) else None
    for file in dict.fromkeys((write.file, *beside)):
        later = Writes(database).later_than(replace(write, file=file))
        chain = {other.after for other in later if other.photograph == write.photograph}
        path = target_path(database, file)
        if has_write(path, write) or _digest(path) in chain:
            return file
    return None


def _digest(path: Path) -> str | None:
    try:
        return content_digest(read_bytes(path, follow_links=False))
    except UnreadableImage:
        return None


def has_write(path: Path, write: PastWrite) -> bool:
    """Whether a file has the mark of a write."""
    try:
        data = read_bytes(path, follow_links=False)
        if write.backup is not None:
            return write.mark.encode() in data
        return any(record.mark == write.mark for record in provenance_of(data))
    except (SidecarError, UnreadableImage):
        return False


def find_backup(path: Path, recorded: Path, digest: str) -> Path:
    """Return the backup of a photograph by its content, even if it was renamed with it."""
    names = os.listdir(path.parent) if path.parent.is_dir() else []
    renamed = sorted(name for name in names if name.startswith(f"{path.name}_original"))
    for backup in (recorded, *map(path.with_name, renamed)):
        if _digest(backup) == digest:
            return backup
    return recorded


def is_in_place(database: Database, photograph: int) -> bool:
    """Whether a photograph is at its path, with the content of the last scan or write."""
    path = path_of(database, photograph, exists=True)
    if path is None:
        return False
    return _digest(target_path(database, path)) in known_digests(database, photograph)


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
    before = {unpack_before(packed).decode("latin-1") for _, packed in written}
    return before | {digest.hex() for (digest, *_) in [*scanned, *written]}


def follow_writes(database: Database, photograph: int, path: str) -> None:
    """Update the write records of a photograph that moved to a path with its sidecars."""
    for write in Writes(database).of_photograph(photograph):
        if write.backup is not None:
            continue  # the photograph itself is followed
        for file in _files_beside(path, write.file):
            whole = Path(database.absolute(file))
            is_only_one = not os.path.lexists(database.absolute(write.file))
            if has_write(whole, write) or (not write.has_mark and is_only_one and whole.exists()):
                Writes(database).update(write.id, file=file)
                break


def photographs_beside(database: Database, file: str) -> list[int]:
    """Return the existing photographs that a sidecar belongs to by its name."""
    stems = {os.path.splitext(file)[0], os.path.splitext(os.path.splitext(file)[0])[0]}
    rows = [
        row
        for stem in stems
        for row in database.rows(
            "SELECT id, path FROM photographs WHERE gone IS NULL "
            "AND path >= CAST(? AS TEXT) AND path < CAST(? AS TEXT)",
            (sql_text(stem), sql_text(f"{stem}/")),
        )
    ]
    return sorted({number for number, path in rows if file in _files_beside(path, file)})


def store_own_change(database: Database, photographs: Iterable[int], file: str) -> None:
    """Store the lists that a write or an undo left in a file, from the root."""
    try:
        path = target_path(database, file)
        read = read_file_lists(path) if os.path.lexists(path) else None
    except (SidecarError, UnreadableImage):
        return
    with database.transaction():
        for photograph in photographs:
            own = path_of(database, photograph) or ""
            store_own_lists(database, photograph, end_of_name(file, own), read)


def _files_beside(photograph: str, file: str) -> Iterator[str]:
    """Yield the paths that a file like this one can have beside a photograph."""
    name, end = os.path.splitext(file)
    stem = os.path.splitext(photograph)[0]
    if end.lower() != ".xmp":
        is_photograph = end.lower() == os.path.splitext(photograph)[1].lower()
        yield photograph if is_photograph else stem + end
        return
    yield photograph + end
    yield stem + end
    raw = os.path.splitext(name)[1]  # of img.cr2.xmp beside img.jpg
    if raw.lower() in raw_suffixes():
        yield stem + raw + end


# --- writes of killed runs ---------------------------------------------------------------


def finish_writes(database: Database) -> int:
    """Find out which writes of killed runs were done; return how many there were.

    The others can be written again. Files that cannot be reached, for example on a disconnected
    drive, stay unfinished.
    """
    writes = Writes(database)
    unfinished = []
    for write in writes.unfinished():
        with suppress(SidecarError):  # never touch a file outside the collection
            if not writes.vanished_photograph(write):
                unfinished.append((write, writes.path_of(write)))
    for folder in {path.parent for _, path in unfinished}:
        remove_scratch(folder)
    if not unfinished:
        return 0
    for write, path in unfinished:
        if _was_done(write, path):
            writes.update(write.id, state="done", note="its run was killed after this")
            store_own_change(database, [write.photograph], write.file)
        else:
            _drop_backup(write, path)
            writes.update(write.id, state="failed", note="its run was killed before this")
    return len(unfinished)


def _was_done(write: PastWrite, path: Path) -> bool:
    """Whether a file has the planned content, or at least the mark of the write."""
    try:
        data = read_bytes(path, follow_links=False)
    except UnreadableImage:
        return False
    if content_digest(data) == write.after:
        return True
    if write.backup is not None:
        return False
    try:
        if write.removed_tags and not write.tags:
            return not set(write.removed_tags) & set(tags_of(data))
        return any(record.mark == write.mark for record in provenance_of(data))
    except SidecarError:
        return False


def _drop_backup(write: PastWrite, path: Path) -> None:
    """Remove the backup of a photograph that was not written after all."""
    if write.backup is not None and path.is_file():
        before = (write.before or b"").decode()
        if content_digest(read_bytes(path, follow_links=False)) == before:
            backup = path.with_name(write.backup)
            with ExifTool() as exiftool:
                restore_embedded(Embedded(path, backup, before, write.after, ()), exiftool)
