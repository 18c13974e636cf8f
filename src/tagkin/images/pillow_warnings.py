"""Keep Pillow quiet while any thread decodes."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

__all__ = ["quiet"]

# Without a handler, Python would print what Pillow logs about damaged files.
logging.getLogger("PIL").addHandler(logging.NullHandler())


class _SharedContext:
    """A process-wide context that the first thread enters and the last thread leaves.

    Threads that left it in another order than they came would restore the wrong state.
    """

    def __init__(self, make_context: Callable[[], AbstractContextManager[None]]):
        self._make_context = make_context
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._n_inside = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._n_inside == 0:
                self._stack.enter_context(self._make_context())
            self._n_inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_inside -= 1
                if self._n_inside == 0:
                    self._stack.close()


@contextmanager
def _ignore_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(PIL|pi_heif)(\.|$)")
        yield


_is_per_thread = getattr(sys.flags, "context_aware_warnings", False)
quiet = _ignore_warnings if _is_per_thread else _SharedContext(_ignore_warnings)
"""Context in which Pillow's warnings are neither shown nor errors."""
