"""What a person sees: suggestions and nearest images on photographs, by looks and in the space.

Photographs are shown in the page under build/ only; tables name them by their files.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.methods import Lists, score
from experiments.problem import dataset_folder
from experiments.store import Missing
from experiments.study import Step, Study
from experiments.tabular import Table
from tagkin.evaluation import top_labels

__all__ = ["examples", "page", "steps", "tables"]

METHODS = ("NNvot", "TagRel", "TagProp")
PLACES = {"visual": "baseline", "linear": "space"}
_SHOWN = 5


def steps(study: Study) -> Iterator[Step]:
    """Labels and neighbours of every test photograph."""
    yield Step("photographs", 60, partial(_features, study))
    for recipe in PLACES:
        yield Step(f"suggestions, {recipe}", 20, partial(suggested, study, recipe))


def _features(study: Study) -> Any:
    return study.data


def suggested(study: Study, recipe: str) -> dict[str, np.ndarray]:
    """Best labels of the test photographs by each method, and their nearest kin."""

    def make() -> dict[str, Any]:
        problem, there = study.expert, study.place("expert", recipe)
        k = study.config.longest
        lists = Lists(there.known, there.new, problem.Y, k, k, 1)
        found = {m: top_labels(score(m, {"K": k}, lists), _SHOWN) for m in METHODS}
        files = np.array(study.data.files)
        return {
            **found,
            "kin": lists.of_new.indices[:, :_SHOWN],
            "truth": problem.truth.toarray() > 0,
            "known": problem.Y.toarray() > 0,
            "names": np.array(problem.names),
            "files": files[study.data.test],
            "known_files": files[study.data.train],
        }

    return study.store.once("suggestions", make, recipe=recipe, K=study.config.longest)


def _right(found: dict[str, np.ndarray], method: str) -> np.ndarray:
    """How many of each photograph's suggestions are right."""
    return np.take_along_axis(found["truth"], found[method], axis=1).sum(axis=1)


def examples(gain: np.ndarray, seed: int) -> list[int]:
    """Photographs to show: where the space gains most, where it loses most, and any four."""
    order = np.argsort(-gain, kind="stable")
    ends = list(dict.fromkeys(int(i) for i in (*order[:3], *order[-2:])))
    others = [int(i) for i in np.random.default_rng(seed).permutation(len(gain)) if i not in ends]
    return ends + others[:4]


def _gain(visual: dict[str, np.ndarray], semantic: dict[str, np.ndarray]) -> np.ndarray:
    return np.sum([_right(semantic, m) - _right(visual, m) for m in METHODS], axis=0)


def tables(study: Study) -> Iterator[Table]:
    """Right labels marked, for some photographs, and counted, for all."""
    try:
        by_looks, in_space = (suggested(study, recipe) for recipe in PLACES)
    except Missing:
        return
    yield _examples_table(study, by_looks, in_space)
    rows: list[list[Any]] = []
    for method in METHODS:
        one, two = _right(by_looks, method), _right(in_space, method)
        cells = [f"{one.mean():.2f}", f"{two.mean():.2f}"]
        rows.append([method, *cells, int((two > one).sum()), int((two < one).sum())])
    overlap = ["kin share a label", *(f"{_sharing(found):.2f}" for found in (by_looks, in_space))]
    rows.append([*overlap, None, None])
    columns = ["right of five", "baseline", "space", "photographs with more", "with fewer"]
    note = f"{len(by_looks['truth'])} test photographs, {study.config.longest} neighbours."
    yield Table("photos-right", "Right suggestions, photographs", columns, rows, note)


def _sharing(found: dict[str, np.ndarray]) -> float:
    """Share of the nearest that have a label in common with the photograph."""
    theirs = found["known"][found["kin"]]
    return float((theirs & found["truth"][:, None, :]).any(axis=2).mean())


def _examples_table(
    study: Study, by_looks: dict[str, np.ndarray], in_space: dict[str, np.ndarray]
) -> Table:
    names = by_looks["names"]
    columns = ["photograph", "expert labels"]
    columns += [f"{m}, {where}" for m in METHODS for where in PLACES.values()]
    rows = []
    for i in examples(_gain(by_looks, in_space), study.config.seed):
        row = [str(by_looks["files"][i]), ", ".join(names[by_looks["truth"][i]])]
        for method in METHODS:
            for found in (by_looks, in_space):
                row.append(_marked(found[method][i], found["truth"][i], names))
        rows.append(row)
    note = (
        "Right ones in bold, best first. The first three are where the space gains most, the next "
        "two where it loses most, the last four any."
    )
    return Table("photos-examples", "Suggestions on photographs", columns, rows, note)


def _marked(labels: np.ndarray, truth: np.ndarray, names: np.ndarray) -> str:
    return ", ".join(f"**{names[t]}**" if truth[t] else str(names[t]) for t in labels)


# --- the page with photographs, under build/ only ------------------------------------------


def page(study: Study, path: Path) -> None:
    """Write a page of photographs with their nearest by looks and in the space."""
    by_looks, in_space = (suggested(study, recipe) for recipe in PLACES)
    folder = dataset_folder(study.config.dataset)
    body = []
    for i in examples(_gain(by_looks, in_space), study.config.seed):
        own = ", ".join(by_looks["names"][by_looks["truth"][i]])
        panel = [_picture(folder / str(by_looks["files"][i]), own, True)]
        for title, found in (("by looks", by_looks), ("in the space", in_space)):
            panel.append(f"<h3>{title}</h3>")
            for j in found["kin"][i]:
                labels = found["known"][j]
                words = ", ".join(found["names"][labels])
                alike = bool((labels & found["truth"][i]).any())
                panel.append(_picture(folder / str(found["known_files"][j]), words, alike))
        body.append(f"<section>{''.join(panel)}</section>")
    path.write_text(
        "<!doctype html><meta charset=utf-8><title>Nearest photographs</title><style>"
        "body{font:14px system-ui;margin:2em}figure{display:inline-block;margin:4px;width:150px;"
        "vertical-align:top}img{width:150px;border:4px solid #228833}img.off{border:4px dashed "
        "#EE6677}h3{margin:.3em 0;font-size:13px}section{border-top:2px solid #ccc;padding:1em 0}"
        "figcaption{font-size:11px}</style><h1>Nearest photographs</h1><p>The photograph, then its "
        "nearest by looks and in the space. Dashed: no label in common.</p>" + "".join(body)
    )


def _picture(path: Path, words: str, alike: bool) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    mark = "" if alike else " class=off"
    picture = f'<img{mark} alt="" src="data:image/jpeg;base64,{data}">'
    return f"<figure>{picture}<figcaption>{html.escape(words)}</figcaption></figure>"
