"""The common class of kernels, kernels by name, work on a block, and mean distances."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tagkin.arrays import (
    Array,
    as_block,
    block_rows,
    namespace,
    on_accelerator,
    row_blocks,
)
from tagkin.arrays.blocks import cached_rows
from tagkin.arrays.linalg import matmul
from tagkin.arrays.namespaces import Seed
from tagkin.errors import InvalidInput

__all__ = [
    "KERNELS",
    "Kernel",
    "apply_in_pieces",
    "as_kernel",
    "as_pair",
    "mean_distance",
    "mean_pair_distance",
    "mean_squared_distance",
    "sample_pairs",
    "self_products",
    "set_diagonal",
]


KERNELS: dict[str, type[Kernel]] = {}
"""The kernels by name."""
_N_PAIRS = 2**18  # at random; the standard error of their mean is 0.2 % of their spread


@dataclass(frozen=True)
class Kernel(ABC):
    """A kernel function with its constants: a callable ``kernel(X, Y=None)`` → (n, m).

    A subclass with a `name` can be used by that name; see `as_kernel`. `resolve` fills in constants
    that depend on the data, and `diagonal` returns k(x, x) without the rest of the matrix.
    """

    name: ClassVar[str]
    non_negative: ClassVar[bool] = False  # whether it rejects rows with negative entries

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            KERNELS[cls.name] = cls

    @abstractmethod
    def __call__(self, X: Array, Y: Array | None = None) -> Array: ...

    def less(self, X: Array, Y: Array, shift: Array) -> Array:
        """Return K(X, Y) minus `shift` (m,), an entry per column of K.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows of K.
        Y : array of shape (m, d)
            Columns of K.
        shift : array of shape (m,)
            What to subtract from each column.
        """
        K = self(X, Y)
        K -= namespace(K).astype(shift, K.dtype, copy=False)
        return K

    def resolve(self, X: Array) -> Kernel:
        """Return this kernel with missing constants estimated from the rows of X."""
        return self

    def max_rank(self, n_features: int) -> float:
        """Return the largest rank that a matrix of this kernel can have."""
        return math.inf

    def diagonal(self, X: Array) -> Array:
        """Return k(x, x) for every row x, in float64."""
        xp = namespace(X)
        return xp.ones(X.shape[0], dtype=xp.float64, device=X.device)


def as_kernel(kernel: str | Kernel) -> Kernel:
    """Return a kernel object, made from a name if needed."""
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise InvalidInput(
            f"Unknown kernel {kernel!r}. Use one of {', '.join(sorted(KERNELS))}, or a kernel "
            "object such as tagkin.kernels.ArcCosine(order=1)."
        )
    return KERNELS[kernel]()


# --- work on a block ----------------------------------------------------------------------


def as_pair(X: Array, Y: Array | None, *, finite: bool = True) -> tuple[Array, Array]:
    """Return both sides as float blocks of one dtype; the same object twice for X with itself."""
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


def apply_in_pieces(function: Callable[[Array], Array], K: Array) -> Array:
    """Replace K by function(K), in place and piece by piece, and return it.

    On the host, pieces fit in a core's cache.
    """
    bytes_per_row = K.shape[1] * K.dtype.itemsize
    step = block_rows(4 * bytes_per_row, K) if on_accelerator(K) else cached_rows(bytes_per_row)
    for part in (slice(start, start + step) for start in range(0, K.shape[0], step)):
        piece = K[part]
        value = function(piece)
        if value is not piece:
            piece[...] = value
    return K


def set_diagonal(K: Array, values: Array | float) -> None:
    """Set K[i, i] to `values`, in place."""
    i = namespace(K).arange(K.shape[0], device=K.device)
    K[i, i] = values


def self_products(A: Array) -> Array:
    """Return A Aᵀ (n×n) of A (n×d), exactly symmetric."""
    if isinstance(A, np.ndarray):  # NumPy computes a single triangle if rows are contiguous
        A = np.ascontiguousarray(A)
        return matmul(A, A.T)
    products, xp = matmul(A, A.T), namespace(A)
    return xp.tril(products) + xp.tril(products, k=-1).T


def mean_squared_distance(X: Array) -> float:
    """Return the mean of ‖xᵢ − xⱼ‖² over all pairs of rows of X (N×d): 2 mean ‖x − mean x‖²."""
    xp = namespace(X)
    n, d = X.shape
    mean, squares = 0.0, 0.0
    for rows in row_blocks(n, 16 * d):
        mean = mean + xp.sum(as_block(X[rows], double=True), axis=0) / n
    # subtract the mean first, because squares would hide the spread of nearly equal rows
    for rows in row_blocks(n, 16 * d):
        centred = as_block(X[rows], double=True) - mean
        squares += float(xp.sum(centred * centred))
    return 2 * squares / n


def mean_distance(X: Array, random_state: Seed = 0) -> float:
    """Return the mean of ‖xᵢ − xⱼ‖ over all pairs of rows of X (N×d), or over a sample of many."""
    return mean_pair_distance(X, *sample_pairs(X.shape[0], random_state=random_state))


def mean_pair_distance(X: Array, first: np.ndarray, second: np.ndarray) -> float:
    """Return the mean of ‖xᵢ − xⱼ‖ over pairs of rows i in `first` and j in `second`."""
    xp = namespace(X)
    total = 0.0
    for pairs in row_blocks(len(first), 32 * X.shape[1]):
        a, b = (as_block(X[rows[pairs]], double=True) for rows in (first, second))
        total += float(xp.sum(xp.linalg.vector_norm(a - b, axis=1)))
    return total / len(first)


def sample_pairs(
    n: int, n_pairs: int = _N_PAIRS, random_state: Seed = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of n rows as two index arrays: all n², or a random sample of `n_pairs`.

    Pairs of a row with itself are included, as in the paper's mean over all pairs.
    """
    if n * n <= n_pairs:
        first, second = np.divmod(np.arange(n * n), n)
    else:
        from sklearn.utils import check_random_state

        first, second = check_random_state(random_state).randint(n, size=(2, n_pairs))
    return first, second
