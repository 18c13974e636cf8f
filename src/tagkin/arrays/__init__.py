"""NumPy arrays and torch tensors: namespace, dtype, device, blocks under a budget, checks.

All other packages work on NumPy arrays, memory maps, or torch tensors on any device. torch is
imported only if a tensor comes in. Linear algebra is in `tagkin.arrays.linalg`, threads in
`tagkin.arrays.threads`, and label matrices and scores in `tagkin.arrays.labels`.
"""

from tagkin.arrays.blocks import block_rows, memory_budget, row_blocks, smaller_blocks_when_full
from tagkin.arrays.checks import (
    as_block,
    check_features,
    check_finite,
    check_finite_features,
    check_groups,
    check_integer,
    check_label_matrix,
    check_same_features,
)
from tagkin.arrays.namespaces import (
    Array,
    expit,
    like,
    logit,
    namespace,
    on_accelerator,
    on_device,
    to_numpy,
)

__all__ = [
    "Array",
    "as_block",
    "block_rows",
    "check_features",
    "check_finite",
    "check_finite_features",
    "check_groups",
    "check_integer",
    "check_label_matrix",
    "check_same_features",
    "expit",
    "like",
    "logit",
    "memory_budget",
    "namespace",
    "on_accelerator",
    "on_device",
    "row_blocks",
    "smaller_blocks_when_full",
    "to_numpy",
]
