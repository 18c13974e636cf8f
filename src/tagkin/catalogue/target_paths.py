"""The only files that tagkin changes: sidecars and photographs inside the collection.

Every write, embedding and undo checks its path here immediately before it changes a file, because a
catalogue can be edited by hand, an import can come from anybody, and a folder can become a link.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tagkin.catalogue.database import Database
from tagkin.catalogue.write_records import PastWrite
from tagkin.errors import SidecarError
from tagkin.images.raw import raw_suffixes

__all__ = ["check_target_names", "is_inside", "target_path", "written_path"]

_SIDECAR = re.compile(r"(?s).+\.xmp", re.IGNORECASE)
_BACKUP = re.compile(r"(?s).+_original[0-9]*")


def check_target_names(photograph: str, file: str, backup: str | None) -> None:
    """Reject names that no write to a photograph's files can have.

    Parameters
    ----------
    photograph, file : str
        Paths from the root: the photograph, and the file that was written.
    backup : str or None
        Name of the photograph's backup; None if the file is a sidecar.

    Raises
    ------
    ValueError
        The message completes the sentence "`file` must be ...".
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


def written_path(database: Database, write: PastWrite) -> Path:
    """Return the real path of a file that was written, if no name in the catalogue leads elsewhere.

    Raises
    ------
    SidecarError
        As in `target_path`, and for a name that no write can have.
    """
    query = "SELECT path FROM photographs WHERE id = ?"
    try:
        check_target_names(
            database.value(query, (write.photograph,)) or "", write.file, write.backup
        )
    except ValueError as error:
        whole = database.absolute(write.file)
        raise SidecarError(
            f"{whole}: the catalogue is damaged, the file must be {error}. It is unchanged."
        ) from error
    return target_path(database, write.file)


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()
