"""Write tags into photographs with exiftool, if the user asks for it.

exiftool writes a new file. The original stays as ``img.jpg_original``, the name of exiftool's own
backups. Undoing a write renames that file back, with every byte and its times.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tagkin.collection.levels import tidy
from tagkin.collection.sidecars.editing import Added
from tagkin.collection.sidecars.exiftool import ExifTool, ExifToolError
from tagkin.collection.sidecars.inside import READING, Inside, drop_mark, forget_tags, mark_tags
from tagkin.collection.sidecars.sidecar_files import (
    PHOTOGRAPH,
    Restored,
    explain_errors,
    unchanged_error,
)
from tagkin.collection.sidecars.tag_fields import (
    PROVENANCE,
    check_tags,
    has_tag,
    marked_values,
)
from tagkin.filesystem import keep_backup, put_back, remove_file, replace_file, scratch_name
from tagkin.images.image_files import content_digest, read_bytes

__all__ = ["Embedded", "drop_copy", "embed_tags", "has_mark", "restore_embedded", "untag_copy"]


@dataclass(frozen=True)
class Embedded:
    """A past or upcoming write to a photograph, with all that is needed to undo it."""

    path: Path
    backup: Path
    """The original of the photograph."""
    before_digest: str
    after_digest: str
    """SHA-256 of the photograph after the write."""
    added: Added
    """Properties and texts; empty if the photograph had all tags already."""
    removed: Added = ()
    """Properties and texts that were removed."""
    mark: str = ""
    """As in `Provenance`."""


def embed_tags(
    path: str | os.PathLike[str],
    tags: Iterable[str],
    exiftool: ExifTool,
    *,
    known: Iterable[str] | None = None,
    align: bool = False,
    remove: Iterable[str] = (),
    mark: str,
    record: Callable[[Embedded], None] | None = None,
) -> Embedded:
    """Add tags to the XMP inside a photograph, and to its IPTC keywords if it has any.

    Links in `path` are resolved. `tags`, `known` and `align` are as in `with_tags`. The tags
    `remove` are removed. `mark` is as in `Provenance`. `record` is called when the new file is
    ready, before the photograph changes. A `SidecarError` says that it cannot be written, and is
    unchanged.
    """
    path = Path(path)
    before = _digest(path)
    existing = _read_inside(path, exiftool)
    new = [tag for tag in check_tags(tags) if not has_tag(existing.tags, tag)]
    removed = existing.values_of(remove)
    left = existing.without(removed)
    added = left.missing(new, known) if new or align else ()
    if not added and not removed:
        return Embedded(path, path, before, before, ())
    backup = _backup_for(path)
    changes = [*existing.removals(removed), *left.additions(added)]
    changes += [*forget_tags(removed), *mark_tags(new, mark)]
    with _changed_copy(path, changes, exiftool) as scratch:
        written = _read_inside(scratch, exiftool)
        if not written.has(added) or not all(has_tag(written.tags, tag) for tag in new):
            raise unchanged_error(path, "exiftool did not write every tag")
        # a name that one tag loses may be the end of another tag that is added
        if any(written.holds(*pair) for pair in removed if pair not in added):
            raise unchanged_error(path, "exiftool did not remove every tag")
        added += tuple((PROVENANCE.name, tag) for tag in new)
        change = Embedded(path, backup, before, _digest(scratch), added, removed, mark)
        if record is not None:
            record(change)
        _replace(scratch, path, backup, before)
    return change


def restore_embedded(written: Embedded, exiftool: ExifTool) -> Restored:
    """Undo a write of `embed_tags`.

    If nobody changed the photograph since, the original file gets its name back. Otherwise only
    the tags are removed, and the original stays beside the photograph. A `SidecarError` says that
    it cannot be read or written, and is unchanged.
    """
    path, backup = written.path, written.backup
    if not path.exists():
        return Restored(path, "gone")
    now = _digest(path)
    with explain_errors(path):
        if now == written.before_digest:
            if backup != path and backup.exists() and _digest(backup) == now:
                remove_file(backup)
            return Restored(path, "already")
        if now == written.after_digest and _has_digest(backup, written.before_digest):
            put_back(backup, path)
            return Restored(path, "restored")
    changes = _changes_back(path, written, exiftool)
    if not changes:
        return Restored(path, "kept")
    with _changed_copy(path, changes, exiftool) as scratch:
        _replace(scratch, path, None, now)
    return Restored(path, "untagged")


def _changes_back(path: Path, written: Embedded, exiftool: ExifTool) -> list[str]:
    """Return exiftool's arguments that undo a write in a photograph that has other changes.

    A photograph without the mark keeps all of its keywords: they are a person's.
    """
    now = _read_inside(path, exiftool)
    missing = [pair for pair in written.removed if not now.holds(*pair)]
    changes = now.additions(tuple(missing))
    if written.mark and has_mark(path, written.mark):
        tags = {tidy(tag) for name, tag in written.added if name == PROVENANCE.name}
        ours = tuple(marked_values(written.added, tags))
        changes = [*now.removals(ours), *changes, *drop_mark(written.mark)]
    return changes


def has_mark(path: Path, mark: str) -> bool:
    """Whether a photograph has the mark of a write."""
    with explain_errors(path):
        return mark.encode() in read_bytes(path, follow_links=False)


def untag_copy(written: Embedded, earlier: Embedded, exiftool: ExifTool) -> str:
    """Undo an earlier write in the original that a later write keeps.

    Return the new digest of that original. A missing or changed original is not touched.
    """
    backup, before = written.backup, written.before_digest
    if not _has_digest(backup, before):
        return before
    changes = _changes_back(backup, earlier, exiftool)
    if not changes:
        return before
    with _changed_copy(backup, changes, exiftool, written.path.suffix) as scratch:
        _replace(scratch, backup, None, before)
    return _digest(backup)


def drop_copy(written: Embedded) -> None:
    """Remove the original that a write keeps, if nobody changed it."""
    if written.backup != written.path and _has_digest(written.backup, written.before_digest):
        with explain_errors(written.backup):
            remove_file(written.backup)


# --- files -------------------------------------------------------------------------------


def _digest(path: Path) -> str:
    with explain_errors(path):
        return content_digest(read_bytes(path, follow_links=False))


def _has_digest(path: Path, digest: str) -> bool:
    return path.exists() and _digest(path) == digest


def _backup_for(path: Path) -> Path:
    """Return a free backup name; never reuse an existing file."""
    names = (f"{path.name}_original{n if n > 1 else ''}" for n in itertools.count(1))
    return next(b for b in map(path.with_name, names) if not os.path.lexists(b))


def _replace(scratch: Path, path: Path, backup: Path | None, before: str) -> None:
    """Replace a photograph by a new file, and keep the original as `backup` unless that is None."""

    def check() -> None:
        if _digest(path) != before:
            raise unchanged_error(path, "another program wrote to it meanwhile")

    if not os.access(path, os.W_OK):
        raise unchanged_error(path, "it is write-protected")
    if backup is not None and os.path.lexists(backup):
        raise unchanged_error(path, f"another program created {backup.name} meanwhile")
    with explain_errors(path):
        if backup is not None:
            keep_backup(path, backup)
        try:
            replace_file(scratch, path, check, follow_links=False)
        except OSError:
            with contextlib.suppress(OSError):
                if backup is not None:
                    remove_file(backup)
            raise


# --- exiftool ----------------------------------------------------------------------------


@contextlib.contextmanager
def _changed_copy(
    path: Path, changes: Sequence[str], exiftool: ExifTool, suffix: str | None = None
) -> Iterator[Path]:
    """Yield a temporary copy of a photograph that exiftool has changed.

    `suffix` is the photograph's own suffix if the path has another one.
    """
    # exiftool chooses the format by the suffix
    end = f"{PHOTOGRAPH}-{secrets.token_hex(8)}{path.suffix if suffix is None else suffix}"
    scratch = path.with_name(scratch_name(path.stem, end, 255 - len("_exiftool_tmp")))
    try:
        with explain_errors(path):
            shutil.copyfile(path, scratch)
        _run(exiftool, path, *changes, "-overwrite_original", str(scratch))
        yield scratch
    finally:
        with contextlib.suppress(OSError):
            scratch.unlink()


def _read_inside(path: Path, exiftool: ExifTool) -> Inside:
    return Inside.of(_run(exiftool, path, *READING, str(path)))


def _run(exiftool: ExifTool, path: Path, *arguments: str) -> str:
    try:
        return exiftool.run(*arguments)
    except ExifToolError as error:
        raise unchanged_error(path, f"exiftool could not use it ({error})") from error
