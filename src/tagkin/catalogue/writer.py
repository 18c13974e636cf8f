"""One writer: whoever comes second gets a sentence.

The lock is the system's own, on a file beside the catalogue: it ends with the process, however
that ends.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from pathlib import Path
from typing import BinaryIO

from tagkin.errors import StorageError
from tagkin.filesystem import try_lock

__all__ = ["WriterLock"]


class WriterLock:
    """The right to write to a catalogue, taken at once or refused.

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
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO | None = self._path.open("a+b")
        except OSError as error:
            raise StorageError(
                f"The catalogue {path} cannot be written: {error.strerror}. Name another place "
                "with --catalogue."
            ) from error
        if try_lock(self._file) is False:  # without any locks, SQLite's own must do
            said = self._holder(self._file)
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

    @staticmethod
    def _holder(file: BinaryIO) -> str:
        try:
            file.seek(0)
            command, process, since = json.loads(file.read(1000))
        except (OSError, ValueError):
            return "Another tagkin"
        return f"`tagkin {command}` (process {process}, since {since})"

    def release(self) -> None:
        """Let the next one write."""
        file, self._file = self._file, None
        if file is not None:
            file.close()  # which ends the lock
