"""Experiment 5: projections learned from few images, and their cost; also t-SNE maps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.manifold import TSNE

from experiments.embeddings import embed
from experiments.methods import PAPER_METHODS, NeighborLists, Setting, score
from experiments.problem import Problem, sample, split_problem
from experiments.study import Step, Study
from tagkin import LandmarkMap, SemanticSpace
from tagkin.evaluation import mean_average_precision
from tagkin.paper import Chi2View, TagDenoiser
from tagkin.space import IndicatorView

__all__ = ["kinds", "map_of_images", "maps", "sizes_of", "steps", "subsampled", "timings"]

_BLOCK = 4096


def kinds(study: Study) -> tuple[str, ...]:
    """The kinds of annotation to learn from."""
    return ("expert", "tags") if study.config.stands_for_tags else ("expert",)


def steps(study: Study) -> Iterator[Step]:
    """Splits, timing and maps."""
    for kind in kinds(study):
        for split in range(study.config.splits):
            yield Step(f"{kind}, split {split + 1}", partial(subsampled, study, kind, split))
        yield Step(f"timing, {kind}", partial(timings, study, kind))
    for recipe in maps(study):
        yield Step(f"map, {recipe}", partial(map_of_images, study, recipe))


# --- few images --------------------------------------------------------------------------


def sizes_of(study: Study, kind: str) -> list[int]:
    """Numbers of images to learn the projections from; all images of a split come last."""
    config = study.config
    n_known = config.sub_known or len(study.data.train)
    if kind == "tags" and study.data.tagged is not None:
        n_known = min(n_known, len(study.data.tagged) - config.sub_new)
    return [size for size in config.sub_sizes if size < n_known] + [n_known]


def subsampled(study: Study, kind: str, split: int) -> dict[str, np.ndarray]:
    """MAP (sizes+1, methods) on one split: the visual baseline, then each size in turn."""

    def compute() -> dict[str, Any]:
        sizes = sizes_of(study, kind)
        problem = split_problem(study.data, study.config, kind, split)
        recipe = "linear" if kind == "expert" else "denoised"
        rows = [_row(study, problem, "visual", None)]
        for size in sizes:
            key = {"kind": kind, "split": split, "size": size, **_parameters(study)}
            learn = partial(_row, study, problem, recipe, size)
            rows.append(study.store.get_or_compute("splits", learn, **key))
        return {"sizes": sizes, "MAP": np.stack([row["MAP"] for row in rows])}

    sizes = _joined(study.config.sub_sizes)
    return study.store.get_or_compute(
        "subsampling", compute, kind=kind, split=split, sizes=sizes, **_parameters(study)
    )


def _parameters(study: Study) -> dict[str, Any]:
    config = study.config
    return {
        "of": config.sub_known or "all",
        "on": config.sub_new or "all",
        "r": config.sub_landmarks,
    }


def _row(study: Study, problem: Problem, recipe: str, size: int | None) -> dict[str, np.ndarray]:
    config = study.config
    there = embed(problem, recipe, config, n_landmarks=config.sub_landmarks, learn_from=size)
    most = max(config.neighbors)
    lists = NeighborLists(
        there.known, there.new, problem.Y, most, config.sub_tagprop, max(config.per_label)
    )
    values = []
    for method in PAPER_METHODS:
        setting: Setting = study.setting(problem.kind, recipe, method)
        if method == "TagProp":
            setting = {"K": min(config.sub_tagprop, config.max_learned_neighbors)}
        values.append(mean_average_precision(problem.truth, score(method, setting, lists)))
    return {"MAP": np.array(values)}


def _joined(sizes: tuple[int, ...]) -> str:
    return "+".join(map(str, sizes))


# --- timing ------------------------------------------------------------------------------


def timings(study: Study, kind: str) -> dict[str, np.ndarray]:
    """CPU seconds (sizes, 3) for the visual kernel, the textual kernel, and kernel CCA."""

    def compute() -> dict[str, Any]:
        problem = study.problem(kind)
        n = len(problem.known)
        sizes = [size for size in study.config.timed if size < n] + [n]
        return {"sizes": sizes, "seconds": [_timed(study, problem, size) for size in sizes]}

    return study.store.get_or_compute(
        "timings", compute, kind=kind, sizes=_joined(study.config.timed)
    )


def _timed(study: Study, problem: Problem, size: int) -> list[float]:
    rows = sample(len(problem.known), size, study.config.seed)
    X, text = problem.known[rows], problem.text[rows]
    if problem.kind == "tags":
        text = TagDenoiser(blend=1.0).fit_transform(X, text)
    seed = study.config.seed
    view: Any = IndicatorView() if problem.kind == "expert" else Chi2View(random_state=seed)
    textual, _ = _seconds(lambda: view.fit(text).transform(text))
    n_landmarks = min(study.config.n_landmarks, size)
    choosing, chosen = _seconds(
        lambda: LandmarkMap(n_landmarks=n_landmarks, random_state=seed).fit(X)
    )
    landmarks = chosen.landmarks_

    def columns() -> None:
        for first in range(0, size, _BLOCK):
            landmarks.columns(X[first : first + _BLOCK])

    kernel, _ = _seconds(columns)
    points = np.array(landmarks.points)
    space = SemanticSpace(study.config.regularization, text_view=view, selection=points)
    total, _ = _seconds(lambda: space.fit(X, text))
    return [choosing + kernel, textual, max(total - kernel - textual, 0.0)]


def _seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time of all threads, which depends little on other load on the machine."""
    start = time.process_time()
    done = work()
    return time.process_time() - start, done


# --- maps --------------------------------------------------------------------------------


def maps(study: Study) -> dict[str, str]:
    """Recipes of the maps, with their titles: the space of users' tags where there are any."""
    found = {"visual": "visual", "linear": "semantic, expert labels"}
    return found | ({"denoised": "semantic, users’ tags"} if "tags" in kinds(study) else {})


def map_of_images(study: Study, recipe: str) -> dict[str, np.ndarray]:
    """t-SNE points (n, 2) of test images with exactly one of eight labels, and that label."""

    def compute() -> dict[str, Any]:
        kind = "tags" if recipe == "denoised" else "expert"
        problem = study.problem(kind)
        names = _mapped_labels(study)
        rows, which = _with_one_label(problem, names, study.config.map_images, study.config.seed)
        there = study.embeddings(kind, recipe).new[rows]
        flat = TSNE(
            metric="cosine",
            init="random",
            perplexity=min(30.0, max(2.0, len(rows) / 4)),
            random_state=study.config.seed,
        ).fit_transform(there)
        return {"points": flat.astype(np.float32), "label": which, "names": np.array(names)}

    return study.store.get_or_compute(
        "maps", compute, recipe=recipe, images=study.config.map_images
    )


def _mapped_labels(study: Study) -> list[str]:
    """The eight most frequent labels below 15 %, among those of all kinds of annotation."""
    common = set.intersection(*(set(study.problem(kind).names) for kind in kinds(study)))
    problem = study.expert
    share = np.asarray(problem.truth.mean(axis=0)).ravel()
    order = np.argsort(-share, kind="stable")
    return [problem.names[t] for t in order if share[t] < 0.15 and problem.names[t] in common][:8]


def _with_one_label(
    problem: Problem, names: list[str], n_images: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """New images with exactly one of these labels, and which."""
    truth = problem.truth.toarray()[:, [problem.names.index(name) for name in names]] > 0
    only = np.flatnonzero(truth.sum(axis=1) == 1)
    rows = only[sample(len(only), n_images, seed)]
    return rows, truth[rows].argmax(axis=1)
