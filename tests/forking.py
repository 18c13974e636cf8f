"""Work in a child process that starts at once, with everything imported, and may be killed."""

import os
import traceback
from collections.abc import Callable

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


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
