"""Kernels between rows of two blocks: pure functions, and small objects that name them.

The functions return the block K (n×m) of similarities between the rows of X (n×d) and
of Y (m×d); temporaries are no larger than that block and the rows given. With ``Y=None`` the
block is X with itself, exactly symmetric. Float32 and narrower input is computed in float32,
all other in float64.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from array_api_compat import is_torch_array

from tagkin._angular import angular, angular_order2_float32, fused_order2
from tagkin._chi2 import chi2_distances
from tagkin.arrays import (
    Array,
    as_block,
    block_rows,
    check_finite,
    in_tf32,
    mirror_lower,
    namespace,
    on_accelerator,
    round_to_tf32,
    row_blocks,
)
from tagkin.errors import InvalidInput

__all__ = [
    "RBF",
    "ArcCosine",
    "ExpChi2",
    "Kernel",
    "Linear",
    "arc_cosine_kernel",
    "as_kernel",
    "exp_chi2_kernel",
    "linear_kernel",
    "rbf_kernel",
]

# Element-wise work on the host goes through pieces that stay in a core's cache.
_CACHE_ENTRIES = 32 * 1024
_FEW_ROWS = 16


# --- the arc-cosine kernel ---------------------------------------------------------------


def _apply(
    function: Callable[[Array], Array],
    K: Array,
    *,
    row_scale: Array | None = None,
    lower: bool = False,
) -> Array:
    """Replace K by function(K), piece by piece and in place.

    Rows are multiplied by `row_scale` first. With `lower` only the lower triangle counts.
    """
    width = max(1, K.shape[1])
    on_host = not is_torch_array(K) or K.device.type == "cpu"
    rows = _CACHE_ENTRIES // width if on_host else block_rows(4 * width * K.dtype.itemsize, K)
    rows = max(1, rows)
    for start in range(0, K.shape[0], rows):
        stop = start + rows
        piece = K[start:stop, :stop] if lower else K[start:stop]
        if row_scale is not None:
            piece *= row_scale[start:stop, None]
        value = function(piece)
        if value is not piece:
            piece[...] = value
    return K


def _set_diagonal(K: Array, values: Array | float) -> None:
    index = namespace(K).arange(K.shape[0], device=K.device)
    K[index, index] = values


def _norms(X: Array, name: str) -> Array | None:
    """Norms of the rows, or None where one is zero or its square leaves the dtype's range."""
    xp = namespace(X)
    with np.errstate(over="ignore", invalid="ignore"):
        # one pass on a device, and in float32 whatever the precision of products there
        squares = xp.linalg.vector_norm(X, axis=1) ** 2 if on_accelerator(X) else xp.vecdot(X, X)
    safe = math.sqrt(float(xp.finfo(X.dtype).smallest_normal))
    if bool(xp.all((squares > safe) & (squares < 1 / safe))):
        return xp.sqrt(squares)
    check_finite(X, name)
    return None


def _unit_rows(X: Array, name: str = "X") -> tuple[Array, Array]:
    """Rows divided by their norms, and the norms; a zero row stays zero."""
    norms = _norms(X, name)
    if norms is not None:
        return X / norms[:, None], norms
    xp = namespace(X)
    largest = xp.max(xp.abs(X), axis=1)
    scale = xp.where(largest > 0, largest, xp.ones_like(largest))
    X = X / scale[:, None]
    norms = xp.sqrt(xp.vecdot(X, X))
    X /= xp.where(norms > 0, norms, xp.ones_like(norms))[:, None]
    return X, norms * scale


def _pair(X: Array, Y: Array | None, *, finite: bool = True) -> tuple[Array, Array]:
    """Both sides as float blocks of one dtype; the same object twice for X with itself."""
    if Y is None or Y is X:
        block = as_block(X, finite=finite)
        return block, block
    xp = namespace(X, Y)
    X, Y = as_block(X, finite=finite), as_block(Y, finite=finite, name="Y")
    if X.shape[1] != Y.shape[1]:
        raise InvalidInput(
            f"X has {X.shape[1]} features and Y has {Y.shape[1]}; a kernel compares rows of "
            "equal width."
        )
    dtype = xp.result_type(X, Y)
    return xp.astype(X, dtype, copy=False), xp.astype(Y, dtype, copy=False)


def _cosines(X: Array, Y: Array) -> tuple[Array, Array | None, Array, Array]:
    """Cosines between rows, up to a factor for every row of X, that factor, and all norms.

    The factor is None where it is 1. Dividing the products by ‖x‖ later spares a copy of X.
    """
    if X.shape[0] <= _FEW_ROWS and X is not Y:
        norm_x, norm_y = _norms(X, "X"), _norms(Y, "Y")
        if norm_x is not None and norm_y is not None:
            products = X @ Y.T
            products /= norm_y  # spares a copy of Y, which would take longer than the products
            return products, 1 / norm_x, norm_x, norm_y
    unit_y, norm_y = _unit_rows(Y, "X" if X is Y else "Y")
    if X is Y:
        return unit_y @ unit_y.T, None, norm_y, norm_y
    norm_x = _norms(X, "X")
    if norm_x is not None:
        # on a device column after column, as products KᵀK of the result are fastest
        products = (unit_y @ X.T).T if on_accelerator(X) else X @ unit_y.T
        return products, 1 / norm_x, norm_x, norm_y
    unit_x, norm_x = _unit_rows(X)
    return unit_x @ unit_y.T, None, norm_x, norm_y


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
    X, Y = _pair(X, Y, finite=False)  # the norms tell
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
        _apply(angular_order2_float32, K, row_scale=scale_x, lower=same)
    else:
        closed_form = partial(angular, order=order)
        _apply(closed_form, K, row_scale=scale_x, lower=same)
    if same:
        _set_diagonal(K, 1.0)
    for axis, zero in zeros:
        (K.T if axis else K)[zero] = 0.0
    if not normalized:
        at_zero = (1.0, 1.0, 3.0)[order]  # Jₙ(0)/π
        K *= at_zero * norm_x[:, None] ** order
        K *= norm_y[None, :] ** order
    return K if shift is None else _less(K, shift)


def _less(K: Array, shift: Array) -> Array:
    """K less `shift`, in place, in the numbers that its products will be of."""
    K -= shift
    if K.dtype == namespace(K).float32 and in_tf32(K):
        round_to_tf32(K)
    return K


# --- the other kernels -------------------------------------------------------------------


def linear_kernel(X: Array, Y: Array | None = None) -> Array:
    """Inner products K(x, y) = xᵀy of the rows of X (n×d) and Y (m×d)."""
    X, Y = _pair(X, Y)
    K = X @ Y.T
    return mirror_lower(K) if X is Y else K


def rbf_kernel(X: Array, Y: Array | None = None, gamma: float | None = None) -> Array:
    """Gaussian kernel K(x, y) = exp(−γ ‖x − y‖²) of the rows of X (n×d) and Y (m×d).

    ``gamma=None`` takes 1 / mean ‖x − x'‖² over all pairs of rows of X.
    """
    X, Y = _pair(X, Y)
    xp = namespace(X)
    gamma = _inverse_mean_squared_distance(X) if gamma is None else gamma
    same = X is Y
    # distances do not change when both sides move; near the origin their squares cancel less,
    # and in units of the kernel's width they stay in range
    centre, unit = xp.mean(Y, axis=0), math.sqrt(gamma)
    X = (X - centre) * unit
    Y = X if same else (Y - centre) * unit
    K = X @ Y.T
    K *= -2.0
    K += xp.sum(X * X, axis=1)[:, None]
    K += xp.sum(Y * Y, axis=1)[None, :]
    _apply(lambda piece: xp.exp(-xp.clip(piece, 0.0, None)), K, lower=same)
    if same:
        _set_diagonal(K, 1.0)
    return mirror_lower(K) if same else K


def _inverse_mean_squared_distance(X: Array) -> float:
    """1 / mean ‖x − x'‖² over all pairs of rows: the mean is twice the total variance."""
    xp = namespace(X)
    mean = xp.mean(X, axis=0, dtype=xp.float64)
    total = 0.0
    for rows in row_blocks(X.shape[0], 16 * X.shape[1]):
        centred = X[rows] - mean
        total += float(xp.sum(centred * centred))
    return X.shape[0] / (2.0 * total) if total > 0 else 1.0


def exp_chi2_kernel(X: Array, Y: Array | None = None, scale: float | None = None) -> Array:
    """exp-χ² kernel K(x, y) = exp(−χ²(x, y) / 2C) of non-negative rows (the paper's equation 8).

    ``scale`` is C; None takes the mean χ² of the pairs in this block, which for X with
    itself is the paper's mean over all training pairs, diagonal included.
    """
    X, Y = _pair(X, Y)
    xp = namespace(X)
    K = chi2_distances(X, Y)
    if scale is None:
        scale = float(xp.mean(xp.astype(K, xp.float64)))
    factor = -0.5 / scale if scale > 0 else 0.0
    _apply(lambda piece: xp.exp(piece * factor), K)
    return K


def _check_positive(name: str, value: float | None) -> None:
    if value is not None and not 0 < value < math.inf:
        raise InvalidInput(f"The {name} must be a positive number or None; found {value!r}.")


# --- kernels as objects ------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel(ABC):
    """A kernel function with its constants: a callable ``kernel(X, Y=None)`` → (n, m).

    `settle` returns the kernel with constants that depend on the data filled in, and
    `diagonal` the values k(x, x) without the rest of the matrix.
    """

    name: ClassVar[str]

    @abstractmethod
    def __call__(self, X: Array, Y: Array | None = None) -> Array: ...

    def less(self, X: Array, Y: Array, shift: Array) -> Array:
        """K(X, Y) less `shift` (m,), of which each column of K has its own entry.

        Where a device computes in TF32, it is rounded to that: sums of it, and of its products,
        then agree.
        """
        K = self(X, Y)
        return _less(K, namespace(K).astype(shift, K.dtype, copy=False))

    def settle(self, X: Array) -> Kernel:
        """This kernel with missing constants estimated from the rows of X."""
        return self

    def max_rank(self, n_features: int) -> float:
        """The largest rank that a matrix of this kernel can have."""
        return math.inf

    def diagonal(self, X: Array) -> Array:
        """k(x, x) for every row x, in float64."""
        xp = namespace(X)
        return xp.ones(X.shape[0], dtype=xp.float64, device=X.device)


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
        X, Y = _pair(X, Y, finite=False)
        if X is Y:
            return super().less(X, Y, shift)
        shift = namespace(X).astype(shift, X.dtype, copy=False)
        return _arc_cosine(X, Y, self.order, self.normalized, shift)

    def diagonal(self, X: Array) -> Array:
        xp = namespace(X)
        if self.normalized:
            return xp.astype(xp.any(as_block(X) != 0, axis=1), xp.float64)
        norms = _unit_rows(as_block(X, double=True))[1]
        return xp.where(norms > 0, (1.0, 1.0, 3.0)[self.order] * norms ** (2 * self.order), 0.0)


@dataclass(frozen=True)
class Linear(Kernel):
    """`linear_kernel`."""

    name: ClassVar[str] = "linear"

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        return linear_kernel(X, Y)

    def max_rank(self, n_features: int) -> float:
        return n_features

    def diagonal(self, X: Array) -> Array:
        X = as_block(X, double=True)
        return namespace(X).vecdot(X, X)


@dataclass(frozen=True)
class RBF(Kernel):
    """`rbf_kernel`; a missing gamma is settled as 1 / mean squared distance."""

    name: ClassVar[str] = "rbf"
    gamma: float | None = None

    def __post_init__(self) -> None:
        _check_positive("gamma of the RBF kernel", self.gamma)

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        return rbf_kernel(X, Y, gamma=self.gamma)

    def settle(self, X: Array) -> RBF:
        if self.gamma is not None:
            return self
        return replace(self, gamma=_inverse_mean_squared_distance(as_block(X)))


@dataclass(frozen=True)
class ExpChi2(Kernel):
    """`exp_chi2_kernel`; a missing scale is settled as the mean χ² of up to 1,000 rows."""

    name: ClassVar[str] = "exp-chi2"
    scale: float | None = None

    def __post_init__(self) -> None:
        _check_positive("scale of the exp-χ² kernel", self.scale)

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        return exp_chi2_kernel(X, Y, scale=self.scale)

    def settle(self, X: Array) -> ExpChi2:
        if self.scale is not None:
            return self
        sample = as_block(X[:: -(-X.shape[0] // 1000)])
        xp = namespace(sample)
        mean = float(xp.mean(xp.astype(chi2_distances(sample, sample), xp.float64)))
        return replace(self, scale=mean if mean > 0 else 1.0)


_KERNELS: dict[str, type[Kernel]] = {k.name: k for k in (ArcCosine, Linear, RBF, ExpChi2)}


def as_kernel(kernel: str | Kernel) -> Kernel:
    """A kernel from its name, or as it is."""
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str) or kernel not in _KERNELS:
        raise InvalidInput(
            f"Unknown kernel {kernel!r}. Use one of {', '.join(sorted(_KERNELS))}, or a kernel "
            "object such as tagkin.kernels.ArcCosine(order=1)."
        )
    return _KERNELS[kernel]()
