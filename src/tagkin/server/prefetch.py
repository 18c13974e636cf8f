"""Make thumbnails of all photographs in the background."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from tagkin.server.readers import Readers
from tagkin.server.thumbnail_cache import SIZES, Thumbnails

_BLOCK = 200  # photographs per query
_NICE = 15
_PAUSE = 0.002  # seconds after each thumbnail, so other threads can run
_PATIENCE = 5.0  # seconds for the thread to stop


class ThumbnailPrefetcher:
    """Makes the missing thumbnails of grids one after the other, at a low priority.

    Scrolling is faster than making thumbnails of large photographs. The thread ends when all
    thumbnails exist, or when there is no room for more.
    """

    def __init__(self, readers: Readers, thumbnails: Thumbnails):
        self._readers, self._thumbnails = readers, thumbnails
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="thumbnail prefetcher", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after the current thumbnail."""
        self._is_closed.set()
        self._thread.join(_PATIENCE)

    def wait(self, seconds: float) -> bool:
        """Wait for all thumbnails; return whether they exist."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        _lower_priority()
        last = 0
        while True:
            with self._readers.connection() as catalogue:
                contents = catalogue.photographs.contents_after(last, _BLOCK)
                existing = catalogue.photographs.files_of(contents).values()
                files = [(catalogue.absolute(file.path), file.digest) for file in existing]
            if not contents:
                return
            missing = [pair for pair in files if not self._thumbnails.has(pair[1], SIZES[0])]
            for file, digest in missing:
                if self._is_closed.wait(_PAUSE) or self._thumbnails.is_nearly_full:
                    return
                self._thumbnails.picture(file, digest, SIZES[0])
            if self._is_closed.wait(_PAUSE):
                return
            last = contents[-1]


def _lower_priority() -> None:
    """Give this thread a low priority, on systems with priorities of threads."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
