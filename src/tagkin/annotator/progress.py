"""How far a long piece of work is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TypeAlias

__all__ = ["Progress", "counted", "silent"]

Progress: TypeAlias = Callable[[str, int, int], None]
"""A function of what is done, how many parts of it are done, and how many there are."""


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""


def counted(step: Progress, what: str, total: int) -> Callable[[], None]:
    """A function that tells `step` each time that one more of `total` parts is done."""
    done = count(1)
    step(what, 0, total)
    return lambda: step(what, next(done), total)
