"""Which tests cost the processor most: `make times`.

Processor seconds of a test and of the processes that it started and ended. Other programs beside
it change them little, unlike the seconds that pass.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

resource = pytest.importorskip("resource", reason="processor seconds are those of Unix")

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
    found: dict[str, dict[str, float]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                found.setdefault(report.nodeid, {}).update(report.user_properties)
    tests = Counter({name: sum(phases.values()) for name, phases in found.items()})
    files: Counter[str] = Counter()
    for name, seconds in tests.items():
        files[name.partition("::")[0]] += seconds  # type: ignore[assignment]
    terminalreporter.section(f"{sum(tests.values()):.0f} processor seconds of {len(tests)} tests")
    for counted in (files, tests):
        for name, seconds in counted.most_common(N_SHOWN):
            terminalreporter.line(f"{seconds:7.2f} {name}")
        terminalreporter.line("")
