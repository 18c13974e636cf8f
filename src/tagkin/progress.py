"""How far a long piece of work is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

__all__ = ["Counted", "Progress", "silent", "with_progress"]

Progress: TypeAlias = Callable[[str, int, int], None]
"""A function of what is done, how many parts of it are done, and how many there are."""

T = TypeVar("T")


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


def with_progress(
    items: Iterable[T], total: int, what: str, progress: bool | Progress
) -> Iterator[T]:
    """Yield the items; after each, tell `progress`, or draw a bar on a terminal if it is True."""
    from tqdm.auto import tqdm  # here: it takes long to import, and learning does without

    step = progress if callable(progress) else silent
    hidden = None if progress is True else True  # None: draw only on a terminal
    with tqdm(total=total, desc=what, disable=hidden, leave=False) as bar:
        for done, item in enumerate(items, 1):
            yield item
            bar.update()
            step(what, done, total)
