"""Undo tagkin's writes to sidecars."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tagkin.collection.sidecars.editing import NEW, without_tags
from tagkin.collection.sidecars.sidecar_files import (
    explain_errors,
    put_sidecar,
    read_sidecar,
    unchanged_error,
)
from tagkin.errors import SidecarError
from tagkin.filesystem import remove_file
from tagkin.images.image_files import content_digest

__all__ = ["Restored", "restore"]

_SENTENCES = {
    "restored": "restored byte for byte",
    "removed": "removed, because it did not exist before",
    "already": "already as it was before",
    "gone": "somebody removed it since; nothing to undo",
    "untagged": "somebody changed it since; only tagkin's tags were removed",
    "kept": "somebody changed it since and removed tagkin's tags",
}
_ATTEMPTS = 5


@dataclass(frozen=True)
class Restored:
    """The result of undoing a write; `how` is a key of the sentences above."""

    path: Path
    how: str

    @property
    def said(self) -> str:
        """The result in words."""
        return _SENTENCES[self.how]


def restore(
    path: str | os.PathLike[str],
    before: bytes | None,
    after_digest: str,
    added: Iterable[tuple[str, str]],
    modified: int | None = None,
) -> Restored:
    """Undo a write of `add_tags`; the parameters are attributes of the `Written` it returned.

    A sidecar that nobody changed since gets every byte and its modification time back, or is
    removed if it did not exist. Otherwise only the added texts are removed, and also a sidecar
    that tagkin created and that is empty now. A second call changes nothing.

    A `SidecarError` says that the sidecar cannot be read, parsed or written, and is unchanged.
    """
    path, added = Path(path), list(added)
    for _ in range(_ATTEMPTS):
        now = read_sidecar(path)
        if now == before:
            return Restored(path, "already")
        if now is None:
            return Restored(path, "gone")
        if content_digest(now) == after_digest:
            if before is None:
                if _remove(path, now):
                    return Restored(path, "removed")
            elif put_sidecar(path, now, before, modified=modified):
                return Restored(path, "restored")
            continue
        try:
            cleaned = without_tags(now, added)
        except SidecarError as error:
            raise unchanged_error(path, f"somebody changed it since, and {error}") from error
        if cleaned == now:
            return Restored(path, "kept")
        if cleaned == NEW:  # another catalogue created it, and its tags are gone
            if _remove(path, now):
                return Restored(path, "removed")
        elif put_sidecar(path, now, cleaned):
            return Restored(path, "untagged")
    raise unchanged_error(path, "another program keeps writing to it")


def _remove(path: Path, now: bytes) -> bool:
    """Remove a sidecar; return False if its content has changed."""
    if read_sidecar(path) != now:
        return False
    with explain_errors(path):
        remove_file(path)
    return True
