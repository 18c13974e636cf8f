"""The linear and the Gaussian kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from tagkin.arrays import Array, as_block, namespace
from tagkin.arrays.checks import check_positive
from tagkin.arrays.linalg import matmul
from tagkin.kernels.kernel import (
    Kernel,
    apply_in_pieces,
    as_pair,
    mean_squared_distance,
    self_products,
    set_diagonal,
)
from tagkin.records.forms import storable
from tagkin.records.rules import Number

__all__ = ["RBF", "Linear"]


@storable
@dataclass(frozen=True)
class Linear(Kernel):
    """The linear kernel K(x, y) = xᵀy."""

    name: ClassVar[str] = "linear"

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        X, Y = as_pair(X, Y)
        return self_products(X) if X is Y else matmul(X, Y.T)

    def max_rank(self, n_features: int) -> float:
        return n_features

    def diagonal(self, X: Array) -> Array:
        X = as_block(X, double=True)
        return namespace(X).vecdot(X, X)


@storable
@dataclass(frozen=True)
class RBF(Kernel):
    """The Gaussian kernel K(x, y) = exp(−γ ‖x − y‖²).

    ``gamma=None`` takes 1 / mean ‖x − x'‖² over all pairs of rows of X.
    """

    name: ClassVar[str] = "rbf"
    gamma: Annotated[float | None, Number(above=0)] = None

    def __post_init__(self) -> None:
        if self.gamma is not None:
            check_positive("gamma of the RBF kernel", self.gamma)

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        X, Y = as_pair(X, Y)
        xp = namespace(X)
        gamma = _inverse_mean_squared_distance(X) if self.gamma is None else self.gamma
        same = X is Y
        # distances do not change if both sides are shifted; near the origin their squares cancel
        # less, and in units of the kernel's width they stay in range
        centre, unit = xp.mean(Y, axis=0), math.sqrt(gamma)
        X = (X - centre) * unit
        Y = X if same else (Y - centre) * unit
        K = self_products(X) if same else matmul(X, Y.T)
        K *= -2.0
        K += xp.sum(X * X, axis=1)[:, None] + xp.sum(Y * Y, axis=1)[None, :]
        apply_in_pieces(lambda piece: xp.exp(-piece.clip(0.0, None)), K)
        if same:
            set_diagonal(K, 1.0)
        return K

    def resolve(self, X: Array) -> RBF:
        if self.gamma is not None:
            return self
        return replace(self, gamma=_inverse_mean_squared_distance(as_block(X)))


def _inverse_mean_squared_distance(X: Array) -> float:
    """Return 1 / mean ‖x − x'‖² over all pairs of rows, or 1 if all rows are equal."""
    mean = mean_squared_distance(X)
    return 1 / mean if mean > 0 else 1.0
