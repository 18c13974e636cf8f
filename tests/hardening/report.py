"""The figures of tests/hardening/results.md: ``python -m tests.hardening.report [SECTION ...]``.

Runs batteries and writes what was tried, what was clean and what failed. Sections are images,
fuzz, tests, kills and soak; the default is all of them, and sections that are not run stay as they
are on the page. ``soak=FILE`` takes what a longer `make soak` left in a file, and ``fuzz=FILE``
what a longer `make fuzz` did.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tagkin.version import __version__
from tests.hardening import fuzz, kills, soak
from tests.tracing import can_trace

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PAGE, FIGURES = HERE / "results.md", HERE / "results.json"
SOAK = 0.3  # of the time
# Tests that kill at one step after another, or go through fixed hostile files.
TESTS = {
    "sidecars and their undo, killed at each step": "tests/collection/sidecars/test_kills.py",
    "a catalogue, killed 200 times": "tests/catalogue/test_kills.py",
    "a feature cache, killed at step after step": "tests/features/test_cache_kills.py",
    "models saved, replaced and killed; eight processes that save at once": (
        "tests/storage/test_replacing.py"
    ),
    "crafted models, and models with bits flipped": "tests/hardening/test_crafted_models.py",
    "photographs that ask for memory": "tests/hardening/test_photographs.py",
    "metadata that ask for time or memory": "tests/hardening/test_metadata.py",
    "vocabularies that ask for memory": "tests/hardening/test_vocabularies.py",
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
TITLES = {
    "images": "Pillow's own test images",
    "fuzz": "Inputs changed at random",
    "tests": "Fixed cases, and kills counted by calls of Python and instructions of SQLite",
    "kills": "Commands killed at each system call that changes a file",
    "soak": "Four processes at once",
}
NOTES = {
    "images": "tagkin decodes each image and reads its keywords. The images are in Pillow's source "
    "distribution, in `Tests/images`; `make reliability IMAGES=FOLDER` takes any folder.",
    "fuzz": "`make fuzz` runs the fuzzers for an hour. An input that fails is kept in `build/fuzz` "
    "and becomes a case in `tests/hardening/cases` when the fault is mended.",
    "tests": "`make test-all` also runs these tests. A case may be many kills, or many files.",
    "kills": "The kernel stops the process (`ptrace`) at its n-th write, flush, rename, ..., for "
    "every n, whether Python or SQLite makes the call. After each kill, the catalogue is "
    "consistent, no photograph has changed, no sidecar is half-written, there is a complete model, "
    "and the same command, run again, has the same result as without the kill.",
    "soak": "Each process scans, trains, suggests, accepts, rejects, writes, undoes and reads, at "
    "random. A command may be refused while another command is writing, or if it has nothing to "
    "do. Nothing else may go wrong, memory and open files may not grow, and at the end the "
    "sidecars agree with the history. `make soak` runs it for two hours.",
}


class Row(NamedTuple):
    """One battery."""

    what: str
    n_tried: int
    n_clean: int


class Asked(NamedTuple):
    """How long, from which seed, and with which images."""

    seconds: float
    seed: int
    images: Path | None
    some: int | None


# --- the batteries -----------------------------------------------------------------------


def of_images(asked: Asked) -> list[Row]:
    """Every file of a folder, decoded and searched for keywords."""
    if asked.images is None:
        return []
    from tests.hardening.fuzzers import decoding, keywords

    files = [path for path in sorted(asked.images.rglob("*")) if path.is_file()]
    rows = []
    for what, check in (("decoded", decoding.check), ("keywords read", keywords.check)):
        n_clean = 0
        for path in files:
            try:
                check(path.read_bytes())
                n_clean += 1
            except Exception as error:
                print(f"{path}: {error!r}", file=sys.stderr)
        rows.append(Row(f"images, {what}", len(files), n_clean))
    return rows


def of_fuzzers(asked: Asked) -> list[Row]:
    """Each fuzzer in a process of its own."""
    seconds = (1 - SOAK) * asked.seconds / len(fuzz.names())
    return [
        _fuzzed(vars(fuzz.run_apart(name, seconds, asked.seed, fuzz.KEEP))) for name in fuzz.names()
    ]


def _fuzzed(report: dict[str, Any]) -> Row:
    name = report["name"]
    return Row(f"{WHAT.get(name, name)} (`{name}`)", report["n_tried"], report["n_clean"])


def of_tests(asked: Asked) -> list[Row]:
    """Cases of tests, by what pytest counts."""
    rows = []
    for what, path in TESTS.items():
        program = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", path]
        output = subprocess.run(
            program, cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout
        dots = "".join(re.findall(r"^([.sFExX]+)\s+\[", output, re.MULTILINE))
        n_failed = dots.count("F") + dots.count("E")
        n_tried = dots.count(".") + n_failed
        rows.append(Row(f"{what} (`{path}`)", n_tried, n_tried - n_failed))
    return rows


def of_kills(asked: Asked) -> list[Row]:
    """Commands killed at each step."""
    if not can_trace():
        return []
    rows = []
    for outcome in kills.kill_all(asked.some):
        print("\n".join(outcome.failures), file=sys.stderr)
        n_failed = len(outcome.failures)
        rows.append(Row(outcome.name, max(outcome.n_killed, n_failed), outcome.n_killed - n_failed))
    return rows


def of_soak(asked: Asked) -> list[Row]:
    """Commands of four processes at once."""
    top = Path(tempfile.mkdtemp(prefix="tagkin-soak-"))
    try:
        result = soak.soak(SOAK * asked.seconds, asked.seed, top)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return _soaked(result._asdict() | {"seconds": SOAK * asked.seconds})


def _soaked(result: dict[str, Any]) -> list[Row]:
    print("\n".join(result["wrong"]), file=sys.stderr)
    n_refused = sum(n for name, n in result["counts"].items() if name.endswith("refused"))
    n_done = sum(result["counts"].values()) - n_refused
    n_wrong = len(result["wrong"])
    rows = [Row(f"commands in {result['seconds']:,.0f} s", n_done + n_wrong, n_done)]
    refused = "commands refused: another one was writing, or there was nothing to do"
    rows.append(Row(refused, n_refused, n_refused))
    for what, unit in (("memory", "MB of memory"), ("files", "open files")):
        before, after = (
            value // (1000 if what == "memory" else 1) for value in result["uses"][what]
        )
        sentence = (
            f"no growth: at most {before} {unit} after a quarter of the time, {after} at the end"
        )
        grown = any(line.startswith(f"{what} grew") for line in result["wrong"])
        rows.append(Row(sentence, soak.N_PROCESSES, soak.N_PROCESSES * (not grown)))
    return rows


SECTIONS: dict[str, Callable[[Asked], list[Row]]] = {
    "images": of_images,
    "fuzz": of_fuzzers,
    "tests": of_tests,
    "kills": of_kills,
    "soak": of_soak,
}


def from_file(name: str, path: Path) -> tuple[list[Row], int]:
    """Rows of what `make soak` or `make fuzz` left, and its seed."""
    answer = json.loads(path.read_text(encoding="utf-8"))
    rows = _soaked(answer) if name == "soak" else [_fuzzed(report) for report in answer["reports"]]
    return rows, int(answer["seed"])


# --- the page ----------------------------------------------------------------------------


def machine() -> str:
    """What it ran on."""
    return (
        f"tagkin {__version__}, {os.cpu_count()} cores, {platform.machine()}, "
        f"{platform.system()}, Python {platform.python_version()}"
    )


def page(figures: dict[str, Any]) -> str:
    """The document, from what is known of each section."""
    lines = [
        "# Reliability",
        "",
        "This page shows how tagkin is tested with hostile files, kills and many processes at "
        "once, and the results.",
        "`make reliability` runs all of it and writes this page. `SECURITY.md` lists the promises.",
        "",
        "A test is clean if tagkin keeps its promises or refuses in one sentence, without any "
        "other error, crash or hang,",
        "and with no more memory than allowed.",
    ]
    for name in SECTIONS:
        if not figures.get(name, {}).get("rows"):
            continue
        section = figures[name]
        lines += ["", f"## {TITLES[name]}", "", NOTES[name], ""]
        lines += ["| battery | tried | clean | failed |", "|---|---:|---:|---:|"]
        for what, n_tried, n_clean in section["rows"]:
            lines.append(f"| {what} | {n_tried:,} | {n_clean:,} | {n_tried - n_clean:,} |")
        lines += ["", f"{section['date']}, {section['machine']}, seed {section['seed']}."]
    return "\n".join([*lines, ""])


def stored() -> dict[str, Any]:
    """Figures of before."""
    return json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}


def main() -> int:
    """Run what is asked for and write the page; 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.hardening.report", description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--seconds", type=float, default=300, help="of the fuzzers and the soak")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--images", type=Path, help="a folder of images, such as Pillow's own")
    parser.add_argument("--some", type=int, help="kills of each command; all by default")
    given = parser.parse_args()
    if unknown := set(given.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    if given.images is not None:
        os.environ["TAGKIN_FUZZ_IMAGES"] = str(given.images.absolute())
    asked = Asked(given.seconds, given.seed, given.images, given.some)
    failed = False
    for section in given.sections or SECTIONS:
        name, _, file = section.partition("=")
        if file:
            rows, seed = from_file(name, Path(file))
        else:
            rows, seed = SECTIONS[name](asked), asked.seed
        if not rows:
            continue
        failed |= any(row.n_tried != row.n_clean for row in rows)
        record = {"rows": rows, "seed": seed, "machine": machine()}
        figures = stored() | {name: record | {"date": time.strftime("%Y-%m-%d")}}
        FIGURES.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")
        PAGE.write_text(page(figures), encoding="utf-8")
        print(f"{TITLES[name]}: {len(rows)} rows", file=sys.stderr)
    print(PAGE.read_text(encoding="utf-8"))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
