"""Kernels by name; this imports all of them."""

from __future__ import annotations

from tagkin.errors import InvalidInput
from tagkin.kernels.arc_cosine import ArcCosine
from tagkin.kernels.base import KERNELS, Kernel
from tagkin.kernels.exp_chi2 import ExpChi2
from tagkin.kernels.linear import Linear
from tagkin.kernels.rbf import RBF

__all__ = ["KERNELS", "RBF", "ArcCosine", "ExpChi2", "Linear", "as_kernel"]


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
