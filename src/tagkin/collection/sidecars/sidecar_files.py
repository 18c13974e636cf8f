"""Write tags into sidecars and undo it, atomically and without losing other programs' changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tagkin.collection.sidecars.editing import (
    NEW,
    Added,
    drop_tags,
    put_back_values,
    with_tags,
    without_tags,
)
from tagkin.collection.sidecars.tag_fields import Provenance
from tagkin.collection.xmp import MAX_BYTES
from tagkin.errors import SidecarError, UnreadableImage
from tagkin.filesystem import is_scratch, remove_file, write_without_links
from tagkin.images.image_files import content_digest, read_bytes, why

__all__ = [
    "Restored",
    "Written",
    "add_tags",
    "explain_errors",
    "remove_scratch",
    "restore",
    "revert_values",
    "unchanged_error",
]

PHOTOGRAPH = ".tagkin"  # in names of unfinished photographs
_ATTEMPTS = 5  # while another program writes to the same sidecar
_SENTENCES = {
    "restored": "restored byte for byte",
    "removed": "removed, because it did not exist before",
    "already": "already as it was before",
    "gone": "somebody removed it since; nothing to undo",
    "untagged": "somebody changed it since; only tagkin's own changes were undone",
    "kept": "somebody changed it since and undid tagkin's changes",
}


@dataclass(frozen=True)
class Written:
    """A past or upcoming write to a sidecar, with all that is needed to undo it."""

    path: Path
    before: bytes | None
    """The former content; None if there was no file."""
    after_digest: str
    """SHA-256 of the new content; empty if there is still no file."""
    added: Added
    """Properties and texts, from `with_tags`; empty if the sidecar had all tags already."""
    modified: int | None = None
    """The former modification time, in nanoseconds."""
    removed: Added = ()
    """Properties and texts that were removed, from `drop_tags`."""
    mark: str = ""
    """As in `Provenance`."""


def add_tags(
    path: str | os.PathLike[str],
    tags: Iterable[str],
    provenance: Provenance,
    *,
    known: Iterable[str] | None = None,
    align: bool = False,
    remove: Iterable[str] = (),
    record: Callable[[Written], None] | None = None,
    photograph: str | os.PathLike[str] | None = None,
) -> Written:
    """Add tags to an existing or new sidecar as `with_tags` does, and remove others.

    The new file replaces the old file atomically. If another program writes it meanwhile, this
    starts again from the new content. A `SidecarError` says that the sidecar cannot be read, is not
    XMP, or cannot be written, and is unchanged.

    No link in `path` is followed. The tags `remove` are removed, whoever wrote them. `record` is
    called before each attempt to replace the file; an exception from it stops the write. If root
    writes a new sidecar, it gets the owner of the `photograph`.
    """
    path = Path(path)
    tags, remove = list(tags), list(remove)
    known = None if known is None else list(known)
    like = None if photograph is None else Path(photograph)
    for _ in range(_ATTEMPTS):
        modified = None
        with suppress(OSError):
            modified = path.stat().st_mtime_ns
        before = _read(path)
        digest = "" if before is None else content_digest(before)
        try:
            left, removed = drop_tags(before, remove) if before and remove else (before, ())
            after, added = with_tags(left, tags, provenance, known, align=align)
        except SidecarError as error:
            raise unchanged_error(path, str(error)) from error
        if not added and not removed:
            return Written(path, before, digest, (), modified)
        changes = added, modified, removed, provenance.mark
        written = Written(path, before, content_digest(after), *changes)
        if record is not None:
            record(written)
        if _put(path, before, after, like=like):
            return written
    raise unchanged_error(path, "another program keeps writing to it")


# --- undoing -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Restored:
    """The result of undoing a write, in a word and in a sentence."""

    path: Path
    how: str

    @property
    def said(self) -> str:
        """The result in words."""
        return _SENTENCES[self.how]


def restore(written: Written) -> Restored:
    """Undo a write of `add_tags`.

    A sidecar that nobody changed since gets every byte and its modification time back, or is
    removed if it did not exist. Otherwise only the added texts are removed and the removed texts
    added, and a sidecar that tagkin created and that is empty now is removed. A second call changes
    nothing.

    A `SidecarError` says that the sidecar cannot be read, parsed or written, and is unchanged.
    """
    path, before = written.path, written.before
    for _ in range(_ATTEMPTS):
        now = _read(path)
        if now == before:
            return Restored(path, "already")
        if now is None:
            return Restored(path, "gone")
        if content_digest(now) == written.after_digest:
            if before is None:
                if _remove(path, now):
                    return Restored(path, "removed")
            elif _put(path, now, before, modified=written.modified):
                return Restored(path, "restored")
            continue
        try:
            cleaned = revert_values(now, written)
        except SidecarError as error:
            raise unchanged_error(path, f"somebody changed it since, and {error}") from error
        if cleaned == now:
            return Restored(path, "kept")
        if cleaned == NEW:  # another catalogue created it, and its tags are gone
            if _remove(path, now):
                return Restored(path, "removed")
        elif _put(path, now, cleaned):
            return Restored(path, "untagged")
    raise unchanged_error(path, "another program keeps writing to it")


def revert_values(xml: bytes, written: Written) -> bytes:
    """Undo a write in the content of a sidecar that has other changes, too."""
    cleaned = without_tags(xml, written.added, written.mark)
    if written.before is None:
        return cleaned
    return put_back_values(cleaned, written.removed, written.before)


def _remove(path: Path, now: bytes) -> bool:
    """Remove a sidecar; return False if its content has changed."""
    if _read(path) != now:
        return False
    with explain_errors(path):
        remove_file(path)
    return True


# --- files -------------------------------------------------------------------------------


def _read(path: Path) -> bytes | None:
    """Return the content of a sidecar, or None if there is no file."""
    if not os.path.lexists(path):
        return None
    try:
        return read_bytes(path, MAX_BYTES, follow_links=False)
    except UnreadableImage as error:
        if not os.path.lexists(path):
            return None
        raise unchanged_error(path, str(error)) from error


def _put(
    path: Path,
    before: bytes | None,
    after: bytes,
    *,
    like: Path | None = None,
    modified: int | None = None,
) -> bool:
    """Replace the content `before` of a sidecar; return False if it has other content.

    `like` and `modified` are as in `tagkin.filesystem.replace_file`.
    """

    def check() -> None:
        if _read(path) != before:
            raise _ConcurrentWrite

    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise unchanged_error(path, "it is write-protected")
    try:
        with explain_errors(path):
            write_without_links(path, after, check, like=like, modified=modified)
    except _ConcurrentWrite:
        return False
    return True


class _ConcurrentWrite(Exception):
    """Another program wrote to the file."""


def unchanged_error(path: Path, reason: str) -> SidecarError:
    """Return the error for a file that stays unchanged."""
    return SidecarError(f"{path}: {reason}. It is unchanged.")


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn errors of the system into a `SidecarError` that says that the file is unchanged."""
    try:
        yield
    except SidecarError:
        raise
    except OSError as error:
        raise unchanged_error(path, why(error)) from error
    except UnreadableImage as error:
        raise unchanged_error(path, str(error)) from error


def remove_scratch(folder: str | os.PathLike[str]) -> int:
    """Remove unfinished files of killed writes from a folder; return their number.

    Call it only while no other process writes sidecars there.
    """
    n_removed = 0
    with suppress(OSError):  # unfinished files do no harm
        for name in os.listdir(folder):
            if is_scratch(name, ".xmp") or is_scratch(os.path.splitext(name)[0], PHOTOGRAPH):
                remove_file(Path(folder, name))
                n_removed += 1
    return n_removed
