"""Which tests cost the processor most: `make times`.

Processor seconds of a test and of the processes that it started, which another program beside it
changes little, unlike the seconds that pass.
"""

import json
import os
import resource
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

SHOWN = 40


def spent() -> float:
    """Processor seconds of this process and of the processes it has waited for."""
    parts = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in parts)


@contextmanager
def measured(item: pytest.Item, phase: str) -> Iterator[None]:
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
    tests: dict[str, dict[str, float]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                tests.setdefault(report.nodeid, {}).update(report.user_properties)
    if os.environ.get("TIMES_JSON"):
        with open(os.environ["TIMES_JSON"], "w") as f:
            json.dump(tests, f)
