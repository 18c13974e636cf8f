"""The record of a logistic read-out of embeddings, which scores labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tagkin.arrays import Array, as_block, like, namespace, row_blocks
from tagkin.arrays.linalg import matmul
from tagkin.kernels import ArcCosine
from tagkin.records.forms import storable
from tagkin.records.rules import Floats, Indices, Number
from tagkin.transfer.neighbor_lists import on_device_of
from tagkin.wording import count

__all__ = ["MOST_LABELS", "KernelColumns", "Readout"]

# That a read-out learns: 32 MB of coefficients for 2,048 landmarks. Rarer labels score the logit of
# their share.
MOST_LABELS = 4096

_KERNEL = ArcCosine()


@storable
@dataclass(frozen=True, eq=False)
class Readout:
    """f(I, t) = bₜ + Σₛ αₛₜ k(a(z), a(zₛ)) over landmarks s, with a(z) = (z/ℓ, 1)."""

    landmarks: Annotated[Array, Floats("p", "m")]
    """Embeddings of the landmarks, shape (r, m)."""
    length: Annotated[float, Number(above=1e-30)]
    """ℓ, the mean length of the landmarks."""
    intercept: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """b, shape (D,)."""
    learned: Annotated[np.ndarray, Indices("fitted", below="D", ascending=True)]
    """The C labels that were learned; the others score the logit of their share."""
    coef: Annotated[np.ndarray, Floats("p", "fitted").kept_on_host()]
    """α, shape (r, C)."""
    regularization: Annotated[float, Number(above=0)]
    """λ."""

    @property
    def n_labels(self) -> int:
        """Number of labels, D."""
        return len(self.intercept)

    def decision_function(self, embeddings: Array) -> Array:
        """Return the logit of every label for images (n×m), shape (n, D)."""
        first_row = as_block(embeddings[:1], finite=False)
        columns = KernelColumns(embeddings, like(self.landmarks, first_row), self.length)
        xp = namespace(first_row)
        coef, intercept = (like(part, first_row) for part in (self.coef, self.intercept))
        shape = (embeddings.shape[0], self.n_labels)
        scores = xp.empty(shape, dtype=first_row.dtype, device=first_row.device)
        learned = on_device_of(self.learned, first_row)
        for rows, C in columns.blocks():
            scores[rows] = intercept
            if len(self.learned) == self.n_labels:
                scores[rows] += matmul(C, coef)
            elif len(self.learned):
                scores[rows][:, learned] += matmul(C, coef)
        return scores

    def describe(self) -> list[str]:
        """Return a sentence that describes the record."""
        r, n_learned = self.coef.shape
        return [f"Logistic regression of {count(n_learned, 'label')} on {count(r, 'landmark')}."]


class KernelColumns:
    """Kernel columns of embeddings against landmarks."""

    def __init__(self, embeddings: Array, landmarks: Array, length: float):
        self.embeddings, self.length = embeddings, length
        self.points = _append_one(landmarks, length)
        self.dtype = self.points.dtype
        self.n_images = embeddings.shape[0]

    def between_landmarks(self) -> Array:
        """Return kernel values (r×r) between the landmarks."""
        return _KERNEL(self.points)

    def compute(self, embeddings: Array) -> Array:
        """Return the columns (n×r) of embeddings (n×m)."""
        return _KERNEL(_append_one(as_block(embeddings, finite=False), self.length), self.points)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield consecutive rows and their columns (n×r)."""
        r, m = self.points.shape
        for rows in row_blocks(self.n_images, 16 * r + 16 * m, self.embeddings):
            yield rows, self.compute(self.embeddings[rows])


def _append_one(embeddings: Array, length: float) -> Array:
    """Return (z/ℓ, 1), shape (n, m + 1)."""
    xp = namespace(embeddings)
    ones = xp.ones((embeddings.shape[0], 1), dtype=embeddings.dtype, device=embeddings.device)
    return xp.concat([embeddings / length, ones], axis=1)
