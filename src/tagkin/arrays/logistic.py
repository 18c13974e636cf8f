"""The logistic function and its inverse.

`scipy.special` has both, but importing it takes as long as a short command may.
"""

from __future__ import annotations

from typing import overload

import numpy as np
from array_api_compat import is_torch_array

from tagkin.arrays.namespaces import Array, namespace

__all__ = ["expit", "logit"]


@overload
def expit(values: np.ndarray) -> np.ndarray: ...


@overload
def expit(values: Array) -> Array: ...


def expit(values: Array) -> Array:
    """Return the logistic function 1 / (1 + exp(−x)) of each value."""
    if is_torch_array(values):
        return namespace(values).sigmoid(values)
    out = np.array(values, dtype=np.result_type(values, np.float32))
    np.negative(out, out=out)
    with np.errstate(over="ignore"):  # 1 / (1 + ∞) is 0
        np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


def logit(shares: np.ndarray) -> np.ndarray:
    """Return log(p / (1 − p)), the inverse of `expit`."""
    return np.log(shares) - np.log1p(-shares)
