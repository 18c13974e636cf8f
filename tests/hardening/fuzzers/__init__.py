"""Fuzzers: inputs made at random from a seed, and what must hold for every one of them.

A module here is a fuzzer. It has

``fuzz(effort: Effort, seed: int, keep: Path) -> Report``
    Tries inputs, the same ones for the same seed, for about so many seconds or so many of them. An
    input for which something does not hold is written to `keep`, with the traceback beside it, and
    the run goes on.

``python -m tests.hardening.fuzz`` runs them.
"""

import hashlib
import math
import random
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import hypothesis

__all__ = ["Effort", "Report", "try_inputs", "try_structured"]

MAX_FAILURES = 20  # of one run: the first ones say enough


@dataclass
class Report:
    """What a fuzzer found.

    Attributes
    ----------
    name : str
        Of the fuzzer.
    n_tried, n_clean : int
        Inputs, and those for which all held.
    failures : list of Path
        Inputs for which something did not, one file each.
    """

    name: str
    n_tried: int = 0
    n_clean: int = 0
    failures: list[Path] = field(default_factory=list)


@dataclass(frozen=True)
class Effort:
    """How much is tried: inputs until a time is over, or so many; at least one."""

    seconds: float = math.inf
    n_inputs: float = math.inf

    def half(self) -> Self:
        """Half of it."""
        return replace(self, seconds=self.seconds / 2, n_inputs=self.n_inputs / 2)

    def begin(self) -> Callable[[Report], bool]:
        """From now on: whether another input is tried."""
        end = time.monotonic() + self.seconds

        def goes_on(report: Report) -> bool:
            if not report.n_tried:
                return True
            within = report.n_tried < self.n_inputs and time.monotonic() < end
            return within and len(report.failures) < MAX_FAILURES

        return goes_on


def try_inputs(
    name: str,
    make: Callable[[random.Random], bytes],
    check: Callable[[bytes], object],
    effort: Effort,
    seed: int,
    keep: Path,
    suffix: str = ".bin",
) -> Report:
    """Make inputs and check each, as long as the effort lasts.

    Parameters
    ----------
    make : function of random.Random
        An input. Every one gets a generator of its own, from the seed and its number.
    check : function of bytes
        Raises whatever it likes where something does not hold.
    suffix : str
        Of the files of failing inputs.

    Notes
    -----
    The input at hand stands in ``NAME-at-hand`` while it is checked: where the process ends by a
    signal, it is still there.
    """
    keep.mkdir(parents=True, exist_ok=True)
    report, at_hand, goes_on = Report(name), keep / f"{name}-at-hand{suffix}", effort.begin()
    while goes_on(report):
        data = make(random.Random(f"{seed} {report.n_tried}"))
        report.n_tried += 1
        at_hand.write_bytes(data)
        try:
            check(data)
        except Exception:
            report.failures.append(keep_input(name, data, keep, suffix))
        else:
            report.n_clean += 1
    at_hand.unlink()
    return report


def try_structured(
    name: str,
    inputs: Any,
    check: Callable[[bytes], object],
    effort: Effort,
    seed: int,
    keep: Path,
    suffix: str = ".bin",
) -> Report:
    """As `try_inputs`, for bytes that a strategy of Hypothesis makes; it shrinks what fails."""
    keep.mkdir(parents=True, exist_ok=True)
    report, last, goes_on = Report(name), [b""], effort.begin()
    quick = hypothesis.settings(
        max_examples=30,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    while goes_on(report):

        @hypothesis.seed(hash((seed, report.n_tried)))
        @quick
        @hypothesis.given(inputs)
        def one_round(data: bytes) -> None:
            last[0] = data
            report.n_tried += 1
            check(data)
            report.n_clean += 1

        try:
            one_round()
        except Exception:
            report.failures.append(keep_input(name, last[0], keep, suffix))
    return report


def together(name: str, *reports: Report) -> Report:
    """Several reports as one."""
    return Report(
        name,
        sum(report.n_tried for report in reports),
        sum(report.n_clean for report in reports),
        [path for report in reports for path in report.failures],
    )


def keep_input(name: str, data: bytes, keep: Path, suffix: str) -> Path:
    """Write a failing input and the traceback of the error being handled; where it is."""
    path = keep / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}{suffix}"
    path.write_bytes(data)
    path.with_name(f"{path.name}.txt").write_text(traceback.format_exc())
    return path
