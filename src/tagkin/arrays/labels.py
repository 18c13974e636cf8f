"""Label matrices as estimators keep them, and the names of their columns."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.arrays.checks import check_label_matrix, refuse_fractions
from tagkin.arrays.namespaces import to_numpy
from tagkin.errors import InvalidInput

__all__ = [
    "TakesLabelMatrix",
    "as_labels",
    "check_names",
    "checked_names",
    "label_names",
    "widened",
]


class TakesLabelMatrix:
    """Left of `BaseEstimator`: scikit-learn is told that y is a label matrix, and needed."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def as_labels(Y: Any, n_rows: int, *, weighted: bool = False) -> scipy.sparse.csr_array:
    """A copy of Y (N×D) as a sparse matrix of float32; sorted, without explicit zeros.

    Entries are one, or with `weighted` their values. Without `weighted`, entries between 0 and 1
    are rejected.
    """
    checked = check_label_matrix(Y, n_rows)
    if not scipy.sparse.issparse(checked):
        checked = to_numpy(checked)
    labels = scipy.sparse.csr_array(checked, copy=True)
    labels.eliminate_zeros()
    labels.sum_duplicates()
    if weighted:
        return labels.astype(np.float32)
    refuse_fractions(labels)
    ones = np.ones(labels.nnz, dtype=np.float32)
    return scipy.sparse.csr_array((ones, labels.indices, labels.indptr), shape=labels.shape)


def widened(labels: scipy.sparse.csr_array, n_labels: int) -> scipy.sparse.csr_array:
    """The same labels among more, the new ones on no image."""
    return scipy.sparse.csr_array(
        (labels.data, labels.indices, labels.indptr), shape=(labels.shape[0], n_labels)
    )


def label_names(Y: Any) -> np.ndarray | None:
    """The columns of a DataFrame Y where they are text, shape (D,); None where there are none."""
    names = list(getattr(Y, "columns", ()))
    if not names or not all(isinstance(name, str) for name in names):
        return None
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InvalidInput(f"Y has {count} columns named {name!r}; every label needs its own name.")
    return np.array(names, dtype=object)


def checked_names(known: np.ndarray | None, Y: Any, n_labels: int) -> np.ndarray | None:
    """Names of `n_labels` labels, the first of which are `known`, given Y (n×n_labels)."""
    names = label_names(Y)
    if known is None:
        return names
    if names is None and n_labels > len(known):
        raise InvalidInput(
            f"Found {n_labels - len(known)} new label(s) without a name. The labels that were "
            "fitted have names: pass Y as a DataFrame with all columns, new ones at the end."
        )
    check_names(known, Y)
    return known if names is None else names


def check_names(known: np.ndarray | None, Y: Any) -> None:
    """Refuse Y whose columns have other names than the known ones, where both have names."""
    names = label_names(Y)
    if known is None or names is None:
        return
    for column, (name, other) in enumerate(zip(known, names, strict=False)):
        if name != other:
            raise InvalidInput(
                f"Column {column} of Y is {other!r} where {name!r} was fitted. Pass the same "
                "columns in the same order; new ones go at the end."
            )
