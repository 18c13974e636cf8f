"""All methods behind one function: their settings, and scores from shared neighbour lists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse

from experiments.config import Config
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.paper import LinearSVM, NeighborVoting, TagProp, TagRelevance, TwoPassKNN

__all__ = [
    "PAPER_METHODS",
    "NeighborLists",
    "grid",
    "score",
    "setting_text",
]

PAPER_METHODS = ("NNvot", "TagRel", "TagProp", "2PKNN", "SVM")
Setting = dict[str, Any]


def grid(method: str, config: Config) -> list[Setting]:
    """The settings of a method that cross-validation tries."""
    high = config.max_learned_neighbors
    low = high / 2
    if method in ("NNvot", "TagRel"):
        return [{"K": k} for k in config.neighbors]
    if method == "TagProp":
        return [{"K": k} for k in config.neighbors if low <= k <= high]
    if method == "2PKNN":
        return [{"K1": k, "w": w} for k, w in product(config.per_label, config.decays)]
    return [{"C": c} for c in config.costs]


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


def score(method: str, setting: Setting, lists: NeighborLists) -> np.ndarray:
    """Scores (n×D) of the new images."""
    Y = lists.Y
    if method in ("NNvot", "TagRel"):
        voting = NeighborVoting if method == "NNvot" else TagRelevance
        fitted = voting(setting["K"]).fit_neighbors(*lists.unused, Y)
        return _single(fitted.score_neighbors(*lists.of_new))
    if method == "TagProp":
        learned = TagProp(setting["K"]).fit_neighbors(*lists.of_known, Y)
        return _single(learned.score_neighbors(*lists.of_new))
    if method == "2PKNN":
        two = TwoPassKNN(setting["K1"], decay=setting["w"]).fit_neighbors(*lists.unused, Y)
        return _single(two.score_neighbors(*lists.balanced))
    if method == "SVM":
        machine = LinearSVM(setting["C"]).fit(lists.known, Y)
        return _single(machine.decision_function(lists.new))
    raise ValueError(f"unknown method {method!r}")


def _single(scores: Any) -> np.ndarray:
    return np.asarray(scores, dtype=np.float32)
