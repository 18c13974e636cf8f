"""Memory for decoding, shared by all threads: a file of a few kilobytes can ask for gigabytes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tagkin.errors import UnreadableImage
from tagkin.images.files import amount
from tagkin.machine import memory_at_hand

__all__ = ["DecodingMemory", "decoding_memory"]

_MOST = 2 << 30  # bytes that photographs being decoded at the same time may take together
_SHARE = 4  # and never more than this part of the memory


class DecodingMemory:
    """Bytes that photographs take while they are decoded, over all threads together.

    Threads wait for each other, in the order in which they came. A photograph that takes more
    than all of it waits until nobody else decodes, and then goes alone.

    Parameters
    ----------
    n_bytes : int
    at_hand : int or None
        Of the machine; what takes more is refused. None is no limit.
    """

    def __init__(self, n_bytes: int, at_hand: int | None = None):
        self.n_bytes, self._at_hand = n_bytes, at_hand
        self._begin()

    def _begin(self) -> None:
        self._left = self.n_bytes
        self._turn = threading.Lock()
        self._change = threading.Condition()

    @contextmanager
    def taking(self, n_bytes: int) -> Iterator[None]:
        """Within the ``with`` statement, so many bytes are taken.

        Raises
        ------
        UnreadableImage
            If there is not so much memory at all.
        """
        if self._at_hand is not None and n_bytes > self._at_hand:
            there = f"this machine has {amount(self._at_hand)} for it"
            raise UnreadableImage(f"decoding it takes {amount(n_bytes)} of memory; {there}")
        taken = min(n_bytes, self.n_bytes)
        with self._turn, self._change:  # the turn: small ones do not overtake a large one for ever
            self._change.wait_for(lambda: self._left >= taken)
            self._left -= taken
        try:
            yield
        finally:
            with self._change:
                self._left += taken
                self._change.notify_all()


def _shared() -> DecodingMemory:
    at_hand = memory_at_hand()
    return DecodingMemory(_MOST if at_hand is None else min(_MOST, at_hand // _SHARE), at_hand)


decoding_memory = _shared()
if hasattr(os, "register_at_fork"):  # what threads of the parent have taken stays with it
    os.register_at_fork(after_in_child=decoding_memory._begin)
