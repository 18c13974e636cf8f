"""How far a long piece of work is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Counted", "Progress", "silent"]

Progress: TypeAlias = Callable[[str, int, int], None]
"""A function of what is done, how many parts of it are done, and how many there are."""


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""


class Counted:
    """Tells `step` each time that one more of `total` parts is done; there may be more later."""

    def __init__(self, step: Progress, what: str, total: int):
        self.total = total
        self._step, self._what, self._done = step, what, 0
        step(what, 0, total)

    def __call__(self) -> None:
        """One more part is done."""
        self._done += 1
        self._step(self._what, self._done, self.total)
