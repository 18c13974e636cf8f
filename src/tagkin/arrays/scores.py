"""What every measure takes: labels Y and scores S of the same images and labels.

Labels become a sparse matrix of their positions; scores stay where they are and are read in
blocks. Each block is checked when it is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_torch_array
from scipy.sparse import csr_array, issparse, vstack

from tagkin.arrays.blocks import row_blocks
from tagkin.arrays.checks import as_array, refuse_fractions, refuse_negative, refuse_tag_lists
from tagkin.arrays.namespaces import Array, to_numpy
from tagkin.errors import InvalidInput

__all__ = ["check_pair", "check_scores", "label_positions", "read_scores"]


def label_positions(Y: Array, name: str = "Y") -> csr_array:
    """Which image carries which label: a boolean CSR matrix of its own memory.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n, D)
        1 where an image carries a label, else 0. Counts above 1 are read as 1, and entries between
        0 and 1 are rejected.
    name : str
        What error messages call it.
    """
    refuse_tag_lists(Y, name)
    if issparse(Y):
        if Y.ndim != 2:
            raise InvalidInput(_not_a_matrix(name, Y.shape))
        positions = csr_array(Y, copy=True)
        _check_labels(positions.data, name)
        refuse_negative(positions, name)
        positions.sum_duplicates()
        positions.eliminate_zeros()
        refuse_fractions(positions, name)
        positions.data = np.ones(positions.nnz, dtype=bool)
        return positions
    Y = _as_matrix(Y, name)
    refuse_negative(Y, name)
    blocks = []
    for rows in row_blocks(Y.shape[0], 9 * Y.shape[1]):
        block = to_numpy(Y[rows])
        _check_labels(block, name)
        refuse_fractions(csr_array(block), name, start=rows.start)
        blocks.append(csr_array(block != 0))
    return csr_array(vstack(blocks, format="csr")) if blocks else csr_array(Y.shape, dtype=bool)


def check_scores(S: Array, name: str = "S") -> Array:
    """S as a NumPy array or torch tensor of shape (n, D) with n, D ≥ 1; nothing is read."""
    if issparse(S):
        raise InvalidInput(f"{name} is a sparse matrix; scores must be dense: {name}.toarray().")
    S = _as_matrix(S, name)
    if 0 in S.shape:
        raise InvalidInput(
            f"{name} is empty: shape {tuple(S.shape)}. It takes at least one image and one label."
        )
    return S


def check_pair(Y: Array, S: Array, names: tuple[str, str] = ("Y", "S")) -> tuple[csr_array, Array]:
    """Positions of the labels, and the scores: one row an image, one column a label."""
    scores = check_scores(S, names[1])
    refuse_tag_lists(Y, names[0])
    # a vector says for one label which images carry it
    if not issparse(Y) and not is_torch_array(Y):
        Y = as_array(Y, names[0])
    if not issparse(Y) and Y.ndim == 1 and scores.shape[1] == 1:
        Y = Y.reshape(-1, 1) if is_torch_array(Y) else np.reshape(Y, (-1, 1))
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
    """A block of scores as a NumPy array, without a copy where S allows; NaN is refused.

    Infinite scores are an order like any other and pass, unless `finite` asks for numbers to
    compute with.
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


def _as_matrix(array: Any, name: str) -> Array:
    """A NumPy array or torch tensor with two dimensions that holds real numbers."""
    if is_torch_array(array):
        array = array.detach()
        numbers = not array.is_complex() and str(array.layout) == "torch.strided"
    else:
        array = as_array(array, name)
        numbers = array.dtype.kind in "biuf"
    if array.ndim != 2:
        raise InvalidInput(_not_a_matrix(name, tuple(array.shape)))
    if not numbers:
        raise InvalidInput(f"{name} must hold real numbers, densely; found dtype {array.dtype}.")
    return array


def _not_a_matrix(name: str, shape: tuple[int, ...]) -> str:
    return f"{name} must have two dimensions, images × labels; found shape {shape}."


def _check_labels(values: np.ndarray, name: str) -> None:
    if values.dtype.kind not in "biuf" or np.isnan(values).any():
        raise InvalidInput(
            f"{name} must say for every image and label whether it is carried: found NaN or "
            f"something that is no number (dtype {values.dtype}). Use 0 and 1."
        )
