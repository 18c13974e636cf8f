"""The exp-χ² kernel of non-negative rows, such as tag vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, as_block, block_rows, namespace, row_blocks, to_numpy
from tagkin.arrays.checks import check_positive
from tagkin.arrays.namespaces import LabelMatrix, Seed, is_sparse
from tagkin.errors import InvalidInput
from tagkin.kernels.kernel import Kernel, apply_in_pieces, as_pair, sample_pairs
from tagkin.records.forms import storable
from tagkin.records.rules import Number

__all__ = ["ExpChi2", "chi2_distances", "mean_chi2"]


@storable
@dataclass(frozen=True)
class ExpChi2(Kernel):
    """The exp-χ² kernel K(x, y) = exp(−χ²(x, y) / 2C) of non-negative rows (equation 8).

    `scale` is C. None takes the mean χ² of the pairs in a block, which for X with itself is the
    paper's mean over all training pairs, diagonal included.
    """

    non_negative: ClassVar[bool] = True
    scale: Annotated[float | None, Number(above=0)] = None

    def __post_init__(self) -> None:
        if self.scale is not None:
            check_positive("scale of the exp-χ² kernel", self.scale)

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        X, Y = as_pair(X, Y)
        xp = namespace(X)
        K = chi2_distances(X, Y)
        scale = float(xp.mean(xp.astype(K, xp.float64))) if self.scale is None else self.scale
        factor = -0.5 / scale if scale > 0 else 0.0
        return apply_in_pieces(lambda piece: xp.exp(piece * factor), K)

    def resolve(self, X: Array) -> ExpChi2:
        if self.scale is not None:
            return self
        mean, _ = mean_chi2(X)
        return replace(self, scale=mean if mean > 0 else 1.0)


def chi2_distances(X: Array, Y: Array) -> Array:
    """Return χ²(x, y) = Σ (x − y)² / (x + y), with 0/0 = 0, for all pairs of rows, (n×m).

    X (n×d) and Y (m×d) are non-negative floats of one dtype. If rows share few features, as tag
    vectors do, only shared features are visited.
    """
    namespace(X, Y)  # of one kind, on one device
    _check_non_negative(X, Y)
    if isinstance(X, np.ndarray) and isinstance(Y, np.ndarray) and _share_little(X, Y):
        return _over_shared(X, Y)
    return _over_all(X, Y)


def _share_little(X: np.ndarray, Y: np.ndarray) -> bool:
    """Return whether most entries are zero: visiting shared features then takes less time."""
    return bool(4 * (np.count_nonzero(X) + np.count_nonzero(Y)) < X.size + Y.size)


def _over_shared(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Compute χ² = Σ x + Σ y − Σ 4 / (1/x + 1/y), the last sum over shared features."""
    K = X.sum(axis=1)[:, None] + Y.sum(axis=1)[None, :]
    left, right = scipy.sparse.csc_array(X), scipy.sparse.csc_array(Y)
    with np.errstate(
        over="ignore"
    ):  # 1/x overflows if x is nearly zero, and 4 / (1/x + 1/y) is then zero
        left.data, right.data = 1 / left.data, 1 / right.data
    for i in range(X.shape[1]):
        of_x = slice(left.indptr[i], left.indptr[i + 1])
        of_y = slice(right.indptr[i], right.indptr[i + 1])
        x, y = left.data[of_x, None], right.data[None, of_y]
        if x.size and y.size:
            part = x + y
            np.divide(4.0, part, out=part)
            K[np.ix_(left.indices[of_x], right.indices[of_y])] -= part
    if X is Y:
        np.fill_diagonal(K, 0.0)
    # for rows that hardly differ, rounding may make a distance negative
    return np.maximum(K, 0.0, out=K)


def _over_all(X: Array, Y: Array) -> Array:
    xp = namespace(X)
    K = xp.empty((X.shape[0], Y.shape[0]), dtype=X.dtype, device=X.device)
    # the largest temporary array holds pairs × features, so tiles are small
    tile = max(1, int(math.sqrt(block_rows(4 * X.shape[1] * X.dtype.itemsize))))
    for i in range(0, X.shape[0], tile):
        for j in range(0, Y.shape[0], tile):
            x, y = X[i : i + tile, None, :], Y[None, j : j + tile, :]
            K[i : i + tile, j : j + tile] = _sum_terms(x, y)
    return K


def mean_chi2(X: LabelMatrix, random_state: Seed = 0) -> tuple[float, float]:
    """Return the mean χ² over all pairs of rows, diagonal included, and its standard error.

    It is exact up to 512 rows, with an error of 0; above, it is the mean over 262,144 pairs drawn
    at random, with replacement.

    Parameters
    ----------
    X : array or sparse matrix of shape (N, d), non-negative
    random_state : int, RandomState or None, default 0
    """
    n = X.shape[0]
    first, second = sample_pairs(n, random_state=random_state)
    values = np.empty(len(first))
    for pairs in row_blocks(len(first), 32 * X.shape[1]):
        a, b = (as_block(_dense(X[rows[pairs]])) for rows in (first, second))
        _check_non_negative(a, b)
        values[pairs] = to_numpy(_sum_terms(a, b))
    exact = len(first) == n * n
    error = 0.0 if exact else float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()), error


def _sum_terms(x: Array, y: Array) -> Array:
    """Return Σ (x − y)² / (x + y) over the last axis, with 0/0 = 0."""
    xp = namespace(x)
    parts = x - y
    parts *= parts
    parts /= (x + y).clip(float(xp.finfo(x.dtype).tiny), None)
    return xp.sum(parts, axis=-1)


def _check_non_negative(X: Array, Y: Array) -> None:
    if bool((X < 0).any()) or bool((Y < 0).any()):
        raise InvalidInput("The exp-χ² kernel needs non-negative values; found negative ones.")


def _dense(X: LabelMatrix) -> Array:
    return X.toarray() if is_sparse(X) else X
