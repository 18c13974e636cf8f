"""Lists of neighbours as arrays (n×k), where index −1 at distance ∞ stands for none."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from array_api_compat import is_torch_array

from tagkin.arrays import Array, namespace, on_accelerator, to_numpy
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors

__all__ = [
    "checked_neighbors",
    "first_of_each",
    "label_rows",
    "nearest_first",
    "on_device_of",
    "on_host",
    "on_host_or_accelerator",
    "stacked",
    "sums_over_lists",
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


def sums_over_lists(
    labels: scipy.sparse.csr_array, indices: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Σₖ wₖ y(k, t), shape (n, D), for neighbours (n×k) among the labelled images (N×D)."""
    n, k = indices.shape
    where, carried = np.maximum(indices, 0).ravel(), labels
    if where.size < labels.shape[0]:  # few lists: most of the labels are not touched
        where, carried = np.arange(where.size), labels[where]
    ends = np.arange(0, n * k + 1, k)
    lists = scipy.sparse.csr_array((weights.ravel(), where, ends), shape=(n, carried.shape[0]))
    return np.asarray((lists @ carried).toarray())


def on_host(found: Neighbors) -> Neighbors:
    """The same as NumPy arrays."""
    return Neighbors(to_numpy(found.indices), to_numpy(found.distances))


def on_host_or_accelerator(found: Neighbors) -> Neighbors:
    """The same where they are computed with: as NumPy arrays, or on their accelerator."""
    return found if on_accelerator(found.indices) else on_host(found)


def on_device_of(values: Array, reference: Array) -> Array:
    """Values as an array of the reference's kind, on its device, in their own dtype."""
    if is_torch_array(values):
        return values if is_torch_array(reference) else to_numpy(values)
    if not is_torch_array(reference):
        return values
    host = to_numpy(values)
    host = host if host.flags.writeable else np.array(host)  # torch shares no others
    return namespace(reference).asarray(host, device=reference.device)


def label_rows(labels: scipy.sparse.csr_array, indices: np.ndarray) -> scipy.sparse.csr_array:
    """Rows of labels (N×D) by index; −1 stands for no image and has no label."""
    none = scipy.sparse.csr_array((1, labels.shape[1]), dtype=labels.dtype)
    return scipy.sparse.vstack([labels, none], format="csr")[indices]


def first_of_each(codes: Array) -> Array:
    """Where a value occurs for the first time in its row, for codes of shape (n, k)."""
    xp = namespace(codes)
    order = xp.argsort(codes, axis=1, stable=True)
    ordered = xp.take_along_axis(codes, order, axis=1)
    fresh = xp.ones(codes.shape, dtype=xp.bool, device=codes.device)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return xp.take_along_axis(fresh, xp.argsort(order, axis=1), axis=1)


def nearest_first(found: Neighbors) -> Neighbors:
    """Lists by distance; of equal distances the lower index first."""
    xp = namespace(found.indices)
    order = xp.argsort(found.indices, axis=1, stable=True)
    ordered = Neighbors(*(xp.take_along_axis(part, order, axis=1) for part in found))
    order = xp.argsort(ordered.distances, axis=1, stable=True)
    return Neighbors(*(xp.take_along_axis(part, order, axis=1) for part in ordered))


def stacked(parts: list[Neighbors]) -> Neighbors:
    """Lists of different lengths, one above the other."""
    xp = namespace(*(part.indices for part in parts))
    width = max(part.indices.shape[1] for part in parts)

    def filled(part: Array, value: float) -> Array:
        shape = part.shape[0], width - part.shape[1]
        padding = xp.full(shape, value, dtype=part.dtype, device=part.device)
        return xp.concat([part, padding], axis=1)

    return Neighbors(
        xp.concat([filled(part.indices, -1) for part in parts]),
        xp.concat([filled(part.distances, np.inf) for part in parts]),
    )
