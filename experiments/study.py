"""One dataset under study: its problems, and results that are made once and kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.bootstrap import measure, resample_weights
from experiments.config import Config
from experiments.methods import Lists, Setting, grid, methods_for, score
from experiments.places import Placed, placed
from experiments.problem import Problem, expert_problem, open_data, tag_problem
from experiments.selection import best_setting, cross_validated, lists_for
from experiments.store import Store, slug
from tagkin.datasets import Dataset

__all__ = ["Measured", "Step", "Study"]


class Step(NamedTuple):
    """A part of the work."""

    name: str
    weight: float
    """About how long it takes, in seconds on two quiet cores, for the progress bar."""
    run: Callable[[], Any]


class Measured(NamedTuple):
    """The figures of one method in one place."""

    values: np.ndarray
    """MAP, precision, recall, N+, MiAP."""
    resampled: np.ndarray
    """The first four in every resample, shape (4, n_resamples)."""
    label_precision: np.ndarray


class Study:
    """A config with its data and its store. Data is read only when something must be computed."""

    def __init__(self, config: Config, results: Path):
        self.config, self.results = config, results
        folder = results / config.dataset / slug(config.space_parameters())
        self.store = Store(folder)
        self._lists: tuple[tuple[str, str], Lists] | None = None

    @cached_property
    def data(self) -> Dataset:
        """The dataset."""
        return open_data(self.config, self.results / "features")

    @cached_property
    def expert(self) -> Problem:
        """Learning from expert labels."""
        return expert_problem(self.data, self.config)

    @cached_property
    def tags(self) -> Problem:
        """Learning from tags."""
        return tag_problem(self.data, self.config)

    def problem(self, kind: str) -> Problem:
        """The problem of a kind: "expert", "views" (fewer test images) or "tags"."""
        if kind == "views":
            return self.expert.small(self.config.n_new_small, self.config.seed)[0]
        return self.expert if kind == "expert" else self.tags

    # --- places and settings -------------------------------------------------------------

    def place(self, kind: str, recipe: str, regularization: float | None = None) -> Placed:
        """Where the images are; spaces are kept."""
        if recipe == "visual":
            return placed(self.problem(kind), recipe, self.config)

        def make() -> dict[str, Any]:
            there = placed(self.problem(kind), recipe, self.config, regularization=regularization)
            none = np.empty((0, 0), np.float32)
            ridge = none if there.ridge is None else there.ridge
            return {"known": there.known, "new": there.new, "ridge": ridge, "note": there.note}

        found = self.store.once(
            "places",
            make,
            kind=kind,
            recipe=recipe,
            kappa=regularization or "papers",
            **self.sizes(kind),
        )
        ridge = found["ridge"] if found["ridge"].size else None
        return Placed(found["known"], found["new"], ridge, str(found["note"]))

    def note(self, kind: str, recipe: str) -> str:
        """What there was to say of a space."""
        found = self.store.get(
            "places", kind=kind, recipe=recipe, kappa="papers", **self.sizes(kind)
        )
        return str(found["note"])

    def trials(
        self,
        kind: str,
        recipe: str,
        methods: tuple[str, ...] | None = None,
        regularization: float | None = None,
    ) -> dict[str, np.ndarray]:
        """MAP of every setting in every fold."""
        asked = methods_for(kind, recipe) if methods is None else methods

        def make() -> dict[str, np.ndarray]:
            return cross_validated(self.problem(kind), recipe, self.config, asked, regularization)

        tried = {m: grid(m, self.config) for m in asked}
        return self.store.once(
            "trials",
            make,
            kind=kind,
            recipe=recipe,
            kappa=regularization or "papers",
            images=self.config.cv_images or "all",
            grids=slug({"grids": tried})[-10:],
            **self._tagged(kind),
        )

    def setting(self, kind: str, recipe: str, method: str) -> Setting:
        """The setting that cross-validation chose."""
        return best_setting(method, self.trials(kind, recipe)[method], self.config)

    def lists(self, kind: str, recipe: str) -> Lists:
        """Neighbours in a place; those of the place asked for last are at hand."""
        if self._lists is None or self._lists[0] != (kind, recipe):
            self._lists = None  # before the next ones are made
            there, Y = self.place(kind, recipe), self.problem(kind).Y
            self._lists = (kind, recipe), lists_for(there.known, there.new, Y, self.config)
        return self._lists[1]

    # --- scores and figures --------------------------------------------------------------

    def scores(self, kind: str, recipe: str, method: str, setting: Setting) -> np.ndarray:
        """Scores of the new images."""

        def make() -> dict[str, np.ndarray]:
            if method == "kernel ridge":
                ridge = self.place(kind, recipe).ridge
                assert ridge is not None
                return {"scores": ridge}
            return {"scores": score(method, setting, self.lists(kind, recipe))}

        return self.store.once(
            "scores", make, kind=kind, recipe=recipe, method=method, **setting, **self.sizes(kind)
        )["scores"]

    def measured(self, kind: str, recipe: str, method: str, setting: Setting) -> Measured:
        """Figures of a method, with those of every resample of the new images."""

        def make() -> dict[str, np.ndarray]:
            return self.measure(kind, self.scores(kind, recipe, method, setting))

        found = self.store.once(
            "figures",
            make,
            kind=kind,
            recipe=recipe,
            method=method,
            **setting,
            **self.sizes(kind),
            top=self.config.top,
            resamples=self.config.resamples,
        )
        return Measured(**found)

    def measure(self, kind: str, scores: np.ndarray) -> dict[str, np.ndarray]:
        """Figures of scores of a kind's new images."""
        problem = self.problem(kind)
        weights = resample_weights(len(problem.new), self.config.resamples, self.config.seed)
        return measure(problem.truth, scores, self.config.top, weights)

    def sizes(self, kind: str) -> dict[str, Any]:
        """What of a kind's images is used, for paths."""
        if kind == "expert":
            return {}
        return {"new": self.config.n_new_small or "all", **self._tagged(kind)}

    def _tagged(self, kind: str) -> dict[str, Any]:
        return {"of": self.config.n_tagged} if kind == "tags" and self.config.n_tagged else {}
