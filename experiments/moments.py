"""Tags that no picture shows: one person's collections, with the times of their photographs.

    python -m experiments moments                  # measure and write docs/results/moments.csv
    python -m experiments moments traveller --draws 2

Four cases say who is untagged: all but 100 photographs at random, a random half, half of the
events (gaps of 8 hours) and half of the trips (gaps of 96 hours). Scored are the tags on at least
five and at most 90 % of the photographs, and on two tagged ones. `audit` rows have 5 % of the tags
moved to other photographs. Each draw is a row of moments-draws.csv, so an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from experiments import made
from experiments.problem import data_folder
from tagkin import FeatureAnnotator
from tagkin.tag_meanings import CaptionEncoder, NamePrior

__all__ = ["Personal", "load_personal", "main", "split_cases"]

COLLECTIONS = ("traveller", "diver", "archive")
CASES = ("all but 100", "a half", "events", "trips")
INPUTS = ("pictures", "with names", "with moments", "all")
DRAWS = 10
ASKED = 0.8
MEASURES = ("MAP", "MiAP", "error", "right", "said", "true", "cut right", "cut said")
_HOUR = 3600.0


class Personal(NamedTuple):
    """The tagged photographs of a person's collection that have a time."""

    X: np.ndarray
    tags: list[list[str]]
    times: np.ndarray
    """Seconds."""
    places: np.ndarray
    folders: list[str]

    def take(self, rows: np.ndarray) -> Personal:
        """Return some photographs."""
        tags, folders = [self.tags[i] for i in rows], [self.folders[i] for i in rows]
        return Personal(self.X[rows], tags, self.times[rows], self.places[rows], folders)

    def moments(self) -> dict[str, Any]:
        """Return the options of `FeatureAnnotator`."""
        return {"times": self.times, "places": self.places, "folders": self.folders}

    def matrix(self, names: Sequence[str]) -> np.ndarray:
        """Return which photographs have these tags, float array of shape (N, D)."""
        return np.array([[name in row for name in names] for row in map(set, self.tags)], float)


def load_personal(name: str) -> Personal:
    """Read a collection of ../shared/data/personal."""
    stored = np.load(data_folder() / "personal" / f"{name}.npz")
    tags = [json.loads(str(text)) for text in stored["tags"]]
    rows = [i for i, row in enumerate(tags) if row and np.isfinite(stored["seconds"][i])]
    n, has = len(tags), stored.files
    places = stored["places"] if "places" in has else np.full((n, 2), np.nan)
    folders = stored["folder"].astype(str).tolist() if "folder" in has else [""] * n
    every = Personal(
        stored["features"].astype(np.float32), tags, stored["seconds"], places, folders
    )
    return every.take(np.array(rows))


def list_scored(tags: Sequence[Sequence[str]]) -> list[str]:
    """Return the tags on at least five and at most 90 % of the photographs."""
    counts = Counter(name for row in tags for name in set(row))
    return sorted(name for name, count in counts.items() if 5 <= count <= 0.9 * len(tags))


def split_cases(times: np.ndarray, draw: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the name of a case, its tagged and its untagged photographs."""
    rng, n = np.random.default_rng(100 + draw), len(times)
    if n > 250:
        order = rng.permutation(n)
        yield CASES[0], np.sort(order[:100]), np.sort(order[100:])
    order = rng.permutation(n)
    yield CASES[1], np.sort(order[: n // 2]), np.sort(order[n // 2 :])
    for name, gap in ((CASES[2], 8 * _HOUR), (CASES[3], 96 * _HOUR)):
        cluster = np.empty(n, int)
        order = np.argsort(times)
        cluster[order] = np.cumsum(np.append(0, np.diff(times[order]) > gap))
        tagged = np.zeros(n, bool)
        for chosen in rng.permutation(cluster.max() + 1):
            if tagged.sum() < n / 2:
                tagged |= cluster == chosen
        if tagged.sum() > 20 and (~tagged).sum() > 20:
            yield name, np.flatnonzero(tagged), np.flatnonzero(~tagged)


# --- measures ----------------------------------------------------------------------------


def mean_precision(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean over columns of the average precision, in percent."""
    values = []
    for column in range(truth.shape[1]):
        ranked = truth[np.argsort(-scores[:, column], kind="stable"), column] > 0
        if 0 < ranked.sum() < len(ranked):
            values.append((np.cumsum(ranked)[ranked] / (np.flatnonzero(ranked) + 1)).mean())
    return 100 * float(np.mean(values)) if values else float("nan")


def measure(P: np.ndarray, truth: np.ndarray, picked: np.ndarray) -> list[float]:
    """Return `MEASURES`: right and said where the mean confidence is .8, and by the cut."""
    order = np.argsort(P.ravel())
    p, y = P.ravel()[order], truth.ravel()[order]
    likely = np.flatnonzero(p > 0.1)
    bins = [part for part in np.array_split(likely, 10) if len(part)]
    error = sum(len(part) * abs(p[part].mean() - y[part].mean()) for part in bins)
    means = np.cumsum(p[::-1]) / np.arange(1, len(p) + 1)
    n_said = np.count_nonzero(means >= ASKED)
    return [
        mean_precision(P, truth),
        mean_precision(P.T, truth.T),
        error / max(len(likely), 1),
        *(y[::-1][:n_said].sum(), n_said, truth.sum()),
        *(truth[picked].sum(), picked.sum()),
    ]


def run_case(name: str, draw: int, case: str, inputs: str) -> list[float]:
    """Learn from the tagged photographs of a case, and measure the others."""
    photographs = load_personal(name)
    parts = {found: rows for found, *rows in split_cases(photographs.times, draw)}
    if case not in parts:
        return []
    known, asked = (photographs.take(rows) for rows in parts[case])
    prior = NamePrior(CaptionEncoder()) if inputs in ("with names", "all") else None
    knows_moments = inputs in ("with moments", "all")
    annotator = FeatureAnnotator(prior=prior)
    annotator.fit(known.X, known.tags, **(known.moments() if knows_moments else {}))
    options = asked.moments() if knows_moments else {}
    P = annotator.predict_proba(asked.X, **options)
    picked = np.zeros(P.shape, bool)
    for i, row in enumerate(annotator.suggest(asked.X, precision=ASKED, n_kin=0, **options)):
        picked[i, [suggestion.label for suggestion in row]] = True
    classes = [str(name) for name in annotator.classes_]
    counts = known.matrix(classes).sum(axis=0)
    scored = [
        classes.index(name)
        for name in list_scored(photographs.tags)
        if name in classes and counts[classes.index(name)] >= 2
    ]
    truth = asked.matrix([classes[i] for i in scored])
    return measure(P[:, scored].astype(float), truth, picked[:, scored])


def run_audit(name: str, draw: int, inputs: str) -> list[float]:
    """Move 5 % of the tags to other photographs; measure how wrong and missing ones are ranked."""
    from sklearn.metrics import average_precision_score

    photographs, rng = load_personal(name), np.random.default_rng(draw)
    names = list_scored(photographs.tags)
    truth = photographs.matrix(names) > 0
    Y = truth.copy()
    images, labels = np.nonzero(truth)
    for k in rng.choice(len(images), len(images) // 20, replace=False):
        image, label = images[k], labels[k]
        others = np.flatnonzero(~truth[:, label] & ~Y[:, label])
        Y[image, label], Y[rng.choice(others), label] = False, True
    import pandas as pd

    prior = NamePrior(CaptionEncoder()) if inputs in ("with names", "all") else None
    moments = photographs.moments() if inputs in ("with moments", "all") else {}
    annotator = FeatureAnnotator(prior=prior)
    annotator.fit(photographs.X, pd.DataFrame(Y.astype(int), columns=names), **moments)
    doubts = np.zeros(Y.shape)
    for finding in annotator.audit(Y.size, n_kin=0):
        doubts[finding.image, finding.label] = finding.confidence
    moved = truth != Y
    return [100 * float(average_precision_score(moved[part], doubts[part])) for part in (Y, ~Y)]


# --- tables ------------------------------------------------------------------------------


def _work(job: tuple[str, str, str, int]) -> list[float]:
    name, case, inputs, draw = job
    if case == "audit":
        return run_audit(name, draw, inputs)
    return run_case(name, draw, case, inputs)


def measure_draws(jobs: Sequence[tuple[str, str, str, int]], target: Path) -> None:
    """Append the draws that a file does not have yet."""
    stored = {tuple(row[:4]) for row in _read(target)}
    left = [job for job in jobs if (*job[:3], str(job[3])) not in stored]
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # of the processes
    with ProcessPoolExecutor() as pool, target.open("a", newline="", encoding="utf-8") as file:
        for job, values in zip(left, pool.map(_work, left), strict=True):
            if values:
                csv.writer(file).writerow([*job, *(f"{value:.4f}" for value in values)])
                file.flush()
                print(*job, *(f"{value:.3g}" for value in values), flush=True)


def _read(path: Path) -> list[list[str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def summarize(rows: Sequence[Sequence[str]]) -> tuple[list[list[str]], list[list[str]]]:
    """Return the rows of moments.csv and of moments-audit.csv."""
    draws: dict[tuple[str, ...], list[list[float]]] = defaultdict(list)
    for name, case, inputs, _, *cells in rows:
        draws[name, case, inputs].append([float(cell) for cell in cells])
    table, audits = [], []
    for (name, case, inputs), values in draws.items():
        numbers = np.array(values)
        if case == "audit":
            audits.append([name, inputs, *map(_interval, numbers.T)])
            continue
        total = dict(zip(MEASURES, numbers.sum(axis=0), strict=True))
        shares = []
        for kind in ("", "cut "):
            right, said = total[f"{kind}right"], total[f"{kind}said"]
            shares += [f"{right / said:.2f}" if said else "–", f"{right / total['true']:.2f}"]
        mean = numbers.mean(axis=0)
        means = (*map(_interval, numbers[:, :2].T), f"{mean[2]:.3f}")
        table.append([name, case, inputs, *means, *shares])
    return table, audits


def _interval(values: np.ndarray) -> str:
    if len(values) < 2:
        return f"{values.mean():.1f}"
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return f"{values.mean():.1f} ± {half:.1f}"


def main(arguments: list[str]) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m experiments moments")
    parser.add_argument("collection", nargs="*", choices=[*COLLECTIONS, []], help="default: all")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--results", type=Path, default=made.RESULTS)
    options = parser.parse_args(arguments)
    jobs = [
        (name, case, inputs, draw)
        for name in options.collection or COLLECTIONS
        for case in (*CASES, "audit")
        for inputs in INPUTS
        for draw in range(options.draws)
        if case != "audit" or name == "traveller"
    ]
    options.results.mkdir(parents=True, exist_ok=True)
    target = options.results / "moments-draws.csv"
    measure_draws(jobs, target)
    table, audits = summarize(_read(target))
    asked = [f"right at {ASKED}", f"recall at {ASKED}", f"right, asked {ASKED}", "recall, asked"]
    head = ["collection", "untagged are", "inputs", "MAP", "MiAP", "error", *asked]
    made.write_table(options.results / "moments.csv", head, table)
    head = ["collection", "inputs", "AP of wrong tags", "AP of missing tags"]
    made.write_table(options.results / "moments-audit.csv", head, audits)
    made.note(target)
