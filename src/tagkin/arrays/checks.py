"""What comes in, checked: features, label matrices, numbers that are finite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import is_torch_array
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from tagkin.arrays.blocks import row_blocks
from tagkin.arrays.namespaces import Array, namespace, to_numpy
from tagkin.errors import InvalidInput

__all__ = [
    "any_nonzero",
    "as_array",
    "as_block",
    "check_features",
    "check_finite",
    "check_groups",
    "check_integer",
    "check_label_matrix",
    "check_labels",
    "check_n_labels",
    "check_same_features",
    "check_seed",
    "refuse_fractions",
    "refuse_negative",
    "refuse_tag_lists",
]


def check_features(X: Any, *, name: str = "X", min_rows: int = 1) -> Array:
    """X as a 2-D array, without copying or reading it (memory maps stay on disk)."""
    if not is_torch_array(X):
        if scipy.sparse.issparse(X):
            raise InvalidInput(
                f"{name} is a sparse matrix; features must be dense. Use {name}.toarray()."
            )
        if _is_plain_matrix(X) and X.shape[0] >= min_rows:
            return X
        # finiteness is checked block by block, where the rows are read anyway
        return check_array(
            X,
            dtype="numeric",
            ensure_all_finite=False,
            ensure_min_samples=min_rows,
            input_name=name,
        )
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


def _is_plain_matrix(X: Any) -> bool:
    """Whether X is a NumPy array of numbers (n×m): scikit-learn's checks would find nothing.

    For one image at a time, they take longer than what is computed.
    """
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub" and X.shape[1] > 0


def _is_plain_csr(Y: Any) -> bool:
    """Whether Y is a CSR matrix of numbers (n×m), of which the same holds."""
    rows_together = scipy.sparse.issparse(Y) and Y.format == "csr" and Y.ndim == 2
    return rows_together and Y.dtype.kind in "fiub" and Y.shape[1] > 0


def _has_finite_sum(X: np.ndarray) -> bool:
    """True only where all numbers are finite; where it is False, they may be as well."""
    with np.errstate(over="ignore", invalid="ignore"):
        return X.dtype.kind != "f" or bool(np.isfinite(X.sum()))


def check_same_features(estimator: Any, X: Any) -> None:
    """Refuse an X with other features, or other names of them, than an estimator has learned."""
    if (
        _is_plain_matrix(X)
        and not hasattr(estimator, "feature_names_in_")
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
    ):
        return
    validate_data(estimator, X, skip_check_array=True, reset=False)


def _check_torch(tensor: Any, name: str) -> None:
    if tensor.is_complex():
        raise InvalidInput(f"Complex data not supported; found {tensor.dtype} in {name}.")
    if str(tensor.layout) != "torch.strided":
        raise InvalidInput(
            f"{name} is a sparse torch tensor. Use {name}.to_dense(), or for labels a SciPy sparse "
            "matrix."
        )


def check_label_matrix(Y: Any, n_rows: int, name: str = "Y", *, signed: bool = False) -> Array:
    """Y as a dense 2-D array or a CSR matrix with `n_rows` finite rows; 1-D for one label.

    Labels are 0 where an image does not carry them, else above; `signed` allows what is not
    labels to be negative.
    """
    if Y is None:
        raise InvalidInput(
            "requires y to be passed, but the target y is None: pass the labels, a matrix of "
            "images × labels."
        )
    refuse_tag_lists(Y, name)
    if is_torch_array(Y):
        _check_torch(Y, name)
        Y = Y.detach()
    elif not scipy.sparse.issparse(Y):
        Y = as_array(Y, name)
    if Y.ndim == 1 and scipy.sparse.issparse(Y):
        Y = Y.toarray()
    if Y.ndim == 1:
        if not bool(((Y == 0) | (Y == 1)).all()):
            raise InvalidInput(
                f"Expected 2D array for {name} (images × labels), got 1D array instead. If it "
                "holds class numbers, make one column a class. If it holds the weights of one "
                f"label, Reshape your data with {name}.reshape(-1, 1)."
            )
        Y = Y.reshape(-1, 1)  # one label, on some images
    if not is_torch_array(Y):
        numbers = Y.data if _is_plain_csr(Y) else Y if _is_plain_matrix(Y) else None
        if numbers is None or not _has_finite_sum(numbers):
            Y = check_array(
                Y, accept_sparse="csr", dtype="numeric", ensure_min_samples=0, input_name=name
            )
    elif Y.ndim != 2 or Y.shape[1] < 1:
        raise InvalidInput(f"Expected 2D tensor for {name}; found shape {tuple(Y.shape)}.")
    else:
        for rows in row_blocks(Y.shape[0], 8 * Y.shape[1], Y):
            check_finite(Y[rows], name, rows=range(rows.start, rows.stop))
    if Y.shape[0] != n_rows:
        raise InvalidInput(
            f"X and {name} must have one row per image; found inconsistent numbers: {n_rows} rows "
            f"in X and {Y.shape[0]} in {name}."
        )
    if not signed:
        refuse_negative(Y, name)
    return Y


def as_array(rows: Any, name: str) -> np.ndarray:
    """Rows of numbers as an array; lists of different lengths are refused."""
    try:
        return np.asarray(rows)
    except ValueError as error:
        raise InvalidInput(
            f"{name} must have two dimensions, images × labels, and hold numbers; found rows of "
            "different lengths."
        ) from error


def refuse_tag_lists(Y: Any, name: str = "Y") -> None:
    """Refuse tags themselves where a label matrix is wanted, and say how to get one."""
    if scipy.sparse.issparse(Y) or is_torch_array(Y):
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


def refuse_negative(Y: Any, name: str = "Y") -> None:
    """Refuse negative entries of a dense or CSR label matrix, such as −1 for absent labels."""
    row = None
    if scipy.sparse.issparse(Y):
        negative = np.flatnonzero(Y.data < 0)
        if len(negative):
            row = int(np.searchsorted(Y.indptr, negative[0], side="right")) - 1
    else:
        for rows in row_blocks(Y.shape[0], 8 * Y.shape[1], Y):
            found = Y[rows] < 0
            if bool(found.any()):  # on a device, all that leaves it is this answer
                row = rows.start + int(to_numpy(found).any(axis=1).argmax())
                break
    if row is not None:
        raise InvalidInput(
            f"Found a negative entry in row {row} of {name}. An image carries a label (1, or a "
            f"weight above 0) or does not (0). Where -1 means that it does not, pass {name} > 0."
        )


def refuse_fractions(Y: scipy.sparse.csr_array, name: str = "Y", *, start: int = 0) -> None:
    """Reject entries between 0 and 1 of a label matrix whose first row has the number `start`."""
    if Y.dtype.kind != "f":
        return
    fractions = np.flatnonzero((Y.data > 0) & (Y.data < 1))
    if len(fractions):
        place = fractions[0]
        row = start + int(np.searchsorted(Y.indptr, place, side="right")) - 1
        raise InvalidInput(
            f"Row {row}, column {Y.indices[place]} of {name} is {Y.data[place]:.4g}. An image "
            "carries a label (1) or does not (0). If the entries are probabilities, pass "
            f"{name} >= 0.5."
        )


def any_nonzero(Y: Any) -> bool:
    """Whether a dense or sparse matrix has an entry that is not zero; looks no further."""
    if scipy.sparse.issparse(Y):
        return bool(Y.data.any())
    blocks = row_blocks(Y.shape[0], 8 * Y.shape[1], Y)
    return any(bool((Y[rows] != 0).any()) for rows in blocks)


@cache
def _is_narrow(dtype: Any) -> bool:
    """Whether float32 holds every value of an array's dtype (so that blocks use it)."""
    name = str(dtype).removeprefix("torch.")
    return name in {"float32", "float16", "bfloat16", "bool", "int8", "uint8", "int16", "uint16"}


def as_block(rows: Array, *, double: bool = False, finite: bool = True, name: str = "X") -> Array:
    """Rows as a float array to compute with, checked to be finite.

    Float32 where that loses nothing (float32 and narrower), else float64; `double`
    forces float64. ``finite=False`` leaves the check to the caller.
    """
    xp = namespace(rows)
    wide = double or not _is_narrow(rows.dtype)
    block = xp.astype(rows, xp.float64 if wide else xp.float32, copy=False)
    if finite:
        check_finite(block, name)
    return block


def check_finite(
    block: Array, name: str = "X", *, rows: Sequence[int] | np.ndarray | None = None
) -> None:
    """Refuse NaN and infinity; `rows` are the numbers by which an error names the rows."""
    xp = namespace(block)
    if bool(xp.all(xp.isfinite(block))):
        return
    bad = to_numpy(~xp.all(xp.isfinite(block), axis=1)).nonzero()[0]
    row = bad[0] if rows is None else rows[bad[0]]
    others = f" and {len(bad) - 1} more of the {len(block)} rows looked at" if len(bad) > 1 else ""
    raise InvalidInput(
        f"Input {name} contains NaN or infinity in row {row}{others}. Remove those images or "
        "compute their features again."
    )


def check_n_labels(Y: Array, n_labels: int) -> None:
    """Refuse labels (n×D) with another number of columns than were fitted."""
    if Y.shape[1] != n_labels:
        raise InvalidInput(
            f"Found {Y.shape[1]} labels where {n_labels} were fitted. A label added later needs no "
            "new space: neighbours carry it."
        )


def check_labels(Y: Array, n_labels: int | None = None) -> Array:
    """Y as a finite dense array or CSR matrix (n×D), with `n_labels` columns where given."""
    refuse_tag_lists(Y)
    Y = Y if hasattr(Y, "shape") else as_array(Y, "Y")
    Y = check_label_matrix(Y, Y.shape[0])
    if n_labels is not None:
        check_n_labels(Y, n_labels)
    return Y


def check_seed(random_state: Any) -> None:
    """Refuse what makes no generator. To make one takes long, of a small collection."""
    if not isinstance(random_state, Integral) or not 0 <= int(random_state) < 2**32:
        check_random_state(random_state)


def check_integer(name: str, value: Any, minimum: int = 1) -> int:
    """`value` as an int; refuse what is not a whole number from `minimum` on."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise InvalidInput(f"{name} must be a whole number from {minimum}; found {value!r}.")
    return int(value)


def check_groups(groups: Any, n_rows: int) -> np.ndarray:
    """The group of each image as a number from 0, int array of shape (n_rows,), on the host."""
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
            f"groups has no name in row {nameless[0]} (None or NaN). Give an image that belongs to "
            "no group one of its own."
        )
    return np.unique(named, return_inverse=True)[1].astype(np.int64, copy=False)
