"""Landmarks: images that represent all images under a kernel.

The Nyström approximation is K ≈ Φ Φᵀ with Φ = k(X, S) L⁻ᵀ, S the landmarks and L Lᵀ = k(S, S). It
is exact if every image is a landmark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from tagkin.arrays import (
    Array,
    as_block,
    check_features,
    check_finite,
    check_integer,
    namespace,
    row_blocks,
    to_numpy,
)
from tagkin.arrays.linalg import cholesky, pivoted_cholesky
from tagkin.arrays.records import storable
from tagkin.arrays.rules import Floats, Indices
from tagkin.errors import InvalidInput
from tagkin.kernels import Kernel, as_kernel
from tagkin.space.pivoting import pgso, rp_cholesky

__all__ = ["Landmarks"]

SELECTIONS = ("rpcholesky", "pgso", "uniform")


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

    @classmethod
    def choose(
        cls,
        X: Array,
        kernel: str | Kernel,
        n_landmarks: int,
        selection: str | Array,
        random_state: Any,
    ) -> Landmarks:
        """Choose landmarks among the rows of X (N×d), or take all rows if N ≤ `n_landmarks`."""
        from sklearn.utils import check_random_state  # here, because embedding needs no seed

        check_integer("n_landmarks", n_landmarks)
        kernel = as_kernel(kernel)
        if not isinstance(selection, str):
            return cls._check_given(selection, X, kernel)
        if selection not in SELECTIONS:
            raise InvalidInput(
                f"selection must be one of {', '.join(SELECTIONS)} or an array of landmarks; "
                f"found {selection!r}."
            )
        n = X.shape[0]
        rng = check_random_state(random_state)
        size = _n_candidates(n, n_landmarks, selection)
        candidates = np.sort(_draw_numbers(n, size, rng)) if size < n else np.arange(n)
        sample = X[candidates] if size < n else X
        for rows in row_blocks(len(candidates), 8 * X.shape[1], X):
            check_finite(as_block(sample[rows], finite=False), rows=candidates[rows])
        kernel = kernel.resolve(sample)
        _check_range(kernel, sample)
        chosen = np.arange(len(candidates))
        if n > n_landmarks:
            chosen = _select(selection, kernel, sample, n_landmarks, rng)
        if len(chosen) == 0:
            raise _zeros_error(sample)
        return cls(kernel, as_block(sample[chosen], finite=False), candidates[chosen])

    @classmethod
    def _check_given(cls, points: Array, X: Array, kernel: Kernel) -> Landmarks:
        points = check_features(points, name="selection")
        if points.shape[1] != X.shape[1]:
            raise InvalidInput(
                f"The landmarks given as selection have {points.shape[1]} features and X has "
                f"{X.shape[1]}."
            )
        points = as_block(points, name="selection")
        kernel = kernel.resolve(points)
        _check_range(kernel, points)
        # a copy, because the caller's array may change later
        return cls(kernel, namespace(points).asarray(points, copy=True), None)

    def precise(self, regularization: float) -> Landmarks:
        """Return these landmarks in float64 if float32 kernel columns are not precise enough.

        The condition of k(S, S), which has no bound for a kernel of low rank, amplifies rounding in
        the sums. Rounding must be small beside κ, in units of the kernel's values.
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

    def independent(self) -> tuple[Landmarks, Array]:
        """Return the landmarks that are linearly independent under the kernel, and k(S, S).

        A landmark is left out if, up to rounding, it is a combination of the others: a duplicate, a
        zero vector, or a landmark beyond the kernel's rank.
        """
        if isinstance(self.points, np.ndarray) and self.points.dtype == np.float32:
            # float32 is less than half the work, and enough if each landmark is clearly independent
            single = np.asarray(self.kernel(self.points))
            L = cholesky(single)
            if L is not None and np.diagonal(L).min() ** 2 > 0.01 * single.diagonal().max():
                return self, single.astype(np.float64)
        return self.factored()[:2]

    def factored(self) -> tuple[Landmarks, Array, Any]:
        """Return the `independent` landmarks, their k(S, S), and its Cholesky factor L."""
        gram = self.gram()
        xp = namespace(gram)
        largest = float(xp.max(xp.linalg.diagonal(gram)))
        if largest <= 0:
            raise _zeros_error(self.points)
        bound = max(self.rounding, gram.shape[0] * float(xp.finfo(xp.float64).eps)) * largest
        L = cholesky(gram)
        if L is not None and float(xp.min(xp.linalg.diagonal(L))) ** 2 > bound:
            return self, gram, L
        kept = np.sort(pivoted_cholesky(to_numpy(gram), bound)[1])
        index = xp.asarray(kept, device=gram.device)
        gram = gram[index][:, index]
        indices = None if self.indices is None else self.indices[kept]
        return replace(self, points=self.points[index], indices=indices), gram, cholesky(gram)


def _n_candidates(n: int, n_landmarks: int, selection: str) -> int:
    """Return the number of images among which landmarks are chosen.

    With random pivots these are enough to find rare images at a small part of the cost of a fit.
    Above twice the landmarks, at most 2²⁶ kernel values are computed.
    """
    if selection == "pgso":
        return n
    if selection == "uniform":
        return min(n, max(2048, n_landmarks))
    affordable = 2**26 // n_landmarks
    return min(n, max(2 * n_landmarks, min(max(2048, n // 10), affordable)))


def _draw_numbers(n: int, size: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw `size` different numbers below n."""
    if n < 2**16 or size > n // 8:
        return rng.choice(n, size=size, replace=False)  # which shuffles all n
    drawn = rng.randint(n, size=size + size // 4 + 64)
    _, first = np.unique(drawn, return_index=True)
    if len(first) < size:  # very unlikely
        return rng.choice(n, size=size, replace=False)
    return drawn[np.sort(first)[:size]]


def _check_range(kernel: Kernel, X: Array) -> None:
    """Reject features on which the kernel overflows."""
    xp = namespace(X)
    blocks = row_blocks(X.shape[0], 16 * X.shape[1], X)
    largest = max(float(xp.max(kernel.diagonal(X[rows]))) for rows in blocks)
    dtype = as_block(X[:1], finite=False).dtype
    if not largest < float(xp.finfo(dtype).max):
        raise InvalidInput(
            f"The kernel {kernel!r} leaves the range of {dtype} on these features (k(x, x) reaches "
            f"{largest:.3g}). Scale the features down, or use a normalised kernel."
        )


def _zeros_error(candidates: Array) -> InvalidInput:
    n, d = candidates.shape
    return InvalidInput(
        f"All {n} candidate landmarks are zero vectors (n_features={d}). Check how the features "
        "were made."
    )


def _select(
    selection: str, kernel: Kernel, X: Array, n_landmarks: int, rng: np.random.RandomState
) -> np.ndarray:
    """Return the indices of `n_landmarks` rows of X."""
    if selection == "uniform":
        return rng.choice(X.shape[0], size=n_landmarks, replace=False)
    if selection == "rpcholesky":
        # with a kernel of low rank, draws from the residual might not reach the full rank
        low_rank = kernel.max_rank(X.shape[1]) < math.inf
        n_pivots = n_landmarks if low_rank else min(n_landmarks, max(256, n_landmarks // 4))
        return rp_cholesky(kernel, as_block(X), n_landmarks, rng, n_pivots=n_pivots)
    xp = namespace(X)
    blocks = list(row_blocks(X.shape[0], 8 * X.shape[1], X))

    def column(j: int) -> Array:
        return xp.concat([kernel(X[rows], X[j : j + 1])[:, 0] for rows in blocks])

    diagonal = xp.concat([kernel.diagonal(X[rows]) for rows in blocks])
    return pgso(column, diagonal, max_rank=n_landmarks).pivots
