"""Read-only connections to the catalogue of a review."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from tagkin.catalogue import Catalogue, open_catalogue

_N_READERS = 4  # connections at the same time


class Readers:
    """A pool of read-only connections to a catalogue, each used by one thread at a time."""

    def __init__(self, path: Path):
        self._path = path
        self._free: deque[Catalogue] = deque()  # which any thread may change
        self._turn = threading.BoundedSemaphore(_N_READERS)

    @contextlib.contextmanager
    def connection(self) -> Iterator[Catalogue]:
        """Lend a connection, and wait for it if all are in use."""
        with self._turn:
            try:
                reader = self._free.pop()
            except IndexError:
                reader = open_catalogue(self._path)
            try:
                yield reader
            finally:
                self._free.append(reader)

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._free:
            self._free.pop().close()
