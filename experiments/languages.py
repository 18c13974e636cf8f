"""How well tags in other languages are understood.

Run ``python -m experiments languages``. It translates the labels of the folder of photographs, and
measures MAP with none, 20 and 100 labelled photographs. The table goes to docs/results.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import made
from experiments.names import Task, curve, load_task

__all__ = ["main", "read_translations", "translated"]

SIZES = (0, 20, 100)
TRANSLATIONS = Path(__file__).parent / "datasets" / "translated_labels.csv"


def read_translations() -> dict[str, dict[str, str]]:
    """Read language -> English label -> its translation."""
    with TRANSLATIONS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {language: {row["English"]: row[language] for row in rows} for language in rows[0]}


def translated(task: Task, words: dict[str, str]) -> Task:
    """Return the same images with translated labels."""
    return replace(task, labels=[words[label] for label in task.labels])


def compare_languages(sizes: tuple[int, ...], draws: int) -> Iterator[dict[str, Any]]:
    """Measure MAP with names in each language, as a mean over draws."""
    photos = load_task("photos")
    for language, translations in read_translations().items():
        rows = list(curve(translated(photos, translations), sizes, draws, set()))
        means = {n: np.mean([row["with"] for row in rows if row["labelled"] == n]) for n in sizes}
        yield {"language": language} | {str(n): f"{mean:.1f}" for n, mean in means.items()}


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments languages", description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--output", type=Path, default=made.RESULTS)
    given = parser.parse_args(arguments)
    rows = []
    for row in compare_languages(tuple(given.sizes), given.draws):
        rows.append(row)
        print(row, flush=True)
    made.write(given.output / "names-languages.csv", rows)
