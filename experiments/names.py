"""What the names of tags are worth: learning curves with and without them.

Run ``python -m experiments names`` with the datasets to draw, for example ``photos flickr8k``;
``--alone`` measures confidences of names alone instead. Tables and pictures go to docs/results.
Names are not measured on coco.npz, because the map was learned from captions of its photographs.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from experiments import made
from experiments.datasets import open_dataset
from experiments.problem import data_folder
from tagkin import FeatureAnnotator
from tagkin.annotator.naming import confidences_by_name
from tagkin.evaluation import mean_average_precision
from tagkin.features import FeatureCache, default_cache_folder, extract, get_backbone
from tagkin.labels import Vocabulary
from tagkin.tag_meanings import CaptionEncoder, NamePrior

__all__ = ["main"]

SIZES = {
    "photos": (0, 10, 20, 50, 100, 200, 500, 1000),
    "flickr8k": (0, 20, 50, 100, 200, 500, 1000, 2000, 7091),
}
N_TEST = {"photos": 200, "flickr8k": 1000, "coco": 2000}
_DRAWN_OFTEN = 2000  # with more labelled images one draw says enough
_MOST_ALONE, _FEWEST_ALONE = 2000, 10


@dataclass(frozen=True)
class Task:
    """Features, labels and names of a dataset, and what scores the names."""

    name: str
    X: np.ndarray
    Y: scipy.sparse.csr_array
    labels: list[str]
    train: np.ndarray
    test: np.ndarray
    prior: NamePrior | None


def load_task(name: str) -> Task:
    """A stand-in, and what scores its names: nothing for COCO, whose captions taught the map."""
    data = open_dataset(name, data_folder())
    features: Any = data.features
    if features is None:
        features = _photographs(data.files)
    test = np.sort(np.random.default_rng(0).permutation(data.test)[: N_TEST[name]])
    Y = scipy.sparse.csr_array(data.labels)
    prior = None if name == "coco" else NamePrior(CaptionEncoder())
    return Task(name, features, Y, list(data.label_names), data.train, test, prior)


def _photographs(files: Any) -> np.ndarray:
    folder = data_folder() / "photos"
    with FeatureCache(default_cache_folder()) as cache:
        found = extract([str(folder / f) for f in files], get_backbone(), cache=cache)
    return found.features


# --- learning curves ---------------------------------------------------------------------


def curve(
    task: Task, sizes: tuple[int, ...], draws: int, done: set[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """MAP in percent on the test images, for each number of labelled images and each draw."""
    truth = task.Y[task.test]
    assert task.prior is not None
    table = task.prior.meanings(task.labels).table()
    alone = mean_average_precision(truth, task.prior.scores(task.X[task.test], table.rows))
    for size in sizes:
        if size == 0 and (0, 0) not in done:
            yield {"labelled": 0, "draw": 0, "without": float("nan"), "with": 100 * alone}
        for draw in range(draws if size <= _DRAWN_OFTEN else 1):
            if size == 0 or (size, draw) in done:
                continue
            rows = np.random.default_rng(draw).permutation(task.train)[:size]
            yield {"labelled": size, "draw": draw, **_compared(task, rows, truth, table)}


def _compared(task: Task, rows: np.ndarray, truth: Any, table: Any) -> dict[str, float]:
    """MAP without and with names, over all labels: those not seen yet have names or nothing."""
    names = np.array(task.labels)
    tags = [names[task.Y[[i]].indices].tolist() for i in rows]
    result = {}
    for key, prior in (("without", None), ("with", task.prior)):
        annotator = FeatureAnnotator(prior=prior, vocabulary=Vocabulary(min_count=1))
        annotator.fit(task.X[rows], tags)
        learned = annotator.decision_function(task.X[task.test])
        scores = np.zeros((len(task.test), len(names)))
        if prior is not None:
            scores = prior.scores(task.X[task.test], table.rows)
        column = {name: i for i, name in enumerate(names)}
        scores[:, [column[name] for name in annotator.classes_]] = learned
        result[key] = 100 * mean_average_precision(truth, scores)
    return result


def summarized(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the draws, with the standard deviation of the difference."""
    table = []
    for size in dict.fromkeys(row["labelled"] for row in rows):
        of_size = [row for row in rows if row["labelled"] == size]
        without, with_names = (np.array([r[k] for r in of_size]) for k in ("without", "with"))
        table.append(
            {
                "labelled": size,
                "without names": f"{without.mean():.1f}" if size else "",
                "with names": f"{with_names.mean():.1f}",
                "smallest difference of a draw": f"{(with_names - without).min():+.1f}"
                if size
                else "",
                "draws": len(of_size),
            }
        )
    return table


# --- names alone -------------------------------------------------------------------------


def measure_alone(task: Task) -> list[dict[str, Any]]:
    """Count suggestions by names alone at several confidences, and how many of them are right."""
    assert task.prior is not None
    images = np.random.default_rng(1).permutation(task.test)[:_MOST_ALONE]
    P = confidences_by_name(task.prior, np.asarray(task.X[images], np.float32), task.labels)
    present = task.Y[images].toarray() > 0
    rows = []
    for least in (0.3, 0.5, 0.7, 0.8):
        chosen = least <= P
        n = int(chosen.sum())
        right = f"{present[chosen].mean():.2f}" if n >= _FEWEST_ALONE else ""
        said = f"{P[chosen].mean():.2f}" if n >= _FEWEST_ALONE else ""
        rows.append(
            {"collection": task.name, "least": least, "suggested": n, "said": said, "right": right}
        )
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Measure, write tables and pictures."""
    parser = argparse.ArgumentParser(prog="python -m experiments names", description=__doc__)
    parser.add_argument("datasets", nargs="*", default=["photos", "flickr8k"])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", help="numbers of labelled images")
    parser.add_argument("--alone", action="store_true", help="measure confidences of names alone")
    parser.add_argument("--output", type=Path, default=made.RESULTS)
    given = parser.parse_args(arguments)
    if unknown := set(given.datasets) - set(SIZES):
        raise SystemExit(
            f"No dataset is called {', '.join(unknown)}. There are {', '.join(SIZES)}."
        )
    given.output.mkdir(parents=True, exist_ok=True)
    if given.alone:
        rows = [row for name in given.datasets for row in measure_alone(load_task(name))]
        made.write(given.output / "names-alone.csv", rows)
        return
    for name in given.datasets:
        raw = given.output / f"names-{name}-draws.csv"
        rows = _read(raw)
        done = {(row["labelled"], row["draw"]) for row in rows}
        sizes = tuple(given.sizes or SIZES[name])
        for row in curve(load_task(name), sizes, given.draws, done):
            rows.append(row)
            print(f"{name}: {row}", flush=True)
            made.write(raw, sorted(rows, key=lambda one: (one["labelled"], one["draw"])))
        made.write(given.output / f"names-{name}.csv", summarized(_read(raw)))


def _read(path: Path) -> list[dict[str, Any]]:
    """What this version measured before; it is not measured again."""
    if not made.is_current(path):
        return []
    kinds = {"labelled": int, "draw": int, "without": float, "with": float}
    with path.open() as file:
        return [{k: kinds[k](v) for k, v in row.items()} for row in csv.DictReader(file)]
