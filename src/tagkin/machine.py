"""Memory of this process: how much it may take, and how it returns it."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["available_memory", "return_memory_at_once"]

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # of malloc.h
_LARGE = 1 << 20  # bytes
_N_ARENAS = 2
_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def available_memory() -> int | None:
    """Return the least of the machine's memory and this process's limits, in bytes, if known."""
    limits = []
    with suppress(AttributeError, OSError, ValueError):  # not on every system
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):
        limits.append(int(_CONTAINER_LIMIT.read_text()))
    with suppress(ImportError):
        import resource

        limits += [
            resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)
        ]
    return min((n for n in limits if n > 0), default=None)


def return_memory_at_once() -> None:
    """Let the C library of Linux return large blocks to the system when they are freed.

    By default it keeps blocks of up to 32 MB, for each thread. Decoded photographs are of that
    size, so a process of many threads would hold hundreds of megabytes that it does not use.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # musl has no mallopt
            library = ctypes.CDLL(None)
            library.mallopt(_M_MMAP_THRESHOLD, _LARGE)
            library.mallopt(_M_ARENA_MAX, _N_ARENAS)
