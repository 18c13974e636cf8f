"""The record of a semantic space, which embeds images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tagkin.arrays import Array, as_block, namespace, row_blocks, smaller_blocks_when_full
from tagkin.arrays.linalg import matmul
from tagkin.arrays.records import storable
from tagkin.arrays.rules import Number, Whole
from tagkin.space.landmarks import Landmarks
from tagkin.space.solution import Projection
from tagkin.wording import count

__all__ = ["Space"]


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
