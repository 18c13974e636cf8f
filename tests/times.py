"""Which tests cost the processor most: `make times`.

Processor seconds of a test and of the processes that it started. Other programs beside it change
them little, unlike the seconds that pass. Where Linux tells, what a browser, a Dask cluster or a
fork server takes meanwhile is among them, too, though these processes outlive a test.
"""

import contextlib
import os
import resource
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

N_SHOWN = 40


def spent() -> float:
    """Processor seconds of this process, of all below it, and of those they have waited for."""
    own, ended = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    seconds = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
    waiting = children(os.getpid())
    while waiting:
        process = waiting.pop()
        with contextlib.suppress(OSError), open(f"/proc/{process}/stat") as file:
            # utime, stime, cutime and cstime, the 14th field and those after it
            ticks = file.read().rpartition(")")[2].split()[11:15]
            seconds += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
            waiting += children(process)
    return seconds


def children(process: int) -> list[int]:
    """The processes that its threads have started; none where the system does not tell."""
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/children") as file:
                pids += map(int, file.read().split())
    return pids


@contextmanager
def measured(item: pytest.Item, phase: str) -> Iterator[None]:
    """Note what is spent, where the report of the test takes it to the process that sums up."""
    before = spent()
    try:
        yield
    finally:
        # a browser's own processes are waited for by nobody: what they took goes when they end
        item.user_properties.append((phase, max(0.0, spent() - before)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with measured(item, "setup"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with measured(item, "call"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with measured(item, "teardown"):
        return (yield)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    tests: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "teardown":
                tests[report.nodeid] = sum(
                    float(str(seconds)) for _, seconds in report.user_properties
                )
    files: dict[str, float] = defaultdict(float)
    for name, seconds in tests.items():
        files[name.partition("::")[0]] += seconds
    terminalreporter.section(f"{sum(tests.values()):.0f} processor seconds of {len(tests)} tests")
    for kind in (files, tests):
        for name in sorted(kind, key=kind.__getitem__, reverse=True)[:N_SHOWN]:
            terminalreporter.line(f"{kind[name]:7.2f} {name}")
        terminalreporter.line("")
