"""The overlap of neighbours' label sets (the paper's Figure 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

__all__ = ["neighborhood_jaccard"]

_ROWS = 256  # images at a time


def neighborhood_jaccard(
    Y_query: Any, Y_known: Any, indices: np.ndarray, sizes: Sequence[int]
) -> np.ndarray:
    """Mean Jaccard overlap of the label sets of images (n×D) and of their neighbours (n×K).

    J = 1/n Σᵢ 1/K Σₖ |Yᵢ ∩ Yₖ| / |Yᵢ ∪ Yₖ|, for the nearest K of every size. The overlap of two
    images without labels is 0. `indices` are rows of `Y_known`, nearest first.
    """
    query, known = (scipy.sparse.csr_array(Y, dtype=bool) for Y in (Y_query, Y_known))
    n, k = indices.shape
    total = np.zeros(k)
    for start in range(0, n, _ROWS):
        own, neighbors = query[start : start + _ROWS], indices[start : start + _ROWS]
        theirs = known[neighbors.ravel()]
        both = theirs.multiply(own[np.repeat(np.arange(len(neighbors)), k)])
        shared = np.asarray(both.sum(axis=1, dtype=np.intp)).reshape(-1, k)
        n_own, n_theirs = (np.diff(part.indptr) for part in (own, theirs))
        union = n_own[:, None] + n_theirs.reshape(-1, k) - shared
        total += (shared / np.maximum(union, 1)).sum(axis=0)
    curve = np.cumsum(total / n) / np.arange(1, k + 1)
    return curve[np.array(sizes, dtype=int) - 1]
