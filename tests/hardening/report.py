"""The figures of docs/reliability.md: ``python -m tests.hardening.report --seconds S``.

Runs every fuzzer and the soak for a share of the time, and the kills by counting, and writes what
was tried, what was clean and what failed.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tagkin.version import __version__
from tests.hardening import fuzz, soak

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
SOAK = 0.3  # of the time
# Tests that kill at one step after another, or go through fixed hostile files.
TESTS = {
    "sidecars and their undo, killed at each step": "tests/collection/sidecars/test_kills.py",
    "a catalogue, killed 200 times": "tests/catalogue/test_kills.py",
    "a feature cache, killed at step after step": "tests/features/test_cache_kills.py",
    "models, saved, replaced and killed": "tests/storage/test_replacing.py",
    "crafted models": "tests/hardening/test_crafted_models.py",
    "photographs that ask for memory": "tests/hardening/test_photographs.py",
    "metadata that ask for time or memory": "tests/hardening/test_metadata.py",
    "words that are no text": "tests/hardening/test_words.py",
    "inputs that a fuzzer once failed on": "tests/hardening/test_fuzzers.py",
}
WHAT = {
    "catalogue": "damaged catalogues and exported decisions",
    "decoding": "changed photographs, decoded",
    "keywords": "changed metadata, read",
    "models": "changed models, loaded",
    "sidecars": "changed sidecars, written and taken back",
    "tag_files": "changed tag files, read and written",
}


class Row(NamedTuple):
    """One battery."""

    what: str
    n_tried: int
    n_clean: int


def of_fuzzers(seconds: float, seed: int) -> list[Row]:
    """Each fuzzer in a process of its own."""
    rows = []
    for name in fuzz.names():
        found = fuzz.run_apart(name, seconds / len(fuzz.names()), seed, fuzz.KEEP)
        rows.append(Row(f"{WHAT.get(name, name)} (`{name}`)", found.n_tried, found.n_clean))
    return rows


def of_tests() -> list[Row]:
    """Cases of tests, by what pytest counts."""
    rows = []
    for what, path in TESTS.items():
        if not (ROOT / path).exists():
            continue
        program = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", path]
        said = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False).stdout
        dots = "".join(re.findall(r"^([.sFExX]+)\s+\[", said, re.MULTILINE))
        n_failed = dots.count("F") + dots.count("E")
        n_tried = dots.count(".") + n_failed
        rows.append(Row(f"{what} (`{path}`)", n_tried, n_tried - n_failed))
    return rows


def of_soak(seconds: float, seed: int) -> Row:
    """Commands of four processes at once."""
    top = Path(tempfile.mkdtemp(prefix="tagkin-soak-"))
    try:
        counts, wrong, _ = soak.soak(seconds, seed, top)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    n_tried = sum(counts.values()) + len(wrong)
    return Row(
        f"commands of four processes on one collection, {seconds:.0f} s (`make soak`)",
        n_tried,
        n_tried - len(wrong),
    )


def page(rows: list[Row], seconds: float, seed: int) -> str:
    """The document."""
    lines = [
        "# Reliability",
        "",
        "What tagkin is put through, and how it fared. `make reliability` runs all of it and "
        "writes this page;",
        "`make fuzz` and `make soak` run the batteries for an hour and for two. `SECURITY.md` says "
        "what is promised.",
        "",
        "| battery | tried | clean | failed |",
        "|---|---:|---:|---:|",
        *(
            f"| {row.what} | {row.n_tried:,} | {row.n_clean:,} | {row.n_tried - row.n_clean:,} |"
            for row in rows
        ),
        "",
        f"tagkin {__version__}, {seconds:.0f} seconds with seed {seed}, {os.cpu_count()} cores, "
        f"{platform.machine()}, Python {platform.python_version()}.",
        "",
        "Clean means: an answer that holds what is promised, or a refusal in one sentence; no "
        "other error, no signal,",
        "no hang, and no more memory than allowed. An input that fails is kept in `build/fuzz`, "
        "and becomes a case in",
        "`tests/hardening/cases` when it is mended. Kills count calls and instructions, not time: "
        "they are the same on",
        "every machine.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Run everything and write the page; 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.hardening.report", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rows = of_fuzzers((1 - SOAK) * asked.seconds, asked.seed)
    rows += [*of_tests(), of_soak(SOAK * asked.seconds, asked.seed)]
    PAGE.write_text(page(rows, asked.seconds, asked.seed), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))
    return int(any(row.n_tried != row.n_clean for row in rows))


if __name__ == "__main__":
    sys.exit(main())
