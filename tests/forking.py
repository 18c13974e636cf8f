"""Work in a child process that starts at once, with everything imported, and may be killed."""

import multiprocessing
import os
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def in_child(work: Callable[[], object]) -> int:
    """Do work in a process of its own; its number. It ends with 0, or with 1 after an error."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


@contextmanager
def lean_process() -> Iterator[Callable[..., Any]]:
    """A function that calls another, with its arguments, in a process that has imported little.

    There a fork takes a millisecond or two. A process that has collected all tests has hundreds of
    megabytes, whose tables are copied each time. The function must be one of a module, and its
    arguments are sent; what it raises is raised here.
    """
    root = Path(__file__).parents[1]
    start = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, start, initializer=_begin, initargs=(root,)) as pool:
        yield lambda work, *args: pool.submit(work, *args).result()


def _begin(root: Path) -> None:
    os.chdir(root)
