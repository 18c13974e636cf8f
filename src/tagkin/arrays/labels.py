"""Label matrices Y and scores S of the same images and labels, as all methods take them.

Labels become a sparse matrix. Scores stay where they are and are read in blocks; each block is
checked when it is read.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, vstack

from tagkin.arrays.blocks import row_blocks
from tagkin.arrays.checks import as_array, check_label_matrix
from tagkin.arrays.namespaces import Array, LabelMatrix, is_sparse, is_tensor, to_numpy
from tagkin.errors import InvalidInput

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = [
    "TakesLabelMatrix",
    "as_labels",
    "check_complete",
    "check_names",
    "check_pair",
    "check_rejections",
    "check_scores",
    "count_below",
    "count_known",
    "label_names",
    "read_scores",
    "widen",
]


class TakesLabelMatrix:
    """Tell scikit-learn that y is a required label matrix. Inherit from it before BaseEstimator."""

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def as_labels(
    Y: object, n_rows: int | None = None, *, weighted: bool = False, name: str = "Y"
) -> csr_array:
    """Return a sorted float32 copy of Y (N×D) without explicit zeros; dense Y is read in blocks.

    Entries are 1, or with `weighted` their values. Without `weighted`, entries between 0 and 1
    are rejected.
    """
    checked = check_label_matrix(Y, n_rows, name)
    if is_sparse(checked):
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


def label_names(Y: object) -> np.ndarray | None:
    """Return the column names of a DataFrame (D,) if they are text, else None."""
    names = list(getattr(Y, "columns", ()))
    if not names or not all(isinstance(name, str) for name in names):
        return None
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InvalidInput(f"Y has {count} columns named {name!r}; every label needs its own name.")
    return np.array(names, dtype=object)


def check_names(
    known: np.ndarray | None, Y: object, n_labels: int | None = None
) -> np.ndarray | None:
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


def check_complete(complete: ArrayLike | Array | None, n_images: int) -> np.ndarray | None:
    """Return the mask (N,) of completely labelled images, or None if all are.

    A label that is absent from an incomplete image is unknown.
    """
    if complete is None:
        return None
    mask = to_numpy(complete)
    if mask.shape != (n_images,) or mask.dtype != bool:
        raise InvalidInput(
            f"complete must be an array of {n_images} booleans, one for each image; found "
            f"{mask.dtype} of shape {mask.shape}."
        )
    return None if mask.all() else mask


def count_known(
    labels: csr_array,
    rejected: csr_array | None,
    complete: np.ndarray | None,
) -> np.ndarray:
    """Return the number of images for which each label is known, shape (D,).

    A label is known if the image is complete, or if it has the label or a rejection of it.
    """
    n, d = labels.shape
    if complete is None:
        return np.full(d, n)
    known = np.full(d, np.count_nonzero(complete))
    for said in (labels, rejected):
        if said is not None:
            known += np.bincount(said[~complete].indices, minlength=d)
    return known


def check_rejections(
    rejected: LabelMatrix, labels: csr_array, names: np.ndarray | None = None
) -> csr_array:
    """Return the rejected labels (N×D); raise an error if an image has a label rejected for it.

    The columns of a DataFrame must be `names` (D,), the names of the labels.
    """
    check_names(names, rejected)
    matrix = as_labels(rejected, labels.shape[0])
    if matrix.shape != labels.shape:
        raise InvalidInput(
            f"rejected has shape {matrix.shape}, but the labels have shape {labels.shape}."
        )
    if matrix.multiply(labels).nnz:
        raise InvalidInput(
            "An image has a label that is also rejected for it. Remove the label or the rejection."
        )
    return matrix


def check_scores(S: object, name: str = "S") -> Array:
    """Return S as a NumPy array or torch tensor of shape (n, D) with n, D ≥ 1; nothing is read."""
    if is_sparse(S):
        raise InvalidInput(f"{name} is a sparse matrix; scores must be dense: {name}.toarray().")
    if is_tensor(S):
        scores: Array = S.detach()
        is_real = not S.is_complex() and str(S.layout) == "torch.strided"
    else:
        scores = as_array(S, name)
        is_real = scores.dtype.kind in "biuf"
    if scores.ndim != 2:
        raise InvalidInput(
            f"{name} must have two dimensions, images × labels; found shape {tuple(scores.shape)}."
        )
    if not is_real:
        raise InvalidInput(f"{name} must hold real numbers, densely; found dtype {scores.dtype}.")
    if 0 in scores.shape:
        raise InvalidInput(
            f"{name} is empty: shape {tuple(scores.shape)}. Pass at least one image and one label."
        )
    return scores


def check_pair(
    Y: LabelMatrix, S: Array, names: tuple[str, str] = ("Y", "S")
) -> tuple[csr_array, Array]:
    """Return labels as a boolean CSR matrix (n×D), and scores, of the same images and labels."""
    scores = check_scores(S, names[1])
    labels = as_labels(Y, name=names[0]).astype(bool)
    if labels.shape != tuple(scores.shape):
        raise InvalidInput(
            f"{names[0]} and {names[1]} must have one row per image and one column per label; "
            f"found shapes {labels.shape} and {tuple(scores.shape)}."
        )
    return labels, scores


def read_scores(
    S: Array, rows: slice, *, columns: slice = slice(None), finite: bool = False, name: str = "S"
) -> np.ndarray:
    """Return a block of scores as a NumPy array, without a copy if S allows; NaN is rejected.

    Infinite scores are allowed, because they can be ranked; with `finite` they are rejected.
    """
    block = to_numpy(S[rows, columns])
    bad = ~np.isfinite(block) if finite else np.isnan(block)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise InvalidInput(
            f"{name} holds {block[row, column]} at row {row + (rows.start or 0)}, column "
            f"{column + (columns.start or 0)}. Compute that image's scores again, or leave the "
            "image out."
        )
    return block


def count_below(
    ascending: np.ndarray, rows: np.ndarray, values: np.ndarray, *, or_equal: bool = False
) -> np.ndarray:
    """Count the entries of sorted rows that lie below values, by binary search for all at once.

    Parameters
    ----------
    ascending : array of shape (r, m)
        Rows in ascending order.
    rows : int array of shape (k,)
        The row to search for each value.
    values : array of shape (k,)
    or_equal : bool
        Count entries equal to the value as well.

    Returns
    -------
    count : int array of shape (k,)
    """
    m = ascending.shape[1]
    low, high = np.zeros(len(values), dtype=np.intp), np.full(len(values), m)
    for _ in range(m.bit_length()):
        middle = (low + high) // 2
        # a search that has ended stays where it is: its middle is high, and may be m
        entry = ascending[rows, np.minimum(middle, m - 1)]
        right = ((entry <= values) if or_equal else (entry < values)) & (low < high)
        low = np.where(right, middle + 1, low)
        high = np.where(right, high, middle)
    return low
