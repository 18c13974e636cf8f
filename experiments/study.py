"""A study of one dataset: its problems, and results that are computed once and stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.bootstrap import measure, resample_weights
from experiments.config import Config
from experiments.datasets import Dataset
from experiments.embeddings import Embeddings, embed
from experiments.methods import PAPER_METHODS, NeighborLists, Setting, grid, score
from experiments.problem import Problem, expert_problem, open_data, tag_problem
from experiments.selection import best_setting, cross_validated, neighbor_lists
from experiments.store import Store, slug

__all__ = ["Measured", "Step", "Study"]


class Step(NamedTuple):
    """One step of a run."""

    name: str
    run: Callable[[], Any]


class Measured(NamedTuple):
    """Metrics of one method with one recipe."""

    values: np.ndarray
    """MAP, precision, recall, N+, MiAP."""
    resampled: np.ndarray
    """The first four metrics in every resample, shape (4, n_resamples)."""
    label_precision: np.ndarray


class Study:
    """A config with its data and its store. Data is read only when something must be computed."""

    def __init__(self, config: Config, results: Path):
        self.config, self.results = config, results
        folder = results / config.dataset / slug(config.space_parameters())
        self.store = Store(folder)
        self._lists: tuple[tuple[str, str], NeighborLists] | None = None

    @cached_property
    def data(self) -> Dataset:
        """The dataset."""
        return open_data(self.config, self.results / "features")

    def size(self) -> np.ndarray:
        """Numbers of images, training and test images, labels and tags, and of labels per image."""

        def count() -> dict[str, np.ndarray]:
            data = self.data
            sizes = [len(data), len(data.train), len(data.test), len(data.label_names)]
            mean = (data.labels != 0).sum() / len(data)
            return {"size": np.array([*sizes, len(data.tag_names), mean])}

        return self.store.get_or_compute("size", count)["size"]

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

    # --- embeddings and settings ---------------------------------------------------------

    def embeddings(self, kind: str, recipe: str, regularization: float | None = None) -> Embeddings:
        """Embeddings of the images; those in a semantic space are stored."""
        if recipe == "visual":
            return embed(self.problem(kind), recipe, self.config)

        def compute() -> dict[str, Any]:
            there = embed(self.problem(kind), recipe, self.config, regularization=regularization)
            none = np.empty((0, 0), np.float32)
            ridge = none if there.ridge is None else there.ridge
            return {"known": there.known, "new": there.new, "ridge": ridge}

        found = self.store.get_or_compute(
            "embeddings",
            compute,
            kind=kind,
            recipe=recipe,
            kappa=regularization or "papers",
            **self.sizes(kind),
        )
        ridge = found["ridge"] if found["ridge"].size else None
        return Embeddings(found["known"], found["new"], ridge)

    def trials(
        self,
        kind: str,
        recipe: str,
        methods: tuple[str, ...] | None = None,
        regularization: float | None = None,
    ) -> dict[str, np.ndarray]:
        """MAP of every setting in every fold."""
        asked = PAPER_METHODS if methods is None else methods

        def compute() -> dict[str, np.ndarray]:
            return cross_validated(self.problem(kind), recipe, self.config, asked, regularization)

        tried = {m: grid(m, self.config) for m in asked}
        return self.store.get_or_compute(
            "trials",
            compute,
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

    def lists(self, kind: str, recipe: str) -> NeighborLists:
        """Neighbour lists; only those requested last are kept in memory."""
        if self._lists is None or self._lists[0] != (kind, recipe):
            self._lists = None  # free the memory before the next search
            there, Y = self.embeddings(kind, recipe), self.problem(kind).Y
            self._lists = (kind, recipe), neighbor_lists(there.known, there.new, Y, self.config)
        return self._lists[1]

    # --- scores and metrics --------------------------------------------------------------

    def scores(self, kind: str, recipe: str, method: str, setting: Setting) -> np.ndarray:
        """Scores of the new images."""

        def compute() -> dict[str, np.ndarray]:
            if method == "kernel ridge":
                ridge = self.embeddings(kind, recipe).ridge
                assert ridge is not None
                return {"scores": ridge}
            return {"scores": score(method, setting, self.lists(kind, recipe))}

        return self.store.get_or_compute(
            "scores",
            compute,
            kind=kind,
            recipe=recipe,
            method=method,
            **setting,
            **self.sizes(kind),
        )["scores"]

    def measured(self, kind: str, recipe: str, method: str, setting: Setting) -> Measured:
        """Metrics of a method, also in every resample of the new images."""

        def compute() -> dict[str, np.ndarray]:
            return self.measure(kind, self.scores(kind, recipe, method, setting))

        found = self.store.get_or_compute(
            "metrics",
            compute,
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
        """Metrics of scores of the new images."""
        problem = self.problem(kind)
        weights = resample_weights(len(problem.new), self.config.resamples, self.config.seed)
        return measure(problem.truth, scores, self.config.top, weights)

    def sizes(self, kind: str) -> dict[str, Any]:
        """Which images are used, for paths."""
        if kind == "expert":
            return {}
        return {"new": self.config.n_new_small or "all", **self._tagged(kind)}

    def _tagged(self, kind: str) -> dict[str, Any]:
        return {"of": self.config.n_tagged} if kind == "tags" and self.config.n_tagged else {}
