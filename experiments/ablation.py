"""What each step of learning is worth: left out one at a time, on photographs nobody chose by.

``python -m experiments ablation`` prints a table and writes docs/results/ablation.csv. The numbers
of each step were chosen on other draws. COCO has no names here, because its captions taught them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from experiments import made
from experiments.names import Task
from experiments.trust import open_collection
from tagkin.annotator.hold_out import FoldModels, calibrate_held_out, hold_out
from tagkin.annotator.naming import Naming, score_names
from tagkin.annotator.part import Part
from tagkin.annotator.problem import Labels, Problem, find_groups
from tagkin.annotator.recipe import usual_recipe
from tagkin.arrays import expit
from tagkin.calibration import fitting
from tagkin.evaluation import evaluate

__all__ = ["run"]

DRAWS = (911, 912)
SETTINGS = (
    *(("coco", 1500), ("coco", 400), ("coco", 100)),
    *(("photos", 400), ("flickr8k", 400), ("flickr8k", 6000)),
)
N_TEST = 800
LIKELY = 0.1  # least probability of the pairs whose calibration error is measured
STEPS = ("nothing", "names", "votes", "read-out", "weights", "link")
FIRM = 1e9  # a pull that leaves no weight its own


def run(target: Path) -> None:
    """Measure, print the table, and write it to a folder."""
    rows = [row for name, size in SETTINGS for row in _rows(name, size)]
    steps = sorted({row["left out"]: None for row in rows}, key=STEPS.index)
    made.write(target / "ablation.csv", rows, DRAWS)
    names = [f"{name} {size:,}" for name, size in SETTINGS]
    print("| left out | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1))
    for step in steps:
        cells = []
        for name, size in SETTINGS:
            own = [r for r in rows if (r["collection"], r["tagged"]) == (name, size)]
            if not any(r["left out"] == step for r in own):
                cells.append("–")
                continue
            mean = {
                key: np.mean([r[key] for r in own if r["left out"] == step])
                - (
                    0
                    if step == "nothing"
                    else np.mean([r[key] for r in own if r["left out"] == "nothing"])
                )
                for key in ("MAP", "MiAP", "error")
            }
            sign = "" if step == "nothing" else "+"
            cells.append(
                f"{mean['MAP']:{sign}.1f} / {mean['MiAP']:{sign}.1f}, {mean['error']:{sign}.3f}"
            )
        print(f"| {step} | " + " | ".join(cells) + " |")


def _rows(name: str, size: int) -> Iterator[dict[str, Any]]:
    task = open_collection(name)
    for draw in DRAWS:
        for step, figures in _measure(task, size, draw).items():
            yield {"collection": name, "tagged": size, "draw": draw, "left out": step, **figures}


def _measure(task: Task, size: int, draw: int) -> dict[str, dict[str, float]]:
    """MAP, MiAP and calibration error on new photographs, without each of the steps."""
    order = np.random.default_rng([draw, size]).permutation(task.train)
    rows, test = np.sort(order[:size]), np.sort(order[size:][-N_TEST:])
    counts = np.asarray((task.Y[rows] > 0).sum(axis=0)).ravel()
    tags = np.flatnonzero((counts >= 1) & (counts < size))
    Y, truth = (
        scipy.sparse.csr_array((task.Y[r][:, tags] > 0).astype(np.float32)) for r in (rows, test)
    )
    X, new = (np.asarray(task.X[r], dtype=np.float32) for r in (rows, test))
    naming = Naming.of(task.prior, np.array([task.labels[t] for t in tags]))
    problem = Problem(X, Labels.of(Y), find_groups(X, None), naming=naming)
    part = Part.whole(problem)
    by_name = () if naming is None else (score_names(task.prior, new, naming.table),)

    models = FoldModels(problem, part, usual_recipe(None, None, 0))
    scores = hold_out(part, models.score_fold)
    space, method = models.fit()
    assert space is not None
    learned = method.model_.components(space.transform(new))

    def judge(
        some: tuple[np.ndarray, ...], *parts: np.ndarray, of: Problem = problem, link: bool = True
    ) -> dict[str, float]:
        calibration = calibrate_held_out(of, part, some).calibrated.calibration
        z = calibration.mix(parts)
        return _figures(truth, z, calibration.probabilities(z) if link else np.asarray(expit(z)))

    result = {"nothing": judge(scores, *learned, *by_name)}
    if naming is not None:
        result["names"] = judge(scores, *learned, of=replace(problem, naming=None))
    result["votes"] = judge(scores[1:], learned[1], *by_name)
    result["read-out"] = judge(scores[:1], learned[0], *by_name)
    with _common_weights():
        result["weights"] = judge(scores, *learned, *by_name)
    result["link"] = judge(scores, *learned, *by_name, link=False)
    return result


@contextmanager
def _common_weights() -> Iterator[None]:
    """Leave no tag its own weights for a while."""
    usual = fitting.MIXING
    fitting.MIXING = replace(usual, pull=FIRM, name_pull=FIRM, intercept_pull=FIRM)
    try:
        yield
    finally:
        fitting.MIXING = usual


def _figures(truth: scipy.sparse.csr_array, z: np.ndarray, P: np.ndarray) -> dict[str, float]:
    quality, present = evaluate(truth, z), truth.toarray() > 0
    p, right = P[P >= LIKELY], present[P >= LIKELY]
    bins = np.minimum((15 * p).astype(int), 14)
    gaps = np.abs(np.bincount(bins, p, 15) - np.bincount(bins, right, 15))
    error = float(gaps.sum() / max(len(p), 1))
    return {"MAP": 100 * quality["MAP"], "MiAP": 100 * quality["MiAP"], "error": error}
