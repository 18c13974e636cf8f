"""Suggested labels, and their evidence: the neighbours that have the label, and their weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import NamedTuple, TypeAlias, TypeGuard

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, to_numpy
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors

__all__ = ["Evidence", "LabelLists", "Suggestion", "label_lists", "supporting_neighbors"]


class Suggestion(NamedTuple):
    """A label for an image."""

    label: int
    """Column of Y."""
    score: float
    """Score from `decision_function`; higher is better."""
    name: str | int
    """Entry of `classes_`: the column of a DataFrame, or the column's number."""


Label: TypeAlias = int | str | Suggestion
LabelLists: TypeAlias = Sequence[Label] | Sequence[Sequence[Label]] | Array
"""Labels by column or name, or suggestions: one list for all images, or a list for each."""


@dataclass(frozen=True)
class Evidence:
    """Evidence for a label's score on an image: the neighbours that have the label.

    `shares` and `readout` of a method add up to the score. Those of `FeatureAnnotator.explain`, and
    the share of the label's name, add up to 1.
    """

    label: int
    """Column of Y."""
    score: float
    """The label's score."""
    indices: np.ndarray
    """Neighbours that have the label, largest share first; rows of the fitted images."""
    shares: np.ndarray
    """What each neighbour adds."""
    distances: np.ndarray
    """Distance of each neighbour."""
    name: str | int
    """Entry of `classes_`: the column of a DataFrame, or the column's number."""
    readout: float
    """What the read-out adds; 0 for methods without a read-out."""

    def with_score(self, score: float) -> Evidence:
        """Return the evidence with its shares scaled to add up to the score."""
        total = self.shares.sum()
        shares = self.shares * (score / total) if total else self.shares
        return replace(self, score=score, shares=shares)


def supporting_neighbors(
    neighbors: Neighbors,
    weights: np.ndarray,
    labels: scipy.sparse.csr_array,
    columns: Sequence[int],
    names: Sequence[str | int],
) -> Iterator[Evidence]:
    """Yield the evidence for each column of Y from the neighbours (k,) of an image.

    Shares are the neighbours' weights (k,), and the score is NaN. `labels` (N×D) are the labels of
    the fitted images.
    """
    voters = np.flatnonzero((neighbors.indices >= 0) & (weights > 0))
    voter_labels = labels[neighbors.indices[voters]].tocsc()
    for t in columns:
        entries = slice(voter_labels.indptr[t], voter_labels.indptr[t + 1])
        carriers = voters[voter_labels.indices[entries]]
        shares = weights[carriers] * voter_labels.data[entries]
        order = np.lexsort((carriers, -shares))
        carriers = carriers[order]
        yield Evidence(
            t,
            np.nan,
            neighbors.indices[carriers],
            shares[order],
            neighbors.distances[carriers],
            names[t],
            readout=0.0,
        )


def label_lists(labels: LabelLists, n_images: int, names: Sequence[str | int]) -> list[list[int]]:
    """Return the columns of Y for each image, from one list of labels or a list per image."""
    lists: object = to_numpy(labels).tolist() if hasattr(labels, "shape") else labels
    if not _is_list(lists):
        raise InvalidInput(
            f"labels must be a list of labels, or one list per image; found {lists!r}."
        )
    if not any(_is_list(entry) for entry in lists):
        lists = [lists] * n_images
    if len(lists) != n_images:
        raise InvalidInput(f"Found {len(lists)} lists of labels for {n_images} images.")
    columns = {name: t for t, name in enumerate(names) if isinstance(name, str)}
    return [
        [_column(label, columns, len(names)) for label in (row if _is_list(row) else [row])]
        for row in lists
    ]


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    is_label = isinstance(value, (str, Suggestion))
    return isinstance(value, (Sequence, np.ndarray)) and not is_label


def _column(label: object, columns: dict[str, int], n_labels: int) -> int:
    t = label.label if isinstance(label, Suggestion) else label
    t = columns.get(t, t) if isinstance(t, str) else t
    if isinstance(t, bool) or not isinstance(t, Integral) or not 0 <= int(t) < n_labels:
        named = " or their names, as classes_ has them" if columns else ""
        raise InvalidInput(
            f"Unknown label {t!r}: labels are the columns 0 to {n_labels - 1} of Y{named}."
        )
    return int(t)
