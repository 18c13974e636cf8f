"""Pillow's warnings, kept from people who can do nothing about them."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["quiet"]

_lock = threading.Lock()
_inside = 0
_filters = warnings.catch_warnings()


@contextmanager
def quiet() -> Iterator[None]:
    """While any thread is inside, Pillow's warnings are not shown, and are no errors either.

    Python's own context for this is one for the whole process: threads that leave it in another
    order than they came would leave its filters behind. So the first thread in enters it, and
    the last one out leaves it.
    """
    global _inside, _filters
    if getattr(sys.flags, "context_aware_warnings", False):  # one for each thread, in new Pythons
        with warnings.catch_warnings():
            _ignore_pillow()
            yield
        return
    with _lock:
        if _inside == 0:
            _filters = warnings.catch_warnings()
            _filters.__enter__()
            _ignore_pillow()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _filters.__exit__(None, None, None)


def _ignore_pillow() -> None:
    warnings.filterwarnings("ignore", module=r"(PIL|pillow_heif)(\.|$)")
