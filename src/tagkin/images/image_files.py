"""Open and read regular files, and identify them by content."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from tagkin.errors import UnreadableImage
from tagkin.filesystem import open_without_links

__all__ = ["MAX_BYTES", "Failure", "content_digest", "open_file", "read_bytes"]

MAX_BYTES = 1 << 30  # photographs are smaller; a larger file is probably a film

_LONGEST_MESSAGE = 200  # characters of a library's message
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)

_REASONS = {
    errno.ENOENT: "there is no such file",
    errno.ENOTDIR: "there is no such file",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ELOOP: "a link that leads back to itself",
    errno.EISDIR: "a folder, not a file",
}


@dataclass(frozen=True)
class Failure:
    """A file that could not be used, and the reason in plain words."""

    file: str
    reason: str


def content_digest(data: bytes) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def read_bytes(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES, *, follow_links: bool = True
) -> bytes:
    """Return the content of a regular file; without `follow_links`, a link in the path is an error.

    Raises `UnreadableImage` if it is missing, not readable, not a regular file, or larger than
    `max_bytes`.

    Parameters
    ----------
    path : path
        The file.
    max_bytes : int
        The largest file to read.
    follow_links : bool, default True
        Whether links in the path are allowed.
    """
    with open_file(path, follow_links=follow_links) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > max_bytes else file.read(size + 1)
        while len(data) > size and len(data) <= max_bytes and (more := file.read(1 << 20)):
            data += more  # the file grows; read(max_bytes) would allocate all of them at once
    size = max(size, len(data))
    if size > max_bytes:
        raise UnreadableImage(f"{amount(size)}, above the cap of {amount(max_bytes)}")
    return data


@contextmanager
def open_file(path: str | os.PathLike[str], *, follow_links: bool = True) -> Iterator[BinaryIO]:
    """Open a regular file for reading; errors of the system become `UnreadableImage`."""
    try:
        with _open(path, follow_links) as file:
            yield file
    except OSError as error:
        raise UnreadableImage(why(error)) from error


def _open(path: str | os.PathLike[str], follow_links: bool) -> BinaryIO:
    opener = os.open if follow_links else open_without_links
    try:
        # checked before opening, because opening a device or a pipe has effects
        _check_regular(os.stat(path))
        file = open(  # noqa: SIM115 (the caller closes)
            path, "rb", opener=lambda name, flags: opener(name, flags | _NONBLOCK)
        )
    except UnreadableImage:
        raise
    except ValueError as error:
        raise UnreadableImage(f"not a possible file name ({error})") from error
    try:
        _check_regular(os.fstat(file.fileno()))
    except BaseException:
        file.close()
        raise
    return file


def why(error: OSError) -> str:
    """Return the reason of a failed file operation in plain words."""
    return _REASONS.get(error.errno or 0) or (error.strerror or str(error)).lower()


def amount(n_bytes: int) -> str:
    """Format a number of bytes: 640 bytes, 12 KB, 3.4 MB."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes} bytes"


def one_line(text: str) -> str:
    """Return a library's message on one printable line; it may quote bytes of the file."""
    shown = "".join(char if char.isprintable() else " " for char in text[: 2 * _LONGEST_MESSAGE])
    short = " ".join(shown.split())
    return short if len(short) <= _LONGEST_MESSAGE else f"{short[:_LONGEST_MESSAGE]}…"


def _check_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise UnreadableImage("a folder, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableImage("not a regular file but a pipe, a socket or a device")
