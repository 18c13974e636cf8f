"""Tags written into photographs themselves, through exiftool; only for those who ask for it.

exiftool makes a new file, and the photograph as it was stays beside it under the name that exiftool
gives its backups, ``img.jpg_original``. To take a write back is to give that file its name again:
the same file, with every byte and its times.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tagkin.collection.sidecars.editing import Added
from tagkin.collection.sidecars.exiftool import ExifTool, ExifToolError
from tagkin.collection.sidecars.fields import (
    PROVENANCE,
    checked_tags,
    has_tag,
)
from tagkin.collection.sidecars.inside import READING, Inside
from tagkin.collection.sidecars.undo import Restored
from tagkin.collection.sidecars.writing import PHOTOGRAPH, left_alone
from tagkin.errors import SidecarError, UnreadableImage
from tagkin.filesystem import keep_copy, put_back, put_file, remove_file, scratch_name
from tagkin.images.files import content_digest, read_bytes, why

__all__ = ["Embedded", "drop_copy", "embed_tags", "restore_embedded", "untag_copy"]


@dataclass(frozen=True)
class Embedded:
    """What was, or is about to be, written into a photograph, and what takes it back.

    Attributes
    ----------
    path, backup : Path
        The photograph, and the photograph as it was.
    before_digest, after_digest : str
        SHA-256 of the two.
    added : tuple of pairs
        What was put in; empty where it had all the tags, and was not written.
    """

    path: Path
    backup: Path
    before_digest: str
    after_digest: str
    added: Added


def embed_tags(
    path: str | os.PathLike[str],
    tags: Iterable[str],
    exiftool: ExifTool,
    *,
    known: Iterable[str] = (),
    record: Callable[[Embedded], None] | None = None,
) -> Embedded:
    """Add tags to the XMP inside a photograph, and to its IPTC keywords if it has any.

    Parameters
    ----------
    path : path
        The photograph, in a format that exiftool writes, with links resolved.
    tags, known
        As in `tagkin.collection.sidecars.with_tags`.
    exiftool : ExifTool
        One for all photographs.
    record : function of an Embedded, optional
        Called when the new file is ready, and before the photograph is touched.

    Raises
    ------
    SidecarError
        If it cannot be written. It stands as it was.
    """
    path = Path(path)
    before = _digest(path)
    there = _inside(path, exiftool)
    new = [tag for tag in checked_tags(tags) if not has_tag(there.tags, tag)]
    if not new:
        return Embedded(path, path, before, before, ())
    added = there.missing(new, known)
    backup = _backup_for(path)
    with _changed(path, there.additions(added), exiftool) as scratch:
        got = _inside(scratch, exiftool)
        if not got.has(added) or not all(has_tag(got.tags, tag) for tag in new):
            raise left_alone(path, "exiftool did not write every tag")
        # which tags were written, for the undo; the photograph itself does not say so
        said = added + tuple((PROVENANCE.name, t) for t in new)
        change = Embedded(path, backup, before, _digest(scratch), said)
        if record is not None:
            record(change)
        _put(scratch, path, backup, before)
    return change


def restore_embedded(written: Embedded, exiftool: ExifTool) -> Restored:
    """Take back what `embed_tags` wrote.

    A photograph that nobody wrote to since is the file that it was before. Where somebody did,
    only the tags are taken out, and the photograph as it was stays beside it.

    Raises
    ------
    SidecarError
        If it cannot be read or written. It stands as it was.
    """
    path, backup = written.path, written.backup
    if not path.exists():
        return Restored(path, "gone")
    now = _digest(path)
    try:
        if now == written.before_digest:
            if backup != path and backup.exists() and _digest(backup) == now:
                remove_file(backup)
            return Restored(path, "already")
        if now == written.after_digest and _is(backup, written.before_digest):
            put_back(backup, path)
            return Restored(path, "restored")
    except OSError as error:
        raise left_alone(path, why(error)) from error
    cut = _cut(path, written.added, exiftool)
    if not cut:
        return Restored(path, "kept")
    with _changed(path, cut, exiftool) as scratch:
        _put(scratch, path, None, now)
    return Restored(path, "untagged")


def untag_copy(written: Embedded, added: Added, exiftool: ExifTool) -> str:
    """Take what an earlier write had added out of the photograph that a later one keeps.

    Returns
    -------
    before_digest : str
        Of what the later write is taken back to now. A copy that is not there, or that somebody
        wrote to, is left alone.
    """
    copy, before = written.backup, written.before_digest
    if not _is(copy, before) or not (cut := _cut(copy, added, exiftool)):
        return before
    with _changed(copy, cut, exiftool, written.path.suffix) as scratch:
        _put(scratch, copy, None, before)
    return _digest(copy)


def drop_copy(written: Embedded) -> None:
    """Remove the photograph that a write keeps, where nobody wrote to it."""
    if written.backup != written.path and _is(written.backup, written.before_digest):
        try:
            remove_file(written.backup)
        except OSError as error:
            raise left_alone(written.backup, why(error)) from error


# --- files -------------------------------------------------------------------------------


def _digest(path: Path) -> str:
    try:
        return content_digest(read_bytes(path, follow_links=False))
    except UnreadableImage as error:
        raise left_alone(path, str(error)) from error


def _is(path: Path, digest: str) -> bool:
    return path.exists() and _digest(path) == digest


def _backup_for(path: Path) -> Path:
    """A name for the photograph as it is; one that is taken is somebody's, whatever it holds."""
    n = 1
    while True:
        backup = path.with_name(f"{path.name}_original{n if n > 1 else ''}")
        if not os.path.lexists(backup):
            return backup
        n += 1


def _put(scratch: Path, path: Path, backup: Path | None, before: str) -> None:
    """Give a new file the photograph's name, and keep the photograph if it is to be kept."""

    def check() -> None:
        if _digest(path) != before:
            raise left_alone(path, "another program wrote to it meanwhile")

    if not os.access(path, os.W_OK):
        raise left_alone(path, "it is protected from being written")
    kept = False
    try:
        if backup is not None:
            if os.path.lexists(backup):
                raise left_alone(path, f"another program made {backup.name} meanwhile")
            keep_copy(path, backup)
            kept = True
        put_file(scratch, path, check, follow_links=False)
    except OSError as error:
        if backup is not None and kept:
            with contextlib.suppress(OSError):
                remove_file(backup)
        if isinstance(error, SidecarError):
            raise
        raise left_alone(path, why(error)) from error


# --- exiftool ----------------------------------------------------------------------------


@contextlib.contextmanager
def _changed(
    path: Path, changes: Sequence[str], exiftool: ExifTool, suffix: str | None = None
) -> Iterator[Path]:
    """A copy of a photograph that exiftool made, with changes, for as long as it is needed.

    `suffix` is that of the photograph where the file at the path has another one.
    """
    # exiftool goes by the suffix
    end = f"{PHOTOGRAPH}-{secrets.token_hex(8)}{path.suffix if suffix is None else suffix}"
    scratch = path.with_name(scratch_name(path.stem, end, 255 - len("_exiftool_tmp")))
    try:
        # -o takes %f and others for parts of the name, and has no escape
        if "%" in str(scratch) or suffix is not None:
            try:
                shutil.copyfile(path, scratch)
            except OSError as error:
                raise left_alone(path, why(error)) from error
            _said(exiftool, path, *changes, "-overwrite_original", str(scratch))
        else:
            _said(exiftool, path, *changes, "-o", str(scratch), str(path))
        yield scratch
    finally:
        with contextlib.suppress(OSError):
            scratch.unlink()


def _inside(path: Path, exiftool: ExifTool) -> Inside:
    return Inside.of(_said(exiftool, path, *READING, str(path)))


def _cut(path: Path, added: Added, exiftool: ExifTool) -> list[str]:
    """What exiftool is told to take out again, as far as it is there."""
    return _inside(path, exiftool).removals(added)


def _said(exiftool: ExifTool, path: Path, *arguments: str) -> str:
    """What exiftool says to a command on a photograph, or that it could not use it."""
    try:
        return exiftool.run(*arguments)
    except ExifToolError as error:
        raise left_alone(path, f"exiftool could not use it ({error})") from error
