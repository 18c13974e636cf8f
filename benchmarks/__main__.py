"""Measure speed and memory before a release: ``python -m benchmarks [NAME ...]``.

Each benchmark writes its tables into docs/results/benchmarks. Without a name, all run but `scale`
and `gpu`, an hour on two cores:

    space       a space against plain matrix products: what learning costs at the least
    search      exact neighbours against FAISS and scikit-learn: half of a suggestion
    learning    `Annotator.fit` of 10,000 photographs, and thousands of tags: what people wait for
    commands    short commands, and one photograph by an annotator in memory
    features    photographs per second: the longest wait of all
    catalogue   scans and queries of 100,000 photographs
    review      every request of the page while a fit runs
    scale       a million images from disk, on 16 cores: ten minutes and 4 GiB
    gpu         the space, neighbours and methods on an NVIDIA GPU

On a lent machine, ``python -m benchmarks gpu scale --output DIR`` writes them elsewhere;
``python -m experiments take DIR benchmarks`` brings them here.
"""

import argparse
from pathlib import Path
from typing import Any

from benchmarks.process import run_json, say
from benchmarks.tables import TABLES
from experiments import made

FOLDER = made.RESULTS / "benchmarks"
LENT = ("scale", "gpu")
LIMIT = ((20_000, 1280, 1024), (100_000, 256, 2048), (20_000, 1280, 4096))
GROWTH = (12_500, 25_000, 50_000, 100_000, 200_000)


def measure(name: str) -> dict[str, Any]:
    """Run one benchmark in a process of its own."""
    if name != "space":
        found: dict[str, Any] = run_json("-m", f"benchmarks.{name}")
        return found
    fit = "benchmarks.fit_landmarks"
    return {
        "limit": [run_json("-m", fit, *map(str, (*case, 7))) for case in LIMIT],
        "growth": [run_json("-m", fit, str(n), "256", "1024", "3") for n in GROWTH],
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="*", choices=[*TABLES, []], metavar="NAME")
    parser.add_argument("--output", type=Path, default=FOLDER)
    options = parser.parse_args(arguments)
    for name in options.name or [name for name in TABLES if name not in LENT]:
        say(name)
        for table, rows in TABLES[name](measure(name)).items():
            made.write(options.output / f"{table}.csv", rows)


if __name__ == "__main__":
    main()
