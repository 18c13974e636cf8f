"""Append-only files of small records, which a kill at any byte cannot corrupt.

A ledger is a folder of files, one for each process that is writing at the time. A file begins
with a header and goes on with records of one size, each with a checksum. A record that was cut
short or damaged is not there when the file is read; the records before it are. A file is
continued by whoever gets its lock, after what was cut short at its end has been removed.
"""

from __future__ import annotations

import os
import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

__all__ = ["LedgerFile", "ledger_files", "open_for_writing"]

_MAGIC = b"tagkin-ledger-1\n"
_CHECKSUM = 4


class LedgerFile:
    """One file of a ledger.

    Parameters
    ----------
    path : Path
    size : int
        Bytes of a record, without its checksum.
    """

    def __init__(self, path: Path, size: int):
        self.path = path
        self.size = size

    @property
    def header(self) -> bytes:
        """What a whole file begins with."""
        start = _MAGIC + self.size.to_bytes(4, "little")
        return start + zlib.crc32(start).to_bytes(_CHECKSUM, "little")

    def count(self, n_bytes: int) -> int:
        """How many records fit a file of that length, the damaged ones among them."""
        return max(0, n_bytes - len(self.header)) // (self.size + _CHECKSUM)

    def read(self) -> Iterator[tuple[int, bytes]]:
        """Place and content of all whole records; none where the file is no ledger."""
        step = self.size + _CHECKSUM
        with self.path.open("rb") as file:
            if file.read(len(self.header)) != self.header:
                return
            place = 0
            while block := file.read(4096 * step):
                for start in range(0, len(block) - step + 1, step):
                    record = block[start : start + self.size]
                    found = block[start + self.size : start + step]
                    if found == zlib.crc32(record).to_bytes(_CHECKSUM, "little"):
                        yield place, record
                    place += 1

    def sealed(self, records: np.ndarray | list[bytes]) -> bytes:
        """Records with their checksums, ready to be written."""
        return b"".join(r + zlib.crc32(r).to_bytes(_CHECKSUM, "little") for r in records)


def ledger_files(folder: Path, size: int) -> list[LedgerFile]:
    """The files of a ledger, in a fixed order; none where there is no folder."""
    return [LedgerFile(path, size) for path in sorted(folder.glob("*.ledger"))]


def open_for_writing(folder: Path, size: int) -> tuple[LedgerFile, IO[bytes]]:
    """A file of a ledger that is nobody else's until it is closed, open at its end.

    An old file where one is free, else a new one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for ledger in ledger_files(folder, size):
        file = ledger.path.open("r+b", buffering=0)
        if _lock(file) and _continue(ledger, file):
            return ledger, file
        file.close()
    ledger = LedgerFile(folder / f"{secrets.token_hex(8)}.ledger", size)
    file = ledger.path.open("x+b", buffering=0)
    _lock(file)  # where files cannot be locked, nobody else continues this one either
    file.write(ledger.header)
    return ledger, file


def _continue(ledger: LedgerFile, file: IO[bytes]) -> bool:
    """Remove what was cut short at the end; False where the file is something else."""
    start = file.read(len(ledger.header))
    if len(start) < len(ledger.header) and ledger.header.startswith(start):
        file.seek(0)
        file.write(ledger.header)
        return True
    if start != ledger.header:
        return False
    n_bytes = os.fstat(file.fileno()).st_size
    end = len(ledger.header) + ledger.count(n_bytes) * (ledger.size + _CHECKSUM)
    file.truncate(end)
    file.seek(end)
    return True


def _lock(file: Any) -> bool:
    """Whether the file is now ours alone; the lock ends with the file or the process."""
    try:
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            file.seek(2**40)  # a byte that no record has, so that others can read
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            file.seek(0)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
