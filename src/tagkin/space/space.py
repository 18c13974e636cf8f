"""The semantic space as a record: what embeds images.

Landmarks are images that represent all images under a kernel. The Nyström approximation is
K ≈ Φ Φᵀ with Φ = k(X, S) L⁻ᵀ, S the landmarks and L Lᵀ = k(S, S). It is exact if every image is a
landmark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from tagkin.arrays import (
    Array,
    as_block,
    check_finite,
    namespace,
    row_blocks,
    smaller_blocks_when_full,
    to_numpy,
)
from tagkin.arrays.linalg import cholesky, matmul, pivoted_cholesky
from tagkin.errors import InvalidInput
from tagkin.kernels import Kernel
from tagkin.records.forms import storable
from tagkin.records.rules import Floats, Indices, Number, Whole
from tagkin.wording import count

__all__ = ["Landmarks", "Projection", "Space", "only_zeros"]


@storable
@dataclass(frozen=True)
class Landmarks:
    """Chosen images and the kernel that compares others with them.

    Attributes
    ----------
    kernel : Kernel, with its constants resolved
    points : array of shape (r, d), float32 or float64
    indices : int array of shape (r,), or None
        Rows of the landmarks among the images; None if the caller passed landmarks.
    """

    kernel: Kernel
    points: Annotated[Array, Floats("r", "d")]
    indices: Annotated[np.ndarray | None, Indices("r")]

    def precise(self, regularization: float) -> Landmarks:
        """Return these landmarks in float64 if float32 kernel columns are not precise enough.

        The condition of k(S, S), which has no bound for a kernel of low rank, amplifies rounding in
        the sums. Rounding must be small compared with κ, in units of the kernel's values.
        """
        xp = namespace(self.points)
        largest = float(xp.max(self.kernel.diagonal(self.points)))
        low_rank = self.kernel.max_rank(self.points.shape[1]) < math.inf
        if low_rank or largest > 20 * regularization:
            return replace(self, points=as_block(self.points, double=True))
        return self

    def first(self, n: int | None) -> Landmarks:
        """Return the first n landmarks in the order in which they were chosen; all if n is None."""
        indices = None if self.indices is None else self.indices[:n]
        return replace(self, points=self.points[:n], indices=indices)

    @property
    def rounding(self) -> float:
        """Relative precision of kernel values against these landmarks."""
        return 8 * float(namespace(self.points).finfo(self.points.dtype).eps)

    def gram(self) -> Array:
        """Return k(S, S) in float64, shape (r, r)."""
        return self.kernel(as_block(self.points, double=True, finite=False))

    def columns(
        self, X: Array, *, rows: Sequence[int] | None = None, less: Array | None = None
    ) -> Array:
        """Return k(X, S) minus `less` (r,), shape (n, r), as one block.

        `rows` are the numbers of X's rows for error messages.

        Parameters
        ----------
        X : array of shape (n, d)
            Features.
        rows : sequence of int, optional
            Numbers of the rows of X, for error messages.
        less : array of shape (r,), optional
            What to subtract from each column.
        """
        try:
            if less is None:
                return self.kernel(X, self.points)
            return self.kernel.less(X, self.points, less)
        except InvalidInput:
            check_finite(as_block(X, finite=False), rows=rows)
            raise

    def mean_columns(self, X: Array) -> Array:
        """Return the mean of k(x, S) over up to 256 images of X (n×d), shape (r,), in float64."""
        rows = range(0, X.shape[0], -(-X.shape[0] // 256))
        sample = self.columns(X[:: rows.step], rows=rows)
        xp = namespace(sample)
        return xp.mean(xp.astype(sample, xp.float64), axis=0)

    def factor(self) -> tuple[Landmarks, Array, Array]:
        """Return the landmarks that are linearly independent, their k(S, S), and its factor L.

        A landmark is left out if, up to rounding, it is a combination of the others: a duplicate, a
        zero vector, or a landmark beyond the kernel's rank.
        """
        gram = self.gram()
        xp = namespace(gram)
        largest = float(xp.max(xp.linalg.diagonal(gram)))
        if largest <= 0:
            raise only_zeros(self.points)
        bound = max(self.rounding, gram.shape[0] * float(xp.finfo(xp.float64).eps)) * largest
        L = cholesky(gram)
        if L is not None and float(xp.min(xp.linalg.diagonal(L))) ** 2 > bound:
            return self, gram, L
        kept = np.sort(pivoted_cholesky(to_numpy(gram), bound)[1])
        index = xp.asarray(kept, device=gram.device)
        gram = gram[index][:, index]
        indices = None if self.indices is None else self.indices[kept]
        L = cholesky(gram)
        assert L is not None, "the pivots of a Cholesky factor are independent"
        return replace(self, points=self.points[index], indices=indices), gram, L


@storable
@dataclass(frozen=True)
class Projection:
    """The solved space: ψ(x) = (k(x, S) − kernel_mean) coefficients.

    The ridge regression of the text features from the visual kernel is text_mean + ψ readout.
    `correlations` is None without the rotation to canonical directions.
    """

    correlations: Annotated[Array | None, Floats("m")]
    coefficients: Annotated[Array, Floats("r", "m")]
    kernel_mean: Annotated[Array, Floats("r")]
    text_mean: Annotated[Array, Floats("q")]
    readout: Annotated[Array, Floats("m", "q")]


@storable
@dataclass(frozen=True, eq=False)
class Space:
    """A solved space: ψ(x) = (k(x, S) − kernel_mean) coefficients."""

    landmarks: Landmarks
    projection: Projection
    regularization: Annotated[float, Number(above=0)]
    """κ."""
    n_images: Annotated[int, Whole()]
    """Images learned from."""

    @property
    def n_dimensions(self) -> int:
        """Number of dimensions, m."""
        return int(self.projection.coefficients.shape[1])

    @smaller_blocks_when_full
    def transform(self, X: Array) -> Array:
        """Return embeddings ψ (n×m) of features X (n×d), in X's precision."""
        points, projection = self.landmarks.points, self.projection
        xp = namespace(X, points)
        r, m = projection.coefficients.shape
        one = as_block(X[:1])
        dtype = xp.result_type(one, points)
        coefficients = xp.astype(projection.coefficients, dtype, copy=False)
        mean = xp.astype(projection.kernel_mean, dtype, copy=False)
        psi = xp.empty((X.shape[0], m), dtype=one.dtype, device=X.device)
        for rows in row_blocks(X.shape[0], 8 * (r + X.shape[1]), X):
            numbers = range(rows.start, rows.stop)
            K = self.landmarks.columns(X[rows], rows=numbers, less=mean)
            psi[rows] = xp.astype(matmul(K, coefficients), one.dtype, copy=False)
        return psi

    def describe(self) -> list[str]:
        """Return a few sentences that describe the space."""
        r, d = self.landmarks.points.shape
        leading = ""
        if self.projection.correlations is not None:
            best = ", ".join(f"{float(c):.3f}" for c in self.projection.correlations[:5])
            leading = f"; the leading correlations are {best}"
        return [
            f"Learned from {count(self.n_images, 'image')} with {count(d, 'feature')}.",
            f"{count(self.n_dimensions, 'dimension')}{leading}.",
            f"{count(r, 'landmark')} under the kernel {self.landmarks.kernel!r}.",
        ]


def only_zeros(candidates: Array) -> InvalidInput:
    """Return the error for landmarks that are all zero vectors."""
    n, d = candidates.shape
    return InvalidInput(
        f"All {n} candidate landmarks are zero vectors (n_features={d}). Check how the features "
        "were made."
    )
