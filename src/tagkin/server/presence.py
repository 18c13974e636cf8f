"""Which pages are open, so that a server can end when the last one was closed.

A page says so when it opens, every minute, and when it closes. A browser may stop the clock of a
page that nobody looks at, so a page that says nothing counts as open for an hour.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds between the end of the last page and that of the server."""
SILENCE = 3600.0
"""Seconds without a word from a page, after which it counts as closed."""
_STEP = 0.5  # seconds between two looks
_JUMP = 30.0  # seconds between two looks after which the machine has slept
_MOST = 1000  # pages that are remembered


class Presence:
    """The open pages of a server, by the names that they gave themselves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heard: dict[str, float] = {}
        self._left_at: float | None = None
        self._is_stopped = threading.Event()

    def note(self, page: str, is_open: bool) -> None:
        """Note that a page is open, or was closed."""
        now = time.monotonic()
        with self._lock:
            was_open = self._heard.pop(page, None) is not None
            if is_open:
                self._heard[page] = now
                while len(self._heard) > _MOST:
                    del self._heard[next(iter(self._heard))]
            elif was_open and not self._heard:
                self._left_at = now

    def is_left(self) -> bool:
        """Whether there were pages, and all have been closed for a while."""
        now = time.monotonic()
        with self._lock:
            silent = [page for page, at in self._heard.items() if now - at > SILENCE]
            for page in silent:
                del self._heard[page]
            if silent and not self._heard:
                self._left_at = now
            if self._heard or self._left_at is None:
                return False
            return now - self._left_at > PATIENCE

    def watch(self, end: Callable[[], object], is_busy: Callable[[], bool]) -> None:
        """Call `end` from a thread when all pages are closed and nothing is left to finish."""
        threading.Thread(target=self._watch, args=(end, is_busy), daemon=True).start()

    def stop(self) -> None:
        """Watch no longer."""
        self._is_stopped.set()

    def _watch(self, end: Callable[[], object], is_busy: Callable[[], bool]) -> None:
        looked_at = time.time()
        while not self._is_stopped.wait(_STEP):
            now = time.time()
            if abs(now - looked_at) > _JUMP:  # pages have slept, too, and may be late
                self._forgive()
            looked_at = now
            if self.is_left() and not is_busy():
                end()
                return

    def _forgive(self) -> None:
        now = time.monotonic()
        with self._lock:
            self._heard = dict.fromkeys(self._heard, now)
            self._left_at = None if self._left_at is None else now
