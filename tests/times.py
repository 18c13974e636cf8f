"""Which tests cost the processor most: `make times`.

Processor seconds of a test and of the processes that it started and ended. Other programs beside
it change them little, unlike the seconds that pass. What the processes of a browser and of a Dask
cluster take is not among them: theirs outlive a test, or are not its own children.
"""

import resource
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

N_SHOWN = 40


def spent() -> float:
    """Processor seconds of this process and of those it has waited for."""
    parts = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in parts)


@contextmanager
def measured(item: pytest.Item, phase: str) -> Iterator[None]:
    """Note what is spent, where the report of the test takes it to the process that sums up."""
    before = spent()
    try:
        yield
    finally:
        item.user_properties.append((phase, spent() - before))


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
