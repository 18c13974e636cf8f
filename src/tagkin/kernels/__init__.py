"""Kernels between rows of two blocks: pure functions, and small objects that name them.

The functions return the similarities K (n×m) of the rows of X (n×d) and Y (m×d); temporary arrays
are no larger than K and the rows. ``Y=None`` compares X with itself, and K is exactly symmetric.
Float32 and narrower input is computed in float32, other input in float64.
"""

from tagkin.kernels.arc_cosine import ArcCosine, arc_cosine_kernel
from tagkin.kernels.base import KERNELS, Kernel, as_kernel
from tagkin.kernels.exp_chi2 import ExpChi2, exp_chi2_kernel
from tagkin.kernels.linear import Linear, linear_kernel
from tagkin.kernels.rbf import RBF, rbf_kernel

__all__ = [
    "KERNELS",
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
