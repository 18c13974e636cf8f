"""The lock that lets one process write to a catalogue.

It is the system's lock on a file beside the catalogue, so it ends with the process. A second writer
waits briefly; then it gets an error that names the first.
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

_PAUSE = 0.05  # seconds between attempts
_N_ATTEMPTS = 100  # most commands finish writing by then
_LONG_COMMANDS = ("review",)  # run until a person stops them, so waiting is pointless
_LONGEST_NOTE = 1000  # bytes that a writer notes about itself


class WriterLock:
    """The right to write to the catalogue at `path`; raises an error if another process keeps it.

    `command` is the writer's command, for the error of a second writer.
    """

    def __init__(self, path: Path, command: str):
        self._path = path.with_name(f"{path.name}-writer")
        try:
            make_private_folder(path.parent)
            # unbuffered, because a full disk would refuse what a buffer writes when it is closed
            file = open(self._path, "a+b", buffering=0, opener=open_private)  # noqa: SIM115
        except OSError as error:
            raise StorageError(
                f"The catalogue {path} cannot be written: {error.strerror}. Name another place "
                "with --catalogue."
            ) from error
        if not self._acquire(file):
            writer = _describe(*self._read_holder(file))
            file.close()
            raise StorageError(
                f"{writer} is writing to the catalogue {path}. Wait until it has finished, or "
                "close it."
            )
        now = datetime.datetime.now().strftime("%H:%M")
        with contextlib.suppress(OSError):
            file.truncate(0)
            file.write(json.dumps([command, os.getpid(), now]).encode())
        self._file: BinaryIO | None = file

    def _acquire(self, file: BinaryIO) -> bool:
        """Whether this process may write now; without system locks, SQLite's must do."""
        for attempt in range(_N_ATTEMPTS):  # counted, because a suspended process does not try
            if try_lock(file) is not False:
                return True
            # at the first attempt, the note may be of a process that has just ended
            if attempt and self._read_holder(file)[0] in _LONG_COMMANDS:
                return False
            time.sleep(_PAUSE)
        return try_lock(file) is not False

    @staticmethod
    def _read_holder(file: BinaryIO) -> tuple[str, int | None, str]:
        """Return the writer's command, process ID and start time, empty if unreadable."""
        try:
            file.seek(0)
            command, process, since = json.loads(file.read(_LONGEST_NOTE))
        except (OSError, ValueError):
            return "", None, ""
        return command, process, since

    def release(self) -> None:
        """Let the next process write."""
        file, self._file = self._file, None
        if file is not None:
            file.close()  # which ends the lock


def _describe(command: str, process: int | None, since: str) -> str:
    if process is None:
        return "Another tagkin"
    return f"`tagkin {command}` (process {process}, since {since})"
