"""Label matrices as estimators store them, and the names of their columns."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from tagkin.arrays.blocks import row_blocks
from tagkin.arrays.checks import check_label_matrix
from tagkin.arrays.namespaces import to_numpy
from tagkin.errors import InvalidInput

__all__ = ["TakesLabelMatrix", "as_labels", "check_names", "label_names", "widen"]


class TakesLabelMatrix:
    """Tell scikit-learn that y is a required label matrix. Inherit from it before BaseEstimator."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def as_labels(
    Y: Any, n_rows: int | None = None, *, weighted: bool = False, name: str = "Y"
) -> csr_array:
    """Return a sorted float32 copy of Y (N×D) without explicit zeros; dense Y is read in blocks.

    Entries are 1, or with `weighted` their values. Without `weighted`, entries between 0 and 1
    are rejected.
    """
    checked = check_label_matrix(Y, n_rows, name)
    if issparse(checked):
        labels = csr_array(checked, copy=True)
    else:
        rows_of_blocks = row_blocks(checked.shape[0], 9 * checked.shape[1])
        blocks = [csr_array(to_numpy(checked[rows])) for rows in rows_of_blocks]
        empty = csr_array((0, checked.shape[1]))
        labels = csr_array(vstack(blocks, format="csr")) if blocks else empty
    labels.eliminate_zeros()
    labels.sum_duplicates()
    if weighted:
        return labels.astype(np.float32)
    _reject_fractions(labels, name)
    ones = np.ones(labels.nnz, dtype=np.float32)
    return csr_array((ones, labels.indices, labels.indptr), shape=labels.shape)


def _reject_fractions(labels: csr_array, name: str) -> None:
    """Reject entries between 0 and 1."""
    fractions = np.flatnonzero((labels.data > 0) & (labels.data < 1))
    if len(fractions):
        entry = fractions[0]
        row = int(np.searchsorted(labels.indptr, entry, side="right")) - 1
        raise InvalidInput(
            f"Row {row}, column {labels.indices[entry]} of {name} is {labels.data[entry]:.4g}. An "
            "image has a label (1) or does not (0). If the entries are probabilities, pass "
            f"{name} >= 0.5."
        )


def widen(labels: csr_array, n_labels: int) -> csr_array:
    """Append empty columns for new labels."""
    return csr_array((labels.data, labels.indices, labels.indptr), (labels.shape[0], n_labels))


def label_names(Y: Any) -> np.ndarray | None:
    """Return the column names of a DataFrame (D,) if they are text, else None."""
    names = list(getattr(Y, "columns", ()))
    if not names or not all(isinstance(name, str) for name in names):
        return None
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InvalidInput(f"Y has {count} columns named {name!r}; every label needs its own name.")
    return np.array(names, dtype=object)


def check_names(known: np.ndarray | None, Y: Any, n_labels: int | None = None) -> np.ndarray | None:
    """Return the names of Y's columns; reject names that do not begin with the `known` names.

    With `n_labels`, new labels without a name are rejected, too.
    """
    names = label_names(Y)
    if known is None:
        return names
    if names is None:
        if n_labels is not None and n_labels > len(known):
            raise InvalidInput(
                f"Found {n_labels - len(known)} new label(s) without a name. The labels that were "
                "fitted have names: pass Y as a DataFrame with all columns, new ones at the end."
            )
        return known
    for column, (name, other) in enumerate(zip(known, names, strict=False)):
        if name != other:
            raise InvalidInput(
                f"Column {column} of Y is {other!r} where {name!r} was fitted. Pass the same "
                "columns in the same order; new ones go at the end."
            )
    return names
