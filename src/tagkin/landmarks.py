"""From a kernel to explicit features: choose landmark images, then map every image by them.

A landmark map approximates a kernel by K ≈ Φ Φᵀ with Φ = k(X, S) L⁻ᵀ, S the landmarks and
L Lᵀ = k(S, S): the Nyström approximation, exact when every image is a landmark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.linalg
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from tagkin.arrays import (
    Array,
    as_block,
    check_features,
    cholesky,
    namespace,
    row_blocks,
    solve_triangular,
    to_numpy,
)
from tagkin.errors import InvalidInput
from tagkin.kernels import Kernel, as_kernel

__all__ = ["LandmarkMap", "Landmarks", "PartialGramSchmidt", "pgso", "rp_cholesky"]

SELECTIONS = ("rpcholesky", "pgso", "uniform")


# --- partial Gram–Schmidt ----------------------------------------------------------------


@dataclass(frozen=True)
class PartialGramSchmidt:
    """What `pgso` found: K ≈ R Rᵀ.

    Attributes
    ----------
    pivots : int array of shape (m,)
        The chosen rows, in the order in which they were chosen.
    factor : array of shape (N, m)
        R. Its rows at `pivots` form a lower triangular matrix L with L Lᵀ = K[pivots, pivots].
    residual_trace : float
        trace(K − R Rᵀ).
    """

    pivots: np.ndarray
    factor: Array
    residual_trace: float


def pgso(
    column: Callable[[int], Array],
    diagonal: Array,
    *,
    max_rank: int | None = None,
    eta: float = 0.0,
) -> PartialGramSchmidt:
    """Partial Gram–Schmidt orthogonalisation, the same as pivoted incomplete Cholesky.

    Each step takes the row with the largest residual diagonal (the first on ties), from
    kernel columns alone: K itself is never formed. It stops at `max_rank`, when the trace
    of the residual is at most `eta`, or when nothing but rounding is left.

    Parameters
    ----------
    column : function
        ``column(j)`` returns column j of K, shape (N,).
    diagonal : array of shape (N,)
        The diagonal of K.
    max_rank : int, default all
    eta : float
        Absolute bound on the residual trace.
    """
    xp = namespace(diagonal)
    residual = xp.astype(diagonal, diagonal.dtype, copy=True)
    n = residual.shape[0]
    max_rank = n if max_rank is None else min(max_rank, n)
    rounding = n * float(xp.finfo(residual.dtype).eps) * max(0.0, float(xp.max(residual)))
    # Rᵀ, so that each step reads and writes whole rows
    factor = xp.empty((max_rank, n), dtype=residual.dtype, device=residual.device)
    pivots: list[int] = []
    while len(pivots) < max_rank and float(xp.sum(residual)) > eta:
        pivot = int(xp.argmax(residual))
        largest = float(residual[pivot])
        if largest <= rounding:
            break
        rank = len(pivots)
        row = xp.astype(column(pivot), residual.dtype, copy=True)
        row -= factor[:rank, pivot] @ factor[:rank]
        row /= largest**0.5
        # earlier pivots are spanned exactly; what rounding left there would break L's triangle
        row[pivots] = 0.0
        row[pivot] = largest**0.5
        factor[rank] = row
        residual -= row * row
        residual[pivot] = 0.0
        pivots.append(pivot)
    return PartialGramSchmidt(
        pivots=np.asarray(pivots, dtype=np.intp),
        factor=factor[: len(pivots)].T,
        residual_trace=max(0.0, float(xp.sum(residual))),
    )


# --- randomly pivoted Cholesky -----------------------------------------------------------


def rp_cholesky(
    kernel: Kernel, X: Array, max_rank: int, random_state: np.random.RandomState
) -> np.ndarray:
    """Pivots of randomly pivoted Cholesky, drawn in blocks by rejection sampling.

    Each pivot is drawn with probability proportional to the residual diagonal given all
    pivots before it (Chen, Epperly, Tropp, Webber 2023). A block of proposals is drawn from
    the present residual and thinned so that what is accepted has exactly that distribution
    (Epperly, Tropp, Webber 2024); the work is then matrix products.

    Parameters
    ----------
    X : array of shape (N, d)
    max_rank : int
        Fewer pivots come back where the kernel matrix has a smaller numerical rank.

    Returns
    -------
    pivots : int array of shape (m,)
    """
    xp = namespace(X)
    n = X.shape[0]
    diagonal = to_numpy(kernel.diagonal(X))
    residual = diagonal.copy()
    factor = None
    # below this a residual is made of rounding
    floor = 64 * float(xp.finfo(as_block(X[:1]).dtype).eps) * diagonal
    residual[residual <= floor] = 0.0
    pivots: list[int] = []
    n_proposals = int(np.clip(max_rank // 4, 8, 512))
    while len(pivots) < max_rank and residual.sum() > 0:
        proposals = random_state.choice(n, size=n_proposals, p=residual / residual.sum())
        block = to_numpy(kernel(X[proposals])).astype(np.float64)
        if factor is not None:
            known = factor[: len(pivots), proposals]
            block -= to_numpy(known.T @ known)
        accepted, L = _thin(block, max_rank - len(pivots), random_state)
        if len(accepted) == 0:
            # proposals with no residual left: their kernel values are rounding alone
            residual[proposals] = 0.0
            continue
        chosen = proposals[accepted]
        columns = kernel(X, X[chosen])
        if factor is None:
            factor = xp.empty((max_rank, n), dtype=columns.dtype, device=columns.device)
        known = factor[: len(pivots)]
        columns -= known.T @ known[:, chosen]
        # L is small and well conditioned; its inverse turns the rest into a product
        inverse = xp.asarray(np.linalg.inv(L), dtype=columns.dtype, device=columns.device)
        new = inverse @ columns.T
        factor[len(pivots) : len(pivots) + len(chosen)] = new
        residual -= to_numpy(xp.sum(new * new, axis=0))
        pivots.extend(chosen.tolist())
        residual[residual <= floor] = 0.0
        residual[pivots] = 0.0
    return np.asarray(pivots, dtype=np.intp)


def _thin(
    block: np.ndarray, most: int, random_state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Which of the proposals to accept, at `most` so many, given their residual block (b×b).

    Returns their indices and the Cholesky factor of their part of the block.
    """
    proposed = np.diagonal(block).copy()
    left = proposed.copy()
    smallest = 1e-4 * proposed  # of a residual so reduced, float32 blocks keep too few digits
    factor = np.empty_like(block)  # rows: the Cholesky columns of those accepted so far
    accepted: list[int] = []
    for i, chance in enumerate(random_state.uniform(size=len(block))):
        if len(accepted) < most and left[i] > smallest[i] and chance * proposed[i] < left[i]:
            known = factor[: len(accepted)]
            column = (block[i] - known[:, i] @ known) / np.sqrt(left[i])
            factor[len(accepted)] = column
            left -= column * column
            accepted.append(i)
    return np.asarray(accepted, dtype=np.intp), np.tril(factor[: len(accepted), accepted].T)


# --- landmarks ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Landmarks:
    """Chosen images and the kernel that compares others with them.

    Attributes
    ----------
    kernel : Kernel, with its constants settled
    points : array of shape (r, d), float32 or float64
    indices : int array of shape (r,), or None
        Rows of the images they were chosen among; None where they were given.
    """

    kernel: Kernel
    points: Array
    indices: np.ndarray | None

    @classmethod
    def choose(
        cls,
        X: Array,
        kernel: str | Kernel,
        n_landmarks: int,
        selection: str | Array,
        random_state: Any,
    ) -> Landmarks:
        """Landmarks among the rows of X (N×d); all of them where N ≤ `n_landmarks`."""
        if n_landmarks < 1:
            raise InvalidInput(f"n_landmarks must be at least 1; found {n_landmarks}.")
        kernel = as_kernel(kernel)
        if not isinstance(selection, str):
            return cls._given(selection, X, kernel)
        if selection not in SELECTIONS:
            raise InvalidInput(
                f"selection must be one of {', '.join(SELECTIONS)} or an array of landmarks; "
                f"found {selection!r}."
            )
        rng = check_random_state(random_state)
        n = X.shape[0]
        candidates = np.arange(n)
        size = n if selection == "pgso" else _n_candidates(n, n_landmarks)
        if size < n:
            candidates = np.sort(rng.choice(n, size=size, replace=False))
        sample = X if len(candidates) == n else X[candidates]
        kernel = kernel.settle(sample)
        if n > n_landmarks:
            candidates = candidates[_select(selection, kernel, sample, n_landmarks, rng)]
        if len(candidates) == 0:
            raise _only_zeros(sample)
        return cls(kernel, as_block(X[candidates]), candidates)

    @classmethod
    def _given(cls, points: Array, X: Array, kernel: Kernel) -> Landmarks:
        points = check_features(points, name="selection")
        if points.shape[1] != X.shape[1]:
            raise InvalidInput(
                f"The landmarks given as selection have {points.shape[1]} features and X has "
                f"{X.shape[1]}."
            )
        return cls(kernel.settle(points), as_block(points), None)

    @property
    def rounding(self) -> float:
        """Relative precision of kernel values against these landmarks."""
        return 8 * float(namespace(self.points).finfo(self.points.dtype).eps)

    def gram(self) -> Array:
        """k(S, S) in float64, shape (r, r)."""
        return self.kernel(as_block(self.points, double=True))

    def columns(self, X: Array) -> Array:
        """k(X, S), shape (n, r): one block, as large as X asks for."""
        return self.kernel(X, self.points)

    def independent(self) -> tuple[Landmarks, Array, Array]:
        """Those linearly independent under the kernel, their k(S, S), and its factor L.

        A landmark is left out if nothing but rounding remains of it after the others:
        duplicates, zero vectors, more landmarks than the kernel has rank.
        """
        gram = self.gram()
        xp = namespace(gram)
        largest = float(xp.max(xp.linalg.diagonal(gram)))
        if largest <= 0:
            raise _only_zeros(self.points)
        bound = max(self.rounding, gram.shape[0] * float(xp.finfo(xp.float64).eps)) * largest
        L = cholesky(gram)
        if L is not None and float(xp.min(xp.linalg.diagonal(L))) ** 2 > bound:
            return self, gram, L
        _, pivots, rank, _ = scipy.linalg.lapack.dpstrf(to_numpy(gram).T, lower=1, tol=bound)
        kept = np.sort(pivots[:rank] - 1)
        index = xp.asarray(kept, device=gram.device)
        fewer = replace(
            self,
            points=self.points[index],
            indices=None if self.indices is None else self.indices[kept],
        )
        gram = gram[index][:, index]
        return fewer, gram, cholesky(gram)


def _n_candidates(n: int, n_landmarks: int) -> int:
    """How many images random selections look at: enough to find the rare ones, at a cost of
    about a tenth of the fit, within 256 MiB for the kernel columns of the candidates.
    """
    affordable = 2**26 // n_landmarks
    return min(n, max(2 * n_landmarks, min(max(2048, n // 10), affordable)))


def _only_zeros(candidates: Array) -> InvalidInput:
    n, d = candidates.shape
    return InvalidInput(
        f"All {n} candidate landmarks are zero vectors (n_features={d}). Check how the features "
        "were made."
    )


def _select(
    selection: str, kernel: Kernel, X: Array, n_landmarks: int, rng: np.random.RandomState
) -> np.ndarray:
    """Indices of `n_landmarks` rows of X."""
    if selection == "uniform":
        return rng.choice(X.shape[0], size=n_landmarks, replace=False)
    if selection == "rpcholesky":
        return rp_cholesky(kernel, as_block(X), n_landmarks, rng)
    xp = namespace(X)
    blocks = list(row_blocks(X.shape[0], 8 * X.shape[1]))

    def column(j: int) -> Array:
        return xp.concat([kernel(X[rows], X[j : j + 1])[:, 0] for rows in blocks])

    diagonal = xp.concat([kernel.diagonal(X[rows]) for rows in blocks])
    return pgso(column, diagonal, max_rank=n_landmarks).pivots


# --- the map -----------------------------------------------------------------------------


class LandmarkMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Explicit features whose inner products approximate a kernel.

    Φ(x) = L⁻¹ k(S, x), with landmarks S chosen among the images and L Lᵀ = k(S, S).

    Parameters
    ----------
    kernel : str or Kernel, default "arc-cosine"
        A name ("arc-cosine", "linear", "rbf", "exp-chi2") or an object of `tagkin.kernels`.
    n_landmarks : int, default 4096
        At most this many. With as many as there are images the map is exact.
    selection : "rpcholesky", "pgso", "uniform", or an array of shape (r, d)
        How landmarks are chosen: randomly pivoted Cholesky among a random sample, at least
        2 × `n_landmarks` images; partial Gram–Schmidt over all images (the paper's, slow,
        holds an N×r matrix); uniformly at random. An array is taken as the landmarks
        themselves.
    random_state : int, RandomState or None

    Attributes
    ----------
    landmarks_ : Landmarks
        The kernel, the chosen images (``points``) and where they stood in X (``indices``).
        Linearly dependent ones are left out.
    factor_ : float64 array of shape (r, r), L
    """

    def __init__(
        self,
        kernel: str | Kernel = "arc-cosine",
        n_landmarks: int = 4096,
        selection: str | Array = "rpcholesky",
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.selection = selection
        self.random_state = random_state

    def fit(self, X: Array, y: object = None) -> Self:
        """Choose the landmarks among the rows of X (N×d)."""
        X = check_features(X)
        validate_data(self, X, skip_check_array=True)
        chosen = Landmarks.choose(
            X, self.kernel, self.n_landmarks, self.selection, self.random_state
        )
        self.landmarks_, _, self.factor_ = chosen.independent()
        return self

    def transform(self, X: Array) -> Array:
        """Explicit features Φ (n×r) of the rows of X (n×d), in X's floating dtype."""
        check_is_fitted(self)
        X = check_features(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        xp = namespace(X, self.factor_)
        r = self.factor_.shape[0]
        dtype = as_block(X[:1]).dtype
        features = xp.empty((X.shape[0], r), dtype=dtype, device=X.device)
        for rows in row_blocks(X.shape[0], 16 * r + 8 * X.shape[1]):
            K = xp.astype(self.landmarks_.columns(X[rows]), xp.float64, copy=False)
            features[rows] = xp.astype(solve_triangular(self.factor_, K.T).T, dtype, copy=False)
        return features

    def describe(self) -> list[str]:
        """What this map is, in a few sentences."""
        check_is_fitted(self)
        r, d = self.landmarks_.points.shape
        return [f"Maps {d:,} features by {r:,} landmarks under {self.landmarks_.kernel!r}."]

    @property
    def _n_features_out(self) -> int:
        return self.factor_.shape[0]
