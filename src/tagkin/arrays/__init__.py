"""The one door to NumPy and torch: namespace, dtype, device, blocks, threads.

Everything above works on "arrays": NumPy arrays, memory maps, or torch tensors on
any device. torch is never imported here unless a torch tensor comes in.
"""

from tagkin.arrays.blocks import (
    DEFAULT_BUDGET,
    block_rows,
    memory_budget,
    row_blocks,
    smaller_blocks_when_full,
)
from tagkin.arrays.checks import (
    any_nonzero,
    as_block,
    check_features,
    check_finite,
    check_groups,
    check_integer,
    check_label_matrix,
    check_labels,
    check_n_labels,
)
from tagkin.arrays.device import (
    ROUND_TO_TF32,
    fused,
    in_tf32,
    is_out_of_memory,
    matmul_precision,
    on_accelerator,
    round_to_tf32,
)
from tagkin.arrays.namespaces import (
    Array,
    like,
    namespace,
    on_device,
    to_numpy,
)
from tagkin.arrays.operations import (
    add_gram,
    bincount,
    cholesky,
    count_below,
    eigh,
    expit,
    kth_largest,
    matmul,
    mirror_lower,
    pivoted_cholesky,
    pivoted_factor,
    segment_sums,
    solve_triangular,
    weighted_rows,
)
from tagkin.arrays.threads import (
    blas_threads,
    blas_threads_for,
    one_thread,
    run_in_threads,
)

__all__ = [
    "DEFAULT_BUDGET",
    "ROUND_TO_TF32",
    "Array",
    "add_gram",
    "any_nonzero",
    "as_block",
    "bincount",
    "blas_threads",
    "blas_threads_for",
    "block_rows",
    "check_features",
    "check_finite",
    "check_groups",
    "check_integer",
    "check_label_matrix",
    "check_labels",
    "check_n_labels",
    "cholesky",
    "count_below",
    "eigh",
    "expit",
    "fused",
    "in_tf32",
    "is_out_of_memory",
    "kth_largest",
    "like",
    "matmul",
    "matmul_precision",
    "memory_budget",
    "mirror_lower",
    "namespace",
    "on_accelerator",
    "on_device",
    "one_thread",
    "pivoted_cholesky",
    "pivoted_factor",
    "round_to_tf32",
    "row_blocks",
    "run_in_threads",
    "segment_sums",
    "smaller_blocks_when_full",
    "solve_triangular",
    "to_numpy",
    "weighted_rows",
]
