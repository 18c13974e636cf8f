"""Every method under one roof: its settings, and scores from lists that all of them share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse

from experiments.config import Config
from experiments.yardsticks import LogisticProbe, MLkNN
from tagkin import LinearSVM, NeighborVoting, TagProp, TagRelevance, TwoPassKNN
from tagkin.neighbors import ExactNeighbors, Neighbors

__all__ = ["PAPERS", "YARDSTICKS", "Lists", "grid", "methods_for", "score", "setting_text"]

PAPERS = ("NNvot", "TagRel", "TagProp", "2PKNN", "SVM")
YARDSTICKS = ("ML-kNN", "logistic regression")
Setting = dict[str, Any]


def methods_for(kind: str, recipe: str) -> tuple[str, ...]:
    """The methods that are run in a place; logistic regression is for the bare features."""
    probed = kind == "expert" and recipe == "visual"
    return (*PAPERS, *(YARDSTICKS if probed else YARDSTICKS[:1]))


def grid(method: str, config: Config) -> list[Setting]:
    """The settings of a method that cross-validation tries."""
    if method in ("NNvot", "TagRel"):
        return [{"K": k} for k in config.neighbors]
    if method == "TagProp":
        return [{"K": k} for k in config.neighbors if config.longest / 2 <= k <= config.longest]
    if method == "ML-kNN":
        return [{"K": k} for k in config.neighbors if k <= config.longest]
    if method == "2PKNN":
        return [{"K1": k, "w": w} for k, w in product(config.per_label, config.decays)]
    if method == "SVM":
        return [{"C": c} for c in config.costs]
    # from strong to weak, so that each fit starts near the next
    return [{"penalty": p} for p in sorted(config.penalties, reverse=True)]


def setting_text(setting: Setting) -> str:
    """A setting in words."""
    return ", ".join(f"{name} = {value:g}" for name, value in setting.items())


@dataclass(eq=False)
class Lists:
    """Where known and new images are, with neighbours searched once, at the largest number."""

    known: np.ndarray
    new: np.ndarray
    Y: scipy.sparse.csr_array
    most: int
    """Neighbours of new images."""
    longest: int
    """Neighbours of known images, for methods that learn from them."""
    per_label: int
    """Nearest of each label, for 2PKNN."""

    @cached_property
    def index(self) -> ExactNeighbors:
        """The known images, searchable."""
        return ExactNeighbors().fit(self.known)

    @cached_property
    def of_new(self) -> Neighbors:
        """Neighbours of the new images."""
        return self.index.kneighbors(self.new, min(self.most, len(self.known)))

    @cached_property
    def of_known(self) -> Neighbors:
        """Neighbours of the known images among the others."""
        n = len(self.known)
        return self.index.kneighbors(self.known, min(self.longest, n - 1), exclude=np.arange(n))

    @cached_property
    def nowhere(self) -> Neighbors:
        """For methods that learn nothing from neighbours of known images."""
        n = len(self.known)
        return Neighbors(np.zeros((n, 1), dtype=np.int64), np.zeros((n, 1), dtype=np.float32))

    @cached_property
    def balanced(self) -> Neighbors:
        """The first pass of 2PKNN."""
        return TwoPassKNN(self.per_label).fit(self.known, self.Y).kneighbors(self.new)


def score(method: str, setting: Setting, lists: Lists, start: Any = None) -> np.ndarray:
    """Scores (n×D) of the new images."""
    return score_and_keep(method, setting, lists, start)[0]


def score_and_keep(
    method: str, setting: Setting, lists: Lists, start: Any = None
) -> tuple[np.ndarray, Any]:
    """Scores, and what the next setting may start from."""
    Y = lists.Y
    if method in ("NNvot", "TagRel"):
        voting = NeighborVoting if method == "NNvot" else TagRelevance
        voters = voting(setting["K"]).fit_neighbors(*lists.nowhere, Y)
        return _single(voters.score_neighbors(*lists.of_new)), None
    if method == "TagProp":
        learned = TagProp(setting["K"]).fit_neighbors(*lists.of_known, Y)
        return _single(learned.score_neighbors(*lists.of_new)), None
    if method == "ML-kNN":
        bayes = MLkNN(setting["K"]).fit_neighbors(*lists.of_known, Y)
        return bayes.score_neighbors(*lists.of_new), None
    if method == "2PKNN":
        two = TwoPassKNN(setting["K1"], decay=setting["w"]).fit_neighbors(*lists.nowhere, Y)
        return _single(two.score_neighbors(*lists.balanced)), None
    if method == "SVM":
        machine = LinearSVM(setting["C"]).fit(lists.known, Y)
        return _single(machine.decision_function(lists.new)), None
    if method == "logistic regression":
        probe = LogisticProbe(setting["penalty"]).fit(lists.known, Y, start)
        return probe.decision_function(lists.new), probe.flat_
    raise ValueError(f"no method {method!r}")


def scored_grid(method: str, config: Config, lists: Lists) -> Iterator[tuple[Setting, np.ndarray]]:
    """Every setting of a method with its scores."""
    start = None
    for setting in grid(method, config):
        scores, start = score_and_keep(method, setting, lists, start)
        yield setting, scores


def _single(scores: Any) -> np.ndarray:
    return np.asarray(scores, dtype=np.float32)
