"""Write pages completely or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from tagkin.errors import StorageError
from tagkin.filesystem import write_whole

__all__ = ["write_page"]


def write_page(path: str | os.PathLike[str], data: bytes) -> Path:
    """Replace a file with `data` once the data is safely on the disk.

    Missing folders are created. If it fails, the previous file is unchanged.
    """
    path = Path(path)
    try:
        if not path.name or path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
    except (OSError, ValueError) as error:
        raise StorageError(
            f"Could not write {path}: {getattr(error, 'strerror', None) or error}. The "
            "previous file is unchanged. Free some space, or choose another folder."
        ) from error
    return path
