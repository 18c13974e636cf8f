"""Limit the memory of all decoding threads, because a tiny file can need gigabytes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tagkin.errors import UnreadableImage
from tagkin.images.image_files import amount
from tagkin.machine import available_memory

__all__ = ["DecodingMemory", "decoding_memory"]

_MOST = 2 << 30  # bytes for all photographs that are decoded at the same time
_SHARE = 4  # and at most a quarter of the memory


class DecodingMemory:
    """Memory that all decoding threads share.

    Threads wait for each other in order. A photograph that needs more than `n_bytes` waits until
    no other thread decodes. It is rejected if it needs more than `available`, the machine's memory.
    """

    def __init__(self, n_bytes: int, available: int | None = None):
        self.n_bytes, self._available = n_bytes, available
        self._reset()

    def _reset(self) -> None:
        self._left = self.n_bytes
        self._turn = threading.Lock()
        self._change = threading.Condition()

    @contextmanager
    def reserve(self, n_bytes: int) -> Iterator[None]:
        """Wait for memory and reserve it within the ``with`` statement.

        Raises `UnreadableImage` if the machine does not have that much memory.
        """
        if self._available is not None and n_bytes > self._available:
            limit = f"this machine has {amount(self._available)} for it"
            raise UnreadableImage(f"decoding it takes {amount(n_bytes)} of memory; {limit}")
        reserved = min(n_bytes, self.n_bytes)
        with self._turn, self._change:  # the turn stops small requests from overtaking a large one
            self._change.wait_for(lambda: self._left >= reserved)
            self._left -= reserved
        try:
            yield
        finally:
            with self._change:
                self._left += reserved
                self._change.notify_all()


_available = available_memory()
decoding_memory = DecodingMemory(
    _MOST if _available is None else min(_MOST, _available // _SHARE), _available
)
if hasattr(os, "register_at_fork"):  # a child has none of the parent's decoding threads
    os.register_at_fork(after_in_child=decoding_memory._reset)
