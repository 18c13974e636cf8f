"""Kernels by name."""

from __future__ import annotations

from tagkin.errors import InvalidInput
from tagkin.kernels.arc_cosine import ArcCosine
from tagkin.kernels.base import Kernel
from tagkin.kernels.exp_chi2 import ExpChi2
from tagkin.kernels.linear import Linear
from tagkin.kernels.rbf import RBF

__all__ = ["as_kernel"]

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
