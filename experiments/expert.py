"""Experiments 1, 3 and 4, and the overlap of neighbourhoods: learning from expert labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from experiments.methods import PAPER_METHODS, Setting, grid, score
from experiments.neighborhoods import neighborhood_jaccard
from experiments.selection import neighbor_lists
from experiments.study import Measured, Step, Study
from tagkin.evaluation import mean_average_precision

__all__ = ["VIEWS", "best", "chosen", "curve", "jaccard", "steps", "view"]

VIEWS = ("ontology", "word vectors")
_QUICK = ("NNvot", "SVM")


def steps(study: Study) -> Iterator[Step]:
    """Every step that learns from expert labels."""
    for recipe in ("visual", "linear"):
        yield Step(f"settings, {recipe}", partial(study.trials, "expert", recipe))
    for kappa in study.config.regularizations:
        yield Step(f"settings, κ = {kappa:g}", partial(_quick, study, kappa))
    for recipe in ("visual", "linear"):
        for method in PAPER_METHODS:
            yield Step(f"{method}, {recipe}", partial(chosen, study, "expert", recipe, method))
        for method in ("NNvot", "TagRel", "TagProp", "2PKNN"):
            yield Step(
                f"curve of {method}, {recipe}",
                partial(curve, study, "expert", recipe, method),
            )
        yield Step(f"overlap, {recipe}", partial(jaccard, study, recipe))
    yield Step("kernel ridge", partial(kernel_ridge, study, "expert"))
    yield Step("best setting", partial(best, study))
    for recipe in VIEWS:
        for method in PAPER_METHODS:
            yield Step(f"{method}, {recipe}", partial(view, study, recipe, method))
    for method in PAPER_METHODS:
        yield Step(f"{method}, views", partial(view, study, "linear", method))


def chosen(study: Study, kind: str, recipe: str, method: str) -> Measured:
    """A method with the setting that cross-validation chose."""
    return study.measured(kind, recipe, method, study.setting(kind, recipe, method))


def kernel_ridge(study: Study, kind: str) -> Measured:
    """The kernel ridge regression inside the linear space."""
    return study.measured(kind, "linear", "kernel ridge", {})


def view(study: Study, recipe: str, method: str) -> Measured:
    """A method in a space of another textual kernel, with the settings of experiment 1."""
    of = "visual" if recipe == "visual" else "linear"
    setting = study.setting("expert", of, method)
    if recipe not in ("visual", "linear"):
        return study.measured("views", recipe, method, setting)

    def compute() -> dict[str, np.ndarray]:
        rows = study.expert.small(study.config.n_new_small, study.config.seed)[1]
        return study.measure("views", study.scores("expert", recipe, method, setting)[rows])

    config = study.config
    name = {"kind": "views", "recipe": recipe, "method": method, **setting}
    size = {"new": config.n_new_small or "all", "top": config.top, "resamples": config.resamples}
    return Measured(**study.store.get_or_compute("metrics", compute, **name, **size))


def curve(study: Study, kind: str, recipe: str, method: str) -> dict[str, np.ndarray]:
    """MAP against the number of neighbours (for 2PKNN: per label)."""
    config = study.config

    def settings() -> list[Setting]:
        if method == "2PKNN":
            w = study.setting(kind, recipe, method)["w"]
            return [{"K1": k, "w": w} for k in config.per_label]
        most = config.max_learned_neighbors if method == "TagProp" else max(config.neighbors)
        least = 10 if method == "TagProp" else 1
        return [{"K": k} for k in config.curve if least <= k <= most]

    def compute() -> dict[str, np.ndarray]:
        truth, values = study.problem(kind).truth, []
        for setting in settings():
            kept = {"kind": kind, "recipe": recipe, "method": method, **setting}
            kept |= study.sizes(kind)
            if study.store.has("scores", **kept):
                scores = study.store.get("scores", **kept)["scores"]
            else:
                scores = score(method, setting, study.lists(kind, recipe))
            values.append(mean_average_precision(truth, scores))
        sizes = [setting.get("K", setting.get("K1")) for setting in settings()]
        return {"sizes": np.array(sizes), "MAP": np.array(values)}

    return study.store.get_or_compute(
        "curves",
        compute,
        kind=kind,
        recipe=recipe,
        method=method,
        sizes=_joined(config.curve),
        **study.sizes(kind),
    )


def _joined(sizes: tuple[int, ...]) -> str:
    return "+".join(map(str, sizes))


def jaccard(study: Study, recipe: str) -> dict[str, np.ndarray]:
    """Mean overlap of label sets with the nearest images, against their number."""

    def compute() -> dict[str, Any]:
        problem = study.expert
        neighbors = study.lists("expert", recipe).of_new.indices
        sizes = [k for k in study.config.curve if k <= neighbors.shape[1]]
        overlap = neighborhood_jaccard(problem.truth, problem.Y, neighbors, sizes)
        return {"sizes": sizes, "overlap": overlap}

    return study.store.get_or_compute(
        "overlaps", compute, recipe=recipe, sizes=_joined(study.config.curve)
    )


# --- the best setting overall ------------------------------------------------------------


def _quick(study: Study, regularization: float) -> dict[str, np.ndarray]:
    return study.trials("expert", "linear", _QUICK, regularization)


def candidates(study: Study) -> list[tuple[float, str, float, str, Setting]]:
    """All cross-validation trials, best first: MAP, recipe, κ, method, setting."""
    config = study.config
    tried = [("visual", 0.0, study.trials("expert", "visual"))]
    tried.append(("linear", config.regularization, study.trials("expert", "linear")))
    tried += [("linear", kappa, _quick(study, kappa)) for kappa in config.regularizations]
    found = []
    for recipe, kappa, trials in tried:
        for method, values in trials.items():
            settings = [{}] if method == "kernel ridge" else grid(method, config)
            for setting, value in zip(settings, values.mean(axis=1), strict=True):
                found.append((float(value), recipe, kappa, method, setting))
    return sorted(found, key=lambda one: -one[0])


def best(study: Study) -> tuple[str, Measured]:
    """The best trial of cross-validation, as text, and its metrics on the new images."""
    _, recipe, kappa, method, setting = candidates(study)[0]
    words = ", ".join([method, recipe, *(f"{k} = {v:g}" for k, v in setting.items())])
    if recipe == "visual" or kappa == study.config.regularization:
        return words, study.measured("expert", recipe, method, setting)

    def compute() -> dict[str, np.ndarray]:
        there = study.embeddings("expert", recipe, kappa)
        lists = neighbor_lists(there.known, there.new, study.expert.Y, study.config)
        scores = there.ridge if method == "kernel ridge" else score(method, setting, lists)
        assert scores is not None
        return study.measure("expert", scores)

    name = {"recipe": recipe, "kappa": kappa, "method": method, **setting}
    size = {"top": study.config.top, "resamples": study.config.resamples}
    found = Measured(**study.store.get_or_compute("best", compute, **name, **size))
    return f"{words}, κ = {kappa:g}", found
