"""Groups of images that are held out together."""

from __future__ import annotations

import numpy as np

from tagkin.arrays import Array, check_groups, to_numpy
from tagkin.wording import count

__all__ = ["count_grouped", "describe_groups", "find_groups", "groups_to_hold_out"]


def find_groups(features: Array, groups: Array | None, n_folds: int) -> np.ndarray:
    """Return the groups (N,) that were passed, or near-duplicates among the features (N×d)."""
    if groups is not None:
        return check_groups(groups, features.shape[0])
    from tagkin.model_selection import find_groups as find_near_duplicates  # only learning needs it

    return find_near_duplicates(features, n_folds=max(2, n_folds))


def groups_to_hold_out(groups: np.ndarray) -> np.ndarray | None:
    """Return the groups, or None if no two images are in the same group."""
    return groups if count_grouped(groups)[1] else None


def describe_groups(groups: Array | None, image: str = "photograph", plural: str = "series") -> str:
    """Say how many photographs are in how many series; empty if no photograph is."""
    if groups is None:
        return ""
    n_images, n_groups = count_grouped(groups)
    return f"{count(n_images, image)} in {n_groups:,} {plural}" if n_groups else ""


def count_grouped(groups: Array) -> tuple[int, int]:
    """Count the images in groups of two or more, and these groups."""
    sizes = np.unique(to_numpy(groups), return_counts=True)[1]
    several = sizes[sizes > 1]
    return int(several.sum()), len(several)
