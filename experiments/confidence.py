"""Confidence that survives real collections: series and leaks.

    python -m experiments confidence                     # all parts, into docs/results
    python -m experiments confidence reliability         # one part; the page is made of all

Each part is stored as a CSV file; the page is made of those that are there.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import scipy.sparse

from experiments.config import find_config
from experiments.datasets import load_photos
from experiments.frames import frame_rows
from experiments.leakage import choice_rows, precision_rows
from experiments.problem import Problem, dataset_folder, expert_problem, is_available, open_data
from experiments.reliability import draw, reliability_rows

__all__ = ["PARTS", "measure"]

N_NEW = 4000  # test images of COCO, at most
ONLY_IN_FILES = {"curve", "asked 0.6", "asked 0.7", "asked 0.95"}  # a page is too narrow for all

TEXTS = {
    "frames": (
        "Do bursts spoil the precision?",
        "Not if their times or file names say that they were taken together. Three frames are cut"
        " from each of 400 photographs, with 70 to 95 % of its side, turned by up to 4°, up to "
        "half a stop darker or brighter; their cosines are .77 to .98. All other photographs of "
        "the folder are new. “As they are” means that the groups are given. *Frames with their "
        "event* is the share of frames that are held out together with another frame of their "
        "photograph. *Asked* is a requested precision; the columns show the precision that new "
        "photographs reach, and the number of suggestions. Looks alone link only pictures that "
        "are nearly the same (a cosine of .97 and more), because different photographs of one "
        "subject look as much alike as these frames. So bursts without times and without "
        "consecutive names get confidences that are too high: pass `groups` for them.",
    ),
    "precision": (
        "Does the space have to leave out the held-out images?",
        "Yes. If the space has seen the labels of held-out images, suggestions do not reach the "
        "requested precision. Measured on Flickr8k with votes of 50 neighbours, 2,048 landmarks "
        "and 3 folds. The columns show the precision that test photographs reach for each "
        "requested precision.",
    ),
    "choice": (
        "Does cross-validation predict the MAP of new images?",
        "If the space is fitted once on all photographs, its MAP is much too high for a small κ; "
        "with a space for each fold it is slightly too low. Measured on Flickr8k with 1,024 "
        "landmarks and 50 neighbours. MAP, as a share of 1, is by cross-validation and "
        "on test photographs.",
    ),
    "reliability": (
        "Are percentages calibrated?",
        "Yes. ECE is the expected calibration error over all pairs of a photograph and a tag, and "
        "over pairs with a probability of at least .1. The other columns show the precision "
        "reached for each requested precision, and the number of suggestions. Each of sixteen "
        "draws shuffles all photographs and keeps near-duplicates together. It learns from at most "
        "5,000 and tests on at most 4,000. Intervals (95 %) come from the differences between "
        "draws. “few” means fewer than 200 suggestions. Bars in the diagrams are 95 % intervals, "
        "and bins with fewer than 20 pairs are omitted.",
    ),
}


def _problem(name: str, cache: Path, n_new: int = N_NEW) -> Problem:
    config = find_config(name)
    problem = expert_problem(open_data(config, cache), config)
    return problem.small(n_new, config.seed)[0]


def _reliability(cache: Path) -> Iterable[dict[str, Any]]:
    for name in ("coco", "flickr8k", "photos"):
        if is_available(name):
            yield from reliability_rows(_problem(name, cache, n_new=0), name)


def _frames(cache: Path) -> Iterable[dict[str, Any]]:
    if not is_available("photos"):
        return []
    folder = dataset_folder("photos")
    data = load_photos(folder)
    assert data.files is not None
    files = [folder / file for file in data.files]
    return frame_rows(files, scipy.sparse.csr_array(data.labels).toarray())


PARTS: dict[str, Callable[[Path], Iterable[dict[str, Any]]]] = {
    "frames": _frames,
    "precision": lambda cache: precision_rows(_problem("flickr8k", cache)),
    "choice": lambda cache: choice_rows(_problem("flickr8k", cache)),
    "reliability": _reliability,
}


def measure(parts: list[str], results: Path, cache: Path) -> None:
    """Measure the parts (all, where none is named), and write the page of all that is stored."""
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise SystemExit(f"Unknown: {', '.join(unknown)}. There are {', '.join(PARTS)}.")
    results.mkdir(parents=True, exist_ok=True)
    for name in parts or PARTS:
        print(f"{name} …", flush=True)
        rows = list(PARTS[name](cache))
        if not rows:
            print("  left out, because its photographs are not available", flush=True)
            continue
        with (results / f"confidence-{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows([{k: _written(v) for k, v in row.items()} for row in rows])
    if (results / "confidence-reliability.csv").exists():
        draw(results / "confidence-reliability.csv", results / "confidence-reliability.svg")
    (results / "confidence.md").write_text(_page(results), encoding="utf-8")


def _written(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.1f}"


def _page(results: Path) -> str:
    lines = [
        "# Are percentages right with many photographs?",
        "",
        "Yes, within two points of what was asked for. Bursts need times, consecutive file names "
        "or `groups`, and the space must not have seen the held-out photographs.",
        "",
        "```sh",
        "python -m experiments confidence",
        "```",
        "",
    ]
    for name, (title, text) in TEXTS.items():
        path = results / f"confidence-{name}.csv"
        if not path.exists():
            continue
        header, *rows = csv.reader(path.open(encoding="utf-8", newline=""))
        lines += [f"## {title}", "", text, ""]
        if "curve" in header:
            lines += [f"![Reliability diagrams]({path.stem}.svg)", ""]
        shown = [i for i, column in enumerate(header) if column not in ONLY_IN_FILES]
        header, *rows = ([row[i] for i in shown] for row in (header, *rows))
        lines += [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
        lines += [f"| {' | '.join(row)} |" for row in rows]
        lines += ["", f"[{path.name}]({path.name})", ""]
    return "\n".join(lines)
