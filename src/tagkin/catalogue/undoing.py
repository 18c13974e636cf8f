"""A run taken back: its files as they were, its decisions open again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.decisions import OnTag, open_again, take_back
from tagkin.catalogue.following import is_of_another
from tagkin.catalogue.found import TagNumbers
from tagkin.catalogue.runs import PastRun, last_undoable, past_run
from tagkin.catalogue.targets import written_path
from tagkin.catalogue.writes import (
    PastWrite,
    changed_write,
    later_writes,
    undone_write,
    vanished,
    writes_of,
)
from tagkin.catalogue.writing import finish_writes, note_tags
from tagkin.collection import Progress
from tagkin.collection.sidecars import (
    Embedded,
    ExifTool,
    Restored,
    drop_copy,
    remove_scratch,
    restore,
    restore_embedded,
    untag_copy,
    without_tags,
)
from tagkin.errors import InvalidInput, SidecarError, UnreadableImage
from tagkin.images import Failure, content_digest, read_bytes

__all__ = ["FileUndone", "Undone", "undo_run"]

_LATER = "a later run wrote to it, too; only the tags of this run were taken out"


@dataclass(frozen=True)
class FileUndone:
    """What came of taking back one write."""

    file: str
    """From the root."""
    tags: Sequence[str]
    how: str
    """As in `tagkin.collection.sidecars.Restored`, or "to undo" in a dry run."""
    said: str = ""
    """The same in a person's words."""

    def to_dict(self) -> dict[str, Any]:
        """The same as a plain dict, ready for JSON."""
        return asdict(self)


@dataclass
class Undone:
    """What came of taking back a run."""

    undoes: PastRun
    run: int | None = None
    """Its own number; None where nothing was taken back."""
    files: list[FileUndone] = field(default_factory=list)
    decisions: list[OnTag] = field(default_factory=list)
    n_kept: int = 0
    """How many decisions of the run later decisions had replaced; the later ones stay."""
    failures: list[Failure] = field(default_factory=list)

    @property
    def not_exact(self) -> list[FileUndone]:
        """Files that somebody else wrote to since: only tags were taken out."""
        return [one for one in self.files if one.how in ("untagged", "kept", "gone")]


def undo_run(
    catalogue: Catalogue,
    number: int | None = None,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Undone:
    """Take back a run: what it wrote into files, or what it decided.

    Files get every byte back, or go where there were none. One that somebody wrote to since keeps
    what they wrote, and only the tags go. What goes wrong with one file is that file's failure; the
    same command tries it again.

    Parameters
    ----------
    catalogue : Catalogue
        Open for writing, unless it is a dry run.
    number : int, optional
        The run; by default the last one that wrote or decided something that still stands.
    dry_run : bool, default False
        Take nothing back; say what would be.

    Raises
    ------
    InvalidInput
        If there is no such run, or nothing of it is left to take back.
    """
    if not dry_run:
        finish_writes(catalogue)
    found = last_undoable(catalogue) if number is None else past_run(catalogue, number)
    if found is None:
        raise InvalidInput(
            "There is nothing to undo: no run decided or wrote anything that still stands."
        )
    writes = [one for one in writes_of(catalogue, found.id) if one.state in ("done", "planned")]
    if writes:
        return _undo_writes(catalogue, found, writes[::-1], dry_run, progress)
    if found.what == "write":
        raise InvalidInput(f"All that run {found.id} wrote was taken back already.")
    taken = take_back(catalogue, found.id, dry_run=dry_run)
    return Undone(found, taken.run, decisions=list(taken.each), n_kept=taken.n_kept)


def _undo_writes(
    catalogue: Catalogue,
    found: PastRun,
    writes: Sequence[PastWrite],
    dry_run: bool,
    progress: Progress | None,
) -> Undone:
    result = Undone(found)
    if dry_run:
        result.files = [FileUndone(one.file, one.tags, "to undo") for one in writes]
        return result
    for folder in {path.parent for one in writes if (path := _reached(catalogue, one))}:
        remove_scratch(folder)
    with catalogue.transaction() as connection:
        numbers = TagNumbers(connection)
    with catalogue.run("undo", {"run": found.id}, undoes=found.id) as run, ExifTool() as exiftool:
        result.run = run.id
        for i, write in enumerate(writes):
            if progress is not None:
                progress("Taking back", i, len(writes))
            try:
                back = _restored(catalogue, write, exiftool)
            except (SidecarError, InvalidInput) as error:
                result.failures.append(Failure(catalogue.absolute(write.file), str(error)))
                continue
            undone_write(catalogue, write.id, run.id, back.said)
            if write.backup is None:
                note_tags(catalogue, write.photograph, write.file, numbers)
                with catalogue.transaction() as connection:
                    open_again(connection, write.photograph, {numbers[tag] for tag in write.tags})
            result.files.append(back)
        if progress is not None:
            progress("Taking back", len(writes), len(writes))
        run.outcome |= {"files": len(result.files), "failures": len(result.failures)}
    return result


def _restored(catalogue: Catalogue, write: PastWrite, exiftool: ExifTool) -> FileUndone:
    if photograph := vanished(catalogue, write):
        raise SidecarError(f"{photograph}: vanished. Scan the folder, then undo again.")
    path = written_path(catalogue, write)
    if is_of_another(catalogue, write):
        raise SidecarError(
            f"{path}: its photograph changed since the last scan, and may be another one. "
            "Scan the folder, then undo again."
        )
    later = [one for one in later_writes(catalogue, write) if _same_way(one, write)]
    was = _read(path) if later else None
    if write.backup is not None:
        back = restore_embedded(_embedded(catalogue, write), exiftool)
        if was is None or not _is_left(later[-1].after, was):
            return _said(write, back)
        _forget_inside(catalogue, write, later, exiftool)
        return FileUndone(write.file, write.tags, back.how, _LATER)
    back = restore(path, write.before, write.after, write.added, write.modified)
    if was is None or not _is_left(later[-1].after, was):
        return _said(write, back)
    # nobody but tagkin wrote since: what it wrote later can still be taken back to the byte
    _forget_among(catalogue, write, later, _read(path))
    return FileUndone(write.file, write.tags, back.how, _LATER)


def _reached(catalogue: Catalogue, write: PastWrite) -> Path | None:
    try:
        return written_path(catalogue, write)
    except SidecarError:
        return None


def _said(write: PastWrite, back: Restored) -> FileUndone:
    return FileUndone(write.file, write.tags, back.how, back.said)


def _forget_among(
    catalogue: Catalogue, write: PastWrite, later: Sequence[PastWrite], now: bytes | None
) -> None:
    """Let later writes to a file have a past in which a write that was taken back never was."""
    pasts = [one.before for one in later]
    is_next = _is_left(write.after, pasts[0])
    first = write.before if is_next else _without(pasts[0], write)
    others = [_without(past, write) for past in pasts[1:]]
    for one, before, follows, after in zip(
        later, [first, *others], [*pasts[1:], None], [*others, now], strict=True
    ):
        is_left = one is later[-1] or _is_left(one.after, follows)
        digest = content_digest(after) if is_left and after is not None else one.after
        modified = write.modified if is_next and one is later[0] else one.modified
        changed_write(catalogue, one.id, before, digest, modified=modified)


def _forget_inside(
    catalogue: Catalogue, write: PastWrite, later: Sequence[PastWrite], exiftool: ExifTool
) -> None:
    """The same of writes into a photograph: each keeps the photograph as it was before it."""
    written = [_embedded(catalogue, one) for one in later]
    first, taken = written[0], _embedded(catalogue, write)
    is_next = first.before_digest == write.after and _is_left(
        taken.before_digest, _read(taken.backup)
    )
    pasts = [(taken.backup, taken.before_digest)] if is_next else []
    for each in written[len(pasts) :]:
        pasts.append((each.backup, untag_copy(each, tuple(write.added), exiftool)))
    now = _read(first.path)
    for i, (one, (backup, before)) in enumerate(zip(later, pasts, strict=True)):
        after = one.after
        if one is later[-1]:
            after = after if now is None else content_digest(now)
        elif after == written[i + 1].before_digest:
            after = pasts[i + 1][1]
        changed_write(catalogue, one.id, before.encode(), after, backup.name)
    if is_next:
        drop_copy(first)  # of what never was


def _embedded(catalogue: Catalogue, write: PastWrite) -> Embedded:
    path = written_path(catalogue, write)
    before = (write.before or b"").decode()
    backup = path.with_name(write.backup or path.name)
    return Embedded(path, backup, before, write.after, tuple(write.added))


def _same_way(one: PastWrite, other: PastWrite) -> bool:
    """Whether both went into a photograph, or both into a sidecar."""
    return (one.backup is None) == (other.backup is None)


def _is_left(digest: str, data: bytes | None) -> bool:
    """Whether a file holds what was written, and nobody wrote since."""
    return data is not None and content_digest(data) == digest


def _without(data: bytes | None, write: PastWrite) -> bytes | None:
    try:
        return data if data is None else without_tags(data, write.added)
    except SidecarError:
        return data


def _read(path: Path) -> bytes | None:
    try:
        return read_bytes(path, follow_links=False)
    except UnreadableImage:
        return None
