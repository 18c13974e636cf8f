"""The same numbers at other places in memory: what a result must not depend on."""

from collections.abc import Callable

import numpy as np


def one_element_on(array: np.ndarray) -> np.ndarray:
    """A view that starts one element after where memory is aligned for vector registers."""
    room = np.empty(array.size + 1, array.dtype)
    view = room[1:].reshape(array.shape)
    view[...] = array
    return view


def one_byte_on(array: np.ndarray) -> np.ndarray:
    """A view that is not even aligned for its own numbers, as records in a file may be."""
    room = np.empty(array.nbytes + 1, np.uint8)
    view = room[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def with_gaps(array: np.ndarray) -> np.ndarray:
    """Every third column of every second row of a larger array."""
    rows, columns = array.shape
    room = np.full((2 * rows, 3 * columns), 7, array.dtype)
    room[::2, 1::3] = array
    return room[::2, 1::3]


def backwards(array: np.ndarray) -> np.ndarray:
    """A view with negative strides."""
    return np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1]


LAYOUTS: list[Callable[[np.ndarray], np.ndarray]] = [
    np.asfortranarray,
    one_element_on,
    one_byte_on,
    with_gaps,
    backwards,
]
