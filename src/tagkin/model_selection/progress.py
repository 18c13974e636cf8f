"""Progress of long runs: a bar on a terminal, or a function that is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

__all__ = ["Progress", "with_progress"]

Progress = bool | Callable[[int, int], None]

T = TypeVar("T")


def with_progress(items: Iterable[T], total: int, title: str, progress: Progress) -> Iterator[T]:
    """Pass items on, and show or tell after each how many of `total` are done."""
    from tqdm.auto import tqdm  # which learning does without, and takes long to import

    told = progress if callable(progress) else None
    # None: a bar only where there is a terminal
    hidden = True if told is not None or not progress else None
    with tqdm(total=total, desc=title, disable=hidden, leave=False) as bar:
        for done, item in enumerate(items, 1):
            yield item
            bar.update()
            if told is not None:
                told(done, total)
