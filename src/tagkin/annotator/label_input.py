"""The labels of images as a caller may give them: a matrix, a DataFrame, or lists of tags."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from array_api_compat import is_torch_array

from tagkin.arrays.labels import as_labels, check_names, label_names
from tagkin.errors import InvalidInput
from tagkin.labels import Vocabulary

__all__ = [
    "Labels",
    "holds_tags",
    "indicator_of",
    "listed",
    "read_labels",
    "rejections",
    "rows_of",
    "with_rows",
    "without",
]


class Labels(NamedTuple):
    """The labels of N images."""

    Y: scipy.sparse.csr_array
    """Of shape (N, D), float32: 1 where an image carries a label."""
    names: np.ndarray | None = None
    """The columns of a DataFrame, (D,)."""
    vocabulary: Vocabulary | None = None
    """What made Y of lists of tags, fitted on them."""
    tags: list[list[str]] | None = None
    """Those lists."""

    def classes(self) -> np.ndarray:
        """What the labels are called, shape (D,): tags, columns, or the columns' numbers."""
        if self.vocabulary is not None:
            return np.array(self.vocabulary.names_, dtype=object)
        return np.arange(self.Y.shape[1]) if self.names is None else self.names


def read_labels(y: Any, n_images: int, vocabulary: Vocabulary) -> Labels:
    """Labels (N×D), dense, sparse or a DataFrame, or N lists of tags, which fit the vocabulary.

    What is read already stays as it is.
    """
    if isinstance(y, Labels):
        return y
    if not holds_tags(y):
        return Labels(as_labels(y, n_images), label_names(y))
    tags = listed(y, n_images)
    return Labels(vocabulary.fit_transform(tags), None, vocabulary, tags)


def listed(y: Any, n_images: int) -> list[list[str]]:
    """The tags of each image as a list of its own, empty where there are none."""
    rows = list(y)
    if len(rows) != n_images:
        raise InvalidInput(f"Found {n_images} rows of features and {len(rows)} lists of tags.")
    for i, row in enumerate(rows):
        if row is not None and (isinstance(row, (str, bytes)) or not isinstance(row, Iterable)):
            raise InvalidInput(
                f"Row {i} of y is {row!r}; expected a list of tags, or None for no tags."
            )
    return [_as_list(row) for row in rows]


def _as_list(row: Any) -> list[str]:
    if row is None:
        return []
    return row.tolist() if isinstance(row, np.ndarray) else list(row)


def indicator_of(y: Any, n_images: int, known: Labels) -> scipy.sparse.csr_array:
    """Labels of n images, of those D that are known, as a matrix (n×D).

    The columns of a DataFrame are to have the names of those labels.
    """
    vocabulary, n_labels = known.vocabulary, known.Y.shape[1]
    if vocabulary is not None and (holds_tags(y) or not hasattr(y, "shape")):
        found = vocabulary.transform(listed(y, n_images))
    else:
        found = as_labels(y, n_images)
        if hasattr(y, "columns") and (vocabulary is not None or known.names is not None):
            check_names(known.classes(), y)
    if found.shape != (n_images, n_labels):
        raise InvalidInput(
            f"Found labels of shape {found.shape}; expected {n_images} rows, one for each image, "
            f"and {n_labels} columns, one for each label that was learned."
        )
    return found


def rejections(rejected: Any, n_images: int, labels: Labels) -> scipy.sparse.csr_array:
    """What was rejected for n images, as a matrix (n×D): of tags, none that they imply.

    Who says that a dog is not a dog has not said that it is no animal.
    """
    vocabulary = copy(labels.vocabulary)
    if vocabulary is not None:
        vocabulary.imply_parents = False
    return indicator_of(rejected, n_images, labels._replace(vocabulary=vocabulary))


def without(
    labels: scipy.sparse.csr_array, others: scipy.sparse.csr_array | None
) -> scipy.sparse.csr_array:
    """Labels (N×D) less those that are in another matrix (N×D), too."""
    if others is None or not others.nnz:
        return labels
    kept = scipy.sparse.csr_array(labels - labels.multiply(others > 0))
    kept.eliminate_zeros()
    return kept


def rows_of(matrix: scipy.sparse.csr_array, known: np.ndarray) -> scipy.sparse.csr_array:
    """The rows of a matrix (N×D) with the numbers `known` (n,), empty ones where they are −1."""
    seen = known >= 0
    found = matrix[known[seen]]
    lengths = np.zeros(len(known), dtype=np.int64)
    lengths[seen] = np.diff(found.indptr)
    ends = np.append(0, np.cumsum(lengths))
    return scipy.sparse.csr_array(
        (found.data, found.indices, ends), shape=(len(known), matrix.shape[1])
    )


def with_rows(
    matrix: scipy.sparse.csr_array, rows: scipy.sparse.csr_array, known: np.ndarray
) -> scipy.sparse.csr_array:
    """A matrix (N×D) with rows (n×D) in the place of those `known` (n,), and at the end for −1."""
    order, seen = np.arange(matrix.shape[0]), known >= 0
    order[known[seen]] = matrix.shape[0] + np.flatnonzero(seen)
    both = scipy.sparse.vstack([matrix, rows], format="csr")
    return both[np.append(order, matrix.shape[0] + np.flatnonzero(~seen))]


def holds_tags(y: Any) -> bool:
    """Whether y is lists of tags, None for an image without, and no matrix."""
    if scipy.sparse.issparse(y) or is_torch_array(y) or hasattr(y, "columns"):
        return False
    if isinstance(y, np.ndarray) and y.dtype.kind not in "OU":
        return False
    if not isinstance(y, Iterable) or isinstance(y, (str, bytes)):
        return False
    found = any(
        row is None
        or isinstance(row, str)
        or (_is_list(row) and any(isinstance(tag, str) for tag in row))
        for row in y
    )
    return found or all(isinstance(row, (list, tuple)) and not row for row in y)


def _is_list(row: Any) -> bool:
    return isinstance(row, Iterable) and not isinstance(row, (str, bytes))
