"""Suggestions and nearest photographs, in visual feature space and in the semantic space.

Tables refer to photographs by file name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from experiments.methods import NeighborLists, score
from experiments.store import Missing
from experiments.study import Step, Study
from experiments.tabular import Table
from tagkin.evaluation import top_labels

__all__ = ["examples", "steps", "tables"]

METHODS = ("NNvot", "TagRel", "TagProp")
RECIPES = {"visual": "baseline", "linear": "space"}
_SHOWN = 5


def steps(study: Study) -> Iterator[Step]:
    """Labels and neighbours of every test photograph."""
    yield Step("photographs", partial(_features, study))
    for recipe in RECIPES:
        yield Step(f"suggestions, {recipe}", partial(suggested, study, recipe))


def _features(study: Study) -> Any:
    return study.data


def suggested(study: Study, recipe: str) -> dict[str, np.ndarray]:
    """Best labels of the test photographs by each method, and their nearest neighbours."""

    def compute() -> dict[str, Any]:
        problem, there = study.expert, study.embeddings("expert", recipe)
        k = study.config.max_learned_neighbors
        lists = NeighborLists(there.known, there.new, problem.Y, k, k, 1)
        found = {m: top_labels(score(m, {"K": k}, lists), _SHOWN) for m in METHODS}
        files = np.array(study.data.files)
        return {
            **found,
            "neighbors": lists.of_new.indices[:, :_SHOWN],
            "truth": problem.truth.toarray() > 0,
            "known": problem.Y.toarray() > 0,
            "names": np.array(problem.names),
            "files": files[study.data.test],
            "known_files": files[study.data.train],
        }

    return study.store.get_or_compute(
        "suggestions", compute, recipe=recipe, K=study.config.max_learned_neighbors
    )


def _right(found: dict[str, np.ndarray], method: str) -> np.ndarray:
    """Number of correct suggestions for each photograph."""
    return np.take_along_axis(found["truth"], found[method], axis=1).sum(axis=1)


def examples(gain: np.ndarray, seed: int) -> list[int]:
    """Photographs to show: the three largest gains, the two largest losses, four at random."""
    order = np.argsort(-gain, kind="stable")
    ends = list(dict.fromkeys(int(i) for i in (*order[:3], *order[-2:])))
    others = [int(i) for i in np.random.default_rng(seed).permutation(len(gain)) if i not in ends]
    return ends + others[:4]


def _gain(visual: dict[str, np.ndarray], semantic: dict[str, np.ndarray]) -> np.ndarray:
    return np.sum([_right(semantic, m) - _right(visual, m) for m in METHODS], axis=0)


def tables(study: Study) -> Iterator[Table]:
    """Correct labels: marked for some photographs, counted for all."""
    try:
        visual, semantic = (suggested(study, recipe) for recipe in RECIPES)
    except Missing:
        return
    yield _examples_table(study, visual, semantic)
    rows: list[list[Any]] = []
    for method in METHODS:
        one, two = _right(visual, method), _right(semantic, method)
        cells = [f"{one.mean():.2f}", f"{two.mean():.2f}"]
        rows.append([method, *cells, int((two > one).sum()), int((two < one).sum())])
    overlap = [
        "neighbours that share a label",
        *(f"{_sharing(found):.2f}" for found in (visual, semantic)),
    ]
    rows.append([*overlap, None, None])
    columns = ["correct of five", "baseline", "space", "photographs with more", "with fewer"]
    yield Table("photos-correct", columns, rows)


def _sharing(found: dict[str, np.ndarray]) -> float:
    """Share of the neighbours that have a label in common with the photograph."""
    theirs = found["known"][found["neighbors"]]
    return float((theirs & found["truth"][:, None, :]).any(axis=2).mean())


def _examples_table(
    study: Study, visual: dict[str, np.ndarray], semantic: dict[str, np.ndarray]
) -> Table:
    names = visual["names"]
    columns = ["photograph", "expert labels"]
    columns += [f"{m}, {where}" for m in METHODS for where in RECIPES.values()]
    rows = []
    for i in examples(_gain(visual, semantic), study.config.seed):
        row = [str(visual["files"][i]), ", ".join(names[visual["truth"][i]])]
        for method in METHODS:
            for found in (visual, semantic):
                row.append(_marked(found[method][i], found["truth"][i], names))
        rows.append(row)
    return Table("photos-examples", columns, rows)


def _marked(labels: np.ndarray, truth: np.ndarray, names: np.ndarray) -> str:
    return ", ".join(f"**{names[t]}**" if truth[t] else str(names[t]) for t in labels)
