"""NumPy arrays and torch tensors: namespace, dtype, device, blocks under a budget, checks.

All other packages work on NumPy arrays, memory maps, or torch tensors on any device. torch is
imported only if a tensor comes in. Linear algebra is in `tagkin.arrays.linalg`, threads in
`tagkin.arrays.threads`, precision on a GPU in `tagkin.arrays.device`, and label matrices and
scores in `tagkin.arrays.labels` and `tagkin.arrays.scores`.
"""

from tagkin.arrays.blocks import block_rows, memory_budget, row_blocks, smaller_blocks_when_full
from tagkin.arrays.checks import (
    as_block,
    check_features,
    check_finite,
    check_groups,
    check_integer,
    check_label_matrix,
    check_same_features,
)
from tagkin.arrays.device import matmul_precision, on_accelerator
from tagkin.arrays.logistic import expit, logit
from tagkin.arrays.namespaces import Array, like, namespace, on_device, to_numpy

__all__ = [
    "Array",
    "as_block",
    "block_rows",
    "check_features",
    "check_finite",
    "check_groups",
    "check_integer",
    "check_label_matrix",
    "check_same_features",
    "expit",
    "like",
    "logit",
    "matmul_precision",
    "memory_budget",
    "namespace",
    "on_accelerator",
    "on_device",
    "row_blocks",
    "smaller_blocks_when_full",
    "to_numpy",
]
