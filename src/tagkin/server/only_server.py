"""One server for a person: a file in the data folder says where it answers.

The file is for this user alone, and locked while the server runs. The system ends the lock with the
process, so the file of a killed server is recognised. Its old content is of no use to anybody.
"""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import BinaryIO

from tagkin.filesystem import make_private_folder, open_private, try_lock

FILE = "server.json"
_PAUSE, _N_LOOKS = 0.05, 100  # a server that has just started says where it answers by then
_LONGEST = 10_000  # bytes


class OnlyServer:
    """The place of a person's server: ours, or that of a server that runs already.

    If the file cannot be locked or written, every server counts as the only one.
    """

    def __init__(self, folder: Path):
        self.address: str | None = None
        """The address of a server that runs already, with its key."""
        self.root: Path | None = None
        """The collection that is open there."""
        self._file: BinaryIO | None = None
        with contextlib.suppress(OSError):
            make_private_folder(folder)
            file = open(folder / FILE, "a+b", opener=open_private)  # noqa: SIM115 (until close)
            if try_lock(file) is False:
                with file:
                    self._read(file)
            else:
                self._file = file

    def announce(self, address: str, root: Path | None) -> None:
        """Say where this process answers, and what is open there."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.truncate(0)
                text = json.dumps([address, None if root is None else str(root)])
                self._file.write(text.encode())
                self._file.flush()

    def close(self) -> None:
        """Let another server be the only one."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.truncate(0)
            self._file.close()
            self._file = None

    def _read(self, file: BinaryIO) -> None:
        for _ in range(_N_LOOKS):
            file.seek(0)
            with contextlib.suppress(ValueError):
                address, root = json.loads(file.read(_LONGEST))
                self.address, self.root = str(address), None if root is None else Path(str(root))
                return
            time.sleep(_PAUSE)
