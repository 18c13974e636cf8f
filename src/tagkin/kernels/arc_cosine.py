"""The arc-cosine kernel (Cho and Saul 2009), the paper's visual kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from tagkin.arrays import Array, as_block, namespace, on_accelerator
from tagkin.arrays.linalg import matmul, unit_rows
from tagkin.arrays.threads import blas_threads_for, run_in_threads
from tagkin.errors import InvalidInput
from tagkin.kernels.kernel import (
    Kernel,
    apply_in_pieces,
    as_pair,
    self_products,
    set_diagonal,
)
from tagkin.records.forms import storable
from tagkin.records.rules import Whole

__all__ = ["ArcCosine", "angular", "angular_order2_float32"]


@storable
@dataclass(frozen=True)
class ArcCosine(Kernel):
    """The arc-cosine kernel of order 0, 1 or 2 (Cho and Saul 2009; the paper's equation 1).

    K(x, y) = ‖x‖ⁿ ‖y‖ⁿ Jₙ(θ) / π, or if `normalized` Jₙ(θ) / Jₙ(0), θ the angle between x and y:

    - J₀ = π − θ
    - J₁ = sin θ + (π − θ) cos θ
    - J₂ = 3 sin θ cos θ + (π − θ)(1 + 2 cos² θ)

    A zero row has similarity 0 to everything, itself included; every other row of the
    normalised kernel has exactly 1 with itself. In float32, order 2 is within 5e-7 of the
    closed form (times the norms if not normalised). Order 0 has an infinite slope at θ = 0:
    between equal rows of different blocks, rounding appears as its square root.

    Parameters
    ----------
    order : 0, 1 or 2
    normalized : bool
        Values in [0, 1] and a unit diagonal, whatever the lengths of the rows.
    """

    name: ClassVar[str] = "arc-cosine"
    order: Annotated[int, Whole(high=2)] = 2
    normalized: bool = True

    def __post_init__(self) -> None:
        if self.order not in (0, 1, 2):
            raise InvalidInput(f"The arc-cosine kernel has order 0, 1 or 2; found {self.order!r}.")

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        X, Y = as_pair(X, Y, finite=False)  # the norms tell
        return self._values(X, Y)

    def less(self, X: Array, Y: Array, shift: Array) -> Array:
        X, Y = as_pair(X, Y, finite=False)
        if X is Y:
            return super().less(X, Y, shift)
        shift = namespace(X).astype(shift, X.dtype, copy=False)
        return self._values(X, Y, shift)

    def diagonal(self, X: Array) -> Array:
        xp = namespace(X)
        if self.normalized:
            return xp.astype(xp.any(as_block(X) != 0, axis=1), xp.float64)
        norms = unit_rows(as_block(X, double=True))[1]
        return xp.where(norms > 0, (1.0, 1.0, 3.0)[self.order] * norms ** (2 * self.order), 0.0)

    def _values(self, X: Array, Y: Array, shift: Array | None = None) -> Array:
        """Return kernel values of blocks of one dtype, minus `shift` (m,)."""
        fast = self.order == 2 and X.dtype == namespace(X).float32
        left, norm_x = unit_rows(X)
        right, norm_y = (left, norm_x) if X is Y else unit_rows(Y, "Y")
        if fast and X is Y:
            left = right = left * ROOT_THIRD**0.5
        elif fast:
            right = right * ROOT_THIRD
        both = [(axis, norms == 0) for axis, norms in enumerate((norm_x, norm_y))]
        zeros = [(axis, zero) for axis, zero in both if bool(zero.any())]
        if fast and self.normalized and not zeros and on_accelerator(X) and X is not Y:
            values = fused_order2(left, right, shift)
            if values is not None:
                return values
        function = angular_order2_float32 if fast else partial(angular, order=self.order)
        K = _apply(function, left, right)
        if X is Y:
            set_diagonal(K, 1.0)
        for axis, zero in zeros:
            (K.T if axis else K)[zero] = 0.0
        if not self.normalized:
            at_zero = (1.0, 1.0, 3.0)[self.order]  # Jₙ(0)/π
            K *= at_zero
            K *= norm_x[:, None] ** self.order * norm_y[None, :] ** self.order
        if shift is not None:
            K -= shift
        return K


def _apply(function: Callable[[Array], Array], left: Array, right: Array) -> Array:
    """Return a function, which may work in place, of all products of rows (n×m).

    On the host it takes as many threads as the products.
    """
    if left is right or not isinstance(left, np.ndarray):
        K = self_products(left) if left is right else matmul(left, right.T)
        return apply_in_pieces(function, K)
    n, m = left.shape[0], right.shape[0]
    K = np.empty((n, m), dtype=left.dtype)

    def work(rows: slice) -> None:
        matmul(left[rows], right.T, out=K[rows])
        apply_in_pieces(function, K[rows])

    with blas_threads_for(n * m * left.shape[1]):
        run_in_threads(work, n, K.itemsize * m)
    return K


# --- the angular part, an element-wise function of the cosine ----------------------------


def angular(rho: Array, order: int) -> Array:
    """Return Jₙ(θ)/Jₙ(0) of ρ = cos θ, by the closed form."""
    xp = namespace(rho)
    rho = rho.clip(-1.0, 1.0)
    angle = xp.acos(rho)
    if order == 0:
        return 1 - angle / math.pi
    sine = 1 - rho
    sine *= 1 + rho
    sine = xp.sqrt(sine)
    if order == 1:
        return (sine + (math.pi - angle) * rho) / math.pi
    # (3 sin θ ρ + (π − θ)(1 + 2ρ²)) / 3π, in place: memory takes longer than arithmetic
    sine *= rho
    sine *= 1 / math.pi
    angle *= -1 / math.pi
    angle += 1
    rho *= rho
    rho *= 2 / 3
    rho += 1 / 3
    angle *= rho
    angle += sine
    return angle


# J₂(θ)/J₂(0) = (1 + 2t)/6 + ρ h(t) with t = ρ² and
#
#     h(t) = (3 √(1 − t) + asin(ρ) (1 + 2t)/ρ) / (3π):
#
# π − θ = π/2 + asin ρ splits J₂ into an even and an odd function of ρ. The odd one is ρ times a
# function of ρ² alone, singular only as (1 − t)^{5/2}: one formula serves the whole range of ρ,
#
#     h(t) ≈ c₀ + t (c₁ + t (c₂ + t (c₃ + d / (b − t)))).
#
# Its largest error ρ |h(t) − …| over [0, 1] is the smallest, 2.9e-7: with float32 rounding the
# whole is within 5e-7 of the closed form on all of [-1, 1]. A polynomial of degree 6 takes three
# passes more, each as long as half a division, and is off by 5.2e-7 before rounding. In u = ρ/√3,
# the even part is u² + 1/6, and the terms of h have factors √3 and powers of 3.
_ODD = (
    0.42441040675077146 * 3**0.5,  # c₀
    0.07078356972008348 * 3**1.5,  # c₁
    0.0033170566125784538 * 3**2.5,  # c₂
    0.0009796805364379799 * 3**3.5,  # c₃
)
_FRACTION = 0.0001883291441056023 * 3**2.5, 1.37 / 3  # d and b
ROOT_THIRD = 3**-0.5


def angular_order2_float32(u: Array) -> Array:
    """Replace float32 u = cos θ/√3 (n×m) by J₂(θ)/J₂(0), by the formula above.

    It is 10 times faster than the closed form, and as accurate if rounding put u a little out of
    range.
    """
    third = u * u
    d, b = _FRACTION
    odd = d / (b - third)
    for coefficient in _ODD[:0:-1]:
        odd += coefficient
        odd *= third
    odd += _ODD[0]
    u *= odd
    u += third
    u += 1 / 6
    return u


def fused_order2(left: Array, right: Array, shift: Array | None) -> Array | None:
    """Return J₂(θ)/J₂(0) − `shift` (m,) of products cos θ/√3 of float32 rows (n×d, m×d), on a GPU.

    After the products, this takes one pass over the memory. Return None without Triton.
    """
    try:
        from tagkin.kernels.triton_order2 import apply_order2
    except ImportError:
        return None
    xp = namespace(left)
    columns = matmul(right, left.T)  # column by column: products KᵀK of K are then fastest
    less = xp.zeros(len(right), dtype=left.dtype, device=left.device) if shift is None else shift
    apply_order2(columns, less, (*_FRACTION, *_ODD))
    return columns.T
