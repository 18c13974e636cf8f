"""Write files completely or not at all, on every operating system.

Differences between systems are handled here. Windows flushes a file only through a writable handle,
and neither replaces nor removes an open file.
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
    "atomic_write",
    "check_parent",
    "folder_lock",
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
    "sync_folder",
    "try_lock",
    "write_whole",
    "write_without_links",
]

# Files that desktops write into the folders they show.
_LITTER = re.compile(
    r"(?i)\.directory|\.ds_store|\.localized|desktop\.ini|ehthumbs\.db|icon\r|thumbs\.db"
)


def is_litter(name: str) -> bool:
    """Whether this is the name of a disposable system file."""
    return _LITTER.fullmatch(name) is not None or name.startswith("._")


def check_parent(path: Path) -> None:
    """Reject a path whose parent is not a writable folder; create nothing.

    Call this first, because files in a forbidden folder seem to be missing.
    """
    above = next(folder for folder in path.absolute().parents if os.path.exists(folder))
    if not above.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(above))
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "permission denied", str(above))


def sync(path: Path) -> None:
    """Flush a written file to the disk."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


# --- private files -----------------------------------------------------------------------


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents for this user alone."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(exist_ok=True)  # a file of that name is an error


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file, as an opener for `open`; a new file is for this user alone.

    A link is not followed, because another user may have put it into a shared folder.
    """
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def make_private_file(path: Path) -> None:
    """Create an empty file for this user alone, unless it exists."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


# --- replacing files ---------------------------------------------------------------------


def replace_file(
    scratch: Path,
    path: Path,
    check: Callable[[], None] | None = None,
    *,
    follow_links: bool = True,
    like: Path | None = None,
    modified: int | None = None,
) -> None:
    """Flush a finished file to the disk, and rename it in place of an existing file.

    It gets the owner, the permissions and the extended attributes of the file it replaces.

    Parameters
    ----------
    scratch, path : paths in one folder
    check : function, optional
        Called right before the replacement, which an exception prevents.
    follow_links : bool, default True
        Whether a link may lead to the folder; if not, a link raises `LinkFound`.
    like : Path, optional
        A file whose owner a new file gets if root writes it.
    modified : int, optional
        Modification time in nanoseconds of a file that replaces another. Default: its own.
    """
    with nullcontext() if follow_links else _open_folder(path.parent) as folder:
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
        _rename(scratch, path, folder)
    sync_folder(path.parent)


def _rename(source: Path, target: Path, folder: int | None) -> None:
    if folder is None:
        os.replace(source, target)
    else:
        os.replace(source.name, target.name, src_dir_fd=folder, dst_dir_fd=folder)


def _copy_status(
    name: str, scratch: str, folder: int, like: Path | None, modified: int | None
) -> None:
    """Copy the status of a replaced file in an open folder, without following links."""
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
    """Copy the extended attributes of a file in an open folder, if the system has any."""
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
    """Set the owner and group of a file, or only the group, if permitted."""
    if hasattr(os, "chown"):
        for owner in (status.st_uid, -1):
            with suppress(OSError):
                os.chown(file, owner, status.st_gid)
                return


def keep_backup(path: Path, copy: Path) -> None:
    """Keep a file under a second name, before another file replaces it.

    The copy is a hard link if the file system supports that, else a copy with the same times. No
    link is followed.
    """
    try:
        with _open_folder(path.parent) as folder:
            if folder is None:
                os.link(path, copy)
            else:
                places = {"src_dir_fd": folder, "dst_dir_fd": folder}
                os.link(path.name, copy.name, **places, follow_symlinks=False)
    except (FileExistsError, LinkFound):
        raise
    except OSError:
        with atomic_write(copy, follow_links=False) as scratch:
            shutil.copy2(path, scratch, follow_symlinks=False)
            _give_owner(scratch, path.lstat())
    sync_folder(path.parent)


def put_back(copy: Path, path: Path) -> None:
    """Rename a backup to its original name, without following links."""
    with _open_folder(path.parent) as folder:
        _rename(copy, path, folder)
    sync_folder(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file and flush its folder, without following links."""
    with _open_folder(path.parent) as folder:
        os.unlink(path if folder is None else path.name, dir_fd=folder)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, on systems that support it."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except PermissionError:  # on Windows, or in a folder that may not be listed
        return
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(number)


@contextmanager
def atomic_write(
    path: Path,
    check: Callable[[], None] | None = None,
    *,
    follow_links: bool = True,
    like: Path | None = None,
    modified: int | None = None,
) -> Iterator[Path]:
    """Yield a temporary path to write to, whose file replaces `path` at the end.

    If anything fails, an existing file is unchanged. A killed process may leave the temporary
    file; `is_scratch` recognizes its name. The other parameters are those of `replace_file`.
    """
    scratch = path.with_name(scratch_name(path.name, f"-{secrets.token_hex(8)}"))
    try:
        yield scratch
        replace_file(scratch, path, check, follow_links=follow_links, like=like, modified=modified)
    finally:
        scratch.unlink(missing_ok=True)


def scratch_name(name: str, end: str, longest: int = 255) -> str:
    """Return a hidden name for a temporary file, of at most `longest` bytes.

    A long name loses its first letters.
    """
    while len(os.fsencode(name)) > 1 and len(os.fsencode(f".{name}{end}")) > longest:
        name = name[1:]
    return f".{name}{end}"


def is_scratch(name: str, suffix: str = "") -> bool:
    """Whether this is the name of a temporary file for a file with that suffix."""
    return re.fullmatch(rf"\..+{re.escape(suffix)}-[0-9a-f]{{16}}", name) is not None


def write_whole(
    path: Path,
    data: bytes,
    check: Callable[[], None] | None = None,
    *,
    private: bool = False,
) -> None:
    """Write a file completely or not at all; `check` is as in `replace_file`.

    A new file that is `private` is for this user alone.
    """
    opener = open_private if private else None
    with atomic_write(path, check) as scratch, open(scratch, "xb", opener=opener) as file:
        file.write(data)


# --- without links -----------------------------------------------------------------------


def write_without_links(
    path: Path,
    data: bytes,
    check: Callable[[], None] | None = None,
    *,
    like: Path | None = None,
    modified: int | None = None,
) -> None:
    """Write a file as `write_whole` does, by a path without links.

    `like` and `modified` are as in `replace_file`.
    """
    replacing = atomic_write(path, check, follow_links=False, like=like, modified=modified)
    with replacing as scratch, open(scratch, "xb", opener=open_without_links) as file:
        file.write(data)


class LinkFound(OSError):
    """A path contains a link, and links are not followed."""


def open_without_links(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file by a path without links, as an opener for `open`.

    The caller has resolved the path. A folder or file in it that has become a link since is an
    error.
    """
    path = Path(os.path.abspath(path))
    with _open_folder(path.parent) as folder:
        if path.is_symlink():
            raise LinkFound("a link replaced the file")
        if folder is None:
            return os.open(path, flags, 0o666)
        return os.open(path.name, flags | os.O_NOFOLLOW, 0o666, dir_fd=folder)


@contextmanager
def _open_folder(folder: Path) -> Iterator[int | None]:
    """Open a folder for `dir_fd`, if no link leads to it.

    Renaming it later has no effect. Yields None if the system cannot open folders.
    """
    folder = Path(os.path.abspath(folder))
    if not hasattr(os, "O_DIRECTORY"):
        if os.path.realpath(folder) != str(folder):
            raise LinkFound("a link leads to its folder")
        yield None
        return
    # O_PATH also opens a folder that may be entered but not listed
    flags = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)
    number = os.open(folder, flags | getattr(os, "O_NOFOLLOW_ANY", 0))
    try:
        if not hasattr(os, "O_NOFOLLOW_ANY") and _path_of(number, folder) != str(folder):
            raise LinkFound("a link leads to its folder")
        yield number
    finally:
        os.close(number)


def _path_of(number: int, folder: Path) -> str:
    """Return the path of an open folder, without links."""
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:  # the system has no /proc
        real = os.path.realpath(folder)
        is_same = os.path.samestat(os.fstat(number), os.stat(real))
        return real if is_same else ""


# --- locks -------------------------------------------------------------------------------

# The byte to lock on Windows, far from the content, because locked bytes are unreadable.
_AT = 1 << 30
_INTERVAL = 0.02  # seconds between two attempts


def try_lock(file: BinaryIO) -> bool | None:
    """Lock an open file with the system's lock, which ends with the process.

    Returns False if another process has the lock, and None if the file system has no locks.
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
def folder_lock(folder: Path, name: str, patience: float = 300.0) -> Iterator[bool]:
    """Lock a folder exclusively, creating it if needed; yield False if it cannot have locks.

    The lock file `name` is removed at the end. `patience` are the seconds before `TimeoutError`.
    """
    file, ours = _lock_file(folder, folder / name, patience)
    try:
        yield ours is True
    finally:
        # removed while it is locked, so waiting processes create another file;
        # Windows cannot remove an open file
        with suppress(OSError):
            (folder / name).unlink()
        file.close()
        if os.name == "nt":
            with suppress(OSError):
                (folder / name).unlink()


def _lock_file(folder: Path, path: Path, patience: float) -> tuple[BinaryIO, bool | None]:
    deadline = time.monotonic() + patience
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # another process has removed the folder
            file = open(path, "a+b", opener=open_private)  # noqa: SIM115 (the caller closes)
            ours = try_lock(file)
            if ours is not False and _is_same(file, path):
                return file, ours
            file.close()
        if time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, "another process is writing there", str(folder))
        time.sleep(_INTERVAL)


def _is_same(file: BinaryIO, path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
