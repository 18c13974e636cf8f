"""Checks of input: features, label matrices, finite numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from tagkin.arrays.blocks import row_blocks
from tagkin.arrays.namespaces import (
    Array,
    LabelMatrix,
    is_sparse,
    is_tensor,
    namespace,
    to_numpy,
)
from tagkin.errors import InvalidInput

if TYPE_CHECKING:
    import torch

__all__ = [
    "as_array",
    "as_block",
    "check_features",
    "check_finite",
    "check_finite_features",
    "check_groups",
    "check_integer",
    "check_label_matrix",
    "check_positive",
    "check_same_features",
    "check_weights",
    "not_fitted",
]


def check_features(X: object, *, name: str = "X", min_rows: int = 1) -> Array:
    """Return X as a 2-D array, without copying or reading it (memory maps stay on disk)."""
    if not is_tensor(X):
        if is_sparse(X):
            raise InvalidInput(
                f"{name} is a sparse matrix; features must be dense. Use {name}.toarray()."
            )
        if _is_plain_matrix(X) and X.shape[0] >= min_rows:
            return X
        return _check_array(X, name, min_rows)
    _check_torch(X, name)
    if X.ndim != 2:
        raise InvalidInput(
            f"Expected 2D tensor for {name} (images × features), got {X.ndim}D. "
            f"Reshape your data with {name}.reshape(1, -1) if it is one image."
        )
    if X.shape[0] < min_rows or X.shape[1] < 1:
        raise InvalidInput(
            f"Found {X.shape[0]} sample(s) and {X.shape[1]} feature(s) (shape={tuple(X.shape)}) in "
            f"{name} while a minimum of {min_rows} and 1 is required."
        )
    return X.detach()


def check_finite_features(X: object, *, min_rows: int = 1) -> Array:
    """Return X as a 2-D array of finite numbers; it is read once, in blocks."""
    features = check_features(X, min_rows=min_rows)
    for rows in row_blocks(features.shape[0], 16 * features.shape[1], features):
        block = as_block(features[rows], finite=False)
        check_finite(block, rows=range(rows.start, rows.stop))
    return features


def _check_array(
    rows: object, name: str, min_rows: int, accept_sparse: str | bool = False
) -> np.ndarray:
    """Return rows as a 2-D array, by scikit-learn's checks; finite or not."""
    from sklearn.utils import check_array

    return check_array(
        rows,
        accept_sparse=accept_sparse,
        dtype="numeric",
        ensure_all_finite=False,  # checked block by block, when rows are read
        ensure_min_samples=min_rows,
        input_name=name,
    )


def _is_plain_matrix(X: object) -> TypeGuard[np.ndarray]:
    """Whether X is a NumPy array of numbers (n×m), which scikit-learn's checks would accept.

    For a single image, these checks take longer than the computation.
    """
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub" and X.shape[1] > 0


def _is_plain_csr(Y: object) -> TypeGuard[scipy.sparse.csr_array]:
    """Whether Y is a CSR matrix of numbers (n×m), which scikit-learn's checks would accept."""
    if not is_sparse(Y) or Y.format != "csr" or Y.ndim != 2:
        return False
    return Y.dtype.kind in "fiub" and Y.shape[1] > 0


def check_same_features(estimator: object, X: object) -> None:
    """Reject an X whose number of features, or their names, differ from the fitted estimator's."""
    if (
        _is_plain_matrix(X)
        and not hasattr(estimator, "feature_names_in_")
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
    ):
        return
    from sklearn.utils.validation import validate_data

    validate_data(estimator, X, skip_check_array=True, reset=False)


def _check_torch(tensor: torch.Tensor, name: str) -> None:
    if tensor.is_complex():
        raise InvalidInput(f"Complex data not supported; found {tensor.dtype} in {name}.")
    if str(tensor.layout) != "torch.strided":
        raise InvalidInput(
            f"{name} is a sparse torch tensor. Use {name}.to_dense(), or for labels a SciPy sparse "
            "matrix."
        )


_LABEL_ADVICE = "Use 1 for a label that an image has, and 0 for one that it does not have."


def check_label_matrix(
    Y: object,
    n_rows: int | None = None,
    name: str = "Y",
    *,
    n_labels: int | None = None,
    signed: bool = False,
) -> LabelMatrix:
    """Return Y as a finite dense 2-D array or CSR matrix; Y may be 1-D for a single label.

    An entry is above 0 if an image has a label, else 0. With `n_rows` or `n_labels`, Y must have
    this many rows or columns. `signed` allows negative entries, for targets that are not labels.
    """
    if Y is None:
        raise InvalidInput(
            "requires y to be passed, but the target y is None: pass the labels, a matrix of "
            "images × labels."
        )
    _reject_tag_lists(Y, name)
    labels = _as_matrix(Y, name)
    if is_sparse(labels):
        if not np.isfinite(labels.data).all():
            row_numbers = np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr))
            check_finite(labels.data[:, None], name, rows=row_numbers, advice=_LABEL_ADVICE)
    else:
        for rows in row_blocks(labels.shape[0], 8 * labels.shape[1], labels):
            numbers = range(rows.start, rows.stop)
            check_finite(labels[rows], name, rows=numbers, advice=_LABEL_ADVICE)
    if n_rows is not None and labels.shape[0] != n_rows:
        raise InvalidInput(
            f"X and {name} must have one row per image; found inconsistent numbers: {n_rows} rows "
            f"in X and {labels.shape[0]} in {name}."
        )
    if n_labels is not None and labels.shape[1] != n_labels:
        raise InvalidInput(
            f"Found {labels.shape[1]} labels where {n_labels} were fitted. A new label needs no "
            "new space, because neighbours pass it on: add it to the method."
        )
    if not signed:
        _reject_negative(labels, name)
    return labels


def _as_matrix(Y: object, name: str) -> LabelMatrix:
    """Return a dense 2-D array or CSR matrix of numbers."""
    if is_tensor(Y):
        _check_torch(Y, name)
        labels: LabelMatrix = Y.detach()
    else:
        labels = Y if is_sparse(Y) else as_array(Y, name)
    if labels.ndim == 1 and is_sparse(labels):
        labels = labels.toarray()
    if labels.ndim == 1:
        if not bool(((labels == 0) | (labels == 1)).all()):
            raise InvalidInput(
                f"Expected 2D array for {name} (images × labels), got 1D array instead. If it "
                "holds class numbers, make one column a class. If it holds the weights of one "
                f"label: Reshape your data with {name}.reshape(-1, 1)."
            )
        labels = labels.reshape(-1, 1)  # one label, on some images
    if is_tensor(labels):
        if labels.ndim != 2 or labels.shape[1] < 1:
            raise InvalidInput(f"Expected 2D tensor for {name}; found shape {tuple(labels.shape)}.")
        return labels
    if _is_plain_matrix(labels) or _is_plain_csr(labels):
        return labels
    return _check_array(labels, name, 0, accept_sparse="csr")


def as_array(rows: object, name: str) -> np.ndarray:
    """Return rows of numbers as an array; reject lists of different lengths."""
    try:
        return np.asarray(rows)
    except ValueError as error:
        raise InvalidInput(
            f"{name} must have two dimensions, images × labels, and hold numbers; found rows of "
            "different lengths. If they are lists of labels, write each label as a text."
        ) from error


def _reject_tag_lists(Y: object, name: str) -> None:
    """Reject lists of tags, and say how to make a label matrix of them."""
    if is_sparse(Y) or is_tensor(Y):
        return
    rows = Y if isinstance(Y, Sequence) else np.asarray(Y)
    if isinstance(rows, np.ndarray) and (rows.dtype.kind not in "OU" or not rows.ndim):
        return
    for i, row in enumerate(rows):
        several = isinstance(row, Iterable) and not isinstance(row, str)
        if any(isinstance(tag, str) for tag in (row if several else [row])):
            raise InvalidInput(
                f"Row {i} of {name} holds tags, {row!r}, where numbers are expected. Vocabulary "
                "makes a label matrix (images × labels) of one list of tags per image: "
                f"tagkin.Vocabulary().fit_transform({name})."
            )


def _reject_negative(Y: LabelMatrix, name: str) -> None:
    """Reject negative entries of a dense or CSR label matrix, such as −1 for absent labels."""
    row = None
    if is_sparse(Y):
        negative = np.flatnonzero(Y.data < 0)
        if len(negative):
            row = int(np.searchsorted(Y.indptr, negative[0], side="right")) - 1
    else:
        for rows in row_blocks(Y.shape[0], 8 * Y.shape[1], Y):
            is_negative = Y[rows] < 0
            if bool(is_negative.any()):  # only this answer is copied from a device
                row = rows.start + int(to_numpy(is_negative).any(axis=1).argmax())
                break
    if row is not None:
        raise InvalidInput(
            f"Found a negative entry in row {row} of {name}. An image has a label (1, or a weight "
            f"above 0) or does not (0). If -1 stands for an absent label, pass {name} > 0."
        )


@cache
def _is_narrow(dtype: np.dtype | torch.dtype) -> bool:
    """Whether float32 holds every value of a dtype."""
    name = str(dtype).removeprefix("torch.")
    return name in {"float32", "float16", "bfloat16", "bool", "int8", "uint8", "int16", "uint16"}


def as_block(rows: Array, *, double: bool = False, finite: bool = True, name: str = "X") -> Array:
    """Return rows as a float array, checked to be finite.

    It is float32 for float32 and narrower types, else float64; `double` forces float64.
    ``finite=False`` leaves the check to the caller.
    """
    xp = namespace(rows)
    wide = double or not _is_narrow(rows.dtype)
    block = xp.astype(rows, xp.float64 if wide else xp.float32, copy=False)
    if finite:
        check_finite(block, name)
    return block


def check_finite(
    block: Array,
    name: str = "X",
    *,
    rows: Sequence[int] | np.ndarray | None = None,
    advice: str = "Remove those images or compute their features again.",
) -> None:
    """Reject NaN and infinity; `rows` are row numbers and `advice` a sentence for the message."""
    xp = namespace(block)
    if bool(xp.all(xp.isfinite(block))):
        return
    bad = to_numpy(~xp.all(xp.isfinite(block), axis=1)).nonzero()[0]
    row = bad[0] if rows is None else rows[bad[0]]
    others = f" and {len(bad) - 1} more of the {len(block)} rows read" if len(bad) > 1 else ""
    raise InvalidInput(f"Input {name} contains NaN or infinity in row {row}{others}. {advice}")


def not_fitted(message: str) -> Exception:
    """Return scikit-learn's error of an estimator that is not fitted."""
    from sklearn.exceptions import NotFittedError  # here: importing it takes a second

    error: Exception = NotFittedError(message)
    return error


def check_integer(name: str, value: object, minimum: int = 1) -> int:
    """Return `value` as an int; reject anything but a whole number from `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise InvalidInput(f"{name} must be a whole number from {minimum}; found {value!r}.")
    return int(value)


def check_positive(name: str, value: object) -> None:
    """Reject a value that is not a finite number above 0."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0 < float(value) < math.inf:  # type: ignore[arg-type]
        raise InvalidInput(f"{name} must be a number above 0; found {value!r}.")


def check_groups(groups: ArrayLike | Array, n_rows: int) -> np.ndarray:
    """Return the group of each image as a number from 0, a NumPy int array (n_rows,)."""
    named = to_numpy(groups)
    if named.shape != (n_rows,):
        raise InvalidInput(
            f"groups must name one group for each of the {n_rows} images; found shape "
            f"{named.shape}."
        )
    nameless = [  # missing values of NumPy and pandas are not equal to themselves
        row for row, name in enumerate(named.tolist()) if name is None or (name == name) is not True
    ]
    if nameless:
        raise InvalidInput(
            f"groups has no name in row {nameless[0]} (None or NaN). Give an image without a group "
            "a name that no other image has."
        )
    return np.unique(named, return_inverse=True)[1].astype(np.int64, copy=False)


def check_weights(weights: ArrayLike | Array | None, n_rows: int) -> np.ndarray | None:
    """Return the weight of each image as a NumPy float64 array (n_rows,), or None without any."""
    if weights is None:
        return None
    values = np.asarray(to_numpy(weights))
    if values.shape != (n_rows,) or values.dtype.kind not in "fiub":
        raise InvalidInput(
            f"sample_weight must hold one number for each of the {n_rows} images; found "
            f"{values.dtype} of shape {values.shape}."
        )
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        raise InvalidInput(
            f"sample_weight must be finite and not negative; found {values[bad[0]]} in row "
            f"{bad[0]}."
        )
    if not values.any():
        raise InvalidInput("sample_weight is zero for every image.")
    return values.astype(np.float64)
