"""Progress of long tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

__all__ = ["SCANNING", "Counted", "Progress", "silent", "with_progress"]

Progress: TypeAlias = Callable[[str, int, int], None]
"""A function of the name of a step, the number of finished parts and their total."""

SCANNING = "Scanning"
"""The name of the step of a scan that goes on beside other steps; it is done with its total."""

T = TypeVar("T")


def silent(what: str, done: int, total: int) -> None:
    """Ignore the progress."""


class Counted:
    """Counts finished parts of a task and reports them to `step`; `total` may grow."""

    def __init__(self, step: Progress, what: str, total: int):
        self.total = total
        self._step, self._what, self._done = step, what, 0
        step(what, 0, total)

    def __call__(self) -> None:
        """Count a finished part."""
        self._done += 1
        self._step(self._what, self._done, self.total)


def with_progress(
    items: Iterable[T], total: int, what: str, progress: bool | Progress
) -> Iterator[T]:
    """Yield the items and report to `progress`, or draw a bar on a terminal if it is True."""
    from tqdm.auto import tqdm  # slow to import, and not always needed

    step = progress if callable(progress) else silent
    hidden = None if progress is True else True  # None: draw only on a terminal
    with tqdm(total=total, desc=what, disable=hidden, leave=False) as bar:
        for done, item in enumerate(items, 1):
            yield item
            bar.update()
            step(what, done, total)
