"""Undoing writes in files: byte for byte, or only the tags if somebody else wrote since."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tagkin.catalogue.database import Database
from tagkin.catalogue.source import FileUndone, UndoWrite
from tagkin.catalogue.sources.written_files import (
    find_backup,
    find_written,
    has_write,
    is_in_place,
    photographs_beside,
    store_own_change,
)
from tagkin.catalogue.target_paths import target_path
from tagkin.catalogue.write_records import PastWrite, Writes
from tagkin.collection.sidecars import (
    Embedded,
    ExifTool,
    Written,
    drop_copy,
    remove_scratch,
    restore,
    restore_embedded,
    revert_values,
    untag_copy,
)
from tagkin.errors import SidecarError, UnreadableImage
from tagkin.images import content_digest, read_bytes

__all__ = ["undo_in_folder"]

_LATER = "a later run wrote to it, too; only the changes of this run were undone"
_GONE = "not found; undo the run by its number when the file is back"


@contextlib.contextmanager
def undo_in_folder(database: Database, writes: Sequence[PastWrite]) -> Iterator[UndoWrite]:
    """Yield a function that undoes a write in its file; see `Source.open_undo`."""
    for folder in {path.parent for write in writes if (path := _safe_path(database, write))}:
        remove_scratch(folder)
    with ExifTool() as exiftool:

        def undo_write(write: PastWrite) -> FileUndone:
            undone = _undo_write(database, write, exiftool)
            if undone.how != "gone":
                photographs = [write.photograph]
                if write.backup is None:
                    photographs = photographs_beside(database, undone.file)
                store_own_change(database, photographs, undone.file)
            return undone

        yield undo_write


def _undo_write(database: Database, write: PastWrite, exiftool: ExifTool) -> FileUndone:
    """Undo a write in the file that has its mark; leave any other file alone."""
    file = find_written(database, write)
    if file is not None:
        return _FileUndo(database, replace(write, file=file), exiftool).restore()
    path = Writes(database).path_of(write)
    is_here = is_in_place(database, write.photograph)
    if is_here and write.backup is None and _is_as_before(path, write):
        return FileUndone(write.file, write.changed_tags, "already", "already as it was before")
    is_gone = database.value(
        "SELECT gone IS NOT NULL FROM photographs WHERE id = ?", (write.photograph,)
    )
    if not is_here and not is_gone:
        raise SidecarError(
            f"{path}: its photograph changed or moved since the last scan. Scan the folder, then "
            "undo again."
        )
    Writes(database).update(write.id, was_missed=True)
    if path.exists():
        raise SidecarError(
            f"{path}: it does not have the mark of run {write.run}, so its tags are somebody "
            "else's. It is unchanged."
        )
    return FileUndone(write.file, write.changed_tags, "gone", _GONE)


class _FileUndo:
    """Undoes one write, and removes it from the records of later writes to the file."""

    def __init__(self, database: Database, write: PastWrite, exiftool: ExifTool):
        self.database, self.write, self.exiftool = database, write, exiftool
        self.writes = Writes(database)
        self.path = target_path(database, write.file)

    def restore(self) -> FileUndone:
        write = self.write
        is_embedded = write.backup is not None
        later = [
            other
            for other in self.writes.later_than(write)
            if (other.backup is not None) == is_embedded
            and (other.photograph == write.photograph or has_write(self.path, other))
        ]
        # if only tagkin wrote since, later writes can still be undone byte for byte
        only_ours = bool(later) and _has_digest(_read(self.path), later[-1].after)
        if is_embedded:
            restored = restore_embedded(self._embedded(write), self.exiftool)
        else:
            restored = restore(self._sidecar())
        self.writes.disown(write, later)
        if not only_ours:
            return FileUndone(write.file, write.changed_tags, restored.how, restored.said)
        if is_embedded:
            self._forget_in_photograph(later)
        else:
            self._forget_in_sidecar(later)
        return FileUndone(write.file, write.changed_tags, restored.how, _LATER)

    def _forget_in_sidecar(self, later: Sequence[PastWrite]) -> None:
        """Remove this write from the saved states of later writes to the sidecar."""
        write = self.write
        former = [other.before for other in later]
        is_next = _has_digest(former[0], write.after)
        first = write.before if is_next else self._reverted(former[0])
        others = [self._reverted(data) for data in former[1:]]
        after_each = [*others, _read(self.path)]
        for i, (other, before, after) in enumerate(
            zip(later, [first, *others], after_each, strict=True)
        ):
            is_unchanged = i + 1 == len(later) or _has_digest(former[i + 1], other.after)
            digest = content_digest(after) if is_unchanged and after is not None else other.after
            modified = write.modified if is_next and i == 0 else other.modified
            self.writes.update(other.id, before=before, after=digest, modified=modified)

    def _forget_in_photograph(self, later: Sequence[PastWrite]) -> None:
        """Remove this write from the backups of later writes into the photograph."""
        changes = [self._embedded(other) for other in later]
        first, undone = changes[0], self._embedded(self.write)
        is_next = first.before_digest == self.write.after and _has_digest(
            _read(undone.backup), undone.before_digest
        )
        backups = [(undone.backup, undone.before_digest)] if is_next else []
        for change in changes[len(backups) :]:
            digest = untag_copy(change, undone, self.exiftool)
            backups.append((change.backup, digest))
        now = _read(first.path)
        for i, (other, (backup, before)) in enumerate(zip(later, backups, strict=True)):
            after = other.after
            if i + 1 == len(later):
                after = after if now is None else content_digest(now)
            elif after == changes[i + 1].before_digest:
                after = backups[i + 1][1]
            changed = {"before": before.encode(), "after": after, "backup": backup.name}
            self.writes.update(other.id, **changed)
        if is_next:
            drop_copy(first)

    def _sidecar(self) -> Written:
        write = self.write
        changes = tuple(write.added), write.modified, tuple(write.removed), write.mark
        return Written(self.path, write.before, write.after, *changes)

    def _embedded(self, write: PastWrite) -> Embedded:
        before = (write.before or b"").decode()
        recorded = self.writes.path_of(write).with_name(write.backup or self.path.name)
        backup = find_backup(self.path, recorded, before)
        changes = tuple(write.added), tuple(write.removed), write.mark
        return Embedded(self.path, backup, before, write.after, *changes)

    def _reverted(self, data: bytes | None) -> bytes | None:
        """Return a former content of the sidecar without this write."""
        try:
            return None if data is None else revert_values(data, self._sidecar())
        except SidecarError:
            return data


def _safe_path(database: Database, write: PastWrite) -> Path | None:
    try:
        return Writes(database).path_of(write)
    except SidecarError:
        return None


def _is_as_before(path: Path, write: PastWrite) -> bool:
    return path.exists() == (write.before is not None) and _read(path) == write.before


def _has_digest(data: bytes | None, digest: str) -> bool:
    return data is not None and content_digest(data) == digest


def _read(path: Path) -> bytes | None:
    try:
        return read_bytes(path, follow_links=False)
    except UnreadableImage:
        return None
