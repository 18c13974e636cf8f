"""Labels that are known of an image: present, rejected, or absent from a complete image."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, to_numpy
from tagkin.arrays.labels import as_labels, check_names
from tagkin.errors import InvalidInput

__all__ = ["check_complete", "check_rejections", "count_known"]


def check_complete(complete: Any, n_images: int) -> np.ndarray | None:
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
    labels: scipy.sparse.csr_array,
    rejected: scipy.sparse.csr_array | None,
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
    rejected: Array, labels: scipy.sparse.csr_array, names: np.ndarray | None = None
) -> scipy.sparse.csr_array:
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
