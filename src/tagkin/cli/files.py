"""Files that are written: whole or not at all, and never over something by accident."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

import typer

from tagkin.cli.output import relative
from tagkin.errors import StorageError

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
    """Refuse a path whose folder is none, or may not be written to; ask this first of all.

    What lies in a folder that may not be entered cannot even be asked for.
    """
    above = next(folder for folder in path.absolute().parents if os.path.exists(folder))
    if not above.is_dir():
        raise StorageError(f"Could not write {relative(path)}: {relative(above)} is a file.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise StorageError(
            f"Could not write {relative(path)}: permission denied in {relative(above)}."
        )


def write_file(path: Path, text: str) -> None:
    """Write a text file, all of it or nothing; `check_target` has been asked before."""
    fresh = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with fresh.open("xb") as file:
                file.write(text.encode("utf-8", "surrogateescape"))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"Could not write {relative(path)}: {error.strerror or error}. What was there before "
            "is still there; free some space or choose another place."
        ) from error
