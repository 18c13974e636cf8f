"""Split images into folds, at random or by group."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from tagkin.arrays import Array, check_groups, check_integer
from tagkin.errors import InvalidInput
from tagkin.wording import count

__all__ = ["Fold", "number_folds", "random_folds"]


class Fold(NamedTuple):
    """Ascending indices of images, as int arrays."""

    known: np.ndarray
    """Images to learn from."""
    held_out: np.ndarray
    """Images to score."""

    @classmethod
    def of(cls, numbers: np.ndarray, number: int) -> Fold:
        """Return a fold by its number, given the numbers (n,) of the folds of all images."""
        return cls(np.flatnonzero(numbers != number), np.flatnonzero(numbers == number))


def random_folds(n_images: int, n_folds: int, random_state: int | None = 0) -> list[Fold]:
    """Split images at random into folds of equal size; each image is held out once.

    Parameters
    ----------
    n_images : int
        How many images there are.
    n_folds : int
        How many folds to make.
    random_state : int or None, default 0
        Seed of the split.

    Examples
    --------
    >>> from tagkin.model_selection import random_folds
    >>> [fold.held_out.tolist() for fold in random_folds(6, 3)]
    [[2, 3], [4, 5], [0, 1]]
    """
    numbers = number_folds(n_images, n_folds, None, random_state)
    return [Fold.of(numbers, k) for k in range(n_folds)]


def number_folds(
    n_images: int, n_folds: int, groups: Array | None, random_state: int | None
) -> np.ndarray:
    """Return the number of the fold that holds out each image, shape (n_images,).

    The images of a group stay together. Of a million images, the indices in 61 folds take half a
    gigabyte.
    """
    check_integer("n_folds", n_folds, 2)
    if groups is None:
        if n_images < 2 * n_folds:
            raise InvalidInput(
                f"Found {n_images} images for {n_folds} folds; each fold needs at least two."
            )
        order = np.random.default_rng(random_state).permutation(n_images)
        numbers = np.empty(n_images, np.intp)
        for k, part in enumerate(np.array_split(order, n_folds)):
            numbers[part] = k
        return numbers
    codes = check_groups(groups, n_images)
    largest = int(np.bincount(codes).max())
    if 2 * largest > n_images:
        warnings.warn(
            f"One group has {largest} of the {n_images} images. While it is held out, only "
            f"{n_images - largest} are left to learn from. Split the group if possible.",
            UserWarning,
            stacklevel=4,
        )
    return _number_group_folds(codes, n_folds)


def _number_group_folds(codes: np.ndarray, n_folds: int) -> np.ndarray:
    """Make folds of about equal size, exactly like scikit-learn's `GroupKFold`.

    Each group, largest first, goes to the fold with the fewest images. `codes` (n,) are the groups
    of the images, numbered from 0 without gaps.
    """
    sizes = np.bincount(codes)
    if n_folds > len(sizes):
        raise InvalidInput(
            f"Found {count(len(sizes), 'group')} of images for {n_folds} folds; each fold needs "
            "at least one group. Split groups, or pass no groups."
        )
    n_in_fold = [0] * n_folds
    fold_of = np.empty(len(sizes), np.intp)
    for group in np.argsort(sizes, kind="stable")[::-1]:
        fold_of[group] = smallest = n_in_fold.index(min(n_in_fold))
        n_in_fold[smallest] += int(sizes[group])
    return fold_of[codes]
