"""Run benchmarks and rewrite docs/benchmarks.md: ``python -m benchmarks [SECTION ...]``.

Sections are space, search, transfer, tags, learning, commands, features, threads, scale,
distributed, catalogue, review and scrolling; the default is all of them, two hours on two cores.
For the table of processors alone, there are `limits` and `peers`, parts of space, and `jpegs`, all
of features. Other sections of the page do not change, and each is written when it is measured.
``SECTION=FILE`` takes results from another machine: ``gpu=OUT.json`` from `benchmarks.gpu`, which
needs a GPU, and likewise from `benchmarks.threads`, `benchmarks.scale` and
`benchmarks.distributed`.
"""

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import Any

from benchmarks import against_peers, report, report_kinds
from benchmarks.process import environment, run_json, say

LIMIT = tuple(report_kinds.LIMITS)
GROWTH = (12_500, 25_000, 50_000, 100_000, 150_000, 200_000)


def fit(n: int, d: int, r: int, repeats: int) -> Any:
    """Measure one fit, in its own process."""
    row = run_json("-m", "benchmarks.fit_landmarks", *map(str, (n, d, r, repeats)))
    say(f"N = {n:,}, d = {d}, r = {r:,}: {row['fit_seconds']:.2f} s, ratio {row['ratio']:.2f}")
    return row


def limits() -> dict[str, Any]:
    """The space against plain matrix products."""
    return {"limit": [fit(*case, 7) for case in LIMIT]}


def peers() -> dict[str, Any]:
    """The space against other libraries."""
    return {"peers": against_peers.measure()}


def space() -> dict[str, Any]:
    """Both, and how a fit grows with the number of images."""
    return limits() | {"growth": [fit(n, 256, 1024, 3) for n in GROWTH]} | peers()


SECTIONS = {
    "space": space,
    "search": lambda: {"search": run_json("-m", "benchmarks.search")},
    "transfer": lambda: {"transfer": run_json("-m", "benchmarks.transfer")},
    "tags": lambda: {"tags": run_json("-m", "benchmarks.tags")},
    "learning": lambda: {"learning": run_json("-m", "benchmarks.learning")},
    "commands": lambda: {"commands": run_json("-m", "benchmarks.commands")},
    "features": lambda: {"features": run_json("-m", "benchmarks.features")},
    "threads": lambda: {"threads": run_json("-m", "benchmarks.threads")},
    "scale": lambda: {"scale": run_json("-m", "benchmarks.scale", "--full")},
    "distributed": lambda: {"distributed": run_json("-m", "benchmarks.distributed")},
    "catalogue": lambda: {"catalogue": run_json("-m", "benchmarks.catalogue")},
    "review": lambda: {"review": run_json("-m", "benchmarks.review")},
    "scrolling": lambda: {"scrolling": run_json("-m", "benchmarks.scrolling")},
}
PARTS = {
    "limits": ("space", limits),
    "peers": ("space", peers),
    "jpegs": ("features", SECTIONS["features"]),
}
ELSEWHERE = (
    "gpu",
    "learning",
    "commands",
    "threads",
    "scale",
    "distributed",
    "catalogue",
    "review",
    "scrolling",
)


def main(arguments: list[str]) -> None:
    """Measure, store the results and write the page, one section after the other."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("section", nargs="*", help="what to measure, or SECTION=FILE")
    sections = parser.parse_args(arguments).section or list(SECTIONS)
    given = {section: _given(section) for section in sections if "=" in section}
    unknown = {section for section in sections if "=" not in section} - {*SECTIONS, *PARTS}
    if unknown:
        sys.exit(
            f"Unknown section {', '.join(sorted(unknown))}. Sections are {', '.join(SECTIONS)}, "
            f"{', '.join(PARTS)}."
        )
    results: dict[str, Any] = report.stored()
    for section in sections:
        name = section.partition("=")[0]
        if name in PARTS:
            of, measured = PARTS[name]
            report_kinds.note_part(results, platform.machine(), of, measured())
        elif section in given:
            here = dict.fromkeys(("date", "machine", "software"), "not recorded")
            _put(results, name, {name: given[section]}, here)
        else:
            found = SECTIONS[name]()
            report_kinds.note(results, platform.machine(), name, found)
            _put(results, name, found, environment())
        report.write(results)
        say(f"{name}: wrote docs/benchmarks.md")


def _given(section: str) -> dict[str, Any]:
    """Results that were measured elsewhere, of ``SECTION=FILE``."""
    name, _, file = section.partition("=")
    if name not in ELSEWHERE:
        sys.exit(f"{name} cannot be taken from a file. What can: {', '.join(ELSEWHERE)}.")
    try:
        found = json.loads(Path(file).read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"{file} holds no results: {error}. Write it by `benchmarks.{name}`.")
    if not isinstance(found, dict):
        sys.exit(f"{file} holds no results of `benchmarks.{name}`: it is no JSON object.")
    return found


def _put(
    results: dict[str, Any], name: str, found: dict[str, Any], environment: dict[str, str]
) -> None:
    """Put what was found in the place of what was, with the machine that it was measured on."""
    results["measured"][name] = found.get(name, {}).pop("environment", environment)
    if name in ("scale", "gpu"):  # perhaps not all of it was measured
        found[name] = results.get(name, {}) | found[name]
    results |= found


if __name__ == "__main__":
    main(sys.argv[1:])
