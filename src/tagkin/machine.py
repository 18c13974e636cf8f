"""Memory available to this process."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["available_memory"]

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
