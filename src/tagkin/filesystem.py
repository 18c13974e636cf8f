"""Files that are written whole or not at all, on every system.

The one home of what systems do differently. Windows flushes a file to the disk only through a
handle that may write to it, and neither replaces nor removes a file that is open.
Systems put files of their own into a person's folders.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = [
    "LinkFound",
    "alone_in",
    "check_parent",
    "is_litter",
    "is_scratch",
    "keep_backup",
    "make_private_file",
    "make_private_folder",
    "open_private",
    "open_without_links",
    "put_back",
    "remove_file",
    "replace_file",
    "scratch_name",
    "sync",
    "sync_folder",
    "try_lock",
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


# --- private files -----------------------------------------------------------------------


def make_private_folder(folder: Path) -> None:
    """Make a folder, and the folders above it, for this user alone; existing folders stay."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(exist_ok=True)  # a file of that name is an error


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file, as an opener for `open`; a new file is for this user alone.

    A link is not followed: in a folder of several users it may be somebody else's.
    """
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def make_private_file(path: Path) -> None:
    """Make an empty file for this user alone, unless the file exists."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


# --- files take their place --------------------------------------------------------------


def replace_file(
    scratch: Path,
    path: Path,
    check: Callable[[], None] | None = None,
    *,
    follow_links: bool = True,
    like: Path | None = None,
    modified: int | None = None,
) -> None:
    """Give a finished file its name, in place of a file that has it, when it is on the disk.

    It gets the owner, the permissions and the extended attributes of the file that it replaces.

    Parameters
    ----------
    scratch, path : paths in one folder
    check : function, optional
        Called when nothing is left but to take the place; raises where the place is to stay.
    follow_links : bool, default True
        Whether a link may lead to the folder; if not, a link is a `LinkFound`.
    like : Path, optional
        A file whose owner a new file gets if root writes it.
    modified : int, optional
        The modification time, in nanoseconds, of a file that replaces another; default: its own.
    """
    with nullcontext() if follow_links else _held(path.parent) as folder:
        if folder is None:
            sync(scratch)
            if path.exists():
                status = scratch.stat()
                _give_owner(scratch, path.stat())
                shutil.copystat(path, scratch)
                os.utime(scratch, ns=(status.st_atime_ns, modified or status.st_mtime_ns))
            elif like is not None and _is_root():
                _give_owner(scratch, like.stat())
        else:
            _copy_status(path.name, scratch.name, folder, like, modified)
        if check is not None:
            check()
        if folder is None:
            os.replace(scratch, path)
        else:
            os.replace(scratch.name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    sync_folder(path.parent)


def _copy_status(
    name: str, scratch: str, folder: int, like: Path | None, modified: int | None
) -> None:
    """As `replace_file` does with names, for files in an open folder: no link is followed."""
    new = os.open(scratch, os.O_RDWR | os.O_NOFOLLOW, dir_fd=folder)
    try:
        status = os.fstat(new)
        try:
            old = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            if like is not None and _is_root():
                _give_owner(new, like.stat())
        else:
            _give_owner(new, old)
            os.fchmod(new, stat.S_IMODE(old.st_mode))
            _copy_attributes(name, new, folder)
            os.utime(new, ns=(status.st_atime_ns, modified or status.st_mtime_ns))
        os.fsync(new)
    finally:
        os.close(new)


def _copy_attributes(name: str, new: int, folder: int) -> None:
    """Copy the extended attributes of a file in an open folder, as far as the system has them."""
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):
        old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        try:
            for attribute in os.listxattr(old):
                with suppress(OSError):
                    os.setxattr(new, attribute, os.getxattr(old, attribute))
        finally:
            os.close(old)


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _give_owner(file: Path | int, status: os.stat_result) -> None:
    """Give a file an owner and a group, or the group alone, if that is allowed."""
    if hasattr(os, "chown"):
        for owner in (status.st_uid, -1):
            with suppress(OSError):
                os.chown(file, owner, status.st_gid)
                return


def keep_backup(path: Path, copy: Path) -> None:
    """Keep what a file holds under a second name, whatever takes its place under the first.

    It is the same file under two names where the file system has such a thing, and with its times.
    No link is followed.
    """
    try:
        with _held(path.parent) as folder:
            if folder is None:
                os.link(path, copy)
            else:
                os.link(
                    path.name,
                    copy.name,
                    src_dir_fd=folder,
                    dst_dir_fd=folder,
                    follow_symlinks=False,
                )
    except (FileExistsError, LinkFound):
        raise
    except OSError:
        with whole_file(copy, follow_links=False) as scratch:
            shutil.copy2(path, scratch, follow_symlinks=False)
            _give_owner(scratch, path.lstat())
    sync_folder(path.parent)


def put_back(copy: Path, path: Path) -> None:
    """Give a file that was kept its first name again; no link is followed."""
    with _held(path.parent) as folder:
        if folder is None:
            os.replace(copy, path)
        else:
            os.replace(copy.name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    sync_folder(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file, and wait until it is gone from the disk; no link is followed."""
    with _held(path.parent) as folder:
        if folder is None:
            path.unlink()
        else:
            os.unlink(path.name, dir_fd=folder)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
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
def whole_file(
    path: Path,
    check: Callable[[], None] | None = None,
    *,
    follow_links: bool = True,
    like: Path | None = None,
    modified: int | None = None,
) -> Iterator[Path]:
    """A path beside `path` to write a file to; at the end it takes its place.

    Where anything fails, what was there before is still there, and nothing else. A process that
    is killed may leave the file beside it: `is_scratch` knows its name. The other parameters are
    those of `replace_file`.
    """
    scratch = path.with_name(scratch_name(path.name, f"-{secrets.token_hex(8)}"))
    try:
        yield scratch
        replace_file(scratch, path, check, follow_links=follow_links, like=like, modified=modified)
    finally:
        scratch.unlink(missing_ok=True)


def scratch_name(name: str, end: str, longest: int = 255) -> str:
    """The name of a file that is on its way to be another one, hidden, in at most so many bytes.

    A long name loses its first letters: a file that fits into a folder is to be written there.
    """
    while len(os.fsencode(name)) > 1 and len(os.fsencode(f".{name}{end}")) > longest:
        name = name[1:]
    return f".{name}{end}"


def is_scratch(name: str, suffix: str = "") -> bool:
    """Whether a file of this name was on its way to be a file with that suffix."""
    return re.fullmatch(rf"\..+{re.escape(suffix)}-[0-9a-f]{{16}}", name) is not None


def write_whole(
    path: Path,
    data: bytes,
    check: Callable[[], None] | None = None,
    *,
    follow_links: bool = True,
    private: bool = False,
    like: Path | None = None,
    modified: int | None = None,
) -> None:
    """Write a file, all of it or nothing; the other parameters are those of `replace_file`.

    A new file that is `private` is for this user alone.
    """
    opener = open_private if private else None if follow_links else open_without_links
    placing = whole_file(path, check, follow_links=follow_links, like=like, modified=modified)
    with (
        placing as scratch,
        open(scratch, "xb", opener=opener) as file,
    ):
        file.write(data)


# --- without links -----------------------------------------------------------------------


class LinkFound(OSError):
    """A link on the way to a file, where none is followed."""


def open_without_links(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file by a path without links, as an opener for `open`.

    A path is resolved and checked once; from then on a folder on the way that has become a link
    is an error, and so is a link at its end.
    """
    path = Path(os.path.abspath(path))
    with _held(path.parent) as folder:
        if path.is_symlink():
            raise LinkFound("a link where a file was")
        if folder is None:
            return os.open(path, flags, 0o666)
        return os.open(path.name, flags | os.O_NOFOLLOW, 0o666, dir_fd=folder)


@contextmanager
def _held(folder: Path) -> Iterator[int | None]:
    """Hold a folder open for `dir_fd`, if no link leads to it.

    What happens to its name later changes nothing. None where the system opens no folders.
    """
    folder = Path(os.path.abspath(folder))
    if not hasattr(os, "O_DIRECTORY"):
        if os.path.realpath(folder) != str(folder):
            raise LinkFound("a link leads to its folder")
        yield None
        return
    # a folder that may be entered but not listed can be held as well, where O_PATH is known
    flags = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)
    number = os.open(folder, flags | getattr(os, "O_NOFOLLOW_ANY", 0))
    try:
        if not hasattr(os, "O_NOFOLLOW_ANY") and _path_of(number, folder) != str(folder):
            raise LinkFound("a link leads to its folder")
        yield number
    finally:
        os.close(number)


def _path_of(number: int, folder: Path) -> str:
    """Return the path that an open folder has, without links."""
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:  # no such system, or not mounted
        real = os.path.realpath(folder)
        is_same = os.path.samestat(os.fstat(number), os.stat(real))
        return real if is_same else ""


# --- one at a time -----------------------------------------------------------------------

_AT = 1 << 30  # the byte that is locked on Windows, where nobody reads: what is locked cannot be
_ASKED_AGAIN = 0.02  # seconds


def try_lock(file: BinaryIO) -> bool | None:
    """Take the system's own lock on an open file; it ends with the process, however that ends.

    Returns
    -------
    ours : bool or None
        False where another process has it; None where the file system knows no locks.
    """
    try:
        if os.name == "nt":
            import msvcrt

            file.seek(_AT)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK) else None
    return True


@contextmanager
def alone_in(folder: Path, name: str, patience: float = 300.0) -> Iterator[bool]:
    """Wait until no other process is at work in a folder, which is made where there is none.

    Parameters
    ----------
    folder : Path
    name : str
        Of the file that is locked; it goes at the end.
    patience : float
        Seconds to wait before `TimeoutError`.

    Yields
    ------
    alone : bool
        False where the file system knows no locks, so that nobody can tell.
    """
    file, ours = _locked_file(folder, folder / name, patience)
    try:
        yield ours is True
    finally:
        # while it is locked, so that whoever waits for it finds it gone and makes another;
        # Windows removes no file that is open
        with suppress(OSError):
            (folder / name).unlink()
        file.close()
        if os.name == "nt":
            with suppress(OSError):
                (folder / name).unlink()


def _locked_file(folder: Path, path: Path, patience: float) -> tuple[BinaryIO, bool | None]:
    deadline = time.monotonic() + patience
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # the one before has removed the folder that it made
            file = open(path, "a+b", opener=open_private)  # noqa: SIM115 (the caller closes)
            ours = try_lock(file)
            if ours is not False and _is_same(file, path):
                return file, ours
            file.close()
        if time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, "another process is writing there", str(folder))
        time.sleep(_ASKED_AGAIN)


def _is_same(file: BinaryIO, path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
