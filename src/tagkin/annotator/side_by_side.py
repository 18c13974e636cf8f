"""Parts of the work that are done at once, where that pays and memory holds what they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TypeVar

from tagkin.arrays import blas_threads, run_tasks, start_in_thread

__all__ = ["beside", "fit_at_once", "one_thread_beside", "outcomes", "pay_beside"]

T = TypeVar("T")

_MANY = 2000  # images: work on fewer is Python's rather than NumPy's, and threads wait
_SIDE_BY_SIDE = 20_000  # images, at most, of which folds are learned from at once: it takes memory


def fit_at_once(n_images: int) -> bool:
    """Whether memory holds what all folds of so many images are learned from."""
    return n_images <= _SIDE_BY_SIDE


def pay_beside(n_images: int) -> bool:
    """Whether work on so many images is done sooner in two threads."""
    return n_images >= _MANY and fit_at_once(n_images)


def outcomes(tasks: Sequence[Callable[[], T]], n_images: int) -> Iterator[T]:
    """What each task returns, in their order; all at once, unless of so many images."""
    if fit_at_once(n_images):
        return run_tasks(tasks)
    return (task() for task in tasks)


def beside(task: Callable[[], T], n_images: int) -> Callable[[], T]:
    """Returns what a task does, when called; it begins at once, unless images are few or many.

    Work on few of them is Python's rather than NumPy's, and threads wait for each other.
    """
    return start_in_thread(task) if pay_beside(n_images) else cache(task)


def one_thread_beside(n_images: int) -> AbstractContextManager[None]:
    """One thread of BLAS for what goes on beside a task that was begun, also when that is done.

    Products are rounded by the number of threads: it must not depend on which is done first.
    """
    return blas_threads(1) if pay_beside(n_images) else nullcontext()
