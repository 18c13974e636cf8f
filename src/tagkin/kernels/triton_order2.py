"""The arc-cosine kernel of order 2 in one pass over a GPU's memory, by Triton.

Importing this module needs Triton, which torch brings along on GPU machines.
"""

import triton
import triton.language as tl

from tagkin.arrays import Array

__all__ = ["apply_order2"]


@triton.jit  # type: ignore[untyped-decorator]
def _order2(  # type: ignore[no-untyped-def]
    products,
    shift,
    n,
    D: tl.constexpr,
    B: tl.constexpr,
    C0: tl.constexpr,
    C1: tl.constexpr,
    C2: tl.constexpr,
    C3: tl.constexpr,
    BLOCK: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1)
    inside = rows < n
    at = products + column.to(tl.int64) * n + rows
    u = tl.load(at, mask=inside)
    third = u * u
    odd = D / (B - third)
    odd = (odd + C3) * third
    odd = (odd + C2) * third
    odd = (odd + C1) * third
    value = u * (odd + C0) + third + 1.0 / 6.0 - tl.load(shift + column)
    tl.store(at, value, mask=inside)


def apply_order2(columns: Array, shift: Array, coefficients: tuple[float, ...]) -> None:
    """Replace products by kernel values, in place.

    Parameters
    ----------
    columns : contiguous float32 tensor of shape (m, n)
        cos θ/√3.
    shift : tensor of shape (m,)
        Subtracted from the values.
    coefficients : d, b and c₀ … c₃ of the formula below `angular`.
    """
    m, n = columns.shape
    block = 1024  # from 512 on, an H200 reads and writes 4 TB/s; larger ones help no small matrix
    _order2[triton.cdiv(n, block), m](columns, shift, n, *coefficients, BLOCK=block)
