"""How well tags in other languages are understood, and by which lexicon.

Run ``python -m experiments.languages``. It translates the labels of the folder of photographs, and
measures MAP with none, 20 and 100 labelled photographs; then it compares lexicons on English
labels. Tables go to docs/results.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.names import RESULTS, Task, curve, load_task
from tagkin.lexicons import SentenceEncoder, WordNet, WordVectors
from tagkin.tag_meanings import ClassMeanings, ClassPrior

__all__ = ["count_understood", "main", "read_translations", "translated"]

SIZES = (0, 20, 100)
TRANSLATIONS = Path(__file__).parent / "datasets" / "translated_labels.csv"
_UNKNOWN = 0  # the kind of a tag


def read_translations() -> dict[str, dict[str, str]]:
    """Read language -> English label -> its translation."""
    with TRANSLATIONS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {language: {row["English"]: row[language] for row in rows} for language in rows[0]}


def translated(task: Task, words: dict[str, str]) -> Task:
    """Return the same images with translated labels."""
    return replace(task, labels=[words[label] for label in task.labels])


def count_understood(task: Task) -> int:
    """Count the labels whose names are known."""
    return int((task.prior.meanings(task.labels).kinds != _UNKNOWN).sum())


def lexicons() -> dict[str, Any]:
    """Return what finds the classes near a tag, by name."""
    return {"encoder": SentenceEncoder.find(), "GloVe": WordVectors.find(), "WordNet alone": None}


def with_lexicon(task: Task, words: Any) -> Task:
    """Return the same task with names that this lexicon reads."""
    classifier = task.prior.classifier
    lexicon = ClassMeanings(classifier.synsets, WordNet.find(), words)
    return replace(task, prior=ClassPrior(classifier, lexicon))


def measure(task: Task, draws: int) -> dict[str, str]:
    """Measure MAP with names for each number of labelled images, as a mean over draws."""
    rows = list(curve(task, SIZES, draws, set()))
    means = (np.mean([row["with"] for row in rows if row["labelled"] == n]) for n in SIZES)
    return {str(n): f"{mean:.1f}" for n, mean in zip(SIZES, means, strict=True)}


def compare_languages(draws: int) -> Iterator[dict[str, Any]]:
    """Measure the folder of photographs with labels in each language."""
    photos = load_task("photos")
    by_language = read_translations()
    for lexicon, words in lexicons().items():
        if words is None:
            continue
        for language, translations in by_language.items():
            task = with_lexicon(translated(photos, translations), words)
            yield {
                "lexicon": lexicon,
                "language": language,
                "understood": f"{count_understood(task)} of {len(task.labels)}",
                **measure(task, draws),
            }


def compare_lexicons(draws: int) -> Iterator[dict[str, Any]]:
    """Measure English labels with each lexicon."""
    for dataset in ("photos", "flickr8k", "coco"):
        task = load_task(dataset)
        for lexicon, words in lexicons().items():
            named = with_lexicon(task, words)
            yield {"dataset": dataset, "lexicon": lexicon, **measure(named, draws)}


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m experiments.languages", description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    tables = {"names-languages": compare_languages, "names-lexicons": compare_lexicons}
    for name, compare in tables.items():
        rows = []
        for row in compare(given.draws):
            rows.append(row)
            print(row, flush=True)
        with (given.output / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
