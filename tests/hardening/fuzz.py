"""Run the fuzzers: ``python -m tests.hardening.fuzz [NAMES] --seconds S --seed N``.

The time is shared equally. Each fuzzer runs in a process of its own with a limit on its memory,
so that one which ends by a signal, or takes all memory, is a failure like others. Failing inputs
are kept in build/fuzz; one that was mended belongs into tests/hardening/cases/NAME. What was tried
goes to build/fuzz.json.
"""

import argparse
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import time
from pathlib import Path

from tests.hardening import fuzzers, guided
from tests.hardening.fuzzers import Effort, Report

ROOT = Path(__file__).parents[2]
KEEP = ROOT / "build" / "fuzz"
MEMORY = 6 << 30  # bytes of addresses; the libraries alone take two
PATIENCE = 300  # seconds that an input may take beyond the end, on a machine with much to do


def names() -> list[str]:
    """All fuzzers there are."""
    return sorted(module.name for module in pkgutil.iter_modules(fuzzers.__path__))


def run_here(name: str, effort: Effort, seed: int, keep: Path) -> Report:
    """Run a fuzzer in this process."""
    return importlib.import_module(f"{fuzzers.__name__}.{name}").fuzz(effort, seed, keep)


def run_apart(name: str, seconds: float, seed: int, keep: Path) -> Report:
    """Run a fuzzer in a process of its own; whichever way that ends, there is a report."""
    program = [sys.executable, "-m", "tests.hardening.fuzz", name, "--child"]
    program += ["--seconds", str(seconds), "--seed", str(seed), "--keep", str(keep)]
    keep.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            program, cwd=ROOT, capture_output=True, text=True, timeout=seconds + PATIENCE
        )
        if done.returncode == 0:
            answer = json.loads(done.stdout.splitlines()[-1])
            return Report(**answer | {"failures": [Path(path) for path in answer["failures"]]})
        why = f"ended with {done.returncode}\n{done.stderr}"
    except subprocess.TimeoutExpired:
        why = f"did not end {PATIENCE} s after its time"
    at_hand = sorted(keep.glob(f"{name}-at-hand*"))
    path = keep / f"{name}-{seed}-{int(time.time())}.txt"
    path.write_text(why)
    moved = [left_file.rename(path.with_suffix(left_file.suffix)) for left_file in at_hand]
    return Report(name, 1, 0, moved or [path])


def _child(name: str, seconds: float, seed: int, keep: Path) -> None:
    try:
        import resource
    except ImportError:  # not on every system
        pass
    else:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    report = run_here(name, Effort(seconds), seed, keep)
    print(json.dumps(vars(report) | {"failures": [str(path) for path in report.failures]}))


def table(reports: list[Report], seconds: float, seed: int) -> str:
    """The reports for people."""
    lines = [f"{'fuzzer':<18} {'tried':>10} {'clean':>10} {'failed':>8}"]
    for report in reports:
        failed = report.n_tried - report.n_clean
        lines.append(f"{report.name:<18} {report.n_tried:>10,} {report.n_clean:>10,} {failed:>8,}")
        lines += [f"  {path}" for path in report.failures]
    return "\n".join([*lines, f"{seconds:g} seconds, seed {seed}"])


def main() -> int:
    """Run what the command line asks for; 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.hardening.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(names())}; all by default")
    parser.add_argument("--seconds", type=float, default=3600, help="in all")
    parser.add_argument("--seed", type=int, help="by default another one each time")
    parser.add_argument("--keep", type=Path, default=KEEP, help="where failing inputs go")
    parser.add_argument("--images", type=Path, help="photographs to change, beside small ones")
    parser.add_argument(
        "--guided", action="store_true", help="also by the code that inputs reach; needs Atheris"
    )
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(names()):
        parser.error(f"no fuzzer {', '.join(sorted(unknown))}")
    chosen = asked.names or names()
    if asked.images is not None:
        os.environ["TAGKIN_FUZZ_IMAGES"] = str(asked.images.absolute())
    seed = int(time.time()) if asked.seed is None else asked.seed
    if asked.child:
        _child(chosen[0], asked.seconds, seed, asked.keep)
        return 0
    led = [name for name in chosen if name in guided.NAMES] if asked.guided else []
    if led and not guided.installed():
        sys.exit("--guided needs Atheris: pip install atheris")
    each = asked.seconds / (len(chosen) + len(led))
    reports = [run_apart(name, each, seed, asked.keep) for name in chosen]
    reports += [guided.run_guided(name, each, seed, asked.keep) for name in led]
    rows = [
        vars(report) | {"failures": [str(path) for path in report.failures]} for report in reports
    ]
    summary = {"seconds": asked.seconds, "seed": seed, "reports": rows}
    (asked.keep.parent / "fuzz.json").write_text(json.dumps(summary))
    print(table(reports, asked.seconds, seed))
    return int(any(report.n_tried != report.n_clean for report in reports))


if __name__ == "__main__":
    sys.exit(main())
