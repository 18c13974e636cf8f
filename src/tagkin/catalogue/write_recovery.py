"""Writes of killed runs: which were done, and which have to be done again."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tagkin.catalogue.database import Database
from tagkin.catalogue.seen_lists import store_own_change
from tagkin.catalogue.tag_records import TagNumbers
from tagkin.catalogue.write_records import PastWrite, Writes
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

__all__ = ["finish_writes"]


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
    with database.transaction() as connection:
        numbers = TagNumbers(connection)
    for write, path in unfinished:
        if _was_done(write, path):
            writes.end(write.id, "done", "its run was killed after this")
            store_own_change(database, [write.photograph], write.file, numbers)
        else:
            _drop_backup(write, path)
            writes.end(write.id, "failed", "its run was killed before this")
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
