"""Thumbnails of all photographs, made while nobody waits for them."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from tagkin.server.readers import Readers
from tagkin.server.thumbnails import SIZES, Thumbnails

__all__ = ["ThumbnailPrefetcher"]

_BLOCK = 200  # photographs that are looked up at once
_NICE = 15
_PAUSE = 0.002  # seconds after each one: others need the interpreter, too
_PATIENCE = 5.0  # seconds for the thread to end


class ThumbnailPrefetcher:
    """Makes the thumbnails that grids show, one after the other, at a low priority.

    A thumbnail of a large photograph takes longer than it takes to scroll past it. Existing
    thumbnails stay. The work ends when all are there, or when there is no room for more.

    Parameters
    ----------
    readers : Readers
        Of the catalogue.
    thumbnails : Thumbnails
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
        """Wait for all thumbnails; return whether they are there."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        _step_back()
        last = 0
        while True:
            with self._readers.one() as catalogue:
                contents = catalogue.photographs.contents_after(last, _BLOCK)
                there = catalogue.photographs.files_of(contents).values()
                files = [(catalogue.absolute(file.path), file.digest) for file in there]
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


def _step_back() -> None:
    """Give this thread a low priority, if threads have their own."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
