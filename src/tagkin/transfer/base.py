"""The contract of every method that passes labels to new images."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from tagkin.arrays import (
    Array,
    as_block,
    check_features,
    check_finite,
    check_integer,
    check_label_matrix,
    row_blocks,
    to_numpy,
)
from tagkin.errors import InvalidInput

__all__ = ["LabelTransfer", "Suggestion"]


class Suggestion(NamedTuple):
    """A label for an image."""

    label: int
    """Column of Y."""
    score: float
    """As `decision_function` gives it; higher is better."""


class LabelTransfer(BaseEstimator, ABC):
    """Scores for labels from what images with labels look like: `fit`, then `suggest`.

    Z is an image's place in the semantic space, or any features; Y (N×D) its labels, dense or
    sparse: nonzero where an image carries a label.
    """

    n_labels_: int

    @abstractmethod
    def fit(self, Z: Array, Y: Array = None) -> Self:
        """Learn from places Z (N×m) and labels Y (N×D)."""

    @abstractmethod
    def decision_function(self, Z: Array) -> Array:
        """Score of every label for every image, shape (n, D)."""

    def suggest(
        self, Z: Array, n: int | None = None, *, threshold: float | Array | None = None
    ) -> list[list[Suggestion]]:
        """The best labels of each image, best first; of equal scores the lower label first.

        Parameters
        ----------
        Z : array of shape (n_images, m)
        n : int, optional
            How many labels an image gets (all of them where there are fewer); 5 unless a
            threshold says which.
        threshold : float or array of shape (D,), optional
            The score that a label must reach, or one for each label; with `n`, the best of those
            that do.
        """
        self._check_fitted()
        d = self.n_labels_
        if n is None:
            n = 5 if threshold is None else d
        check_integer("n", n)
        bars = _thresholds(threshold, d)
        scores = to_numpy(self.decision_function(Z))
        suggestions = []
        for rows in row_blocks(len(scores), 24 * d):
            block = scores[rows]
            passing = block >= bars
            order = np.where(passing, -block, np.inf)
            best = np.argsort(order, axis=1, kind="stable")[:, :n]
            passing = np.take_along_axis(passing, best, axis=1)
            suggestions += [
                [Suggestion(int(t), float(row[t])) for t in labels[passed]]
                for row, labels, passed in zip(block, best, passing, strict=True)
            ]
        return suggestions

    @abstractmethod
    def describe(self) -> list[str]:
        """What this model is, in a few sentences."""

    # --- for those who write a method ----------------------------------------------------

    def _validated(self, Z: Array, Y: Array) -> tuple[Array, scipy.sparse.csr_array]:
        """Places as an array, and labels as a sparse matrix of the project's own."""
        places = _checked_places(Z)
        return places, self._as_labels(Y, places.shape[0])

    def _as_labels(self, Y: Array, n_rows: int) -> scipy.sparse.csr_array:
        return as_labels(Y, n_rows)

    def _checked_queries(self, Z: Array) -> Array:
        self._check_fitted()
        places = _checked_places(Z)
        validate_data(self, Z, skip_check_array=True, reset=False)
        return places

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted yet. Call fit(Z, Y) first."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_labels_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def _checked_places(Z: Array) -> Array:
    """Z as a 2-D array of finite numbers."""
    places = check_features(Z, name="Z")
    for rows in row_blocks(places.shape[0], 16 * places.shape[1], places):
        block = as_block(places[rows], finite=False)
        check_finite(block, "Z", rows=range(rows.start, rows.stop))
    return places


def as_labels(Y: Array, n_rows: int, *, weighted: bool = False) -> scipy.sparse.csr_array:
    """A copy of Y (N×D) as a sparse matrix of float32; sorted, without explicit zeros.

    Entries are one, or with `weighted` what they are.
    """
    checked = check_label_matrix(Y, n_rows)
    if not scipy.sparse.issparse(checked):
        checked = to_numpy(checked)
    labels = scipy.sparse.csr_array(checked, copy=True)
    if labels.dtype != bool and labels.nnz and labels.data.min() < 0:
        row = int(np.searchsorted(labels.indptr, labels.data.argmin(), side="right")) - 1
        raise InvalidInput(
            f"Found a negative entry in row {row} of Y. A label is on an image (nonzero) or not "
            "(0); leave out what is known to be wrong."
        )
    labels.eliminate_zeros()
    labels.sum_duplicates()
    return labels.astype(np.float32) if weighted else with_ones(labels)


def with_ones(labels: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """The same labels, each of weight 1."""
    ones = np.ones(labels.nnz, dtype=np.float32)
    return scipy.sparse.csr_array((ones, labels.indices, labels.indptr), shape=labels.shape)


def widened(labels: scipy.sparse.csr_array, n_labels: int) -> scipy.sparse.csr_array:
    """The same labels among more, the new ones on no image."""
    return scipy.sparse.csr_array(
        (labels.data, labels.indices, labels.indptr), shape=(labels.shape[0], n_labels)
    )


def label_lists(labels: Any, n_images: int, n_labels: int) -> list[list[int]]:
    """Labels for each image: from one list for all, or from one list an image."""
    if hasattr(labels, "shape"):
        labels = to_numpy(labels).tolist()
    if not _is_list(labels):
        raise InvalidInput(
            f"labels must be a list of labels, or one list an image; found {labels!r}."
        )
    if not any(_is_list(entry) for entry in labels):
        labels = [labels] * n_images
    if len(labels) != n_images:
        raise InvalidInput(f"Found {len(labels)} lists of labels for {n_images} images.")
    return [[_label(t, n_labels) for t in (row if _is_list(row) else [row])] for row in labels]


def _is_list(value: Any) -> bool:
    one = isinstance(value, (str, Suggestion))
    return isinstance(value, (Sequence, np.ndarray)) and not one


def _label(found: Any, n_labels: int) -> int:
    t = found.label if isinstance(found, Suggestion) else found
    if isinstance(t, bool) or not isinstance(t, Integral) or not 0 <= int(t) < n_labels:
        raise InvalidInput(f"Unknown label {t!r}: labels are the columns 0 to {n_labels - 1} of Y.")
    return int(t)


def score_dtype(Z: Array) -> np.dtype:
    """The precision of scores for Z: float32 for float32 and narrower, else float64."""
    wide = str(as_block(Z[:1], finite=False).dtype).endswith("64")
    return np.dtype(np.float64 if wide else np.float32)


def _thresholds(threshold: float | Array | None, n_labels: int) -> np.ndarray:
    if threshold is None:
        return np.full(n_labels, -np.inf)
    bars = np.asarray(to_numpy(threshold), dtype=float)
    if bars.shape not in ((), (n_labels,)) or np.isnan(bars).any():
        raise InvalidInput(
            f"threshold must be a number or one for each of the {n_labels} labels; found shape "
            f"{bars.shape}{', with NaN' if np.isnan(bars).any() else ''}."
        )
    return np.broadcast_to(bars, (n_labels,))


def check_number(name: str, value: Any, *, above: float, inclusive: bool = False) -> None:
    """Refuse a parameter that is not a number in its range."""
    fine = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not fine or value < above or (value == above and not inclusive):
        relation = "at least" if inclusive else "above"
        raise InvalidInput(f"{name} must be a number {relation} {above}; found {value!r}.")
