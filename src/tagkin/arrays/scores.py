"""Labels Y and scores S of the same images and labels, as all measures take them.

Labels become a sparse matrix of their positions. Scores stay where they are and are read in
blocks; each block is checked when it is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_torch_array
from scipy.sparse import csr_array, issparse

from tagkin.arrays.checks import as_array
from tagkin.arrays.labels import as_labels
from tagkin.arrays.namespaces import Array, to_numpy
from tagkin.errors import InvalidInput

__all__ = ["check_pair", "check_scores", "count_below", "label_positions", "read_scores"]


def label_positions(Y: Array, name: str = "Y") -> csr_array:
    """Return which image has which label, as a new boolean CSR matrix (n×D).

    Parameters
    ----------
    Y : array or sparse matrix of shape (n, D)
        1 if an image has a label, else 0. Counts above 1 are read as 1, and entries between
        0 and 1 are rejected.
    name : str
        Name of Y in error messages.
    """
    return as_labels(Y, name=name).astype(bool)


def check_scores(S: Any, name: str = "S") -> Array:
    """Return S as a NumPy array or torch tensor of shape (n, D) with n, D ≥ 1; nothing is read."""
    if issparse(S):
        raise InvalidInput(f"{name} is a sparse matrix; scores must be dense: {name}.toarray().")
    if is_torch_array(S):
        S = S.detach()
        is_real = not S.is_complex() and str(S.layout) == "torch.strided"
    else:
        S = as_array(S, name)
        is_real = S.dtype.kind in "biuf"
    if S.ndim != 2:
        raise InvalidInput(
            f"{name} must have two dimensions, images × labels; found shape {tuple(S.shape)}."
        )
    if not is_real:
        raise InvalidInput(f"{name} must hold real numbers, densely; found dtype {S.dtype}.")
    if 0 in S.shape:
        raise InvalidInput(
            f"{name} is empty: shape {tuple(S.shape)}. Pass at least one image and one label."
        )
    return S


def check_pair(Y: Array, S: Array, names: tuple[str, str] = ("Y", "S")) -> tuple[csr_array, Array]:
    """Return label positions and scores with a row per image and a column per label."""
    scores = check_scores(S, names[1])
    labels = label_positions(Y, names[0])
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
