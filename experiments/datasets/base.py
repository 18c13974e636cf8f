"""The contract of every dataset: images, expert labels, users' tags, splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.errors import InvalidInput

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """N images with expert labels, perhaps users' tags, and a split.

    Attributes
    ----------
    name : str
    files : sequence of N str, or None
        Where the images are, relative to the dataset's folder; None where only features are.
    features : array of shape (N, d), or None
        Visual features, where the dataset comes with them; may be a memory map.
    labels : sparse matrix of shape (N, D)
        Expert labels; `label_names` names the columns.
    tags : sparse matrix of shape (N, T), or None
        Users' tags, noisy; `tag_names` names the columns.
    train, test : int arrays
        Rows of the official split, ascending.
    tagged : int array, or None
        Rows of the images that users were asked to tag, ascending; None: all of them. The
        other rows of `tags` are empty because nobody was asked.
    """

    name: str
    files: Sequence[str] | None
    features: Any
    labels: scipy.sparse.csr_array
    label_names: Sequence[str]
    tags: scipy.sparse.csr_array | None
    tag_names: Sequence[str]
    train: np.ndarray
    test: np.ndarray
    tagged: np.ndarray | None = None

    def __post_init__(self) -> None:
        n = self.labels.shape[0]
        for what, found in (("files", self.files), ("features", self.features)):
            if found is not None and len(found) != n:
                raise InvalidInput(f"{self.name}: found {len(found)} {what} for {n} images.")
        for what, matrix, names in (
            ("labels", self.labels, self.label_names),
            ("tags", self.tags, self.tag_names),
        ):
            if matrix is not None and matrix.shape != (n, len(names)):
                raise InvalidInput(
                    f"{self.name}: {what} have shape {matrix.shape}; expected {n} images and "
                    f"{len(names)} names."
                )
        for what, rows in (("train", self.train), ("test", self.test), ("tagged", self.tagged)):
            if rows is not None:
                self._check_rows(what, rows, n)
        both = np.intersect1d(self.train, self.test)
        if both.size:
            raise InvalidInput(f"{self.name}: image {both[0]} is in train and in test.")

    def _check_rows(self, what: str, rows: np.ndarray, n: int) -> None:
        rows = np.asarray(rows)
        whole = rows.ndim == 1 and (rows.size == 0 or rows.dtype.kind in "iu")
        if not whole or (np.diff(rows) <= 0).any() or ((rows < 0) | (rows >= n)).any():
            raise InvalidInput(
                f"{self.name}: {what} must be numbers of rows from 0 to {n - 1}, ascending, each "
                f"once; found {rows!r}."
            )

    def __len__(self) -> int:
        return self.labels.shape[0]
