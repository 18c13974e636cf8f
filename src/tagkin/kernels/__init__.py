"""Kernels: objects that compare the rows of two blocks.

``kernel(X, Y)`` returns the similarities K (n×m) of the rows of X (n×d) and Y (m×d); temporary
arrays are no larger than K and the rows. ``Y=None`` compares X with itself, and K is exactly
symmetric. Float32 and narrower input is computed in float32, other input in float64.
"""

from tagkin.kernels.arc_cosine import ArcCosine
from tagkin.kernels.kernel import KERNELS, Kernel, as_kernel
from tagkin.kernels.linear_rbf import RBF, Linear

__all__ = ["KERNELS", "RBF", "ArcCosine", "Kernel", "Linear", "as_kernel"]
