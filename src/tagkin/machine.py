"""What this process may have of the machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["memory_at_hand"]

_CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")  # what a container may have


def memory_at_hand() -> int | None:
    """Bytes that this process may have: of the machine, of its container, by its limits."""
    found = []
    with suppress(AttributeError, OSError, ValueError):  # not on every system
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):
        found.append(int(_CONTROL_GROUP.read_text()))
    with suppress(ImportError):
        import resource

        found += [
            resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)
        ]
    return min((n for n in found if n > 0), default=None)
