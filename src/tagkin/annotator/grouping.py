"""Groups of images that are held out together, given or found, and how to tell of them."""

from __future__ import annotations

import numpy as np

from tagkin.arrays import Array, check_groups, to_numpy
from tagkin.wording import count

__all__ = ["groups_of", "holdable", "n_in_groups", "series_text"]


def groups_of(features: Array, groups: Array | None, n_folds: int) -> np.ndarray:
    """Groups (N,) as they were given, or near-duplicates among the features (N×d)."""
    n = features.shape[0]
    if groups is not None:
        return check_groups(groups, n)
    from tagkin.model_selection import linked_groups, near_duplicates  # learning alone needs it

    return linked_groups(n, [near_duplicates(features)], max_size=max(1, n // n_folds))


def holdable(groups: np.ndarray) -> np.ndarray | None:
    """Groups to hold out as a whole; None where every image is one of its own."""
    return groups if n_in_groups(groups)[1] else None


def series_text(groups: Array | None, one: str = "photograph", several: str = "series") -> str:
    """How many photographs are in how many series, in words; nothing where there is none."""
    if groups is None:
        return ""
    n_photographs, n_series = n_in_groups(groups)
    return f"{count(n_photographs, one)} in {n_series:,} {several}" if n_series else ""


def n_in_groups(groups: Array) -> tuple[int, int]:
    """How many images are in groups of two or more, and how many such groups there are."""
    sizes = np.unique(to_numpy(groups), return_counts=True)[1]
    several = sizes[sizes > 1]
    return int(several.sum()), len(several)
