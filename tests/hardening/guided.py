"""Inputs led by the code that they reach: ``python -m tests.hardening.guided NAME --seconds S``.

Atheris (``pip install atheris``; not for every Python and processor) notes which lines of tagkin an
input runs through, and goes on from inputs that reach new ones. What is checked is the same as in
the fuzzer of that name. `make fuzz GUIDED=1` runs it for all that are named here.
"""

import argparse
import importlib
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.hardening.fuzzers import Report

ROOT = Path(__file__).parents[2]
NAMES = ("keywords", "sidecars", "tag_files")  # whose readers are Python, which can be followed
PATIENCE = 120  # seconds to begin and to end
LONGEST = 60  # seconds that one input may take


def installed() -> bool:
    """Whether Atheris is."""
    return importlib.util.find_spec("atheris") is not None


def seeds(name: str) -> list[bytes]:
    """Inputs to begin with: files that are right."""
    from tests.collection.sidecars.forms import PROGRAMS
    from tests.hardening.fuzzers.tag_files import SAMPLES
    from tests.hardening.samples import photographs, xmp_packet

    sidecars = [data for data in PROGRAMS.values() if data]
    return {
        "keywords": [*photographs().values(), xmp_packet("sea", "größe"), *sidecars],
        "sidecars": sidecars,
        "tag_files": list(SAMPLES),
    }[name]


def run_guided(name: str, seconds: float, seed: int, keep: Path) -> Report:
    """Run in a process of its own, which ends at the first input that fails."""
    keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for i, data in enumerate(seeds(name)):
            Path(folder, f"{i:03}").write_bytes(data)
        program = [sys.executable, "-m", "tests.hardening.guided", name, "--child", folder]
        program += ["--seconds", f"{seconds:.0f}", "--seed", str(seed), "--keep", str(keep)]
        began = time.time()
        done = subprocess.run(
            program, cwd=ROOT, capture_output=True, text=True, timeout=seconds + PATIENCE
        )
    tried = re.findall(r"number_of_executed_units: (\d+)|^#(\d+)\s", done.stderr, re.MULTILINE)
    n_tried = max((int(a or b) for a, b in tried), default=0)
    failures = [path for path in keep.glob(f"{name}-guided-*") if path.stat().st_mtime >= began]
    if done.returncode and not failures:
        failures = [keep / f"{name}-guided-{int(began)}.txt"]
        failures[0].write_text(done.stderr)
    return Report(f"{name}, guided", max(n_tried, 1), n_tried - bool(failures), failures)


def _child(name: str, folder: str, seconds: int, seed: int, keep: Path) -> None:
    import atheris

    with atheris.instrument_imports(include=["tagkin.collection", "tagkin.images"]):
        module = importlib.import_module(f"tests.hardening.fuzzers.{name}")
    options = [
        f"-max_total_time={seconds}",
        f"-seed={seed + 1}",  # 0 would be another one each time
        f"-timeout={LONGEST}",
        "-rss_limit_mb=3000",
        "-print_final_stats=1",
        f"-artifact_prefix={keep}/{name}-guided-",
    ]
    atheris.Setup([sys.argv[0], folder, *options], module.check)
    atheris.Fuzz()


def main() -> int:
    """Run one of them; 1 where an input failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.hardening.guided", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if not installed():
        sys.exit("This needs Atheris: pip install atheris")
    if asked.child:
        _child(asked.name, asked.child, int(asked.seconds), asked.seed, asked.keep)
        return 0
    report = run_guided(asked.name, asked.seconds, asked.seed, asked.keep)
    print(f"{report.n_tried:,} tried, {report.n_clean:,} clean")
    print("\n".join(str(path) for path in report.failures))
    return int(bool(report.failures))


if __name__ == "__main__":
    sys.exit(main())
