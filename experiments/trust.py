"""How far percentages can be trusted with few tagged photographs, with names and without.

    python -m experiments trust                      # measure and write docs/results/trust.md
    python -m experiments trust photos --draws 2     # one collection, fewer draws
    python -m experiments trust photos flickr8k --forgotten --sizes 100 400

Each draw learns from some photographs of a collection and tests on others. Draws that are stored
in docs/results/trust-draws.csv and trust-forgotten.csv are not measured again. Constants were
chosen on other draws. COCO is left out, because the map of words has seen its captions.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from scipy import stats

from experiments import made
from experiments.names import Task, load_task
from experiments.problem import data_folder
from experiments.simple_methods import score_simply
from tagkin import FeatureAnnotator
from tagkin.evaluation import average_precision, evaluate
from tagkin.labels import Vocabulary

__all__ = ["COLLECTIONS", "main"]

COLLECTIONS = {
    "photos": "1,200 photographs, expert labels",
    "flickr8k": "Flickr8k, nouns that two of five people used",
    "captions": "1,200 photographs, every word of a caption: adjectives, verbs, places",
    "misnamed": "1,200 photographs, expert labels, each with the name of another",
    "renamed": "1,200 photographs, labels renamed to persons, places, cameras and themes",
}
SIZES = (8, 20, 50, 100, 200, 400)
ASKED = (0.5, 0.7, 0.8, 0.9)
GROUPS = {"1": (1, 1), "2-4": (2, 4), "5-9": (5, 9), "10+": (10, 10**9)}
FORGOTTEN = 0.3  # share of the tags, where that is measured
RARE = 4  # photographs of a rare tag, at most
MOST = 12_000  # photographs of a collection
N_TEST = 800
RENAMED = (
    *("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grandma", "Hannah", "Ivan", "Julia"),
    *("Karl", "Lena", "Max", "Nora", "Oma Gertrud", "Paul", "Rex", "Sofia", "Tom", "Uncle Bob"),
    *("Berlin", "Lake Como", "Paris", "Oslo", "Kyoto", "New York", "Tuscany", "Yosemite", "home"),
    *("Provence", "Santorini", "Bavaria", "Brooklyn", "Cape Town", "Iceland", "Montana", "Crete"),
    *("Canon EOS 5D", "Nikon D750", "iPhone 12", "50mm", "85mm", "macro", "wide angle", "bokeh"),
    *("f/2.8", "HDR", "long exposure", "black and white", "panorama", "film", "raw", "flash"),
    *("holiday", "wedding", "birthday", "best of 2019", "to print", "portfolio", "family", "work"),
    *("freedom", "joy", "loneliness", "minimalism", "nostalgia", "cosy", "gloomy", "romantic"),
    *("summer", "golden hour", "Christmas", "project 365", "favourites", "street", "abstract"),
    *("vintage", "colourful", "beautiful", "old", "quiet"),
)
_STOP_WORDS = {
    *("a", "an", "the", "of", "on", "in", "at", "is", "are", "and", "with", "to", "for", "from"),
    *("by", "it", "its", "his", "her", "their", "this", "that", "there", "some", "as", "be", "has"),
    *("have", "who", "which", "up", "down", "out", "into", "onto", "near", "next", "over", "off"),
    *("while", "very"),
}


def open_collection(name: str) -> Task:
    """Return the features, tags and name prior of a collection."""
    if name == "captions":
        return _caption_task()
    if name == "misnamed":
        task = load_task("photos")
        order = np.random.default_rng(3).permutation(len(task.labels))
        return replace(task, labels=[task.labels[i] for i in order])
    if name == "renamed":
        task = load_task("photos")
        return replace(task, labels=list(RENAMED[: len(task.labels)]))
    task = load_task(name)
    some = np.random.default_rng(7).permutation(task.train)[:MOST]
    return replace(task, train=np.sort(some))


def _caption_task() -> Task:
    from experiments.datasets import open_dataset

    task, words = load_task("photos"), {}
    with (data_folder() / "photos" / "metadata.jsonl").open() as lines:
        for row in map(json.loads, lines):
            caption = re.findall(r"[a-z]{2,}", row["caption"].lower())
            words[row["file_name"]] = {*caption, *row["tags"]} - _STOP_WORDS
    files = [Path(file).name for file in open_dataset("photos", data_folder()).files or ()]
    vocabulary = sorted(set().union(*words.values()))
    Y = np.array([[word in words[file] for word in vocabulary] for file in files], dtype=np.float32)
    rows = np.arange(len(files))
    return replace(task, Y=scipy.sparse.csr_array(Y), labels=vocabulary, train=rows, test=rows)


def measure(task: Task, size: int, draw: int) -> dict[str, Any]:
    """Learn from `size` photographs with names and without, and test on others."""
    order = np.random.default_rng([draw, size]).permutation(task.train)
    rows, test = np.sort(order[:size]), np.sort(order[size:][-N_TEST:])
    counts = np.asarray((task.Y[rows] > 0).sum(axis=0)).ravel()
    tags = np.flatnonzero((counts >= 1) & (counts < size))
    counts, names = counts[tags], [task.labels[t] for t in tags]
    Y, truth = (
        scipy.sparse.csr_array((task.Y[r][:, tags] > 0).astype(float)) for r in (rows, test)
    )
    X, new = (np.asarray(task.X[r], dtype=np.float32) for r in (rows, test))
    result: dict[str, Any] = {"tagged": size, "draw": draw, "tags": len(tags)}
    simple = evaluate(truth, score_simply(X, Y.toarray(), new))
    result |= {f"simple {key}": 100 * simple[key] for key in ("MAP", "MiAP")}
    lists = [[names[t] for t in Y[[i]].indices] for i in range(size)]
    for kind, prior in (("without", None), ("with", task.prior)):
        vocabulary = Vocabulary(min_count=1)
        annotator = FeatureAnnotator(prior=prior, vocabulary=vocabulary)
        annotator.fit(X, lists)
        columns = [names.index(name) for name in annotator.classes_]
        scores = annotator.decision_function(new)
        of_kind = _ranked(truth[:, columns], scores, counts[columns])
        least = {wanted: annotator.calibration_.threshold(wanted) for wanted in ASKED}
        present, P = truth[:, columns].toarray() > 0, annotator.predict_proba(new)
        for wanted in ASKED:
            for group, most in (("", size), ("rare ", RARE), ("one ", 1)):
                chosen = (least[wanted] <= P) & (counts[columns] <= most)
                of_kind[f"{group}n {wanted}"] = int(chosen.sum())
                of_kind[f"{group}right {wanted}"] = int(present[chosen].sum())
                of_kind[f"{group}said {wanted}"] = float(P[chosen].sum())
        result |= {f"{kind} {key}": value for key, value in of_kind.items()}
    return result


def measure_forgotten(task: Task, size: int, draw: int) -> dict[str, Any]:
    """Learn from photographs on which each tag was forgotten with probability `FORGOTTEN`.

    Count suggestions that a person with the same habit would have given, and those that are right.
    """
    rng = np.random.default_rng([draw, size, 1])
    order = rng.permutation(task.train)
    rows, test = np.sort(order[:size]), np.sort(order[size:][-N_TEST:])
    present = task.Y[np.append(rows, test)].toarray() > 0
    given = present & (rng.random(present.shape) >= FORGOTTEN)
    tags = np.flatnonzero(given[:size].any(axis=0) & ~given[:size].all(axis=0))
    names = [task.labels[t] for t in tags]
    lists = [[names[t] for t in np.flatnonzero(row)] for row in given[:size][:, tags]]
    X, new = (np.asarray(task.X[r], dtype=np.float32) for r in (rows, test))
    vocabulary = Vocabulary(min_count=1)
    annotator = FeatureAnnotator(prior=task.prior, vocabulary=vocabulary)
    annotator.fit(X, lists)
    columns = tags[[names.index(name) for name in annotator.classes_]]
    P = annotator.predict_proba(new)
    result: dict[str, Any] = {"tagged": size, "draw": draw}
    for wanted in ASKED:
        chosen = annotator.calibration_.threshold(wanted) <= P
        result[f"n {wanted}"] = int(chosen.sum())
        result[f"given {wanted}"] = int(given[size:][:, columns][chosen].sum())
        result[f"right {wanted}"] = int(present[size:][:, columns][chosen].sum())
    return result


def _ranked(truth: Any, scores: np.ndarray, counts: np.ndarray) -> dict[str, float]:
    quality, precision = evaluate(truth, scores), 100 * average_precision(truth, scores)
    found = {key: 100 * quality[key] for key in ("MAP", "MiAP")}
    found["P@5"] = 100 * quality["image_precision"]
    for group, (low, high) in GROUPS.items():
        of_group = precision[(counts >= low) & (counts <= high) & ~np.isnan(precision)]
        found[f"MAP {group}"] = float(of_group.mean()) if len(of_group) else float("nan")
    return found


# --- the page ----------------------------------------------------------------------------


def _mean(values: list[float], signed: bool = False) -> str:
    """Return the mean over draws, and half of its 95 % interval (Student's t)."""
    known = np.array([value for value in values if np.isfinite(value)])
    if len(known) < 2:
        return ""
    half = stats.t.ppf(0.975, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known))
    return f"{known.mean():{'+' if signed else ''}.1f} ± {half:.1f}"


def _reached(rows: list[dict[str, Any]], kind: str, group: str, wanted: float) -> str:
    """Return the share of right suggestions over all draws, and the range of most draws."""
    rows = [row for row in rows if np.isfinite(row[f"{kind} MAP"])]
    n, right, said = (
        np.array([row[f"{kind} {group}{what} {wanted}"] for row in rows])
        for what in ("n", "right", "said")
    )
    if n.sum() < 20:
        return "few"
    if group:
        return f"{right.sum() / n.sum():.2f} of {said.sum() / n.sum():.2f}"
    shares = right[n >= 10] / n[n >= 10]
    ends = "" if len(shares) < 5 else " ({:.2f}–{:.2f})".format(*np.quantile(shares, [0.1, 0.9]))
    return f"{right.sum() / n.sum():.2f}{ends}"


def write_page(rows: list[dict[str, Any]], target: Path) -> None:
    """Write trust.md from all draws."""
    simple = [["collection", "tagged", "MAP", "against simple", "MiAP", "against simple"]]
    names = [["collection", "tagged", "MAP", "MiAP", "P@5", *(f"on {g}" for g in GROUPS)]]
    asked = [["collection", "tagged", "names", *(f"asked {w}" for w in ASKED)]]
    asked[0] += [f"rare, asked {w}" for w in ASKED[:3]]
    single = [["collection", "tagged", *(f"asked {w}" for w in ASKED[:3])]]
    for name in COLLECTIONS:
        for size in SIZES:
            draws = [r for r in rows if r["collection"] == name and r["tagged"] == size]
            if not draws:
                continue
            label = [name, str(size)]
            if name not in ("misnamed", "renamed"):
                cells = []
                for key in ("MAP", "MiAP"):
                    gains = [r[f"without {key}"] - r[f"simple {key}"] for r in draws]
                    cells += [_mean([r[f"without {key}"] for r in draws]), _mean(gains, True)]
                simple.append(label + cells)
                for kind in ("without", "with"):
                    whole = [_reached(draws, kind, "", w) for w in ASKED]
                    rare = [_reached(draws, kind, "rare ", w) for w in ASKED[:3]]
                    asked.append([*label, kind, *whole, *rare])
                ones = [_reached(draws, "with", "one ", w) for w in ASKED[:3]]
                single.append([*label, *ones])
            keys = ["MAP", "MiAP", "P@5", *(f"MAP {g}" for g in GROUPS)]
            gains_of = {k: [r[f"with {k}"] - r[f"without {k}"] for r in draws] for k in keys}
            names.append(label + [_mean(gains_of[k], True) for k in keys])
    template = Path(__file__).parent / "templates" / "trust.md"
    text = template.read_text(encoding="utf-8")
    sets = "\n".join(f"- **{name}**: {what}" for name, what in COLLECTIONS.items())
    counts = Counter((row["collection"], row["tagged"]) for row in rows).values()
    fewest, most = min(counts, default=0), max(counts, default=0)
    for mark, part in (
        ("COLLECTIONS", sets),
        ("DRAWS", str(most) if fewest == most else f"{fewest} to {most}"),
        ("SIMPLE", _table(simple)),
        ("NAMES", _table(names)),
        ("ASKED", _table(asked)),
        ("ONE", _table(single)),
        ("FORGOTTEN", _table(_forgotten_rows(_read(target / "trust-forgotten.csv")))),
        ("ALONE", _table(_read_alone(target / "names-alone.csv"))),
    ):
        text = text.replace(f"<!-- {mark} -->", part)
    (target / "trust.md").write_text(made.render(text), encoding="utf-8")
    made.note(target / "trust.md")


def _forgotten_rows(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Return the table of what a percentage means if tags were forgotten."""
    table = [["collection", "tagged", *(f"asked {w}: given, right" for w in ASKED[:3])]]
    for name, size in dict.fromkeys((row["collection"], int(row["tagged"])) for row in rows):
        of_size = [r for r in rows if (r["collection"], r["tagged"]) == (name, size)]
        cells = []
        for wanted in ASKED[:3]:
            n, *counts = (
                sum(row[f"{what} {wanted}"] for row in of_size) for what in ("n", "given", "right")
            )
            cells.append(", ".join(f"{x / n:.2f}" for x in counts) if n >= 20 else "few")
        table.append([name, str(size), *cells])
    return table


def _read_alone(path: Path) -> list[list[str]]:
    """Return the table that ``python -m experiments names --alone`` has written."""
    with path.open() as file:
        return [[cell or "few" for cell in row] for row in csv.reader(file)]


def _table(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    with path.open() as file:
        return [
            {
                key: value if key == "collection" else float(value or "nan")  # as `made` writes it
                for key, value in row.items()
            }
            for row in csv.DictReader(file)
        ]


def main(arguments: list[str] | None = None) -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments trust", description=__doc__)
    parser.add_argument("collections", nargs="*", default=list(COLLECTIONS))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--forgotten", action="store_true", help="forget 30 %% of the tags")
    parser.add_argument("--output", type=Path, default=made.RESULTS)
    options = parser.parse_args(arguments)
    kind, measure_draw = (
        ("forgotten", measure_forgotten) if options.forgotten else ("draws", measure)
    )
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"trust-{kind}.csv"
    tasks = {name: open_collection(name) for name in options.collections}
    for draw in range(options.draws):
        for name, task in tasks.items():
            for size in options.sizes:
                rows = _read(path) if made.is_current(path) else []
                key = (name, size, draw)
                if any((r["collection"], r["tagged"], r["draw"]) == key for r in rows):
                    continue
                _write(path, [*rows, {"collection": name, **measure_draw(task, size, draw)}])
        print(f"draw {draw}", flush=True)
    write_page(_read(options.output / "trust-draws.csv"), options.output)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    order = list(COLLECTIONS)
    rows.sort(key=lambda row: (order.index(row["collection"]), row["tagged"], row["draw"]))
    made.write(path, rows)
