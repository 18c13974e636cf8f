"""Threads that take turns, so that what they add up does not depend on which is done first."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator

__all__ = ["Turns"]


class Turns:
    """Turns of threads 0 … n−1: the first of each, in this order, then the second of each …

    All of them have to run at the same time. A thread waits for the turns before its own alone:
    it may be ahead of the others by what it does between two turns.
    """

    def __init__(self, n_threads: int) -> None:
        self._taken = [0.0] * n_threads
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def taken_by(self, thread: int) -> Iterator[None]:
        """Around all that a thread does: when it leaves, or fails, nobody waits for it any more."""
        try:
            yield
        finally:
            self._note(thread, math.inf)

    @contextlib.contextmanager
    def next_of(self, thread: int) -> Iterator[None]:
        """Around the next turn of a thread."""
        number = self._taken[thread]

        def is_next() -> bool:
            return all(
                taken >= number + (other < thread)
                for other, taken in enumerate(self._taken)
                if other != thread
            )

        with self._changed:
            self._changed.wait_for(is_next)
        yield
        self._note(thread, number + 1)

    def _note(self, thread: int, taken: float) -> None:
        with self._changed:
            self._taken[thread] = taken
            self._changed.notify_all()
