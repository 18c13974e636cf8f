"""Thumbnails of all photographs, made while nobody waits for them."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING

from tagkin.catalogue import pictured
from tagkin.server.thumbnails import SIZES, Thumbnails

if TYPE_CHECKING:
    from tagkin.server.review import Readers

__all__ = ["ThumbnailsAhead"]

_BLOCK = 200  # photographs that are looked up at once
_NICE = 15
_PAUSE = 0.002  # seconds after each one: others need the interpreter, too
_PATIENCE = 5.0  # seconds for the thread to end


class ThumbnailsAhead:
    """Makes the thumbnails that grids show, one after the other, at a low priority.

    A thumbnail of a large photograph takes longer than it takes to scroll past it. Those that are
    there are left alone, and it ends when all are there, or when there is no room for more.

    Parameters
    ----------
    readers : Readers
        Of the catalogue.
    thumbnails : Thumbnails
    """

    def __init__(self, readers: Readers, thumbnails: Thumbnails):
        self._readers, self._thumbnails = readers, thumbnails
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="thumbnails ahead", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it, after the one that it is at."""
        self._is_closed.set()
        self._thread.join(_PATIENCE)

    def wait(self, seconds: float) -> bool:
        """Wait until all are there; whether they are."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        _step_back()
        last = 0
        while True:
            with self._readers.one() as catalogue:
                rows = catalogue.rows(
                    "SELECT id FROM contents WHERE id > ? ORDER BY id LIMIT ?", (last, _BLOCK)
                )
                found = pictured(catalogue, [content for (content,) in rows]).values()
                files = [(catalogue.absolute(one.path), one.digest) for one in found]
            if not rows:
                return
            missing = [one for one in files if not self._thumbnails.has(one[1], SIZES[0])]
            for file, digest in missing:
                if self._is_closed.wait(_PAUSE) or self._thumbnails.is_nearly_full:
                    return
                self._thumbnails.picture(file, digest, SIZES[0])
            if self._is_closed.wait(_PAUSE):
                return
            ((last,),) = rows[-1:]


def _step_back() -> None:
    """Let this thread have a low priority, where threads have one of their own."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
