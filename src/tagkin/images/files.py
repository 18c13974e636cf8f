"""Photographs as files: opened without surprises, read whole, known by their content."""

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

MAX_BYTES = 1 << 30  # a photograph is smaller; a larger file is a film or a mistake

_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0)

_REASONS = {
    errno.ENOENT: "vanished",
    errno.ENOTDIR: "vanished",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ELOOP: "a link that leads back to itself",
    errno.EISDIR: "a folder, not a file",
}


@dataclass(frozen=True)
class Failure:
    """A file that could not be used, and the reason in a person's words."""

    file: str
    reason: str


def content_digest(data: bytes) -> str:
    """SHA-256 of a file's content, in hexadecimal: the same picture under any name."""
    return hashlib.sha256(data).hexdigest()


def read_bytes(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES, *, follow_links: bool = True
) -> bytes:
    """The content of a regular file.

    Without `follow_links` the path has no link in it, and a link that takes the place of the file
    or of a folder on the way is refused.

    Raises
    ------
    UnreadableImage
        If it is not there, not ours to read, not a regular file, or larger than `max_bytes`.
    """
    with open_file(path, follow_links=follow_links) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > max_bytes else file.read(size + 1)
        while len(data) > size and len(data) <= max_bytes and (more := file.read(1 << 20)):
            data += (
                more  # it grows; asked for all that is allowed at once, Python would take it all
            )
    if max(size, len(data)) > max_bytes:
        found = amount(max(size, len(data)))
        raise UnreadableImage(f"{found}, above the cap of {amount(max_bytes)}")
    return data


@contextmanager
def open_file(path: str | os.PathLike[str], *, follow_links: bool = True) -> Iterator[BinaryIO]:
    """A regular file, open for reading; what the system refuses is raised as UnreadableImage."""
    try:
        with _opened(path, follow_links) as file:
            yield file
    except OSError as error:
        raise UnreadableImage(why(error)) from error


def _opened(path: str | os.PathLike[str], follow_links: bool) -> BinaryIO:
    opener = os.open if follow_links else open_without_links
    try:
        # asked before opening: to open a device can do something, to open a pipe can wait
        _check_regular(os.stat(path))
        file = open(  # noqa: SIM115 (the caller closes)
            path, "rb", opener=lambda name, flags: opener(name, flags | _WITHOUT_WAITING)
        )
    except ValueError as error:
        if isinstance(error, UnreadableImage):
            raise
        raise UnreadableImage(f"not a possible file name ({error})") from error
    try:
        _check_regular(os.fstat(file.fileno()))
    except BaseException:
        file.close()
        raise
    return file


def why(error: OSError) -> str:
    """The reason of a failed file operation in a person's words."""
    return _REASONS.get(error.errno or 0) or (error.strerror or str(error)).lower()


def amount(n_bytes: int) -> str:
    """A number of bytes as a person says it: 640 bytes, 12 KB, 3.4 MB."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes} bytes"


def one_line(text: str, longest: int = 200) -> str:
    """What a library says of a file, as part of a sentence: bytes of the file may stand in it."""
    shown = "".join(char if char.isprintable() else " " for char in text[: 2 * longest])
    short = " ".join(shown.split())
    return short if len(short) <= longest else f"{short[:longest]}…"


def _check_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise UnreadableImage("a folder, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableImage("not a regular file but a pipe, a socket or a device")
