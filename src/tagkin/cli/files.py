"""Files that are written: whole or not at all, and never over something by accident."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from tagkin.cli.output import relative
from tagkin.cli.streams import encoded
from tagkin.errors import StorageError
from tagkin.filesystem import check_parent, write_whole

__all__ = ["check_folder", "check_target", "write_file"]


def check_target(path: Path | None, overwrite: bool, suffixes: Sequence[str] = ()) -> None:
    """Refuse, before any work, a file that could not be written or would be lost."""
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise typer.BadParameter(f"{relative(path)}: the name must end in {' or '.join(suffixes)}.")
    check_folder(path)
    if path.is_dir():
        raise StorageError(f"{relative(path)} is a folder. Name a file in it.")
    if path.exists() and not path.is_file():
        raise StorageError(f"{relative(path)} is not a regular file. Choose another name.")
    if path.exists() and not overwrite:
        raise StorageError(
            f"{relative(path)} is there already. Pass --overwrite to replace it, or choose "
            "another name."
        )


def check_folder(path: Path) -> None:
    """Refuse a path whose folder is none, or may not be written to; ask this first of all."""
    try:
        check_parent(path)
    except NotADirectoryError as error:
        found = f"{relative(error.filename)} is a file"
        raise StorageError(f"Could not write {relative(path)}: {found}.") from error
    except PermissionError as error:
        found = f"permission denied in {relative(error.filename)}"
        raise StorageError(f"Could not write {relative(path)}: {found}.") from error


def write_file(path: Path, text: str) -> None:
    """Write a text file, all of it or nothing; `check_target` has been asked before."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, encoded(text))
    except OSError as error:
        raise StorageError(
            f"Could not write {relative(path)}: {error.strerror or error}. What was there before "
            "is still there; free some space or choose another place."
        ) from error
