"""Sidecars as they were before tagkin wrote into them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tagkin.collection.sidecars.editing import NEW, without_tags
from tagkin.collection.sidecars.writing import left_alone, put_sidecar, read_sidecar
from tagkin.errors import SidecarError
from tagkin.filesystem import remove_file
from tagkin.images.files import content_digest, why

__all__ = ["Restored", "restore"]

_SAID = {
    "restored": "as it was, byte for byte",
    "removed": "removed: there was none before",
    "already": "as it was already",
    "gone": "somebody removed it since; nothing is left to take back",
    "untagged": "somebody changed it since; only the tags that tagkin wrote were taken out",
    "kept": "somebody changed it since, and took out the tags that tagkin wrote",
}
_ATTEMPTS = 5


@dataclass(frozen=True)
class Restored:
    """What came of taking a write back.

    Attributes
    ----------
    path : Path
    how : {"restored", "removed", "already", "gone", "untagged", "kept"}
    """

    path: Path
    how: str

    @property
    def said(self) -> str:
        """The same in a person's words."""
        return _SAID[self.how]

    @property
    def is_exact(self) -> bool:
        """Whether every byte is as it was before the write."""
        return self.how in ("restored", "removed", "already")


def restore(
    path: str | os.PathLike[str],
    before: bytes | None,
    after_digest: str,
    added: Iterable[tuple[str, str]],
    modified: int | None = None,
) -> Restored:
    """Take back what `add_tags` wrote; its parameters are what that returned.

    A sidecar that nobody wrote to since gets every byte and its modification time back, or is
    removed if there was none. Otherwise only what was added is taken out, and a sidecar that tagkin
    made is removed when nothing is left in it. Called a second time it changes nothing.

    Raises
    ------
    SidecarError
        If the sidecar cannot be read, parsed or written. It stands as it was.
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
                if _removed(path, now):
                    return Restored(path, "removed")
            elif put_sidecar(path, now, before, modified=modified):
                return Restored(path, "restored")
            continue
        try:
            cleaned = without_tags(now, added)
        except SidecarError as error:
            raise left_alone(path, f"somebody changed it since, and {error}") from error
        if cleaned == now:
            return Restored(path, "kept")
        if cleaned == NEW:  # another catalogue made it, and its tags are gone
            if _removed(path, now):
                return Restored(path, "removed")
        elif put_sidecar(path, now, cleaned):
            return Restored(path, "untagged")
    raise left_alone(path, "another program keeps writing to it")


def _removed(path: Path, now: bytes) -> bool:
    """Remove a sidecar; False if it is another one now."""
    if read_sidecar(path) != now:
        return False
    try:
        remove_file(path)
    except OSError as error:
        raise left_alone(path, why(error)) from error
    return True
