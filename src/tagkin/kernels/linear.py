"""The linear kernel: inner products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tagkin.arrays import Array, as_block, namespace
from tagkin.arrays.linalg import matmul
from tagkin.kernels.kernel import Kernel, as_pair, self_products
from tagkin.records.forms import storable

__all__ = ["Linear"]


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
