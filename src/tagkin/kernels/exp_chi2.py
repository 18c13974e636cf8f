"""The exp-χ² kernel of non-negative rows, such as tag vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from tagkin.arrays import Array, namespace
from tagkin.arrays.records import storable
from tagkin.arrays.rules import Number
from tagkin.kernels.base import Kernel, apply_in_pieces, as_pair, check_positive
from tagkin.kernels.chi2 import chi2_distances, mean_chi2

__all__ = ["ExpChi2"]


@storable
@dataclass(frozen=True)
class ExpChi2(Kernel):
    """The exp-χ² kernel K(x, y) = exp(−χ²(x, y) / 2C) of non-negative rows (equation 8).

    `scale` is C. None takes the mean χ² of the pairs in a block, which for X with itself is the
    paper's mean over all training pairs, diagonal included.
    """

    name: ClassVar[str] = "exp-chi2"
    non_negative: ClassVar[bool] = True
    scale: Annotated[float | None, Number(above=0)] = None

    def __post_init__(self) -> None:
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
