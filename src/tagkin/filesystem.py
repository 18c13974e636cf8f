"""Files and folders that are written whole or not at all, on every system.

The one home of what systems do differently. Windows flushes a file to the disk only through a
handle that may write to it, and renames no folder onto another, not even onto an empty one.
Systems put files of their own into a person's folders.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = [
    "aside_prefix",
    "check_parent",
    "is_litter",
    "is_scratch",
    "keep_copy",
    "put_back",
    "put_file",
    "put_folder",
    "remove_file",
    "sync",
    "whole_file",
    "write_whole",
]

# What desktops write into folders that are looked at: how they are shown, and previews.
_LITTER = {
    ".directory",
    ".ds_store",
    ".localized",
    "desktop.ini",
    "ehthumbs.db",
    "icon\r",
    "thumbs.db",
}


def is_litter(name: str) -> bool:
    """Whether a file of this name is the system's own, and nobody's loss."""
    return name.lower() in _LITTER or name.startswith("._")


def check_parent(path: Path) -> None:
    """Refuse a path whose folder is none, or may not be written to; nothing is made.

    What lies in a folder that may not be entered cannot even be asked for: ask this first.
    """
    above = next(folder for folder in path.absolute().parents if os.path.exists(folder))
    if not above.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(above))
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "permission denied", str(above))


def sync(path: Path) -> None:
    """Wait until a file that was written is on the disk."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def put_file(scratch: Path, path: Path, check: Callable[[], None] | None = None) -> None:
    """Give a finished file its name, in place of a file that has it, when it is on the disk.

    Parameters
    ----------
    scratch, path : paths in one folder
    check : function, optional
        Called when nothing is left but to take the place; raises where the place is to stay.
    """
    sync(scratch)
    if path.exists():
        shutil.copymode(path, scratch)
    if check is not None:
        check()
    os.replace(scratch, path)
    _sync_folder(path.parent)


def keep_copy(path: Path, copy: Path) -> None:
    """Keep what a file holds under a second name, whatever takes its place under the first.

    It is the same file under two names where the file system has such a thing, and with its times.
    """
    try:
        os.link(path, copy)
    except FileExistsError:
        raise
    except OSError:
        with whole_file(copy) as scratch:
            shutil.copy2(path, scratch)
    _sync_folder(path.parent)


def put_back(copy: Path, path: Path) -> None:
    """Give a file that was kept its first name again."""
    os.replace(copy, path)
    _sync_folder(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file, and wait until it is gone from the disk."""
    path.unlink()
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; some systems know no such thing."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows opens no folder, and not every folder may be listed
        return
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(number)


@contextmanager
def whole_file(path: Path, check: Callable[[], None] | None = None) -> Iterator[Path]:
    """A path beside `path` to write a file to; at the end it takes its place.

    Where anything fails, what was there before is still there, and nothing else. A process that
    is killed may leave the file beside it: `is_scratch` knows its name. `check` is as in
    `put_file`.
    """
    scratch = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        yield scratch
        put_file(scratch, path, check)
    finally:
        scratch.unlink(missing_ok=True)


def is_scratch(name: str, suffix: str = "") -> bool:
    """Whether a file of this name was on its way to be a file with that suffix."""
    return re.fullmatch(rf"\..+{re.escape(suffix)}-[0-9a-f]{{16}}", name) is not None


def write_whole(path: Path, data: bytes, check: Callable[[], None] | None = None) -> None:
    """Write a file, all of it or nothing; `check` is as in `put_file`."""
    with whole_file(path, check) as scratch, scratch.open("xb") as file:
        file.write(data)


def put_folder(fresh: Path, folder: Path, check: Callable[[Path], None]) -> None:
    """Give a finished folder its name; a folder that has it goes when that has succeeded.

    Parameters
    ----------
    fresh, folder : paths on one file system
    check : function of a path
        Gets the folder that had the name, at a path where nobody else looks for it, and raises
        where it has to stay: between a look before and this one anything may have been put there.
    """
    try:
        os.rename(fresh, folder)
    except OSError:
        if not folder.is_dir():
            raise
    else:
        return
    aside = folder.with_name(f"{aside_prefix(folder)}{secrets.token_hex(8)}")
    os.rename(folder, aside)
    try:
        check(aside)
        os.rename(fresh, folder)
    except BaseException:
        os.rename(aside, folder)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def aside_prefix(folder: Path) -> str:
    """How the name of a folder begins that is being replaced, until that has succeeded."""
    return f".{folder.name}-replaced-"
