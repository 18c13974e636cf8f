"""Settings of Pillow for the whole process, changed while any thread decodes."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from PIL import Image

__all__ = ["MAX_PIXELS", "limit_pixels", "quiet"]

# Without a handler, Python would print what Pillow logs about damaged files.
logging.getLogger("PIL").addHandler(logging.NullHandler())

MAX_PIXELS = 256_000_000  # telephones take 200 megapixels


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
        warnings.filterwarnings("ignore", module=r"(PIL|pillow_heif)(\.|$)")
        yield


@contextmanager
def _set_limit() -> Iterator[None]:
    before = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS // 2  # Pillow rejects more than twice as many
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS = before


limit_pixels = _SharedContext(_set_limit)
"""Context in which Pillow rejects images of more than `MAX_PIXELS`."""

_is_per_thread = getattr(sys.flags, "context_aware_warnings", False)
quiet = _ignore_warnings if _is_per_thread else _SharedContext(_ignore_warnings)
"""Context in which Pillow's warnings are neither shown nor errors."""
