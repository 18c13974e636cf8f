"""The arc-cosine kernel (Cho and Saul 2009), the paper's visual kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from tagkin.arrays import Array, as_block, matmul, mirror_lower, namespace, on_accelerator
from tagkin.errors import InvalidInput
from tagkin.kernels.angular import angular, angular_order2_float32, fused_order2
from tagkin.kernels.base import (
    Kernel,
    apply_in_pieces,
    as_pair,
    row_norms,
    set_diagonal,
    subtract_shift,
    unit_rows,
)

__all__ = ["ArcCosine", "arc_cosine_kernel"]

_FEW_ROWS = 16


@dataclass(frozen=True)
class ArcCosine(Kernel):
    """`arc_cosine_kernel` with its order and normalisation."""

    name: ClassVar[str] = "arc-cosine"
    order: int = 2
    normalized: bool = True

    def __post_init__(self) -> None:
        if self.order not in (0, 1, 2):
            raise InvalidInput(f"The arc-cosine kernel has order 0, 1 or 2; found {self.order!r}.")

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        return arc_cosine_kernel(X, Y, order=self.order, normalized=self.normalized)

    def less(self, X: Array, Y: Array, shift: Array) -> Array:
        X, Y = as_pair(X, Y, finite=False)
        if X is Y:
            return super().less(X, Y, shift)
        shift = namespace(X).astype(shift, X.dtype, copy=False)
        return _arc_cosine(X, Y, self.order, self.normalized, shift)

    def diagonal(self, X: Array) -> Array:
        xp = namespace(X)
        if self.normalized:
            return xp.astype(xp.any(as_block(X) != 0, axis=1), xp.float64)
        norms = unit_rows(as_block(X, double=True))[1]
        return xp.where(norms > 0, (1.0, 1.0, 3.0)[self.order] * norms ** (2 * self.order), 0.0)


def arc_cosine_kernel(
    X: Array, Y: Array | None = None, order: int = 2, normalized: bool = True
) -> Array:
    """Arc-cosine kernel of order 0, 1 or 2 (Cho and Saul 2009; the paper's equation 1).

    K(x, y) = ‖x‖ⁿ ‖y‖ⁿ Jₙ(θ) / π, or with ``normalized`` Jₙ(θ) / Jₙ(0), θ the angle between
    x and y:

    - J₀ = π − θ
    - J₁ = sin θ + (π − θ) cos θ
    - J₂ = 3 sin θ cos θ + (π − θ)(1 + 2 cos² θ)

    A zero row has similarity 0 to everything, itself included; every other row of the
    normalised kernel has exactly 1 with itself. In float32, order 2 is within 5e-7 of the
    closed form (times the norms where not normalised). Order 0 has an infinite slope at θ = 0:
    between equal rows of different blocks, rounding shows as its square root.

    Parameters
    ----------
    X : array of shape (n, d)
    Y : array of shape (m, d), or None for X itself
    order : 0, 1 or 2
    normalized : bool
        Values in [0, 1] and a unit diagonal, whatever the lengths of the rows.

    Returns
    -------
    K : array of shape (n, m)
    """
    if order not in (0, 1, 2):
        raise InvalidInput(f"The arc-cosine kernel has order 0, 1 or 2; found {order!r}.")
    X, Y = as_pair(X, Y, finite=False)  # the norms tell
    K = _arc_cosine(X, Y, order, normalized, None)
    return mirror_lower(K) if X is Y else K


def _arc_cosine(X: Array, Y: Array, order: int, normalized: bool, shift: Array | None) -> Array:
    """`arc_cosine_kernel` less `shift` (m,); of X with itself only the lower triangle counts."""
    xp = namespace(X)
    same = X is Y
    K, scale_x, norm_x, norm_y = _cosines(X, Y)
    zeros = [(rows, zero) for zero, rows in ((norm_x == 0, 0), (norm_y == 0, 1)) if xp.any(zero)]
    if order == 2 and K.dtype == xp.float32:
        if normalized and not zeros and not same:
            fused_values = fused_order2(K, scale_x, shift)
            if fused_values is not None:
                return fused_values
        apply_in_pieces(angular_order2_float32, K, row_scale=scale_x, lower=same)
    else:
        closed_form = partial(angular, order=order)
        apply_in_pieces(closed_form, K, row_scale=scale_x, lower=same)
    if same:
        set_diagonal(K, 1.0)
    for axis, zero in zeros:
        (K.T if axis else K)[zero] = 0.0
    if not normalized:
        at_zero = (1.0, 1.0, 3.0)[order]  # Jₙ(0)/π
        K *= at_zero * norm_x[:, None] ** order
        K *= norm_y[None, :] ** order
    return K if shift is None else subtract_shift(K, shift)


def _cosines(X: Array, Y: Array) -> tuple[Array, Array | None, Array, Array]:
    """Cosines between rows, up to a factor for every row of X, that factor, and all norms.

    The factor is None where it is 1. Dividing the products by ‖x‖ later spares a copy of X.
    """
    if X.shape[0] <= _FEW_ROWS and X is not Y:
        norm_x, norm_y = row_norms(X, "X"), row_norms(Y, "Y")
        if norm_x is not None and norm_y is not None:
            products = matmul(X, Y.T)
            products /= norm_y  # spares a copy of Y, which would take longer than the products
            return products, 1 / norm_x, norm_x, norm_y
    unit_y, norm_y = unit_rows(Y, "X" if X is Y else "Y")
    if X is Y:
        return matmul(unit_y, unit_y.T), None, norm_y, norm_y
    norm_x = row_norms(X, "X")
    if norm_x is not None:
        # on a device column after column, as products KᵀK of the result are fastest
        products = matmul(unit_y, X.T).T if on_accelerator(X) else matmul(X, unit_y.T)
        return products, 1 / norm_x, norm_x, norm_y
    unit_x, norm_x = unit_rows(X)
    return matmul(unit_x, unit_y.T), None, norm_x, norm_y
