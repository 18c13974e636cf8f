"""Lists of neighbours as arrays (n×k), where index −1 at distance ∞ stands for none."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from array_api_compat import is_torch_array

from tagkin.arrays import Array, namespace, to_numpy
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors

__all__ = [
    "beside",
    "checked_neighbors",
    "compressed",
    "first_of_each",
    "on_host",
    "rows_of",
    "stacked",
]


def checked_neighbors(indices: Array, distances: Array, n_points: int) -> Neighbors:
    """Neighbours among `n_points` images, on the host, as a method can use them."""
    indices, distances = to_numpy(indices), to_numpy(distances)
    if indices.ndim != 2 or indices.shape != distances.shape or not indices.size:
        raise InvalidInput(
            "indices and distances must be of one shape (images × neighbours); found "
            f"{indices.shape} and {distances.shape}."
        )
    if indices.dtype.kind not in "iu":
        raise InvalidInput(f"indices must be whole numbers; found {indices.dtype}.")
    outside = (indices < -1) | (indices >= n_points)
    if outside.any():
        raise InvalidInput(
            f"Found a neighbour with index {int(indices[outside][0])} among {n_points} images. "
            "Indices are rows of the images that were fitted, or −1 for none."
        )
    there = indices >= 0
    if not np.isfinite(distances[there]).all():
        raise InvalidInput("Found NaN or infinity among the distances to neighbours.")
    distances = np.where(there, distances, np.asarray(np.inf, dtype=np.float32))
    return Neighbors(indices.astype(np.int64, copy=False), distances)


def on_host(found: Neighbors) -> Neighbors:
    """The same as NumPy arrays."""
    return Neighbors(to_numpy(found.indices), to_numpy(found.distances))


def beside(values: np.ndarray, reference: Array) -> Array:
    """Values as an array of the reference's kind, on its device, in their own dtype."""
    if not is_torch_array(reference):
        return values
    return namespace(reference).asarray(values, device=reference.device)


def rows_of(labels: scipy.sparse.csr_array, indices: np.ndarray) -> scipy.sparse.csr_array:
    """Rows of labels (N×D) by index; −1 stands for no image and has no label."""
    nobody = scipy.sparse.csr_array((1, labels.shape[1]), dtype=labels.dtype)
    return scipy.sparse.vstack([labels, nobody], format="csr")[indices]


def first_of_each(codes: np.ndarray) -> np.ndarray:
    """Where a value occurs for the first time in its row, for codes of shape (n, k)."""
    order = np.argsort(codes, axis=1, kind="stable")
    ordered = np.take_along_axis(codes, order, axis=1)
    fresh = np.ones(codes.shape, dtype=bool)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.empty_like(fresh)
    np.put_along_axis(first, order, fresh, axis=1)
    return first


def compressed(found: Neighbors, kept: np.ndarray, width: int | None = None) -> Neighbors:
    """Lists of those kept (n×k), in the order that they have, filled up with index −1.

    They are `width` long at most; without it, as long as the longest.
    """
    if width is None:
        width = max(int(kept.sum(axis=1).max(initial=0)), 1)
    order = np.argsort(~kept, axis=1, kind="stable")[:, :width]
    kept = np.take_along_axis(kept, order, axis=1)
    indices, distances = (np.take_along_axis(part, order, axis=1) for part in found)
    return Neighbors(
        np.where(kept, indices, -1), np.where(kept, distances, distances.dtype.type(np.inf))
    )


def stacked(parts: list[Neighbors]) -> Neighbors:
    """Lists of different lengths, one above the other."""
    width = max(part.indices.shape[1] for part in parts)

    def filled(part: np.ndarray, value: float) -> np.ndarray:
        return np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=value)

    return Neighbors(
        np.concatenate([filled(part.indices, -1) for part in parts]),
        np.concatenate([filled(part.distances, np.inf) for part in parts]),
    )
