"""Measure and rewrite docs/benchmarks.md: ``python -m benchmarks [SECTION ...]``.

Sections are space, search, transfer, words, features, threads, scale and distributed. Without
one everything is measured: an hour on two cores. Other sections stay as they were. ``SECTION=FILE``
takes what was measured elsewhere: ``gpu=OUT.json`` of `benchmarks.gpu`, which needs a device, and
those of `benchmarks.threads`, `benchmarks.scale` and `benchmarks.distributed`.
"""

import datetime
import json
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

import tagkin
from benchmarks import against_peers, report
from benchmarks.process import machine, run_json, say

LIMIT = ((20_000, 1280, 1024), (100_000, 256, 2048), (20_000, 1280, 4096))
GROWTH = (12_500, 25_000, 50_000, 100_000, 150_000, 200_000)


def fit(n: int, d: int, r: int, repeats: int) -> Any:
    """One row of measurements, in a process of its own."""
    row = run_json("-m", "benchmarks.fit_landmarks", *map(str, (n, d, r, repeats)))
    say(f"N = {n:,}, d = {d}, r = {r:,}: {row['fit_seconds']:.2f} s, ratio {row['ratio']:.2f}")
    return row


def space() -> dict[str, Any]:
    """The space against the machine and against other programs."""
    return {
        "limit": [fit(*case, 3) for case in LIMIT],
        "growth": [fit(n, 256, 1024, 3) for n in GROWTH],
        "peers": against_peers.measure(),
    }


SECTIONS = {
    "space": space,
    "search": lambda: {"search": run_json("-m", "benchmarks.search")},
    "transfer": lambda: {"transfer": run_json("-m", "benchmarks.transfer")},
    "words": lambda: {"words": run_json("-m", "benchmarks.words")},
    "features": lambda: {"features": run_json("-m", "benchmarks.features")},
    "threads": lambda: {"threads": run_json("-m", "benchmarks.threads")},
    "scale": lambda: {"scale": run_json("-m", "benchmarks.scale", "--full")},
    "distributed": lambda: {"distributed": run_json("-m", "benchmarks.distributed")},
}
ELSEWHERE = ("gpu", "threads", "scale", "distributed")


def main(*sections: str) -> None:
    """Measure, store the numbers, draw, write the page."""
    given = dict(section.split("=", 1) for section in sections if "=" in section)
    unknown = {section for section in sections if "=" not in section} - set(SECTIONS)
    unknown |= set(given) - set(ELSEWHERE)
    if unknown:
        sys.exit(
            f"No section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}, and with "
            f"the file of a run elsewhere {', '.join(f'{name}=FILE' for name in ELSEWHERE)}."
        )
    blas = next(info for info in threadpool_info() if info["user_api"] == "blas")
    results: dict[str, Any] = report.stored()
    dates = results.get("dates", {})
    for section in sections or SECTIONS:
        name, _, file = section.partition("=")
        if name in given:
            found = json.loads(Path(file).read_text())
            results[name] = results.get(name, {}) | found if name == "scale" else found
        else:
            results |= SECTIONS[name]()
        dates[name] = datetime.date.today().isoformat()
    results |= {
        "dates": dates,
        "tagkin": tagkin.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "blas": f"{blas['internal_api']} {blas['version']} ({blas['architecture']})",
        "machine": machine(),
    }
    report.write(results)
    say("wrote docs/benchmarks.md")


if __name__ == "__main__":
    main(*sys.argv[1:])
