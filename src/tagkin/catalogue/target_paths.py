"""The only files that tagkin changes: sidecars and photographs inside the collection.

Every write, embedding and undo checks its path here immediately before it changes a file, because a
catalogue can be edited by hand, and a folder can become a link.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tagkin.catalogue.database import Database
from tagkin.errors import SidecarError
from tagkin.images.formats import raw_suffixes

__all__ = ["check_target_names", "is_inside", "target_path"]

_SIDECAR = re.compile(r"(?s).+\.xmp", re.IGNORECASE)
_BACKUP = re.compile(r"(?s).+_original[0-9]*")


def check_target_names(photograph: str, file: str, backup: str | None) -> None:
    """Reject names that no write to a photograph's files can have, by their paths from the root.

    `backup` is None if the file is a sidecar. The message of the ValueError completes the sentence
    "`file` must be ...".
    """
    if not is_inside(file):
        raise ValueError("a path inside the collection")
    if backup is None:
        if not _SIDECAR.fullmatch(os.path.basename(file)):
            raise ValueError("the path of a sidecar (.xmp)")
        return
    # the RAW file of a pair may have another suffix than its photograph
    if _suffix(file) not in {_suffix(photograph), *raw_suffixes()} or _SIDECAR.fullmatch(
        os.path.basename(file)
    ):
        raise ValueError("the path of the photograph, because there is a backup")
    if backup != os.path.basename(backup) or not _BACKUP.fullmatch(backup):
        raise ValueError("a photograph with a backup named img.jpg_original")


def is_inside(path: str) -> bool:
    """Whether a path from the root stays below the root, links aside."""
    return "\0" not in path and all(
        part not in ("", ".", "..") and part == os.path.basename(part) for part in path.split("/")
    )


def target_path(database: Database, path: str) -> Path:
    """Return the real path of a file of the collection, with every link resolved.

    The functions that change files follow no link on the way to this path, so a folder that
    becomes a link meanwhile is not followed either.

    Raises
    ------
    SidecarError
        If the file is outside the collection, or a link leads there.
    """
    whole = database.absolute(path)
    if not is_inside(path):
        raise SidecarError(f"{whole}: outside the collection. It is unchanged.")
    root = Path(os.path.realpath(database.root))
    try:
        real = Path(whole).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise SidecarError(f"{whole}: its path leads nowhere ({error}).") from error
    if root not in real.parents:
        raise SidecarError(
            f"{whole}: a link leads out of the collection, to {real}. It is unchanged; scan "
            "that folder itself to write there."
        )
    return real


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()
