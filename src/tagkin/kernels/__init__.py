"""Kernels: objects that compare the rows of two blocks.

``kernel(X, Y)`` returns the similarities K (n×m) of the rows of X (n×d) and Y (m×d); temporary
arrays are no larger than K and the rows. ``Y=None`` compares X with itself, and K is exactly
symmetric. Float32 and narrower input is computed in float32, other input in float64.
"""

from typing import TYPE_CHECKING

from tagkin.kernels.base import Kernel
from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.kernels.arc_cosine import ArcCosine as ArcCosine
    from tagkin.kernels.by_name import KERNELS as KERNELS
    from tagkin.kernels.by_name import as_kernel as as_kernel
    from tagkin.kernels.exp_chi2 import ExpChi2 as ExpChi2
    from tagkin.kernels.linear import Linear as Linear
    from tagkin.kernels.rbf import RBF as RBF

__all__ = ["KERNELS", "RBF", "ArcCosine", "ExpChi2", "Kernel", "Linear", "as_kernel"]

# At first use: a model has one kernel.
_HOMES = {
    "ArcCosine": "arc_cosine",
    "ExpChi2": "exp_chi2",
    "KERNELS": "by_name",
    "Linear": "linear",
    "RBF": "rbf",
    "as_kernel": "by_name",
}
__getattr__ = lazy_names(__name__, _HOMES)
