"""Confidence that survives real collections: series and leaks.

    python -m experiments confidence                     # all parts, into docs/results
    python -m experiments confidence reliability         # one part

Each part is stored as a CSV file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import scipy.sparse

from experiments import made
from experiments.config import find_config
from experiments.datasets import load_photos
from experiments.frames import frame_rows
from experiments.leakage import choice_rows, precision_rows
from experiments.problem import Problem, dataset_folder, expert_problem, is_available, open_data
from experiments.reliability import draw, reliability_rows

__all__ = ["PARTS", "measure"]

N_NEW = 4000  # test images of COCO, at most


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
    """Measure the parts, all where none is named."""
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
        columns = list(rows[0])
        cells = [[_written(row[column]) for column in columns] for row in rows]
        made.write_table(results / f"confidence-{name}.csv", columns, cells)
    if (results / "confidence-reliability.csv").exists():
        draw(results / "confidence-reliability.csv", results / "confidence-reliability.svg")
        made.note(results / "confidence-reliability.svg")


def _written(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.1f}"
