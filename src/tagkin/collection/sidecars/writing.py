"""Tags written into sidecars: all of a file or nothing of it, whatever happens meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tagkin.collection.sidecars.editing import Added, with_tags
from tagkin.collection.sidecars.fields import Provenance
from tagkin.collection.xmp import MAX_BYTES
from tagkin.errors import SidecarError, UnreadableImage
from tagkin.filesystem import is_scratch, remove_file, write_whole
from tagkin.images.files import content_digest, read_bytes, why

__all__ = [
    "Change",
    "Written",
    "add_tags",
    "left_alone",
    "put_sidecar",
    "read_sidecar",
    "remove_scratch",
]

PHOTOGRAPH = ".tagkin"  # in names of photographs that are being written
_ATTEMPTS = 5  # of a write that another program gets in the way of


@dataclass(frozen=True)
class Change:
    """What is about to be written into a sidecar.

    Attributes
    ----------
    path : Path
        The sidecar.
    before : bytes or None
        What stands there; None where there is no file.
    after : bytes
        What will stand there.
    added : tuple of pairs
        What is put in, as `tagkin.collection.sidecars.with_tags` says it.
    modified : int or None
        When what stands there was modified, in nanoseconds.
    """

    path: Path
    before: bytes | None
    after: bytes
    added: Added
    modified: int | None = None

    @property
    def after_digest(self) -> str:
        """SHA-256 of what will stand there."""
        return content_digest(self.after)


@dataclass(frozen=True)
class Written:
    """What was written into a sidecar, and all that is needed to take it back.

    Attributes
    ----------
    path : Path
    before : bytes or None
        What stood there before; None where there was no file.
    after_digest : str
        SHA-256 of what stands there now; empty where there is still no file.
    added : tuple of pairs
        What was put in; empty where the sidecar had all the tags, and was not written.
    merged : bool
        Whether it was not as the scan had found it, and was read again.
    modified : int or None
        When what stood there was modified, in nanoseconds.
    """

    path: Path
    before: bytes | None
    after_digest: str
    added: Added
    merged: bool = False
    modified: int | None = None


def add_tags(
    path: str | os.PathLike[str],
    tags: Iterable[str],
    provenance: Provenance,
    *,
    known: Iterable[str] = (),
    expected_digest: str | None = None,
    record: Callable[[Change], None] | None = None,
    photograph: str | os.PathLike[str] | None = None,
) -> Written:
    """Add tags to a sidecar, or make it.

    The file is read, changed and put in the place of the old one in one step that cannot be half
    done. If another program writes it meanwhile, it is read again.

    Parameters
    ----------
    path : path
        The sidecar, as `sidecar_for` gives it, with links resolved: no link is followed.
    tags, provenance, known
        As in `with_tags`.
    expected_digest : str, optional
        SHA-256 of the sidecar at the last scan, empty where there was none. Another content is
        no error: it is what is added to.
    record : function of a Change, optional
        Called when everything is ready and before the file is touched, so that what stands there
        can be kept. Called again if the file had to be read again. What it raises ends the write.
    photograph : path, optional
        The photograph. A new sidecar that root writes gets its owner.

    Raises
    ------
    SidecarError
        If the sidecar cannot be read, is not XMP, or cannot be written. It stands as it was.
    InvalidInput
        If a tag cannot be written.
    """
    path = Path(path)
    tags, known = list(tags), list(known)
    like = None if photograph is None else Path(photograph)
    for _ in range(_ATTEMPTS):
        modified = _modified(path)
        before = read_sidecar(path)
        found = "" if before is None else content_digest(before)
        merged = expected_digest is not None and found != expected_digest
        try:
            after, added = with_tags(before, tags, provenance, known)
        except SidecarError as error:
            raise left_alone(path, str(error)) from error
        if not added:
            return Written(path, before, found, (), merged, modified)
        change = Change(path, before, after, added, modified)
        if record is not None:
            record(change)
        if put_sidecar(path, before, after, like=like):
            return Written(path, before, change.after_digest, added, merged, modified)
    raise left_alone(path, "another program keeps writing to it")


def read_sidecar(path: Path) -> bytes | None:
    """The content of a sidecar; None where there is no file."""
    if not os.path.lexists(path):
        return None
    try:
        return read_bytes(path, MAX_BYTES, follow_links=False)
    except UnreadableImage as error:
        if not os.path.lexists(path):
            return None
        raise left_alone(path, str(error)) from error


def _modified(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def put_sidecar(
    path: Path,
    before: bytes | None,
    after: bytes,
    *,
    like: Path | None = None,
    modified: int | None = None,
) -> bool:
    """Write a sidecar in the place of what stood there; False if that is there no more.

    `like` and `modified` are as in `tagkin.filesystem.put_file`.

    Raises
    ------
    SidecarError
        If it cannot be written. What stood there is still there.
    """

    def check() -> None:
        if read_sidecar(path) != before:
            raise _Meanwhile

    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise left_alone(path, "it is protected from being written")
    try:
        write_whole(path, after, check, follow_links=False, like=like, modified=modified)
    except _Meanwhile:
        return False
    except OSError as error:
        if isinstance(error, SidecarError):
            raise
        raise left_alone(path, why(error)) from error
    return True


class _Meanwhile(Exception):
    """Another program wrote to the file."""


def left_alone(path: Path, reason: str) -> SidecarError:
    """The error for a sidecar that stays as it is."""
    return SidecarError(f"{path}: {reason}. It was left as it is.")


def _is_ours(name: str) -> bool:
    return is_scratch(name, ".xmp") or is_scratch(os.path.splitext(name)[0], PHOTOGRAPH)


def remove_scratch(folder: str | os.PathLike[str]) -> int:
    """Remove what killed writes left in a folder; how many files that were.

    To be called where no other process writes sidecars there.
    """
    n_removed = 0
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if _is_ours(entry.name)]
        for name in names:
            remove_file(Path(folder, name))
            n_removed += 1
    except OSError:
        return n_removed  # a folder that cannot be tidied is no reason to stop
    return n_removed
