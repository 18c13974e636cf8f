"""Lists of neighbours as arrays (n×k). Index −1 at distance ∞ marks a missing neighbour."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from array_api_compat import is_torch_array

from tagkin.arrays import Array, namespace, on_accelerator, to_numpy
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors

__all__ = [
    "beyond_nearest",
    "check_neighbors",
    "distance_weights",
    "first_of_each",
    "label_rows",
    "on_device_of",
    "on_host",
    "on_host_or_accelerator",
    "stack_lists",
    "sums_over_lists",
]


def check_neighbors(indices: Array, distances: Array, n_points: int) -> Neighbors:
    """Check neighbours among `n_points` images and return them on the host."""
    indices, distances = to_numpy(indices), to_numpy(distances)
    if indices.ndim != 2 or indices.shape != distances.shape or not indices.size:
        raise InvalidInput(
            "indices and distances must be 2-D (images × neighbours), of the same shape; found "
            f"{indices.shape} and {distances.shape}."
        )
    if indices.dtype.kind not in "iu":
        raise InvalidInput(f"indices must be whole numbers; found {indices.dtype}.")
    outside = (indices < -1) | (indices >= n_points)
    if outside.any():
        raise InvalidInput(
            f"Found a neighbour with index {int(indices[outside][0])} among {n_points} images. "
            "Indices are rows of the fitted images, or −1 for a missing neighbour."
        )
    there = indices >= 0
    if not np.isfinite(distances[there]).all():
        raise InvalidInput("Found NaN or infinity among the distances to neighbours.")
    distances = np.where(there, distances, np.asarray(np.inf, dtype=np.float32))
    return Neighbors(indices.astype(np.int64, copy=False), distances)


def sums_over_lists(
    labels: scipy.sparse.csr_array, indices: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return Σₖ wₖ y(k, t), shape (n, D), for neighbours (n×k) among the labelled images (N×D)."""
    n, k = indices.shape
    rows, used_labels = np.maximum(indices, 0).ravel(), labels
    if rows.size < labels.shape[0]:  # few lists use few of the label rows
        rows, used_labels = np.arange(rows.size), labels[rows]
    ends = np.arange(0, n * k + 1, k)
    lists = scipy.sparse.csr_array((weights.ravel(), rows, ends), shape=(n, used_labels.shape[0]))
    return np.asarray((lists @ used_labels).toarray())


def on_host(neighbors: Neighbors) -> Neighbors:
    """Return neighbours as NumPy arrays."""
    return Neighbors(to_numpy(neighbors.indices), to_numpy(neighbors.distances))


def on_host_or_accelerator(neighbors: Neighbors) -> Neighbors:
    """Return neighbours on their accelerator, or else as NumPy arrays."""
    return neighbors if on_accelerator(neighbors.indices) else on_host(neighbors)


def on_device_of(values: Array, reference: Array) -> Array:
    """Convert values to the reference's array type and device; keep their dtype."""
    if is_torch_array(values):
        return values if is_torch_array(reference) else to_numpy(values)
    if not is_torch_array(reference):
        return values
    host = to_numpy(values)
    host = (
        host if host.flags.writeable else np.array(host)
    )  # torch shares memory with writeable arrays only
    return namespace(reference).asarray(host, device=reference.device)


def label_rows(labels: scipy.sparse.csr_array, indices: np.ndarray) -> scipy.sparse.csr_array:
    """Return rows of labels (N×D) by index; index −1 gives an empty row."""
    no_label = scipy.sparse.csr_array((1, labels.shape[1]), dtype=labels.dtype)
    return scipy.sparse.vstack([labels, no_label], format="csr")[indices]


def first_of_each(codes: Array) -> Array:
    """Return a mask (n, k) of each code's first occurrence in its row."""
    xp = namespace(codes)
    order = xp.argsort(codes, axis=1, stable=True)
    ordered = xp.take_along_axis(codes, order, axis=1)
    fresh = xp.ones(codes.shape, dtype=xp.bool, device=codes.device)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return xp.take_along_axis(fresh, xp.argsort(order, axis=1), axis=1)


def stack_lists(parts: list[Neighbors]) -> Neighbors:
    """Stack lists of different lengths; pad the shorter ones."""
    xp = namespace(*(part.indices for part in parts))
    width = max(part.indices.shape[1] for part in parts)

    def pad(part: Array, value: float) -> Array:
        shape = part.shape[0], width - part.shape[1]
        padding = xp.full(shape, value, dtype=part.dtype, device=part.device)
        return xp.concat([part, padding], axis=1)

    return Neighbors(
        xp.concat([pad(part.indices, -1) for part in parts]),
        xp.concat([pad(part.distances, np.inf) for part in parts]),
    )


def distance_weights(distances: Array, decay: float) -> Array:
    """Return π = softmax(−λ d) over the neighbours of each image, shape (N, K).

    An infinite distance stands for a missing neighbour, whose weight is 0.
    """
    xp = namespace(distances)
    weights = xp.exp(-decay * beyond_nearest(distances)) * xp.isfinite(distances)
    total = xp.sum(weights, axis=1, keepdims=True)
    return weights / xp.where(total > 0, total, xp.ones_like(total))


def beyond_nearest(distances: Array) -> Array:
    """Subtract each image's least distance; missing neighbours get 0."""
    xp = namespace(distances)
    least = xp.min(distances, axis=1, keepdims=True)
    least = xp.where(xp.isfinite(least), least, xp.zeros_like(least))
    return xp.where(xp.isfinite(distances), distances, least) - least
