"""What every textual view checks."""

from __future__ import annotations

import numpy as np

from tagkin.arrays import Array, check_label_matrix
from tagkin.errors import InvalidInput


def check_n_labels(Y: Array, n_labels: int) -> None:
    """Refuse labels (n×D) with another number of columns than were fitted."""
    if Y.shape[1] != n_labels:
        raise InvalidInput(
            f"Found {Y.shape[1]} labels where {n_labels} were fitted. A label added later needs no "
            "new space: neighbours carry it."
        )


def check_labels(Y: Array, n_labels: int | None = None) -> Array:
    """Y as a finite dense array or CSR matrix (n×D), with `n_labels` columns where given."""
    Y = Y if hasattr(Y, "shape") else np.asarray(Y)
    Y = check_label_matrix(Y, Y.shape[0])
    if n_labels is not None:
        check_n_labels(Y, n_labels)
    return Y
