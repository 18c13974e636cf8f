"""Experiment 2: learning from users' tags, with and without pre-propagation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from experiments.expert import curve, kernel_ridge
from experiments.methods import PAPER_METHODS
from experiments.study import Measured, Step, Study

__all__ = ["RECIPES", "chosen_in", "steps"]

RECIPES = ("visual", "raw", "denoised", "linear", "chosen")


def steps(study: Study) -> Iterator[Step]:
    """Every step that learns from tags."""
    for recipe in ("visual", "denoised"):
        yield Step(f"settings from tags, {recipe}", partial(study.trials, "tags", recipe))
    for recipe in RECIPES:
        for method in PAPER_METHODS:
            yield Step(
                f"{method} from tags, {recipe}",
                partial(chosen_in, study, recipe, method),
            )
        if recipe in ("visual", "denoised"):
            for method in ("NNvot", "TagRel", "TagProp"):
                yield Step(
                    f"curve of {method} from tags, {recipe}",
                    partial(curve, study, "tags", recipe, method),
                )
    yield Step("kernel ridge from tags", partial(kernel_ridge, study, "tags"))


def chosen_in(study: Study, recipe: str, method: str) -> Measured:
    """A method with a recipe; all spaces share the settings chosen for the paper's own."""
    of = "visual" if recipe == "visual" else "denoised"
    return study.measured("tags", recipe, method, study.setting("tags", of, method))
