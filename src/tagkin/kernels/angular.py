"""The angular part of the arc-cosine kernel, an element-wise function of the cosine."""

from __future__ import annotations

import math

from tagkin.arrays import Array, namespace
from tagkin.arrays.device import in_tf32

__all__ = ["ROOT_THIRD", "angular", "angular_order2_float32", "fused_order2"]


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
# passes more, each as long as half a division, and is off by 5.2e-7 before rounding.
_ODD_COEFFICIENTS = (
    0.42441040675077146,
    0.07078356972008348,
    0.0033170566125784538,
    0.0009796805364379799,
)
_POLE, _RESIDUE = 1.37, 0.0001883291441056023
ROOT_THIRD = 3**-0.5
# of u = ρ/√3, whose square is the even part t/3 itself: one pass less
_ODD_OF_U = tuple(c * 3 ** (k + 0.5) for k, c in enumerate(_ODD_COEFFICIENTS))
_POLE_OF_U, _RESIDUE_OF_U = _POLE / 3, _RESIDUE * 3**2.5


def angular_order2_float32(u: Array, less: Array | float = 0.0) -> Array:
    """Replace float32 u = cos θ/√3 (n×m) by J₂(θ)/J₂(0) − `less` (m,), by the formula above.

    It is 10 times faster than the closed form, and as accurate if rounding put u a little out of
    range.
    """
    third = u * u
    odd = _RESIDUE_OF_U / (_POLE_OF_U - third)
    for coefficient in _ODD_OF_U[:0:-1]:
        odd += coefficient
        odd *= third
    odd += _ODD_OF_U[0]
    u *= odd
    u += third
    u += 1 / 6 - less
    return u


def fused_order2(K: Array, row_scale: Array, shift: Array | None) -> Array | None:
    """Replace float32 K, which times `row_scale` (n,) is cos θ/√3, by J₂(θ)/J₂(0) − `shift` (m,).

    This takes one pass over the memory of a GPU. K (n×m) is stored column by column. Return None
    without Triton.
    """
    try:
        from tagkin.kernels.triton_order2 import apply_order2
    except ImportError:
        return None
    xp = namespace(K)
    less = xp.zeros(K.shape[1], dtype=K.dtype, device=K.device) if shift is None else shift
    coefficients = _POLE_OF_U, _RESIDUE_OF_U, *_ODD_OF_U
    apply_order2(K.T, row_scale, less, coefficients, rounded=shift is not None and in_tf32(K))
    return K
