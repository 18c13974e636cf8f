"""Work in a child process with a limit on its memory."""

import os
from collections.abc import Callable

import pytest

from tests.forking import in_child

resource = pytest.importorskip("resource")


def addresses_in_use() -> int:
    """Bytes of addresses that this process has."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        pytest.skip("this system has no /proc, which tells the memory of a process")


def within(n_bytes: int, work: Callable[[], object], cpu_seconds: int | None = None) -> None:
    """Do work in a child that gets so many bytes of memory more than it starts with.

    Where `cpu_seconds` are given, it is ended when it has computed for so long.

    Raises
    ------
    AssertionError
        If the work fails, or is ended; its traceback is on standard error.
    """
    limit = addresses_in_use() + n_bytes

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        if cpu_seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        work()

    status = os.waitpid(in_child(limited), 0)[1]
    assert os.WIFEXITED(status), f"ended by signal {os.WTERMSIG(status)}"
    assert os.WEXITSTATUS(status) == 0, "the work failed: see its traceback"
