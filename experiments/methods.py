"""All methods behind one function: their settings, and scores from shared neighbour lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse

from experiments.baselines import LogisticProbe, MLkNN
from experiments.config import Config
from tagkin import LinearSVM, NeighborVoting, TagProp, TagRelevance, TwoPassKNN
from tagkin.neighbors import ExactNeighbors, Neighbors

__all__ = [
    "BASELINES",
    "PAPER_METHODS",
    "NeighborLists",
    "grid",
    "methods_for",
    "score",
    "setting_text",
]

PAPER_METHODS = ("NNvot", "TagRel", "TagProp", "2PKNN", "SVM")
BASELINES = ("ML-kNN", "logistic regression")
Setting = dict[str, Any]


def methods_for(kind: str, recipe: str) -> tuple[str, ...]:
    """The methods to run with a recipe; logistic regression is for visual features only."""
    probed = kind == "expert" and recipe == "visual"
    return (*PAPER_METHODS, *(BASELINES if probed else BASELINES[:1]))


def grid(method: str, config: Config) -> list[Setting]:
    """The settings of a method that cross-validation tries."""
    high = config.max_learned_neighbors
    low = high / 2
    if method in ("NNvot", "TagRel"):
        return [{"K": k} for k in config.neighbors]
    if method == "TagProp":
        return [{"K": k} for k in config.neighbors if low <= k <= high]
    if method == "ML-kNN":
        return [{"K": k} for k in config.neighbors if k <= high]
    if method == "2PKNN":
        return [{"K1": k, "w": w} for k, w in product(config.per_label, config.decays)]
    if method == "SVM":
        return [{"C": c} for c in config.costs]
    # from strong to weak, so that each fit is a good start for the next
    return [{"penalty": p} for p in sorted(config.penalties, reverse=True)]


def setting_text(setting: Setting) -> str:
    """A setting as text."""
    return ", ".join(f"{name} = {value:g}" for name, value in setting.items())


@dataclass(eq=False)
class NeighborLists:
    """Embeddings of known and new images, with neighbours searched once for all methods."""

    known: np.ndarray
    new: np.ndarray
    Y: scipy.sparse.csr_array
    n_neighbors: int
    """Neighbours of each new image."""
    n_learned: int
    """Neighbours of each known image, for methods that learn from them."""
    n_per_label: int
    """Nearest images per label, for 2PKNN."""

    @cached_property
    def index(self) -> ExactNeighbors:
        """Search index of the known images."""
        return ExactNeighbors().fit(self.known)

    @cached_property
    def of_new(self) -> Neighbors:
        """Neighbours of the new images."""
        return self.index.kneighbors(self.new, min(self.n_neighbors, len(self.known)))

    @cached_property
    def of_known(self) -> Neighbors:
        """Neighbours of the known images among the other known images."""
        n = len(self.known)
        return self.index.kneighbors(self.known, min(self.n_learned, n - 1), exclude=np.arange(n))

    @cached_property
    def unused(self) -> Neighbors:
        """A placeholder for methods that do not learn from neighbours of known images."""
        n = len(self.known)
        return Neighbors(np.zeros((n, 1), dtype=np.int64), np.zeros((n, 1), dtype=np.float32))

    @cached_property
    def balanced(self) -> Neighbors:
        """Neighbours balanced by label: the first pass of 2PKNN."""
        return TwoPassKNN(self.n_per_label).fit(self.known, self.Y).kneighbors(self.new)


def score(method: str, setting: Setting, lists: NeighborLists, start: Any = None) -> np.ndarray:
    """Scores (n×D) of the new images."""
    return score_warm(method, setting, lists, start)[0]


def score_warm(
    method: str, setting: Setting, lists: NeighborLists, start: Any = None
) -> tuple[np.ndarray, Any]:
    """Scores, and a warm start for the next setting."""
    Y = lists.Y
    if method in ("NNvot", "TagRel"):
        voting = NeighborVoting if method == "NNvot" else TagRelevance
        fitted = voting(setting["K"]).fit_neighbors(*lists.unused, Y)
        return _single(fitted.score_neighbors(*lists.of_new)), None
    if method == "TagProp":
        learned = TagProp(setting["K"]).fit_neighbors(*lists.of_known, Y)
        return _single(learned.score_neighbors(*lists.of_new)), None
    if method == "ML-kNN":
        bayes = MLkNN(setting["K"]).fit_neighbors(*lists.of_known, Y)
        return bayes.score_neighbors(*lists.of_new), None
    if method == "2PKNN":
        two = TwoPassKNN(setting["K1"], decay=setting["w"]).fit_neighbors(*lists.unused, Y)
        return _single(two.score_neighbors(*lists.balanced)), None
    if method == "SVM":
        machine = LinearSVM(setting["C"]).fit(lists.known, Y)
        return _single(machine.decision_function(lists.new)), None
    if method == "logistic regression":
        probe = LogisticProbe(setting["penalty"]).fit(lists.known, Y, start)
        return probe.decision_function(lists.new), probe.flat_
    raise ValueError(f"unknown method {method!r}")


def scored_grid(
    method: str, config: Config, lists: NeighborLists
) -> Iterator[tuple[Setting, np.ndarray]]:
    """Every setting of a method with its scores."""
    start = None
    for setting in grid(method, config):
        scores, start = score_warm(method, setting, lists, start)
        yield setting, scores


def _single(scores: Any) -> np.ndarray:
    return np.asarray(scores, dtype=np.float32)
