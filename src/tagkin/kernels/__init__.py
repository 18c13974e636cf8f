"""Kernels between rows of two blocks: pure functions, and small objects that name them.

The functions return the block K (n×m) of similarities between the rows of X (n×d) and
of Y (m×d); temporaries are no larger than that block and the rows given. With ``Y=None`` the
block is X with itself, exactly symmetric. Float32 and narrower input is computed in float32,
all other in float64.
"""

from tagkin.kernels.arc_cosine import ArcCosine, arc_cosine_kernel
from tagkin.kernels.base import Kernel
from tagkin.kernels.exp_chi2 import ExpChi2, exp_chi2_kernel
from tagkin.kernels.linear import Linear, linear_kernel
from tagkin.kernels.rbf import RBF, rbf_kernel
from tagkin.kernels.registry import as_kernel

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
