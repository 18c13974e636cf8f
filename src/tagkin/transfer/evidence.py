"""Why a label is suggested: the neighbours that carry it, and the weight of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.arrays import to_numpy
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.transfer.base import Suggestion

__all__ = ["Evidence", "label_lists", "supporting_neighbors"]


@dataclass(frozen=True)
class Evidence:
    """Why a label has its score for an image: the neighbours that carry it."""

    label: int
    """Column of Y."""
    score: float
    """The label's score; the shares, and that of a read-out, add up to it."""
    indices: np.ndarray
    """The neighbours that carry the label, the heaviest first; rows of what was fitted."""
    shares: np.ndarray
    """Each neighbour's share of the score."""
    distances: np.ndarray
    """How far each neighbour is."""
    name: Any
    """Entry of `classes_`: the column of a DataFrame, or the column's number."""
    readout: float = 0.0
    """What of the score is no neighbour's: the share of a read-out, where the method has one."""

    def with_score(self, score: float) -> Evidence:
        """The same evidence, its shares scaled to add up to the score."""
        total = self.shares.sum()
        shares = self.shares * (score / total) if total else self.shares
        return replace(self, score=score, shares=shares)


def supporting_neighbors(
    found: Neighbors,
    weights: np.ndarray,
    labels: scipy.sparse.csr_array,
    asked: list[int],
    names: list[Any],
) -> Iterator[Evidence]:
    """For each label asked for, the neighbours (k,) of one image that carry it.

    Shares are their weights (k,), and the score is still open. `labels` (N×D) are those of the
    images that were fitted.
    """
    counted = np.flatnonzero((found.indices >= 0) & (weights > 0))
    carried = labels[found.indices[counted]].tocsc()
    for t in asked:
        entries = slice(carried.indptr[t], carried.indptr[t + 1])
        carriers = counted[carried.indices[entries]]
        shares = weights[carriers] * carried.data[entries]
        order = np.lexsort((carriers, -shares))
        carriers = carriers[order]
        yield Evidence(
            t,
            np.nan,
            found.indices[carriers],
            shares[order],
            found.distances[carriers],
            names[t],
        )


def label_lists(labels: Any, n_images: int, names: list[Any]) -> list[list[int]]:
    """Columns of Y for each image: from one list of labels for all, or from one per image."""
    if hasattr(labels, "shape"):
        labels = to_numpy(labels).tolist()
    if not _is_list(labels):
        raise InvalidInput(
            f"labels must be a list of labels, or one list per image; found {labels!r}."
        )
    if not any(_is_list(entry) for entry in labels):
        labels = [labels] * n_images
    if len(labels) != n_images:
        raise InvalidInput(f"Found {len(labels)} lists of labels for {n_images} images.")
    columns = {name: t for t, name in enumerate(names) if isinstance(name, str)}
    return [
        [_column(label, columns, len(names)) for label in (row if _is_list(row) else [row])]
        for row in labels
    ]


def _is_list(value: Any) -> bool:
    one = isinstance(value, (str, Suggestion))
    return isinstance(value, (Sequence, np.ndarray)) and not one


def _column(found: Any, columns: dict[str, int], n_labels: int) -> int:
    t = found.label if isinstance(found, Suggestion) else found
    t = columns.get(t, t) if isinstance(t, str) else t
    if isinstance(t, bool) or not isinstance(t, Integral) or not 0 <= int(t) < n_labels:
        named = " or their names, as classes_ has them" if columns else ""
        raise InvalidInput(
            f"Unknown label {t!r}: labels are the columns 0 to {n_labels - 1} of Y{named}."
        )
    return int(t)
