"""What each step of learning is worth: left out one at a time, on photographs nobody chose by.

``python -m experiments ablation`` prints a table and writes docs/results/ablation.csv. The numbers
of each step were chosen on other draws. COCO has no names here, because its captions taught them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.base import clone

from experiments import made
from experiments.moments import load_personal
from experiments.names import Task
from experiments.trust import open_collection
from tagkin.annotator.hold_out import FoldModels, calibrate_held_out, hold_out
from tagkin.annotator.naming import Naming, score_names
from tagkin.annotator.part import Part
from tagkin.annotator.problem import Labels, Problem, find_groups
from tagkin.annotator.recipe import Recipe, usual_recipe
from tagkin.arrays import expit
from tagkin.calibration import calibration, fitting
from tagkin.evaluation import evaluate
from tagkin.tag_meanings import CaptionEncoder, NamePrior
from tagkin.transfer.occasions import Occasions, score_occasions

__all__ = ["run"]

DRAWS = (911, 912)
PERSONAL = ("traveller", "diver")
SETTINGS = (
    *(("coco", 1500), ("coco", 400), ("coco", 100)),
    *(("photos", 400), ("flickr8k", 400), ("flickr8k", 6000)),
    *(("traveller", 100), ("diver", 100)),
)
N_TEST = 800
LIKELY = 0.1  # least probability of the pairs whose calibration error is measured
FIRM = 1e9  # a pull that leaves nothing its own value


def run(target: Path) -> None:
    """Measure, print the table, and write it to a folder."""
    made.write(target / "ablation.csv", [r for setting in SETTINGS for r in _rows(*setting)], DRAWS)
    print(made.markdown(made.VIEWS["ablation"](made.read("ablation.csv"))))


def _rows(name: str, size: int) -> Iterator[dict[str, Any]]:
    for draw in DRAWS:
        for step, figures in _measure(_draw(name, size, draw)).items():
            yield {"collection": name, "tagged": size, "draw": draw, "left out": step, **figures}


class Drawn(NamedTuple):
    """What is learned from, and new photographs."""

    problem: Problem
    X: np.ndarray
    truth: scipy.sparse.csr_array
    occasions: Occasions | None


def _draw(name: str, size: int, draw: int) -> Drawn:
    """Draw tagged photographs and new ones, with the tags on one of the tagged ones or more."""
    if name in PERSONAL:
        person, prior = load_personal(name), NamePrior(CaptionEncoder())
        words = sorted({tag for row in person.tags for tag in row})
        rows = np.arange(len(person.X))
        Y = scipy.sparse.csr_array(person.matrix(words))
        task = Task(name, person.X, Y, words, rows, rows, prior)
        every = Occasions.read(**person.moments(), n_images=len(person.X))
    else:
        task, every = open_collection(name), None
    order = np.random.default_rng([draw, size]).permutation(task.train)
    rows, test = np.sort(order[:size]), np.sort(order[size:][-N_TEST:])
    counts = np.asarray((task.Y[rows] > 0).sum(axis=0)).ravel()
    tags = np.flatnonzero((counts >= 1) & (counts < size))
    Y, truth = (
        scipy.sparse.csr_array((task.Y[r][:, tags] > 0).astype(np.float32)) for r in (rows, test)
    )
    X, new = (np.asarray(task.X[r], dtype=np.float32) for r in (rows, test))
    naming = Naming.of(task.prior, np.array([task.labels[t] for t in tags]))
    known, asked = (None if every is None else every.take(r) for r in (rows, test))
    groups = find_groups(X, None) if every is None else None
    return Drawn(
        Problem(X, Labels.of(Y), groups, naming=naming, occasions=known), new, truth, asked
    )


def _score(
    drawn: Drawn, problem: Problem, recipe: Recipe
) -> tuple[Part, tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Return the part, held-out scores, and scores of the new photographs."""
    part = Part.whole(problem)
    models = FoldModels(problem, part, recipe)
    scores = hold_out(part, models.score_fold)
    space, method = models.fit()
    learned = method.model_.components(drawn.X if space is None else space.transform(drawn.X))
    if problem.occasions is not None and drawn.occasions is not None:
        learned = *learned, *score_occasions(problem.occasions, drawn.occasions, problem.Y)
    return part, scores, learned


def _measure(drawn: Drawn) -> dict[str, dict[str, float]]:
    """MAP, MiAP and calibration error on new photographs, without each of the steps."""
    problem, truth, naming = drawn.problem, drawn.truth, drawn.problem.naming
    recipe = usual_recipe(None, None, 0)
    part, scores, learned = _score(drawn, problem, recipe)
    by_name = () if naming is None else (score_names(naming.prior, drawn.X, naming.table),)

    def judge(
        some: tuple[np.ndarray, ...],
        *parts: np.ndarray,
        of: Problem = problem,
        held_out: Part = part,
        link: bool = True,
    ) -> dict[str, float]:
        calibration = calibrate_held_out(of, held_out, some).calibrated.calibration
        z = calibration.mix(parts)
        return _figures(truth, z, calibration.probabilities(z) if link else np.asarray(expit(z)))

    result = {"nothing": judge(scores, *learned, *by_name)}
    if naming is not None:
        result["names"] = judge(scores, *learned, of=replace(problem, naming=None))
    if problem.occasions is not None:
        plain = replace(problem, occasions=None)
        other, some, parts = _score(drawn, plain, recipe)
        result["moments"] = judge(some, *parts, *by_name, of=plain, held_out=other)
    other, some, parts = _score(drawn, problem, replace(recipe, space=None))
    result["space"] = judge(some, *parts, *by_name, held_out=other)
    result["votes"] = judge(scores[1:], *learned[1:], *by_name)
    result["read-out"] = judge((scores[0], *scores[2:]), learned[0], *learned[2:], *by_name)
    with _firm(fitting, "MIXING", "pull", "name_pull", "intercept_pull"):
        result["weights"] = judge(scores, *learned, *by_name)
    with _firm(fitting, "MIXING", "intercept_pull"):
        result["intercepts"] = judge(scores, *learned, *by_name)
    result["link"] = judge(scores, *learned, *by_name, link=False)
    with _firm(calibration, "LINKING", "shrink_pull"):
        result["fitted γ"] = judge(scores, *learned, *by_name)
    certain = replace(recipe, method=clone(recipe.method).set_params(forgotten=0))
    other, some, parts = _score(drawn, problem, certain)
    result["forgotten"] = judge(some, *parts, *by_name, held_out=other)
    return result


@contextmanager
def _firm(module: Any, numbers: str, *pulls: str) -> Iterator[None]:
    """Make some pulls firm for a while, so nothing moves from where they pull."""
    usual = getattr(module, numbers)
    setattr(module, numbers, replace(usual, **dict.fromkeys(pulls, FIRM)))
    try:
        yield
    finally:
        setattr(module, numbers, usual)


def _figures(truth: scipy.sparse.csr_array, z: np.ndarray, P: np.ndarray) -> dict[str, float]:
    quality, present = evaluate(truth, z), truth.toarray() > 0
    p, right = P[P >= LIKELY], present[P >= LIKELY]
    bins = np.minimum((15 * p).astype(int), 14)
    gaps = np.abs(np.bincount(bins, p, 15) - np.bincount(bins, right, 15))
    error = float(gaps.sum() / max(len(p), 1))
    return {"MAP": 100 * quality["MAP"], "MiAP": 100 * quality["MiAP"], "error": error}
