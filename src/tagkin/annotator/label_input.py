"""Labels as a caller may pass them: a matrix, a DataFrame, or lists of tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np
import scipy.sparse
from array_api_compat import is_torch_array

from tagkin.arrays import Array
from tagkin.arrays.labels import as_labels, check_names, label_names
from tagkin.errors import InvalidInput
from tagkin.labels import Vocabulary

__all__ = [
    "InputLabels",
    "KnownLabels",
    "NamedLabels",
    "check_tag_lists",
    "holds_tags",
    "label_matrix",
    "read_labels",
    "rejection_matrix",
    "replace_rows",
    "spread_rows",
    "take_rows",
]


InputLabels: TypeAlias = "Array | Sequence[Iterable[str] | None]"
"""A label matrix (N×D), a DataFrame, or N lists of tags."""


class NamedLabels(NamedTuple):
    """The labels of N images."""

    Y: scipy.sparse.csr_array
    """Label matrix of shape (N, D), float32: 1 if an image has a label."""
    names: np.ndarray | None = None
    """Column names of a DataFrame, shape (D,)."""
    vocabulary: Vocabulary | None = None
    """Vocabulary that was fitted on lists of tags and made Y of them."""
    tags: list[list[str]] | None = None
    """The lists of tags."""

    def classes(self) -> np.ndarray:
        """Return the names of the labels, shape (D,): tags, columns, or column numbers."""
        if self.vocabulary is not None:
            return np.array(self.vocabulary.names_, dtype=object)
        return np.arange(self.Y.shape[1]) if self.names is None else self.names


class KnownLabels(NamedTuple):
    """What is known of the labels of n images, as `FeatureAnnotator.suggest` takes it."""

    present: InputLabels | None = None
    rejected: InputLabels | None = None
    complete: Array | None = None
    offered: InputLabels | None = None


def read_labels(y: InputLabels | None, n_images: int, vocabulary: Vocabulary) -> NamedLabels:
    """Read a label matrix (N×D) or N lists of tags, which fit the vocabulary."""
    if not holds_tags(y):
        matrix: Any = y
        if np.ndim(matrix) == 1:
            raise InvalidInput(
                "Expected 2D array for y (images × labels), got 1D array instead. If it is a "
                "single label: Reshape your data with y.reshape(-1, 1)."
            )
        return NamedLabels(as_labels(y, n_images), label_names(y))
    tags = check_tag_lists(y, n_images)
    return NamedLabels(vocabulary.fit_transform(tags), None, vocabulary, tags)


def check_tag_lists(y: InputLabels | None, n_images: int) -> list[list[str]]:
    """Return the tags of each image as a list; None means no tags."""
    rows = [] if y is None else list(y)
    if len(rows) != n_images:
        raise InvalidInput(f"Found {n_images} rows of features and {len(rows)} lists of tags.")
    for i, row in enumerate(rows):
        if row is not None and (isinstance(row, (str, bytes)) or not isinstance(row, Iterable)):
            raise InvalidInput(
                f"Row {i} of y is {row!r}; expected a list of tags, or None for no tags."
            )
    return [_as_list(row) for row in rows]


def _as_list(row: Iterable[str] | None) -> list[str]:
    if row is None:
        return []
    return row.tolist() if isinstance(row, np.ndarray) else list(row)


def label_matrix(y: InputLabels, n_images: int, learned: NamedLabels) -> scipy.sparse.csr_array:
    """Return the learned labels of n images as a matrix (n×D).

    The columns of a DataFrame must have the names of the learned labels.
    """
    vocabulary, n_labels = learned.vocabulary, learned.Y.shape[1]
    if vocabulary is not None and (holds_tags(y) or not hasattr(y, "shape")):
        matrix = vocabulary.transform(check_tag_lists(y, n_images))
    else:
        matrix = as_labels(y, n_images)
        if hasattr(y, "columns") and (vocabulary is not None or learned.names is not None):
            check_names(learned.classes(), y)
    if matrix.shape != (n_images, n_labels):
        raise InvalidInput(
            f"Found labels of shape {matrix.shape}; expected {n_images} rows, one for each image, "
            f"and {n_labels} columns, one for each label that was learned. "
            "New labels need a new fit."
        )
    return matrix


def rejection_matrix(
    rejected: InputLabels, n_images: int, learned: NamedLabels
) -> scipy.sparse.csr_array:
    """Return the rejected labels of n images as a matrix (n×D).

    Rejected tags imply no parents: whoever rejects "animal|dog" may still see an animal.
    """
    vocabulary = copy(learned.vocabulary)
    if vocabulary is not None:
        vocabulary.imply_parents = False
    return label_matrix(rejected, n_images, learned._replace(vocabulary=vocabulary))


def take_rows(matrix: scipy.sparse.csr_array, known: np.ndarray) -> scipy.sparse.csr_array:
    """Return the rows `known` (n,) of a matrix (N×D); a row is empty if its number is −1."""
    places = np.flatnonzero(known >= 0)
    return spread_rows(matrix[known[places]], places, len(known))


def spread_rows(
    matrix: scipy.sparse.csr_array, places: np.ndarray, n: int
) -> scipy.sparse.csr_array:
    """Return a matrix (n×D) with these rows at the given places, ascending, and others empty."""
    ends = np.zeros(n + 1, dtype=matrix.indptr.dtype)
    ends[places + 1] = np.diff(matrix.indptr)
    parts = matrix.data, matrix.indices, ends.cumsum(dtype=ends.dtype)
    return scipy.sparse.csr_array(parts, shape=(n, matrix.shape[1]))


def replace_rows(
    matrix: scipy.sparse.csr_array, rows: scipy.sparse.csr_array, known: np.ndarray
) -> scipy.sparse.csr_array:
    """Replace the rows `known` (n,) of a matrix (N×D) by rows (n×D); −1 appends a row."""
    order, is_known = np.arange(matrix.shape[0]), known >= 0
    order[known[is_known]] = matrix.shape[0] + np.flatnonzero(is_known)
    both = scipy.sparse.vstack([matrix, rows], format="csr")
    return both[np.append(order, matrix.shape[0] + np.flatnonzero(~is_known))]


def holds_tags(y: object) -> bool:
    """Whether y is lists of tags, with None for an image without tags, and not a matrix."""
    if scipy.sparse.issparse(y) or is_torch_array(y) or hasattr(y, "columns"):
        return False
    if isinstance(y, np.ndarray) and y.dtype.kind not in "OU":
        return False
    if not isinstance(y, Iterable) or isinstance(y, (str, bytes)):
        return False
    has_text = any(
        row is None
        or isinstance(row, str)
        or (_is_list(row) and any(isinstance(tag, str) for tag in row))
        for row in y
    )
    return has_text or all(isinstance(row, (list, tuple)) and not row for row in y)


def _is_list(row: object) -> TypeGuard[Iterable[object]]:
    return isinstance(row, Iterable) and not isinstance(row, (str, bytes))
