"""One writer: whoever comes second waits a moment, and gets a sentence if that was not enough.

The lock is the system's own, on a file beside the catalogue: it ends with the process, however
that ends.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import time
from pathlib import Path
from typing import BinaryIO

from tagkin.errors import StorageError
from tagkin.filesystem import make_private_folder, open_private, try_lock

__all__ = ["WriterLock"]

_ASKED_AGAIN = 0.05  # seconds
_ASKED = 100  # times: most commands have done their writing by then
_AT_LEISURE = "review"  # goes on for as long as somebody looks: nobody waits for that
_WRITTEN = 1000  # bytes of what a writer says of itself, at most


class WriterLock:
    """The right to write to a catalogue, taken within some seconds or refused.

    Parameters
    ----------
    path : Path
        Of the catalogue.
    command : str
        What the writer is doing.
    """

    def __init__(self, path: Path, command: str):
        self._path = path.with_name(f"{path.name}-writer")
        try:
            make_private_folder(path.parent)
            self._file: BinaryIO | None = open(self._path, "a+b", opener=open_private)  # noqa: SIM115
        except OSError as error:
            raise StorageError(
                f"The catalogue {path} cannot be written: {error.strerror}. Name another place "
                "with --catalogue."
            ) from error
        if not self._taken(self._file):
            said = _said_of(*self._holder(self._file))
            self._file.close()
            raise StorageError(
                f"{said} is writing to the catalogue {path}. Wait until it has finished, or close "
                "it."
            )
        now = datetime.datetime.now().strftime("%H:%M")
        with contextlib.suppress(OSError):
            self._file.truncate(0)
            self._file.write(json.dumps([command, os.getpid(), now]).encode())
            self._file.flush()

    def _taken(self, file: BinaryIO) -> bool:
        """Whether this one may write now; without any locks, SQLite's own must do."""
        for n_asked in range(_ASKED):  # counted: who stood still has not asked meanwhile
            if try_lock(file) is not False:
                return True
            # at the first look, what is said may be of one that has just ended
            if n_asked and self._holder(file)[0] == _AT_LEISURE:
                return False
            time.sleep(_ASKED_AGAIN)
        return try_lock(file) is not False

    @staticmethod
    def _holder(file: BinaryIO) -> tuple[str, int | None, str]:
        """What the writer does, its process, and since when; nothing where it cannot be read."""
        try:
            file.seek(0)
            command, process, since = json.loads(file.read(_WRITTEN))
        except (OSError, ValueError):
            return "", None, ""
        return command, process, since

    def release(self) -> None:
        """Let the next one write."""
        file, self._file = self._file, None
        if file is not None:
            file.close()  # which ends the lock


def _said_of(command: str, process: int | None, since: str) -> str:
    if process is None:
        return "Another tagkin"
    return f"`tagkin {command}` (process {process}, since {since})"
