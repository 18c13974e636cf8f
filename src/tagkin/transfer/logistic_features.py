"""Features of images for logistic regression: kernel columns in uncorrelated directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from array_api_compat import device

from tagkin.arrays import Array, like, namespace, on_accelerator, to_numpy
from tagkin.arrays.linalg import eigh, matmul, solve_triangular
from tagkin.arrays.namespaces import DType

__all__ = ["Basis", "Columns", "Features", "orthogonal_basis"]

_STORED_BYTES = 2**30  # of features stored while learning; larger ones are recomputed


class Columns(Protocol):
    """Kernel columns (N×r), computed block by block in every pass."""

    n_images: int
    dtype: DType
    """Floating dtype of the columns."""

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield consecutive rows and their columns (n×r)."""
        ...


@dataclass(frozen=True)
class Basis:
    """Directions T (r×p) in which the features of a sample of images are uncorrelated."""

    directions: Array
    """T. The features are (C − c̄) T."""
    mean: Array
    """c̄ (r,), the mean of the sample."""
    squares: np.ndarray
    """Estimated sum of squares of each feature over all N images, shape (p,)."""


def orthogonal_basis(sample: Array, gram_factor: Array, n_images: int, least: float) -> Basis:
    """Compute directions from a sample's columns (n×r) and L with L Lᵀ = k(S, S).

    Directions whose sum of squares over all images is below `least` are left out. Directions are
    orthogonal in float64, and uncorrelated in the precision of the sample.
    """
    xp = namespace(sample)
    mean = xp.mean(sample, axis=0, dtype=xp.float64)
    identity = xp.eye(gram_factor.shape[0], dtype=xp.float64, device=gram_factor.device)
    inverse = solve_triangular(gram_factor, identity, transposed=True)  # L⁻ᵀ
    features = matmul(sample - like(mean, sample), like(inverse, sample))
    products = xp.astype(matmul(features.T, features), xp.float64)
    squares, vectors = eigh(products * (n_images / sample.shape[0]))
    used = to_numpy(squares) > least
    if not used.any():
        used[-1] = True
    index = xp.asarray(np.flatnonzero(used), device=sample.device)
    return Basis(matmul(inverse, vectors[:, index]), mean, to_numpy(squares)[used])


class Features:
    """Features (C − c̄) T, shape (N, p).

    They are stored if memory allows, because they are fewer than the columns. Otherwise products
    use the columns, with T applied before or after.
    """

    def __init__(self, columns: Columns, basis: Basis):
        self.n_images, self._columns, self.squares = columns.n_images, columns, basis.squares
        xp = namespace(basis.directions)
        # more precision than the columns have is wasted
        self._directions = xp.astype(basis.directions, columns.dtype)
        self._mean = like(basis.mean, self._directions)
        self._exact = to_numpy(basis.directions).astype(np.float64), to_numpy(basis.mean)
        size = 4 * self.n_images * self._directions.shape[1]
        self._stored: list[tuple[slice, Array]] | None = None
        if size <= _STORED_BYTES or on_accelerator(self._directions):
            self._stored = [
                (rows, matmul(C - self._mean, self._directions)) for rows, C in columns.blocks()
            ]

    @property
    def reference(self) -> Array:
        """An array with the type, device and precision of the features."""
        return self._directions

    def margins(self, w: np.ndarray, b: np.ndarray) -> Array:
        """Return (C − c̄) T w + b, shape (N, B)."""
        xp = namespace(self.reference)
        coef, offset = like(w, self.reference), like(b, self.reference)
        if self._stored is None:
            coef = matmul(self._directions, coef)
            offset = offset - matmul(self._mean[None], coef)[0]
        shape = self.n_images, coef.shape[1]
        out = xp.empty(shape, dtype=coef.dtype, device=device(coef))
        for rows, block in self._blocks():
            matmul(block, coef, out=out[rows])
            out[rows] += offset
        return out

    def gradient(
        self, errors: Callable[[slice], tuple[Array, np.ndarray]], n_labels: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of errors times features (p×B) and of errors (B,).

        `errors` returns the errors of a block of images (n×B) and their sums.
        """
        n_columns = self._directions.shape[0 if self._stored is None else 1]
        by_column, total = np.zeros((n_columns, n_labels)), np.zeros(n_labels)
        for rows, block in self._blocks():
            block_errors, sums = errors(rows)
            by_column += to_numpy(matmul(block.T, block_errors))
            total += sums
        if self._stored is not None:
            return by_column, total
        centred = by_column - np.outer(to_numpy(self._mean), total)
        return to_numpy(matmul(self._directions.T, like(centred, self.reference))), total

    def of_columns(self, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (r×B) and intercepts (B,) for the columns instead of the features."""
        directions, mean = self._exact
        coef = directions @ w
        return coef, b - mean @ coef

    def _blocks(self) -> Iterable[tuple[slice, Array]]:
        return self._columns.blocks() if self._stored is None else self._stored
